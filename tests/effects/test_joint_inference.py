"""Joint inference: bands, tests, exceedance, simulation and sequential design."""

import numpy as np
import oracles
import pandas as pd
import pytest
from models import plain_member, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import noises
from scipy import optimize, stats

from ulmus.core.query.sequential_design import next_points
from ulmus.effects.bands import N_DRAWS, simultaneous_band

GROUPS = np.tile(["a", "b", "c", "d"], 8)[:30]


@pytest.fixture(scope="module")
def data(make_table):
    return make_table(80, p=30)


@pytest.fixture(scope="module")
def model(data):
    return small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(data.X, data.y)


# ---------------------------------------------------------------- bands


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.97])
def test_the_critical_value_is_that_of_the_rectangle_probability(level, correlation):
    R = np.array([[1, correlation, -0.3], [correlation, 1, 0], [-0.3, 0, 1]])
    R[2, :2], R[:2, 2] = R[2, :2] * (1 - correlation), R[:2, 2] * (1 - correlation)
    sd = np.array([0.1, 5.0, 2.0])
    law = stats.multivariate_normal(np.zeros(3), R, abseps=1e-6, releps=1e-6, seed=0)

    def miss(c):
        return law.cdf(np.full(3, c), lower_limit=np.full(3, -c)) - level

    exact = optimize.brentq(miss, 0.5, 5, xtol=1e-4)
    ours = simultaneous_band(sd[:, None] * R * sd, level)
    assert abs(ours.critical_value - exact) < 4 * ours.monte_carlo_error
    assert 0 < ours.monte_carlo_error < 0.03
    assert_allclose(ours.pointwise_level, 1 - 2 * stats.norm.sf(ours.critical_value), rtol=1e-12)


@pytest.mark.parametrize("q", [2, 5, 40])
def test_independent_estimates_have_the_band_of_sidak(q):
    exact = stats.norm.isf((1 - 0.95 ** (1 / q)) / 2)
    ours = simultaneous_band(np.diag(np.linspace(0.1, 3, q)), 0.95)
    assert abs(ours.critical_value - exact) < 4 * ours.monte_carlo_error


def test_the_stated_error_is_that_of_order_statistics():
    # The maximum of two equal ones is |Z|: its quantile has sd sqrt(p (1 - p) / n) / density.
    ours, c = simultaneous_band(np.ones((2, 2)), 0.9), stats.norm.isf(0.05)
    expected = np.sqrt(0.9 * 0.1 / N_DRAWS) / (2 * stats.norm.pdf(c))
    assert_allclose(ours.monte_carlo_error, expected, rtol=0.2)


def test_single_or_exact_estimates_need_no_wider_band():
    one = np.ones((4, 4))
    exact = stats.norm.isf(0.025)
    assert (
        abs(simultaneous_band(one, 0.95).critical_value - exact)
        < 4 * simultaneous_band(one, 0.95).monte_carlo_error
    )
    certain = np.diag([1.0, 0.0, 0.0])
    assert abs(simultaneous_band(certain, 0.95).critical_value - exact) < 0.05
    assert simultaneous_band(np.zeros((2, 2)), 0.95).pointwise_level == 0.95


def test_bands_are_wider_than_intervals_and_the_same_each_time(model, data):
    alone = model.partial_dependence(data.X_new, 0, grid_resolution=9)
    ours = model.partial_dependence(data.X_new, 0, grid_resolution=9, simultaneous=True)
    again = model.partial_dependence(data.X_new, 0, grid_resolution=9, simultaneous=True)
    assert_array_equal(ours.estimate, alone.estimate)
    assert np.all(ours.conf_low < alone.conf_low)
    assert np.all(ours.conf_high > alone.conf_high)
    assert_array_equal(ours.conf_low, again.conf_low)
    (stated,) = ours.attrs["simultaneous"]
    expected = simultaneous_band(np.asarray(alone.attrs["covariance"]), 0.95)
    assert stated == expected._asdict()
    half = stats.t.isf((1 - expected.pointwise_level) / 2, ours.attrs["df"]) * ours.std_error
    assert_allclose(ours.conf_high - ours.estimate, half, rtol=1e-8)


def test_bands_of_several_outputs_share_the_error(data):
    Y = np.column_stack([data.y, data.y**2])
    fitted = small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(data.X, Y)
    ours = fitted.average(data.X_new, by=GROUPS, simultaneous=True, confidence_level=0.9)
    plain = fitted.average(data.X_new, by=GROUPS)
    for k, stated in enumerate(ours.attrs["simultaneous"]):
        few = slice(4 * k, 4 * k + 4)
        C = np.asarray(plain.attrs["covariance"])[few, few]
        assert stated == simultaneous_band(C, 0.95)._asdict()


# ---------------------------------------------------------------- hypotheses


@pytest.fixture(scope="module")
def peer(data, hidden):
    """One network, statsmodels' regression on its units, and four averages as combinations."""
    sm = pytest.importorskip("statsmodels.api")
    how = {"alpha": 0, "noise_variance": "residual", "weight_scale": 2.0, "random_state": 0}
    member = plain_member(8, **how).fit(data.X, data.y)
    D = oracles.design(hidden(member, data.X, data.X)[0], True)
    rows = oracles.design(hidden(member, data.X_new, data.X)[0], True)
    means = np.array([rows[g == GROUPS].mean(axis=0) for g in "abcd"])
    return member, sm.OLS(data.y, D).fit(), means


def assert_tests(frame, regression, L):
    """Rows are statsmodels' t-tests, and the joint test its F-test."""
    test = regression.t_test(L)
    assert_allclose(frame.estimate, test.effect, rtol=1e-8)
    assert_allclose(frame.std_error, np.ravel(test.sd), rtol=1e-8)
    assert_allclose(frame.p_value, np.ravel(test.pvalue), rtol=1e-6)
    assert_allclose(frame[["conf_low", "conf_high"]], test.conf_int(0.05), rtol=1e-8)


def assert_joint(frame, test, rank):
    (wald,) = frame.attrs["wald"]
    assert_allclose(wald["statistic"], np.ravel(test.fvalue)[0], rtol=1e-7)
    assert_allclose(wald["p_value"], np.ravel(test.pvalue)[0], rtol=1e-6)
    assert_allclose(wald["dof"], (rank, test.df_denom), rtol=1e-8)


def test_pairwise_differences_are_statsmodels(peer, data):
    member, regression, means = peer
    frame = member.average(data.X_new, by=GROUPS, hypothesis="pairwise")
    pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert_tests(frame, regression, np.array([means[b] - means[a] for a, b in pairs]))
    assert frame.term.tolist() == ["b - a", "c - a", "d - a", "c - b", "d - b", "d - c"]
    # Six differences of four averages have three directions.
    assert_joint(frame, regression.f_test(means[1:] - means[0]), 3)


def test_all_being_equal_is_the_f_test_of_statsmodels(peer, data):
    member, regression, means = peer
    frame = member.average(data.X_new, by=GROUPS, hypothesis="equal")
    test = regression.f_test(means[1:] - means[0])
    assert_joint(frame, test, 3)
    assert len(frame) == 1
    assert_allclose(frame.statistic, np.ravel(test.fvalue), rtol=1e-7)
    assert_allclose(frame.p_value, np.ravel(test.pvalue), rtol=1e-6)
    assert np.isnan(frame.estimate[0])


def test_given_combinations_are_statsmodels(peer, data):
    member, regression, means = peer
    L = np.array([[1, -0.5, -0.5, 0], [0, 0, 2, -1.0]])
    frame = member.average(data.X_new, by=GROUPS, hypothesis=L)
    assert_tests(frame, regression, L @ means)
    assert_joint(frame, regression.f_test(L @ means), 2)
    one = member.average(data.X_new, by=GROUPS, hypothesis=[1, 0, 0, -1])
    assert_tests(one, regression, means[[0]] - means[[3]])


def test_adjusted_p_values_are_those_of_holm(peer, data):
    multipletests = pytest.importorskip("statsmodels.stats.multitest").multipletests
    member, *_ = peer
    plain = member.average(data.X_new, by=GROUPS, hypothesis="pairwise")
    ours = member.average(data.X_new, by=GROUPS, hypothesis="pairwise", adjust="holm")
    assert_allclose(ours.p_value, multipletests(plain.p_value, method="holm")[1], rtol=1e-12)
    assert_array_equal(ours.conf_low, plain.conf_low)


def test_tests_of_each_output(data):
    Y = np.column_stack([data.y, data.y**2])
    both = (
        small_ensemble(4, 12, alpha=0.1, weight_scale=2.0)
        .fit(data.X, Y)
        .average(data.X_new, by=GROUPS, hypothesis="equal", adjust="holm")
    )
    assert both.output.tolist() == [0, 1]
    for k in range(2):
        alone = (
            small_ensemble(4, 12, alpha=0.1, weight_scale=2.0)
            .fit(data.X, Y[:, k])
            .average(data.X_new, by=GROUPS, hypothesis="equal")
        )
        assert_allclose(both.p_value[k], alone.p_value[0], rtol=1e-5)


# ---------------------------------------------------------------- probabilities


@noises
def test_exceedance_of_an_observation_is_that_of_predict_dist(data, noise):
    fitted = small_ensemble(4, 12, alpha=0.1, weight_scale=2.0, noise=noise).fit(data.X, data.y)
    distribution = fitted.predict_dist(data.X_new)
    ours = fitted.exceedance(data.X_new, 2.3)
    assert_allclose(ours, distribution.sf(2.3), rtol=1e-12)
    several = fitted.exceedance(data.X_new, [1.5, 2.3, 3.0])
    assert several.shape == (30, 3)
    assert_array_equal(several[:, 1], ours)
    assert np.all(np.diff(several, axis=1) < 0)


@pytest.mark.parametrize("target", ["expectation", "function"])
def test_the_function_exceeds_bounds_of_its_interval_as_often_as_they_say(model, data, target):
    X = data.X_new[:5]
    low, high = model.predict_interval(X, kind="confidence", target=target).T
    ours = model.exceedance(X, low.tolist(), of="mean", target=target)
    assert_allclose(np.diag(ours), 0.975, rtol=1e-8)
    ours = model.exceedance(X, high.tolist(), of="mean", target=target)
    assert_allclose(np.diag(ours), 0.025, rtol=1e-8)
    middle = model.exceedance(X, ((low + high) / 2).tolist(), of="mean", target=target)
    assert_allclose(np.diag(middle), 0.5, rtol=1e-8)
    rising = model.exceedance(X, np.linspace(0, 4, 9), of="mean", target=target)
    assert np.all(np.diff(rising, axis=1) <= 0)


def test_exceedance_of_several_outputs_and_without_end(data):
    fitted = small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(
        data.X, np.column_stack([data.y, -data.y])
    )
    ours = fitted.exceedance(data.X_new, [-np.inf, 2.0, np.inf])
    assert ours.shape == (30, 2, 3)
    assert_array_equal(ours[..., 0], 1)
    assert_array_equal(ours[..., 2], 0)
    assert fitted.exceedance(data.X_new, 2.0, of="mean").shape == (30, 2)


# ---------------------------------------------------------------- draws


@pytest.mark.parametrize("target", ["expectation", "function"])
def test_draws_have_the_mean_and_covariance_of_the_function(model, data, target):
    X, n = data.X_new[:6], 20_000
    draws = model.simulate(X, n, target=target, random_state=1)
    assert draws.shape == (n, 6)
    frame = model.average(X, by="row", target=target)
    C = np.asarray(frame.attrs["covariance"])
    if target == "expectation":
        assert_allclose(C, model.predict_cov(X), rtol=1e-10)
    errors = np.sqrt(np.diag(C) / n)
    assert np.all(np.abs(draws.mean(axis=0) - frame.estimate) < 5 * errors)
    v = np.diag(C)
    errors = np.sqrt((np.outer(v, v) + C**2) / n)
    assert np.all(np.abs(np.cov(draws.T) - C) < 5 * errors)


def test_draws_of_observations_have_the_predictive_distribution(model, data):
    X, n = data.X_new[:4], 5000
    draws = model.simulate(X, n, of="observation", random_state=2)
    for i in range(4):
        law = model.predict_dist(X[[i]])
        assert stats.kstest(draws[:, i], lambda x, law=law: law.cdf(x)).pvalue > 1e-3
    # They share the error of the function, and nothing else.
    scores = stats.norm.ppf(model.predict_dist(X).cdf(draws))
    C = model.predict_cov(X, component="total")
    R = C / np.sqrt(np.outer(np.diag(C), np.diag(C)))
    assert np.all(np.abs(np.corrcoef(scores.T) - R) < 5 / np.sqrt(n))


def test_a_seed_gives_the_same_draws(model, data):
    for of in ("mean", "observation"):
        first, second, other = (
            model.simulate(data.X_new, 3, of=of, random_state=seed) for seed in (5, 5, 6)
        )
        assert_array_equal(first, second)
        assert not np.any(first == other)
    state = np.random.get_state()[1].copy()  # noqa: NPY002 (nobody else's generator is touched)
    model.simulate(data.X_new, 3)
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_a_draw_of_the_function_is_a_smooth_curve(model):
    line = np.column_stack([np.linspace(-0.8, 0.8, 300), np.zeros(300), np.zeros(300)])
    sd = np.sqrt(model.predict_var(line, "model"))
    away = (model.simulate(line, 20, random_state=0) - model.predict(line)) / sd
    steps = np.diff(away, axis=1)
    assert np.max(np.abs(steps)) < 0.1
    assert np.std(away) > 0.5
    assert np.max(np.abs(np.diff(steps, axis=1))) < 0.01
    noisy = model.simulate(line, 20, of="observation", random_state=0)
    assert np.std(np.diff(noisy, axis=1)) > 0.5 * np.sqrt(model.predict_var(line, "noise")[0])


def test_draws_of_several_outputs(data):
    Y = np.column_stack([data.y, -data.y])
    draws = (
        small_ensemble(4, 12, alpha=0.1, weight_scale=2.0)
        .fit(data.X, Y)
        .simulate(data.X_new, 5, random_state=0)
    )
    assert draws.shape == (5, 30, 2)


# ---------------------------------------------------------------- new measurements


def test_next_points_are_those_of_the_core(model, data):
    index = np.arange(200, 230)
    candidates = pd.DataFrame(data.X_new, index=index)
    expected = next_points(model.fitted_, data.X_new, data.X[:9], 3)
    ours = model.next_points(candidates.to_numpy(), targets=data.X[:9], n=3)
    assert list(ours.columns) == ["step", "row", "x0", "x1", "x2", "variance"]
    assert ours.step.tolist() == [1, 2, 3]
    assert_array_equal(ours.row, expected.rows)
    assert_array_equal(ours[["x0", "x1", "x2"]], data.X_new[expected.rows])
    assert_allclose(ours.variance, expected.variance.sum(axis=(1, 2)), rtol=1e-12)
    before = model.predict_var(data.X[:9], "model").sum()
    assert_allclose(ours.attrs["before"], [before], rtol=1e-10)


def test_candidates_are_the_default_targets_and_keep_their_labels(data):
    names = ["t", "u", "v"]
    fitted = small_ensemble(4, 12, alpha=0.1, weight_scale=2.0).fit(
        pd.DataFrame(data.X, columns=names), data.y
    )
    table = pd.DataFrame(data.X_new, columns=names, index=np.arange(200, 230)).assign(site=GROUPS)
    ours = fitted.next_points(table, n=2)
    expected = next_points(fitted.fitted_, data.X_new, data.X_new, 2)
    assert_array_equal(ours.row, 200 + expected.rows)
    assert list(ours.columns) == ["step", "row", "t", "u", "v", "variance"]
    several = (
        small_ensemble(4, 12, alpha=0.1, weight_scale=2.0)
        .fit(data.X, np.column_stack([data.y, -data.y]))
        .next_points(data.X_new)
    )
    assert list(several.columns[-2:]) == ["variance_0", "variance_1"]
