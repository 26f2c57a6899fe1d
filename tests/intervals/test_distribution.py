"""Predictive distributions: their mathematics, what compress keeps, and their calibration."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from models import plain_ensemble, small_ensemble
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from scipy.integrate import quad

from ulmus.core.response.residual_distribution import residual_shape
from ulmus.intervals.distribution import (
    NORMAL_DOF,
    ShapedDistribution,
    departs_from_normal,
    fit_shape,
)
from ulmus.model_file import serialisation as arrays

SHAPED = np.array([True])
DRAWS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "exponential": lambda rng, n: rng.standard_exponential(n) - 1,
    "t3": lambda rng, n: rng.standard_t(3, n) / np.sqrt(3),
    "uniform": lambda rng, n: rng.uniform(-np.sqrt(3), np.sqrt(3), n),
    "two peaks": lambda rng, n: rng.choice([-1.0, 1.0], n) + 0.3 * rng.standard_normal(n),
}
draws = pytest.mark.parametrize("noise", DRAWS)


def shape_of(noise, n=200, seed=0):
    residuals = DRAWS[noise](np.random.default_rng(seed), n)
    return residual_shape(residuals[None], SHAPED), residuals


def simulated(n, noise="exponential", seed=0, outputs=None, d=1):
    """A plain fit to a wave with noise of the given shape, points, and new observations."""
    rng = np.random.default_rng([n, seed])
    X, points = rng.random((n, d)), rng.random((300, d))

    def observed(X):
        size = len(X) if outputs is None else len(X) * outputs
        f = np.sin(5 * X[:, 0]) + X[:, -1]
        error = 0.4 * DRAWS[noise](rng, size)
        return f + error if outputs is None else f[:, None] + error.reshape(-1, outputs)

    model = plain_ensemble(6, 30, random_state=seed).fit(X, observed(X))
    return model, points, observed(points)


# ---------------------------------------------------------------- the shape of residuals


@draws
@pytest.mark.parametrize("n", [20, 61, 3000])
def test_scores_rise_and_residuals_are_their_inverse(noise, n):
    shape, residuals = shape_of(noise, n)
    e = np.linspace(residuals.min() - 3, residuals.max() + 3, 2001)
    score, slope = shape.scores(e, 0)
    assert np.all(np.diff(score) > 0)
    assert_allclose(shape.residuals(score, 0), e, rtol=0, atol=1e-9)
    finite = np.diff(shape.scores(np.stack([e - 1e-6, e + 1e-6]), 0)[0], axis=0)[0] / 2e-6
    assert_allclose(slope, finite, rtol=2e-3, atol=1e-6)


@draws
def test_knots_are_quantiles_at_normal_scores(noise):
    shape, residuals = shape_of(noise, 199)
    for knot, score in zip(shape.knot[0], shape.score, strict=True):
        place = stats.norm.cdf(score) * 200 - 1
        expected = np.interp(place, np.arange(199), np.sort(residuals))
        assert_allclose(knot, expected, atol=2e-5)


@draws
def test_tails_have_the_mean_excess_of_the_residuals(noise):
    shape, residuals = shape_of(noise, 500)
    last, tail = shape.knot[0, -1], stats.norm.sf(shape.score[-1])
    q = tail * (np.arange(100_000) + 0.5) / 100_000
    excess = np.mean(shape.quantile(0)(1 - q) - last)
    assert_allclose(excess, np.mean(residuals[residuals > last] - last), rtol=1e-3)


def test_the_shape_of_mirrored_residuals_is_the_mirrored_shape():
    shape, residuals = shape_of("exponential")
    mirrored = residual_shape(-residuals[None], SHAPED)
    e = np.linspace(-5, 5, 101)
    assert_allclose(mirrored.scores(-e, 0)[0], -shape.scores(e, 0)[0], rtol=1e-9, atol=1e-12)


def test_tied_residuals_have_a_shape():
    residuals = np.repeat([-1.0, 0.0, 3.0], [40, 100, 20])
    shape = residual_shape(residuals[None], SHAPED)
    law = ShapedDistribution(shape)(0, NORMAL_DOF)
    assert np.all(np.isfinite(law.logpdf(np.linspace(-5, 9, 201))))
    assert 0.2 < law.cdf(-0.5) < 0.3
    assert 0.85 < law.cdf(1.5) < 0.9


# ---------------------------------------------------------------- a distribution of SciPy


@pytest.mark.slow
@draws
def test_the_distribution_agrees_with_itself(noise):
    law = ShapedDistribution(shape_of(noise)[0])(0, NORMAL_DOF, loc=1.0, scale=2.0)
    q = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])
    assert_allclose(law.cdf(law.ppf(q)), q, rtol=1e-6)
    assert_allclose(law.sf(law.isf(q)), q, rtol=1e-6)
    assert_allclose(law.interval(0.8), law.ppf([0.1, 0.9]))
    ends = law.ppf([1e-12, 1 - 1e-12])
    breaks = 1 + 2 * law.dist.residuals.knot[0]

    def moment(power, center):
        pieces = np.concatenate([ends[:1], breaks, ends[1:]])
        parts = [
            quad(lambda y: (y - center) ** power * law.pdf(y), *pair, limit=200)[0]
            for pair in pairwise(pieces)
        ]
        return sum(parts)

    assert_allclose(moment(0, 0.0), 1, rtol=1e-5)
    assert_allclose(law.mean(), moment(1, 0.0), atol=1e-3)
    assert_allclose(law.std(), np.sqrt(moment(2, law.mean())), rtol=1e-3)


@draws
def test_tails_are_no_lighter_than_normal_and_log_densities_finite(noise):
    law = ShapedDistribution(shape_of(noise)[0])(0, NORMAL_DOF)
    y = np.array([-1e4, -100.0, -20.0, 20.0, 100.0, 1e4])
    assert np.all(np.isfinite(law.logpdf(y)))
    assert np.all(law.logpdf(y)[[0, 1, 4, 5]] > stats.norm.logpdf(y)[[0, 1, 4, 5]])
    assert_array_equal(law.pdf(y), np.exp(law.logpdf(y)))


def test_one_shape_among_several_outputs_vectorised_and_pickled():
    residuals = np.stack([shape_of("exponential")[1], shape_of("normal")[1]])
    both = ShapedDistribution(residual_shape(residuals, np.array([True, False])))
    loc, scale, dof = np.arange(6.0).reshape(3, 2), np.ones((3, 2)) + 0.5, np.full((3, 2), 5.0)
    law = both([0.0, 1.0], dof, loc=loc, scale=scale)
    alone = ShapedDistribution(shape_of("exponential")[0])(0, NORMAL_DOF, loc[:, 0], scale[:, 0])
    student = stats.t(5.0, loc[:, 1], scale[:, 1])
    y = loc + 0.7
    for name in ("cdf", "sf", "logpdf", "pdf"):
        for again in (law, pickle.loads(pickle.dumps(law))):
            ours = getattr(again, name)(y)
            assert_allclose(ours[:, 0], getattr(alone, name)(y[:, 0]), err_msg=name)
            assert_allclose(ours[:, 1], getattr(student, name)(y[:, 1]), err_msg=name)
    for name in ("mean", "std", "median"):
        ours = getattr(law, name)()
        expected = np.column_stack([getattr(alone, name)(), getattr(student, name)()])
        assert_allclose(ours, expected, err_msg=name)
    assert law.ppf(np.array([0.1, 0.9])[:, None, None]).shape == (2, 3, 2)
    sample = law.rvs(size=(20_000, 3, 2), random_state=0)
    assert_allclose(np.mean(sample <= law.median(), axis=0), 0.5, atol=0.02)


# ---------------------------------------------------------------- of a fit


def test_normal_residuals_seldom_count_as_something_else():
    rng = np.random.default_rng(0)
    alarms = [departs_from_normal(rng.standard_normal(100)) for _ in range(1000)]
    # A nominal 2 % with a standard error of 0.4 %; the test is approximate.
    assert np.mean(alarms) < 0.04
    for noise in ("exponential", "t3", "uniform", "two peaks"):
        found = [departs_from_normal(DRAWS[noise](rng, 200)) for _ in range(100)]
        assert np.mean(found) > 0.9, noise


@pytest.mark.parametrize("residuals", [np.ones(50), np.zeros(50), np.arange(19.0) ** 3])
def test_too_few_or_equal_residuals_count_as_normal(residuals):
    assert not departs_from_normal(residuals)


def test_degrees_of_freedom_are_satterthwaites():
    model, X, _ = simulated(40, "normal")
    distribution = model.predict_dist(X)
    total, weights = model.predict_var(X), model.predict_var(X, component="weights")
    assert fit_shape(model.fitted_) is None
    for i, dof in enumerate(distribution.args[0]):
        w = min(weights[i], model.predict_var(X, component="model")[i])
        residual_dof = 40 - model.dof_
        spent = (total[i] - w) ** 2 / residual_dof + w**2 / 5
        assert_allclose(dof, total[i] ** 2 / spent, rtol=1e-8)
        if i == 5:
            break


@pytest.mark.parametrize("outputs", [None, 1, 2])
def test_compress_and_files_keep_the_shape(outputs):
    model, X, y = simulated(200, outputs=outputs)
    distribution = model.predict_dist(X)
    assert isinstance(distribution.dist, ShapedDistribution)
    assert distribution.mean().shape == y.shape
    before = distribution.logpdf(y)
    again = pickle.loads(pickle.dumps(model.compress()))
    assert_allclose(again.predict_dist(X).logpdf(y), before, rtol=1e-8)
    model.fitted_ = arrays.from_arrays(*arrays.to_arrays(model.fitted_))
    assert_allclose(model.predict_dist(X).logpdf(y), before, rtol=1e-8)
    expected = np.stack([distribution.ppf(0.05), distribution.ppf(0.95)], axis=-1)
    assert_allclose(model.predict_interval(X, 0.9), expected, rtol=1e-8)
    assert_allclose(model.predict_quantiles(X, [0.05, 0.95]), expected, rtol=1e-8)
    model.compress()  # again, without residuals
    assert_allclose(model.predict_dist(X).logpdf(y), before, rtol=1e-8)


def test_a_stream_is_students():
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 2)), rng.exponential(size=300)
    model = plain_ensemble(4, 20, random_state=0).partial_fit(X, y)
    assert model.predict_dist(X[:5]).dist.name == "t"


def test_outputs_without_noise_have_a_distribution():
    X = np.random.default_rng(0).random((60, 1))
    law = plain_ensemble(4, 20, random_state=0).fit(X, np.ones(60)).predict_dist(X)
    assert_allclose(law.ppf(0.9), 1)


def test_units_of_y_and_its_mirror_image():
    model, X, _ = simulated(150)
    law = model.predict_dist(X)
    rows = model.fitted_.rows.data
    other = plain_ensemble(6, 30, random_state=0).fit(rows.X, 5 - 1e3 * rows.y[0])
    assert_allclose(other.predict_dist(X).ppf(0.9), 5 - 1e3 * law.ppf(0.1), rtol=1e-5)


# ---------------------------------------------------------------- calibration
# Fixed seeds. Twenty fits and 300 points each: the share below a level varies by about 0.02 from
# fit to fit at the ends and 0.05 in the middle, so 0.02 and 0.03 are more than two standard errors.

extrapolating = pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")


@pytest.mark.slow
@extrapolating
@draws
@pytest.mark.parametrize(("n", "d"), [(100, 1), (250, 4)])
def test_new_observations_are_uniform_under_the_distribution(noise, n, d):
    pit, gain = [], []
    for seed in range(20):
        model, X, y = simulated(n, noise, seed, d=d)
        law, normal = model.predict_dist(X), stats.norm(*model.predict(X, return_std=True))
        pit.append(law.cdf(y))
        gain.append(np.mean(law.logpdf(y) - normal.logpdf(y)))
    below = [np.mean(np.array(pit) <= u) for u in (0.05, 0.5, 0.95)]
    assert np.all(np.abs(np.subtract(below, [0.05, 0.5, 0.95])) < [0.02, 0.03, 0.02]), below
    # Log scores are about -0.75. Nothing is lost under normal noise; uniform noise, blurred by the
    # error of the prediction, is too close to it for a gain.
    assert np.mean(gain) > {"normal": -0.003, "uniform": -0.01}.get(noise, 0.02)


@pytest.mark.slow
@extrapolating
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.NegativeVarianceWarning")
def test_gaussian_intervals_cover_in_small_samples():
    # With normal quantiles, and an alpha that was taken as known, they covered 0.84; 200 fits
    # leave a standard error of 0.006.
    inside = []
    for seed in range(200):
        model, X, y = simulated(20, "normal", seed, d=4)
        low, high = model.predict_interval(X, 0.9, method="gaussian").T
        inside.append(np.mean((low <= y) & (y <= high)))
    assert 0.88 < np.mean(inside) < 0.94


def test_many_rows_leave_gaussian_intervals_as_they_were():
    model, X, _ = simulated(400, "normal")
    _, sd = model.predict(X, return_std=True)
    half = np.diff(model.predict_interval(X, 0.95, method="gaussian"), axis=1)[:, 0] / 2
    assert_allclose(half, 1.96 * sd, rtol=0.008)


@pytest.mark.slow
@extrapolating
def test_both_tails_of_quantiles_are_calibrated_in_small_samples():
    # The lower tail was too high by a rank: 0.11 below the 0.05 quantile.
    below = []
    for seed in range(200):
        model, X, y = simulated(20, "normal", seed)
        below.append(np.mean(y[:, None] <= model.predict_quantiles(X, [0.05, 0.5, 0.95]), axis=0))
    assert_allclose(np.mean(below, axis=0), [0.05, 0.5, 0.95], rtol=0, atol=0.025)


# ---------------------------------------------------------------- quantiles and probabilities


LEVELS_OF_ROUND_TRIP = np.concatenate([[1e-6, 1e-3], np.linspace(0.005, 0.995, 100), [0.999]])


def assert_round_trip(model, X):
    """Quantile function and distribution function are inverse to each other."""
    found = model.predict_dist(X)
    for level in LEVELS_OF_ROUND_TRIP:
        assert_allclose(found.cdf(found.ppf(level)), level, rtol=0, atol=1e-8)
        assert_allclose(found.sf(found.isf(level)), level, rtol=0, atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e4])
def test_quantiles_of_tied_residuals_have_their_probability(offset):
    """Between ties the distribution function rose by 2e-5 within the precision of y."""
    rng = np.random.default_rng(0)
    X = np.ones((300, 1))
    model = small_ensemble(3, 5, alpha=1.0).fit(X, offset + (rng.random(300) < 0.1))
    assert_round_trip(model, X[:2])


@pytest.mark.parametrize("offset", [0.0, 10.0, 1e6])
def test_quantiles_without_noise_have_their_probability(offset):
    """The scale was so small that neighbouring numbers were a fifth of all probability apart."""
    X = np.random.default_rng(0).uniform(-1, 1, (200, 2))
    model = small_ensemble(3, 2, alpha=0.0, activation="identity")
    model.fit(X, offset + X[:, 0])
    assert_round_trip(model, X[:5])
    # It remains far below every scale of the outputs.
    assert np.all(model.predict_dist(X[:5]).std() < 1e-7 * (1 + offset))
