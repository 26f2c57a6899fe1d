"""Where to measure next, against refits with every candidate and against explicit matrices."""

import numpy as np
import oracles
import pytest
from messages import mentions
from models import member_or_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import alphas, intercepts, noises, weightings
from scipy.linalg import block_diag
from scipy.sparse import csr_array

from ulmus import ELMEnsembleRegressor
from ulmus.core.arrays.backend import to_numpy
from ulmus.core.query.sequential_design import augmented_regression, next_points
from ulmus.core.ridge.member_pairs import PairGram
from ulmus.core.variance.quadratic_forms import RowForm
from ulmus.exceptions import NegativeVarianceWarning, UlmusWarning
from ulmus.noise import AR1, Clustered, Exponential

# Neither alpha, the noise variance nor the scale of the inputs moves with a new row.
HELD = {"alpha": 0.1, "noise_variance": 1.0, "standardize": False}
CANDIDATES, TARGETS = np.split(np.random.default_rng(3).uniform(-1, 1, (15, 3)), [9])


def held(M=4, N=6, **parameters):
    """An unfitted ensemble, or one network for M = 1, of which a new row moves little."""
    return member_or_ensemble(M, N, **HELD | parameters)


def with_row(make, model, rows, x):
    """The model refitted with one more row, at which it has measured its own prediction.

    Up to a change that distinguishes a repeated measurement from a copy of a row.
    """
    X, y, w = rows
    measured = model.predict(x[None]) + 1e-10 * len(y)
    rows = np.vstack([X, x]), np.append(y, measured), np.append(w, mean_weight(w))
    return make().fit(*rows), rows


def mean_weight(w):
    return np.mean(w[w > 0])


def greedy_refits(make, rows, candidates, targets, n):
    """Choices and variances (n, p), by a refit with every candidate in each step."""
    model, chosen, variances = make().fit(*rows), [], []
    for _ in range(n):
        trials = [with_row(make, model, rows, x) for x in candidates]
        by_trial = [one.predict_var(targets, component="model") for one, _ in trials]
        chosen.append(int(np.argmin(np.sum(by_trial, axis=1))))
        variances.append(by_trial[chosen[-1]])
        model, rows = trials[chosen[-1]]
    return chosen, np.array(variances)


def rows_of(make_table, n=50, weighted=False):
    """Training rows; some of the weights are zero."""
    data = make_table(n)
    w = np.where(np.arange(n) % 9 == 4, 0, data.w) if weighted else np.ones(n)
    return data.X, data.y, w


# ---------------------------------------------------------------- refits


@pytest.mark.slow
@alphas
@intercepts
@weightings
@pytest.mark.parametrize(("M", "n"), [(1, 50), (4, 20), (4, 50)])
def test_each_choice_and_variance_is_that_of_the_best_refit(
    make_table, M, n, alpha, intercept, weighted
):
    def make():
        return held(M, alpha=alpha, fit_intercept=intercept)

    rows = rows_of(make_table, n, weighted)
    model = make().fit(*rows)
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 5)
    chosen, variances = greedy_refits(make, rows, CANDIDATES, TARGETS, 5)
    form = model.fitted_.ensemble.regressions[0].forms["common"].shared
    assert isinstance(form, RowForm if n == 20 else PairGram)
    assert_array_equal(ours.rows, chosen)
    assert_allclose(ours.before[:, 0], model.predict_var(TARGETS, component="model"), rtol=1e-10)
    assert_allclose(ours.variance[:, :, 0], variances, rtol=1e-8)


def test_scores_of_candidates_are_the_variances_after_them(make_table):
    rows = rows_of(make_table)
    model = held().fit(*rows)
    trials = [with_row(held, model, rows, x)[0] for x in CANDIDATES]
    expected = [np.sum(one.predict_var(TARGETS, component="model")) for one in trials]
    (part,) = model.fitted_.ensemble.regressions
    square = model.fitted_.ensemble.unit[0] ** 2
    ours = augmented_regression(model.fitted_, part, CANDIDATES, TARGETS).scores(np.array([square]))
    assert_allclose(ours, expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.NegativeVarianceWarning")
def test_negative_variances_are_replaced_by_no_more_than_those_before(make_table):
    """The positive part of an estimate may exceed the positive estimate without the row."""

    def make():
        how = {"activation": "cos", "weight_scale": 10.0, "fit_intercept": False}
        return held(2, 20, noise_variance=100.0, **how)

    rows = rows_of(make_table)
    model = make().fit(*rows)
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 3)
    chosen, variances = greedy_refits(make, rows, CANDIDATES, TARGETS, 3)
    assert_array_equal(ours.rows, chosen)
    found = ours.variance[:, :, 0]
    before = np.concatenate([ours.before[:, 0][None], found[:-1]])
    bounded = found < variances * (1 - 1e-6)
    assert np.any(bounded)
    assert_allclose(found, np.where(bounded, before, variances), rtol=1e-8)
    with pytest.warns(NegativeVarianceWarning):
        model.predict_var(TARGETS, component="model")


@pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic", "auto", Clustered()])
def test_a_row_that_would_increase_the_variance_is_not_used(make_table, noise):
    """A strong ridge shrinks less with every row: the variance grew from step to step."""
    X, y, _ = rows_of(make_table)
    groups = {"groups": np.arange(len(y)) // 3} if isinstance(noise, Clustered) else {}
    strong = {"alpha": 1e4, "fit_intercept": False, "noise": noise}
    model = held(3, **strong).fit(X, y, **groups)
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 3)
    total = np.concatenate([[ours.before.sum()], ours.variance.sum(axis=(1, 2))])
    assert not np.any(ours.improved)
    assert_allclose(total, total[0])
    with pytest.warns(UlmusWarning, match="no candidate .* reduces the variance"):
        frame = model.next_points(CANDIDATES, targets=TARGETS, n=2)
    assert_allclose(frame["variance"], frame.attrs["before"] * 2)


def test_a_target_given_twice_counts_twice(make_table):
    def make():
        return held(4)

    rows, model = rows_of(make_table), make().fit(*rows_of(make_table))
    choices = set()
    for heavy in range(len(TARGETS)):
        targets = np.vstack([TARGETS, *[TARGETS[heavy : heavy + 1]] * 20])
        ours = next_points(model.fitted_, CANDIDATES, targets, 1)
        chosen, variances = greedy_refits(make, rows, CANDIDATES, targets, 1)
        assert_array_equal(ours.rows, chosen)
        assert_allclose(ours.variance[:, :, 0], variances, rtol=1e-8)
        choices.add(chosen[0])
    assert len(choices) > 1


# ---------------------------------------------------------------- explicit matrices


@pytest.mark.parametrize("n", [20, 50], ids=["dual", "primal"])
@pytest.mark.parametrize("name", ["BR", "NHo", "S1", "NHe", "S2", "S3"])
@weightings
def test_every_estimate_with_the_noise_of_old_rows_held(make_table, hidden, name, n, weighted):
    # The squared residuals of the old rows stay; a new row has the noise of a new observation.
    X, y, w = rows = rows_of(make_table, n, weighted)
    noise = "homoskedastic" if name in ("BR", "NHo") else "heteroskedastic"
    how = HELD | {"noise": noise, "variance": name, "hc": "HC2", "noise_variance": "residual"}
    model = member_or_ensemble(4, 6, **how).fit(*rows)
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 3)
    H, h, hc = (hidden(model, A, X) for A in (X, TARGETS, CANDIDATES))
    omega = oracles.omega("HC2", H, y, 0.1, True, w)
    if noise == "homoskedastic":
        omega = np.full((4, n), model.noise_variance_)
    weight = mean_weight(w)
    for step, i in enumerate(ours.rows):
        f = np.mean(oracles.predictions(H, [a[i : i + 1] for a in hc], y, 0.1, True, w))
        H = [np.vstack([a, b[i]]) for a, b in zip(H, hc, strict=True)]
        y, w = np.append(y, f), np.append(w, weight)
        new = model.predict_var(CANDIDATES[i : i + 1], component="noise") * weight
        if noise == "homoskedastic":
            new = omega[:1, 0]
        omega = np.column_stack([omega, np.repeat(new, 4)])
        z = oracles.smoother_rows(H, h, 0.1, True, w, weighted=True)
        S = [np.diag(row) for row in omega]
        table = {"BR": "s2", "NHo": "nhe", "S1": "s1", "NHe": "nhe", "S2": "s2", "S3": "s3"}
        expected = getattr(oracles, table[name])(z, S)
        expected = expected + oracles.spread(H, h, y, 0.1, True, w) / 4
        assert_allclose(ours.variance[step, :, 0], expected, rtol=1e-8)


@pytest.mark.parametrize("n", [30, 90], ids=["dual", "primal"])
@pytest.mark.parametrize("noise", [AR1(), Exponential()])
@weightings
def test_correlated_noise_is_that_of_the_training_rows(make_table, hidden, noise, n, weighted):
    # A new row has the noise of a new observation, independent of the others.
    X, y, w = rows_of(make_table, n, weighted)
    rng, t = np.random.default_rng(0), np.arange(n)
    distance = np.abs(t[:, None] - t)
    y = y + 3 * np.linalg.cholesky(np.exp(-distance / 9)) @ rng.standard_normal(n)
    locations = {"coords": t} if isinstance(noise, Exponential) else {"time": t}
    model = member_or_ensemble(4, 6, **HELD | {"noise": noise, "noise_variance": "pilot"})
    model.fit(X, y, w, **locations)
    covariance = model.noise_covariance_
    assert not covariance.independent
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 3)
    assert_allclose(ours.before[:, 0], model.predict_var(TARGETS, component="model"), rtol=1e-10)
    H, h, hc = (hidden(model, A, X) for A in (X, TARGETS, CANDIDATES))
    S = covariance.structured_variance * np.exp(-distance / covariance.scales[0])
    S += covariance.nugget_variance * np.eye(n)
    for step, i in enumerate(ours.rows):
        f = np.mean(oracles.predictions(H, [a[i : i + 1] for a in hc], y, 0.1, True, w))
        H = [np.vstack([a, b[i]]) for a, b in zip(H, hc, strict=True)]
        y, w = np.append(y, f), np.append(w, mean_weight(w))
        S = block_diag(S, covariance.variance)
        z = oracles.smoother_rows(H, h, 0.1, True, w, weighted=True)
        expected = oracles.s2(z, [S] * 4) + oracles.spread(H, h, y, 0.1, True, w) / 4
        assert_allclose(ours.variance[step, :, 0], expected, rtol=1e-6)


def test_several_outputs_have_their_own_dependent_noise(make_table):
    X, y, _ = rows_of(make_table, 60)
    both = np.column_stack([y, np.cumsum(y)])
    model = held(3, noise=AR1(), noise_variance="pilot").fit(X, both)
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 2)
    for k in range(2):
        one = held(3, noise=AR1(), noise_variance="pilot").fit(X, both[:, k])
        alone = next_points(one.fitted_, CANDIDATES[ours.rows[:1]], TARGETS, 1)
        assert_allclose(ours.variance[0, :, k], alone.variance[0, :, 0], rtol=1e-6)


def test_choosing_alpha_and_the_map_costs_what_it_did(make_table):
    X, y, _ = rows_of(make_table, 60)
    model = ELMEnsembleRegressor(3, 40, random_state=0).fit(X, y)
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 4)
    kept = model.fitted_.choice_variance(TARGETS)
    assert np.all(kept > 0)
    assert np.all(ours.variance > kept)
    assert_allclose(ours.before[:, 0], model.predict_var(TARGETS, component="model"), rtol=1e-10)
    model.compress()
    again = next_points(model.fitted_, CANDIDATES, TARGETS, 4)
    assert_array_equal(again.rows, ours.rows)
    assert_allclose(again.variance, ours.variance, rtol=1e-8)


# ---------------------------------------------------------------- other fits of the same rows


@noises
def test_fits_without_rows_agree_with_those_in_memory(make_table, noise):
    rows = rows_of(make_table, 20, weighted=True)
    expected = next_points(held(noise=noise).fit(*rows).fitted_, CANDIDATES, TARGETS, 4)
    blocks = [tuple(a[part] for a in rows) for part in (slice(12), slice(12, 20))]
    fits = held(noise=noise).fit(*rows).compress(), held(noise=noise).fit_blocks(blocks)
    for model in fits:
        ours = next_points(model.fitted_, CANDIDATES, TARGETS, 4)
        assert_array_equal(ours.rows, expected.rows)
        assert_allclose(ours.variance, expected.variance, rtol=1e-7)


@pytest.mark.parametrize("n", [20, 50], ids=["dual", "primal"])
@noises
def test_other_array_libraries_give_the_same_numbers(xp, make_table, n, noise):
    rows = rows_of(make_table, n)
    ours = held(noise=noise).fit(*map(xp.asarray, rows))
    expected = held(noise=noise).fit(*rows)
    points = xp.asarray(CANDIDATES), xp.asarray(TARGETS)
    ours = next_points(ours.fitted_, *points, 3)
    expected = next_points(expected.fitted_, CANDIDATES, TARGETS, 3)
    assert_array_equal(ours.rows, expected.rows)
    assert_allclose(to_numpy(ours.variance), expected.variance, rtol=1e-8)


def test_sparse_points_are_those_of_the_dense_ones(make_table):
    X, y, w = rows_of(make_table)
    fit = held(noise="heteroskedastic").fit(X, y, w).fitted_
    ours = next_points(fit, csr_array(CANDIDATES), csr_array(TARGETS), 3)
    expected = next_points(fit, CANDIDATES, TARGETS, 3)
    assert_array_equal(ours.rows, expected.rows)
    assert_allclose(ours.variance, expected.variance, rtol=1e-10)


def test_single_precision_is_near_double_precision(make_table):
    rows = rows_of(make_table)
    ours = held(dtype="float32").fit(*rows).fitted_
    single = next_points(ours, CANDIDATES.astype("float32"), TARGETS.astype("float32"), 3)
    double = next_points(held().fit(*rows).fitted_, CANDIDATES, TARGETS, 3)
    assert_array_equal(single.rows, double.rows)
    assert_allclose(single.variance, double.variance, rtol=1e-3)


@pytest.mark.parametrize("elements", [1, 2 * 4 * len(TARGETS)])
def test_blocks_of_candidates_change_nothing(make_table, monkeypatch, elements):
    fit = held().fit(*rows_of(make_table)).fitted_
    whole = next_points(fit, CANDIDATES, TARGETS, 3)
    monkeypatch.setattr("ulmus.core.query.sequential_design.CANDIDATE_ELEMENTS", elements)
    ours = next_points(fit, CANDIDATES, TARGETS, 3)
    assert_array_equal(ours.rows, whole.rows)
    assert_allclose(ours.variance, whole.variance, rtol=1e-12)


# ---------------------------------------------------------------- several outputs


def two_outputs(make_table, factor=1.0):
    X, y, w = rows_of(make_table)
    wild = 0.2 * X[:, 1] + np.random.default_rng(0).standard_normal(len(y))
    return X, np.column_stack([y, factor * wild]), w


@pytest.mark.slow
@noises
@pytest.mark.parametrize("alpha", [0.1, "loo"])
def test_each_output_counts_in_units_of_its_variance(make_table, alpha, noise):
    def make():
        return held(4, 12, alpha=alpha, noise=noise, noise_variance="residual")

    X, Y, w = two_outputs(make_table)
    model, other = make().fit(X, Y, w), make().fit(*two_outputs(make_table, factor=1000.0))
    assert len(model.fitted_.ensemble.regressions) == (1 if alpha == 0.1 else 2)
    ours = next_points(model.fitted_, CANDIDATES, TARGETS, 4)
    assert_array_equal(ours.rows, next_points(other.fitted_, CANDIDATES, TARGETS, 4).rows)
    scores = 0.0
    for k in range(2):
        alone = make().fit(X, Y[:, k], w).fitted_
        each = [next_points(alone, x[None], TARGETS, 1) for x in CANDIDATES]
        scores = scores + np.array([np.sum(one.variance) / np.mean(one.before) for one in each])
        chosen = next_points(alone, CANDIDATES[ours.rows[:1]], TARGETS, 1)
        assert_allclose(ours.variance[:1, :, k : k + 1], chosen.variance, rtol=1e-7)
    assert ours.rows[0] == np.argmin(scores)


# ---------------------------------------------------------------- properties and limits


def test_least_squares_with_one_member_never_becomes_less_certain(make_table):
    fit = held(1, 8, alpha=0.0).fit(*rows_of(make_table)).fitted_
    ours = next_points(fit, CANDIDATES, TARGETS, 8)
    steps = np.concatenate([ours.before[None], ours.variance])
    assert np.all(np.diff(steps, axis=0) <= 1e-12 * steps[:-1])
    assert np.all(ours.variance[-1] < ours.before)


def test_candidates_can_be_their_own_targets(make_table):
    fit = held(1, 8).fit(*rows_of(make_table)).fitted_
    ours = next_points(fit, CANDIDATES, CANDIDATES, 1)
    i = ours.rows[0]
    assert np.argmin(ours.variance[0, :, 0] / ours.before[:, 0]) == i


def test_one_candidate_is_measured_again_and_again(make_table):
    ours = next_points(held().fit(*rows_of(make_table)).fitted_, CANDIDATES[:1], TARGETS, 4)
    assert_array_equal(ours.rows, 0)
    assert ours.variance.shape == (4, len(TARGETS), 1)
    assert np.all(np.diff(np.sum(ours.variance, axis=(1, 2))) < 0)


def test_a_candidate_without_features_is_uninformative(make_table):
    # No unit is active where its input is below 3, and there is no intercept.
    def active(u):
        return np.maximum(np.abs(u) - 3.0, 0.0)

    X, y, w = rows_of(make_table)
    model = held(3, activation=active, fit_intercept=False).fit(4 * X, y, w)
    candidates = np.vstack([np.zeros(3), 4 * CANDIDATES])
    assert not np.any(model.fitted_.features(candidates[:1]))
    ours = next_points(model.fitted_, candidates[:1], 4 * TARGETS, 2)
    assert_allclose(ours.variance, np.stack([ours.before] * 2), rtol=1e-10)
    assert next_points(model.fitted_, candidates, 4 * TARGETS, 1).rows[0] != 0


def test_the_fit_is_not_changed(make_table):
    for n in (20, 50):
        fit = held(noise="heteroskedastic").fit(*rows_of(make_table, n)).fitted_
        first, second = (next_points(fit, CANDIDATES, TARGETS, 3) for _ in range(2))
        assert_array_equal(first.variance, second.variance)


def test_invalid_designs_raise_errors(make_table):
    rows = rows_of(make_table)
    fit = held().fit(*rows).fitted_
    with pytest.raises(ValueError, match=mentions("n=0", "n >= 1")):
        next_points(fit, CANDIDATES, TARGETS, 0)
    with pytest.raises(ValueError, match=mentions("candidates", "at least one")):
        next_points(fit, CANDIDATES[:0], TARGETS, 1)
    with pytest.raises(ValueError, match=mentions("targets", "at least one")):
        next_points(fit, CANDIDATES, TARGETS[:0], 1)
    exact = held(noise="heteroskedastic", hc="HC3-exact").fit(*rows).fitted_
    with pytest.raises(ValueError, match=mentions("HC3-exact", "hc='HC3'")):
        next_points(exact, CANDIDATES, TARGETS, 1)


def test_the_gap_between_the_rows_is_measured_first():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.uniform(-1, -0.4, 60), rng.uniform(0.4, 1, 60)])[:, None]
    y = np.sin(3 * X[:, 0]) + 0.2 * rng.standard_normal(120)
    model = ELMEnsembleRegressor(8, 40, random_state=0).fit(X, y)
    grid = np.linspace(-1, 1, 41)[:, None]
    ours = next_points(model.fitted_, grid, grid, 3)
    assert np.all(np.abs(grid[ours.rows]) < 0.4)
    # What choosing alpha and the map costs is held as it is.
    held = model.fitted_.choice_variance(grid)
    assert np.mean(ours.variance[-1] - held) < 0.7 * np.mean(ours.before - held)
