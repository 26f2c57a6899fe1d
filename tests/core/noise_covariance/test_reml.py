"""Restricted likelihood against the density of y in the other directions, and what it finds."""

import numpy as np
import pytest
import scipy.linalg
from messages import mentions
from numpy.testing import assert_allclose
from scipy import stats
from smoothed_spaces import fixed

from ulmus.core.noise_covariance import likelihood
from ulmus.core.noise_covariance import structure as covariance_structure
from ulmus.core.noise_covariance.kernels import Kernel
from ulmus.core.noise_covariance.likelihood import RestrictedLikelihood
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.reml import covariance_estimate, scale_bounds
from ulmus.core.noise_covariance.smoothed_space import SmoothedSpace
from ulmus.core.noise_covariance.structure import CovarianceStructure, CovarianceTerm
from ulmus.core.noise_covariance.whitening import NeighbourWhitening, noise_whitening

TIME = CovarianceTerm("time", Kernel("exponential"))
SPACE = CovarianceTerm("space", Kernel("matern", 1.5))
SMOOTH_TIME = CovarianceTerm("time", Kernel("matern", 2.5))


def rows(n=40, ties=False, seed=0):
    """Locations in their order, outputs and some orthonormal directions."""
    rng = np.random.default_rng(seed)
    time = rng.exponential(1.0, n).cumsum()
    locations = Locations(
        np.round(time) if ties else time, rng.random((n, 2)), rng.integers(0, 3, n)
    )
    A = np.linalg.qr(np.column_stack([np.ones(n), rng.standard_normal((n, 3))]))[0]
    return locations.ordered, rng.standard_normal(n), A


def explicit(structure, locations, scales, shares):
    """The covariance of variance one, pair by pair."""
    n, time, groups = locations.n, locations.time, locations.groups
    S = np.zeros((n, n))
    for term, scale, share in zip(structure.terms, scales, shares, strict=True):
        for i in range(n):
            for j in range(n):
                if term.axis == "space":
                    d = np.linalg.norm(locations.coords[i] - locations.coords[j])
                    S[i, j] += share * term.kernel(d, scale)
                elif groups[i] == groups[j]:
                    S[i, j] += share * term.kernel(abs(time[i] - time[j]), scale)
    return S + (1 - sum(shares)) * np.eye(n)


CASES = [
    (CovarianceStructure((TIME,)), (2.1,), (0.7,)),
    (CovarianceStructure((TIME,), nugget=False), (2.1,), (1.0,)),
    (CovarianceStructure((SMOOTH_TIME,)), (2.1,), (0.7,)),
    (CovarianceStructure((SPACE,)), (0.2,), (0.4,)),
    (CovarianceStructure((TIME, SPACE)), (2.1, 0.2), (0.3, 0.5)),
]
cases = pytest.mark.parametrize(("structure", "scales", "shares"), CASES, ids=lambda c: str(c))


@cases
def test_it_is_the_density_of_y_in_the_other_directions(structure, scales, shares):
    locations, y, A = rows()
    S = explicit(structure, locations, scales, shares)
    B = scipy.linalg.null_space(A.T)
    left = B.T @ y
    q = left @ np.linalg.solve(B.T @ S @ B, left) / len(left)
    density = stats.multivariate_normal(cov=q * B.T @ S @ B).logpdf(left)
    ours = RestrictedLikelihood(y, fixed(A), noise_whitening(structure, locations))
    assert_allclose(ours.value_and_variance(scales, shares), (-density, q), rtol=1e-7)
    alone = stats.norm(scale=np.sqrt(np.mean(left**2))).logpdf(left).sum()
    assert_allclose(ours.independent(), (-alone, np.mean(left**2)), rtol=1e-10)


@cases
def test_the_function_is_random_along_directions_that_are_retained_in_part(
    structure, scales, shares
):
    locations, y, A = rows()
    space = SmoothedSpace(A, np.array([1.0, 0.98, 0.6, 0.2]))
    S, A0, A1 = explicit(structure, locations, scales, shares), A[:, :2], A[:, 2:]
    B = scipy.linalg.null_space(A0.T)

    def density(log_ratio):
        V = B.T @ (S + np.exp(log_ratio) * (A1 * [1.5, 0.25]) @ A1.T) @ B
        q = (B.T @ y) @ np.linalg.solve(V, B.T @ y) / B.shape[1]
        return -stats.multivariate_normal(cov=q * V).logpdf(B.T @ y), q

    best = min((density(log_ratio) for log_ratio in np.linspace(-8, 12, 2001)), key=lambda d: d[0])
    ours = RestrictedLikelihood(y, space, noise_whitening(structure, locations))
    assert_allclose(ours.value_and_variance(scales, shares), best, rtol=1e-3)
    S = np.eye(len(y))
    best = min((density(log_ratio) for log_ratio in np.linspace(-8, 12, 2001)), key=lambda d: d[0])
    assert_allclose(ours.independent(), best, rtol=1e-3)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(("structure", "scales", "shares"), [c for c in CASES if c[0].nugget])
def test_whitening_is_an_inverse_root(structure, scales, shares, ties):
    locations, y, A = rows(ties=ties)
    S, Y = explicit(structure, locations, scales, shares), np.column_stack([A, y])
    white, log_det = noise_whitening(structure, locations)(scales, shares, Y)
    assert_allclose(white.T @ white, Y.T @ np.linalg.solve(S, Y), rtol=1e-6, atol=1e-7)
    assert_allclose(log_det, np.linalg.slogdet(S)[1], atol=1e-6)


def test_many_rows_in_space_have_neighbours(monkeypatch):
    locations, y, A = rows(25)
    structure, Y = CovarianceStructure((SPACE,)), np.column_stack([A, y])
    monkeypatch.setattr("ulmus.core.noise_covariance.whitening.MOST_DENSE", 10)
    near = noise_whitening(structure, locations)
    assert isinstance(near, NeighbourWhitening)
    white, log_det = near((0.2,), (0.4,), Y)
    S = explicit(structure, locations, (0.2,), (0.4,))  # all of 25 rows are neighbours
    assert_allclose(white.T @ white, Y.T @ np.linalg.solve(S, Y), rtol=1e-7)
    assert_allclose(log_det, np.linalg.slogdet(S)[1], atol=1e-7)


# ---------------------------------------------------------------- fits


def noisy(S, seed, sd=0.5):
    rng = np.random.default_rng(seed)
    return sd * np.linalg.cholesky(S + 1e-10 * np.eye(len(S))) @ rng.standard_normal(len(S))


def smooth_directions(n, k=8):
    """Orthonormal polynomials."""
    return np.linalg.qr(np.polynomial.legendre.legvander(np.linspace(-1, 1, n), k - 1))[0]


def ar1_with_nugget(phi, share, n=400, seed=0):
    lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    return noisy(share * phi**lag + (1 - share) * np.eye(n), seed)


def test_it_finds_scale_and_share_of_a_series():
    truth = -1 / np.log(0.8)
    for share in (0.6, 1.0):
        y = ar1_with_nugget(0.8, share, seed=3)
        fit = covariance_estimate(
            y, fixed(smooth_directions(400)), Locations(n=400), CovarianceStructure((TIME,))
        )
        assert not fit.independent
        assert fit.names == ("time scale", "time share")
        error = fit.standard_errors[0]
        assert 0 < error < truth
        assert abs(fit.scales[0] - truth) < 3 * error
        assert abs(fit.shares[0] - share) < 0.35
        assert 0.12 < fit.variance < 0.45
        assert_allclose(fit.structured_variance + fit.nugget_variance, fit.variance)


def test_it_is_the_greatest_likelihood_inside_the_bounds():
    y, A, locations = ar1_with_nugget(0.7, 0.5, seed=1), smooth_directions(400), Locations(n=400)
    fit = covariance_estimate(y, fixed(A), locations, CovarianceStructure((TIME,)))
    target = RestrictedLikelihood(y, fixed(A), noise_whitening(fit.structure, locations))
    assert_allclose(-fit.log_likelihood, target.value_and_variance(fit.scales, fit.shares)[0])
    grid = [
        target.value_and_variance((scale,), (share,))[0]
        for scale in np.geomspace(0.4, 20, 30)
        for share in np.linspace(0.02, 0.98, 25)
    ]
    assert -fit.log_likelihood < min(grid) + 1e-3


def test_rows_may_come_in_any_order():
    locations, y, A = rows(120, seed=4)
    y = y + noisy(explicit(CovarianceStructure((TIME,)), locations, (3.0,), (1.0,)), 4, sd=2.0)
    fit = covariance_estimate(y, fixed(A), locations, CovarianceStructure((TIME,)))
    mixed = np.random.default_rng(5).permutation(120)
    other = covariance_estimate(
        y[mixed], fixed(A[mixed]), locations.taken(mixed), CovarianceStructure((TIME,))
    )
    assert_allclose(other.values, fit.values, rtol=1e-3)
    assert_allclose(other.log_likelihood, fit.log_likelihood, rtol=1e-8)


def test_standard_errors_are_those_of_repeated_series():
    A, locations = smooth_directions(300), Locations(n=300)
    fits = [
        covariance_estimate(
            ar1_with_nugget(0.8, 1.0, 300, seed),
            fixed(A),
            locations,
            CovarianceStructure((TIME,), nugget=False),
        )
        for seed in range(40)
    ]
    spread = np.std([fit.scales[0] for fit in fits])
    assert_allclose(np.median([fit.standard_errors[0] for fit in fits]), spread, rtol=0.35)


def test_independent_noise_stays_independent():
    A, locations = smooth_directions(200), Locations(n=200)
    fits = [
        covariance_estimate(
            np.random.default_rng(seed).standard_normal(200),
            fixed(A),
            locations,
            CovarianceStructure((TIME,)),
        )
        for seed in range(60)
    ]
    preferred = [fit.independent for fit in fits]
    assert np.mean(preferred) >= 0.95
    fit = fits[preferred.index(True)]
    assert fit.structured_variance == 0
    assert fit.nugget_variance == fit.variance == fit.independent_variance
    assert_allclose(fit.root(locations).applied(np.eye(200)), np.sqrt(fit.variance) * np.eye(200))
    assert "assumed independent" in str(fit)


@pytest.mark.parametrize("terms", [(SPACE,), (TIME, SPACE), (TIME,)], ids=str)
def test_root_and_covariance_are_those_of_the_parameters(terms):
    rng = np.random.default_rng(6)
    n = 120
    locations = Locations(rng.permutation(n) * 1.0, rng.random((n, 2)), rng.integers(0, 2, n))
    structure = CovarianceStructure(terms)
    truth = explicit(CovarianceStructure((TIME, SPACE)), locations, (6.0, 0.15), (0.5, 0.5))
    fit = covariance_estimate(noisy(truth, 7), fixed(smooth_directions(n, 4)), locations, structure)
    assert not fit.independent
    S = fit.sill * explicit(structure, locations, fit.scales, fit.shares)
    assert_allclose(fit.covariance(locations), S, rtol=1e-10, atol=1e-12)
    L = fit.root(locations).applied(np.eye(n))
    assert_allclose(L @ L.T, S[np.ix_(locations.order, locations.order)], atol=1e-8)
    between = fit.covariance(locations, locations.taken(np.arange(7)))
    own = fit.nugget_variance * np.eye(n)[:, :7]
    assert_allclose(between, S[:, :7] - own, atol=1e-10)
    assert len(fit.values) == len(fit.names) == len(fit.standard_errors) == structure.n_parameters


def test_directions_retained_in_part_inform_about_noise_of_a_long_scale():
    n = 300
    A, S = smooth_directions(n, 40), 0.95 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    # A prior whose variance falls as that of a spline, and with it the share of the smoother.
    odds = 1e6 / (1 + np.arange(40.0)) ** 4
    space, truth = SmoothedSpace(A, odds / (1 + odds)), -1 / np.log(0.95)
    outputs = [noisy(S, seed) + A[:, :4] @ [30, 20, -10, 5] for seed in range(12)]
    found, alone = (
        [covariance_estimate(y, one, Locations(n=n), CovarianceStructure((TIME,))) for y in outputs]
        for one in (space, fixed(A))
    )
    scale, alone_scale = (np.median([fit.scales[0] for fit in fits]) for fits in (found, alone))
    assert alone_scale < 0.7 * truth < scale < 1.5 * truth


def test_the_longest_scale_leaves_some_of_its_variance():
    n = 200
    locations = Locations(n=n)
    for k in (5, 20):
        A = smooth_directions(n, k)
        low, high = scale_bounds(TIME, locations, A)
        assert_allclose(np.exp(low), 1 / 3)
        lag = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        left = 1 - np.trace(A.T @ np.exp(-lag / np.exp(high)) @ A) / n
        assert_allclose(left, 0.3, atol=0.02)
        assert 0.3 * n / k < np.exp(high) < 1.2 * n / k  # the resolution of the smoother
    # Directions that have nothing to do with time leave all scales but the longest.
    A = np.linalg.qr(np.random.default_rng(8).standard_normal((n, 20)))[0]
    assert np.exp(scale_bounds(TIME, locations, A)[1]) > 0.9 * n


def test_the_text_of_an_estimate_shows_its_parameters():
    y = ar1_with_nugget(0.8, 1.0, seed=3)
    fit = covariance_estimate(
        y, fixed(smooth_directions(400)), Locations(n=400), CovarianceStructure((TIME,))
    )
    words = str(fit)
    for word in (
        "exponential in time + nugget",
        "time scale",
        "std. error",
        "at bound",
        "structured variance",
        "400 rows",
        "392 residual degrees of freedom",
        "twice the gain",
    ):
        assert word in words
    assert fit.gain > 100


def test_a_perfect_fit_is_independent():
    A = smooth_directions(60)
    fit = covariance_estimate(
        A @ np.ones(8), fixed(A), Locations(n=60), CovarianceStructure((TIME,))
    )
    assert np.isfinite(fit.log_likelihood)
    assert fit.variance < 1e-20


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("locations", "structure", "words"),
    [
        (Locations(n=60), CovarianceStructure((SPACE,)), ["coords", "give the coordinates"]),
        (
            Locations(np.zeros(60)),
            CovarianceStructure((TIME,)),
            ["same time", "not identifiable", "time that differ"],
        ),
        (
            Locations(np.arange(60) // 2),
            CovarianceStructure((TIME,), nugget=False),
            ["nugget=True"],
        ),
        (
            Locations(coords=np.zeros((60, 2))),
            CovarianceStructure((SPACE,)),
            ["same coordinates", "coords that differ"],
        ),
        (
            Locations(coords=np.ones((60, 2))),
            CovarianceStructure((CovarianceTerm("space", Kernel("bartlett")),)),
            ["bartlett", "2 coordinates", "spherical"],
        ),
    ],
)
def test_locations_that_identify_nothing_raise(locations, structure, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        covariance_estimate(np.ones(60), fixed(smooth_directions(60)), locations, structure)


def test_a_smoother_that_keeps_nearly_everything_leaves_its_weakest_directions():
    y, A = np.random.default_rng(0).standard_normal(40), smooth_directions(40, 32)
    found = covariance_estimate(y, fixed(A), Locations(n=40), CovarianceStructure((TIME,)))
    expected = covariance_estimate(
        y, fixed(A[:, :30]), Locations(n=40), CovarianceStructure((TIME,))
    )
    assert found.values == expected.values
    assert found.log_likelihood == expected.log_likelihood
    assert found.n_left == 10


@pytest.mark.parametrize(
    "structure", [CovarianceStructure((TIME, SPACE)), CovarianceStructure((SMOOTH_TIME,))], ids=str
)
def test_dense_algebra_is_for_few_rows(monkeypatch, structure):
    monkeypatch.setattr(covariance_structure, "MOST_DENSE", 30)
    locations, y, A = rows(40)
    with pytest.raises(ValueError, match=mentions("40 rows", "at most 30", "one term")):
        covariance_estimate(y, fixed(A), locations, structure)
    with pytest.raises(ValueError, match=mentions("40 rows", "at most 30")):
        SMOOTH_TIME.root(locations, 1.0)


def test_a_factor_that_fails_is_no_likelihood():
    def fails(scales, shares, Y):
        raise np.linalg.LinAlgError

    value, variance = RestrictedLikelihood(
        np.ones(3), fixed(np.eye(3)[:, :1]), fails
    ).value_and_variance((1.0,), (1.0,))
    assert value == likelihood.IMPOSSIBLE
    assert np.isnan(variance)
