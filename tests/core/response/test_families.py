"""Response families against closed forms, sums and integrals written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from ulmus.core.response.counts import count_family, dispersion_by_moments
from ulmus.core.response.family import (
    END_NODES,
    INNER_NODES,
    LinkPrediction,
    residual_nodes,
    tail_scores,
    variances,
)
from ulmus.core.response.point_mass import point_mass
from ulmus.core.response.transformed import Transformed
from ulmus.core.response.transforms import Identity, Log, Logit, Sqrt, YeoJohnson

M = np.array([-0.5, 0.0, 1.2])
S = np.array([0.3, 0.5, 0.8])


def links(mean=M, noise=S, model=None):
    model = np.zeros_like(mean) if model is None else model
    return LinkPrediction(mean, noise, model, stats.norm(mean, np.hypot(noise, model)))


def normal_family(transform, **bounds):
    nodes = residual_nodes(special.ndtri((np.arange(4000) + 0.5) / 4000), 4000.0)
    return Transformed(transform, nodes, **bounds)


# ------------------------------------------------------------ transformed


def test_nodes_are_all_residuals_of_few_rows_and_groups_of_many():
    e = np.random.default_rng(0).standard_normal(100)
    nodes = residual_nodes(e, 90.0)
    assert_allclose(nodes.value, np.sort(e - e.mean()) / e.std())
    assert_allclose(nodes.weight, 0.01)
    many = residual_nodes(np.random.default_rng(1).standard_normal(5000), 4990.0)
    assert len(many.value) == 2 * END_NODES + INNER_NODES
    assert_allclose([many.weight.sum(), many.weight @ many.value], [1, 0], atol=1e-12)


def test_fewer_than_twenty_residuals_are_normal():
    nodes = residual_nodes(np.arange(10.0), 5.0)
    assert_allclose(nodes.weight @ nodes.value**2, 1, atol=0.03)


def test_the_mean_of_a_logarithm_is_that_of_a_lognormal_distribution():
    family = normal_family(Log())
    assert_allclose(family.mean(links()), np.exp(M + S**2 / 2), rtol=2e-3)
    assert_allclose(family.mean_slope(links()), family.mean(links()))
    variance = np.exp(2 * M + S**2) * np.expm1(S**2)
    assert_allclose(family.noise_variance(links()), variance, rtol=0.02)


def test_the_mean_is_the_smearing_estimate_of_duan():
    e = np.random.default_rng(3).gamma(2.0, size=60)
    e = (e - e.mean()) / e.std()
    family = Transformed(Log(), residual_nodes(e, 50.0))
    expected = [np.mean([np.exp(m + s * one) for one in e]) for m, s in zip(M, S, strict=True)]
    assert_allclose(family.mean(links()), expected)


def test_the_identity_changes_nothing():
    e = np.random.default_rng(4).gamma(2.0, size=80)
    family = Transformed(Identity(), residual_nodes(e - e.mean(), 70.0))
    assert_allclose(family.mean(links()), M, rtol=0, atol=1e-14)
    assert_allclose(family.mean_slope(links()), 1)
    assert_allclose(variances(family.influence(links())), 0, atol=1e-15)


@pytest.mark.parametrize("transform", [Log(), Sqrt(), Logit(), YeoJohnson(0.5)])
def test_distributions_integrate_to_one(transform):
    family, link = normal_family(transform), links(np.array([0.8]), np.array([0.2]))
    low, high = family.ppf(np.array(1e-9), link)[0], family.ppf(np.array(1 - 1e-9), link)[0]
    mass, _ = integrate.quad(
        lambda y: float(np.exp(family.logpdf(np.array([y]), link))[0]), low, high, limit=200
    )
    at_bound = family.point_mass(np.array(max(family.least, -1e9)), link)[0]
    assert mass + at_bound == pytest.approx(1, abs=1e-5)
    q = np.array([[0.05], [0.5], [0.9]])
    assert_allclose(family.cdf(family.ppf(q, link), link), q, rtol=1e-9)


def test_bounds_are_never_left_and_have_the_probability_beyond_them():
    family, link = normal_family(Identity(), low=0.0, high=1.0), links()
    assert_allclose(family.point_mass(np.array(0.0), link), stats.norm(M, S).cdf(0))
    assert_allclose(family.point_mass(np.array(1.0), link), stats.norm(M, S).sf(1))
    assert np.all(family.ppf(np.array([[1e-9], [1 - 1e-12]]), link) == [[0.0], [1.0]])
    assert_allclose(family.cdf(np.array([[-1e-9], [1.0]]), link), [[0.0] * 3, [1.0] * 3])
    assert np.all((family.mean(link) > 0) & (family.mean(link) < 1))


def test_the_influence_is_that_of_a_residual_of_more_weight():
    """The mean over centred residuals, differentiated numerically by the weight of each."""
    e = np.random.default_rng(5).standard_normal(40)
    e = np.sort(e - e.mean()) / e.std()
    family = Transformed(Log(), residual_nodes(e, 40.0))

    def mean(weight):
        values = e - weight @ e
        return weight @ np.exp(M + S * values[:, None])

    step, equal = 1e-6, np.full(40, 1 / 40)
    for j in range(40):
        more = (1 - step) * equal + step * np.eye(40)[j]
        less = (1 + step) * equal - step * np.eye(40)[j]
        influence = (mean(more) - mean(less)) / (2 * step)
        assert_allclose(family.influence(links())[j], influence / 40, rtol=1e-6, atol=1e-9)


@pytest.mark.statistics
def test_the_influence_is_the_variance_of_smearing():
    """Lognormal noise of sd 1: over 2000 samples of 100 residuals, within 10 %."""
    rng = np.random.default_rng(6)
    samples = rng.standard_normal((2000, 100))
    samples -= samples.mean(axis=1, keepdims=True)
    link = links(np.zeros(1), np.ones(1))
    means = np.mean(np.exp(samples), axis=1)
    predicted = [
        np.sum(Transformed(Log(), residual_nodes(e, 100.0)).influence(link)[:-2] ** 2)
        for e in samples[:200]
    ]
    assert np.mean(predicted) / np.var(means) == pytest.approx(1, abs=0.15)


@pytest.mark.statistics
def test_the_error_of_a_mean_includes_its_covariance_with_the_prediction():
    """Gamma noise behind a logarithm: the mean of y is estimated as well as by its average.

    The prediction is the mean of the logarithms, of variance s^2 / n; 2000 samples, within 10 %.
    """
    rng, n = np.random.default_rng(7), 200
    means, predicted = [], []
    for _ in range(2000):
        z = np.log(rng.gamma(2.0, 0.5, n))
        s = np.std(z)
        family = Transformed(Log(), residual_nodes((z - z.mean()) / s, n))
        link = links(np.array([z.mean()]), np.array([s]))
        means.append(family.mean(link)[0])
        slope, added = family.mean_slope(link)[0], variances(family.influence(link))[0]
        predicted.append(slope**2 * s**2 / n + added)
    assert np.mean(predicted) / np.var(means) == pytest.approx(1, abs=0.1)


# ------------------------------------------------------------ point mass


def rain(n=4000, seed=0):
    """Amounts of mean exp(m) that are zero with logistic probability, lognormal above."""
    rng = np.random.default_rng(seed)
    m = rng.normal(1.0, 0.5, n)
    probability = special.expit(1 + 1.5 * (m - 1) / 0.5)
    wet = rng.uniform(size=n) < probability
    location = m - np.log(probability) - 0.08
    return m, np.where(wet, np.exp(location + 0.4 * rng.standard_normal(n)), 0.0)


def test_parameters_of_a_point_mass_are_recovered():
    m, y = rain()
    family = point_mass(y, m, Log(0.0, 1e-6), (0.0, np.inf), 4000.0)
    assert_allclose(family.odds, [1, 1.5], atol=0.2)
    assert_allclose(np.exp(family.log_scale), [0.4, 1.0], atol=0.08)
    grid = LinkPrediction(np.array([0.5, 1.0, 1.5]), np.ones(3), np.zeros(3), None)
    assert_allclose(family.mean(grid), np.exp(grid.mean))
    assert_allclose(family.mean_slope(grid), np.exp(grid.mean))
    expected = special.expit(1 + 1.5 * (grid.mean - 1) / 0.5)
    assert_allclose(family.probability_above(grid), expected, atol=0.05)


def test_a_point_mass_is_a_distribution():
    m, y = rain(600, 1)
    family = point_mass(y, m, Log(0.0, 1e-3), (0.0, np.inf), 590.0)
    link = LinkPrediction(m[:5], np.ones(5), np.zeros(5), None)
    zero = family.point_mass(np.array(0.0), link)
    assert_allclose(family.cdf(np.array(0.0), link), zero)
    assert_allclose(family.cdf(np.array(-1e-12), link), 0)
    q = np.linspace(0.01, 0.999, 50)[:, None]
    values = family.ppf(q, link)
    assert np.all(np.diff(values, axis=0) >= 0)
    assert_allclose(family.cdf(values, link), np.maximum(q, zero), atol=1e-6)
    assert np.all(values[q[:, 0] < zero.min()] == 0)
    # Mean and variance by the quantiles.
    fine = family.ppf((np.arange(20000)[:, None] + 0.5) / 20000, link)
    assert_allclose(fine.mean(axis=0), family.mean(link), rtol=0.25)
    assert_allclose(fine.std(axis=0), np.sqrt(family.noise_variance(link)), rtol=0.1)


def test_the_density_above_a_point_mass_integrates_to_the_probability_above():
    m, y = rain(600, 2)
    family = point_mass(y, m, Sqrt(), (0.0, np.inf), 590.0)
    link = LinkPrediction(m[:1], np.ones(1), np.zeros(1), None)
    end = family.ppf(np.array(1 - 1e-7), link)[0]
    grid = np.linspace(0, end, 40001)[1:]
    mass = integrate.trapezoid(np.exp(family.logpdf(grid[:, None], link))[:, 0], grid)
    assert mass == pytest.approx(family.probability_above(link)[0], abs=5e-3)


# ------------------------------------------------------------ counts


def counts(dispersion, extra=0.0, n=3000, seed=0):
    rng = np.random.default_rng(seed)
    eta = rng.normal(1.0, 0.6, n)
    mean = np.exp(eta) / (1 - extra)
    if dispersion:
        mean = mean * rng.gamma(1 / dispersion, dispersion, n)
    return eta, np.where(rng.uniform(size=n) < extra, 0, rng.poisson(mean)).astype(float)


@pytest.mark.parametrize(
    ("dispersion", "extra", "name"),
    [
        (0.0, 0.0, "count, Poisson"),
        (0.5, 0.0, "count, negative binomial"),
        (0.0, 0.3, "count, zero-inflated Poisson"),
        (0.4, 0.3, "count, zero-inflated negative binomial"),
    ],
)
def test_the_family_of_counts_is_recovered(dispersion, extra, name):
    eta, y = counts(dispersion, extra)
    family = count_family(y, eta, np.zeros_like(eta))
    assert family.name == name
    assert family.dispersion == pytest.approx(dispersion, abs=0.07)
    link = LinkPrediction(np.ones(1), np.zeros(1), np.zeros(1), None)
    assert family.extra_zeros(link)[0] == pytest.approx(extra, abs=0.03)


@pytest.mark.parametrize(("dispersion", "extra"), [(0.0, 0.0), (0.5, 0.0), (0.4, 0.3)])
def test_probabilities_of_counts(dispersion, extra):
    """Sums of the probabilities: one, mean, variance and the distribution function."""
    eta, y = counts(dispersion, extra)
    family = count_family(y, eta, np.zeros_like(eta))
    link = LinkPrediction(np.array([0.3, 1.5]), np.zeros(2), np.zeros(2), None)
    k = np.arange(400.0)[:, None]
    p = family.point_mass(k, link)
    assert_allclose(p.sum(axis=0), 1, atol=1e-9)
    assert_allclose((k * p).sum(axis=0), family.mean(link), rtol=1e-6)
    variance = (k**2 * p).sum(axis=0) - family.mean(link) ** 2
    assert_allclose(variance, family.noise_variance(link), rtol=1e-5)
    assert_allclose(family.cdf(k, link), np.cumsum(p, axis=0), atol=1e-9)
    q = np.array([[0.03], [0.5], [0.97]])
    values = family.ppf(q, link)
    assert np.all(family.cdf(values, link) >= q - 1e-12)
    assert np.all(family.cdf(values - 1, link) < q)


def test_the_error_of_the_mean_adds_to_the_dispersion():
    """A gamma factor of variance v and a negative binomial have the variance of the sum."""
    eta, y = counts(0.5)
    family = count_family(y, eta, np.zeros_like(eta))
    v, mean = 0.2, np.e
    link = LinkPrediction(np.ones(1), np.zeros(1), np.array([np.sqrt(v)]), None)
    k = np.arange(3000.0)[:, None]
    p = family.point_mass(k, link)[:, 0]
    variance = p @ k[:, 0] ** 2 - (p @ k[:, 0]) ** 2
    expected = mean + mean**2 * (family.dispersion * (1 + v) + v)
    assert variance == pytest.approx(expected, rel=1e-6)


def test_dispersion_by_moments():
    eta, y = counts(0.5, n=20000)
    assert dispersion_by_moments(y, np.exp(eta)) == pytest.approx(0.5, abs=0.05)
    assert dispersion_by_moments(np.exp(eta), np.exp(eta)) == 0


def test_a_tail_score_is_the_error_probability_of_the_interval_that_ends_there():
    eta, y = counts(0.5, n=50)
    family = count_family(y, eta, np.zeros_like(eta))
    link = LinkPrediction(eta, np.zeros(50), np.zeros(50), None)
    scores = tail_scores(family, y, link)
    assert np.all(np.diff(scores) >= 0)
    for error in (0.05, 0.2, 0.6):
        low, high = family.ppf(np.array(error / 2), link), family.ppf(np.array(1 - error / 2), link)
        assert np.sum((low <= y) & (y <= high)) == np.sum(scores >= error)
