"""Sums over pairs of members from a sample of the rows, against all rows and explicit loops."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from ulmus import ELMEnsembleRegressor
from ulmus.core.data.source import Block
from ulmus.core.fit.build import build
from ulmus.core.ridge.member_pairs import COMMON, OTHERS, OWN, PairGram
from ulmus.core.ridge.sampled_pairs import ALL_ROWS, PairSampling, SampledPairs, pair_sampling

M, N, n, p, more = 5, 3, 40, 6, 4
GROUPS = {"lone": [slice(m, m + 1) for m in range(M)], "two": [slice(0, 3), slice(3, 5)]}
groupings = pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
pairings = pytest.mark.parametrize("pairing", [COMMON, OWN, OTHERS], ids=lambda kind: kind.name)


@pytest.fixture
def parts():
    """Rows Q (M, N, n) with noise variances, sampled ones, and functionals t and u."""
    rng = np.random.default_rng(0)
    Q, omega = rng.standard_normal((M, N, n)), rng.uniform(0.2, 2, (M, n))
    t, u = rng.standard_normal((M, N, p)), rng.standard_normal((M, N, more))
    return Q, omega, np.arange(1, n, 3), t, u


def summed(groups, share, Q, pairing, omega, rows):
    total = PairSampling(share).zeros(N, groups, like=Q)
    PairSampling(share).add(total, Q, rows, pairing, omega)
    return total


def explicit(groups, share, Q, pairing, omega, rows, t, u):
    """Sums over single members and distinct pairs by loops over pairs of groups of members."""

    def pair(m, k, chosen):
        D = pairing.between(omega)[m, k] * chosen
        return (t[m].T @ Q[m] * D) @ (u[k].T @ Q[k]).T

    every, sampled = np.ones(n), np.zeros(n)
    sampled[rows] = 1 / share
    single = sum(pair(m, m, every) for m in range(M))
    total = 0.0
    for g, h in product(groups, groups):
        for m, k in product(range(g.start, g.stop), range(h.start, h.stop)):
            total = total + pair(m, k, sampled)
            if g == h:
                total = total + len(groups) * (pair(m, k, every) - pair(m, k, sampled))
    return single, total - single


@groupings
@pairings
def test_sums_are_those_of_the_sample_corrected_within_groups(parts, groups, pairing):
    Q, omega, rows, t, u = parts
    arguments = groups, 1 / 3, Q, pairing, omega, rows
    form = summed(*arguments)
    joint, own = explicit(*arguments, t, u), explicit(*arguments, t, t)
    assert_allclose(form.sums(t, u), joint, rtol=1e-10, atol=1e-10)
    assert_allclose(form.total(t, u), sum(joint), rtol=1e-10, atol=1e-10)
    diagonals = [np.diagonal(a) for a in own]
    assert_allclose(form.sums(t), diagonals, rtol=1e-10, atol=1e-10)
    assert_allclose(form.total(t), sum(diagonals), rtol=1e-10, atol=1e-10)
    applied = [np.einsum("mjp,mjq->pq", t, a) for a in form.applied(u)]
    assert_allclose(applied, joint, rtol=1e-10, atol=1e-10)
    terms = form.by_pair(t)
    assert_allclose(np.trace(terms), diagonals[0], rtol=1e-10, atol=1e-10)
    assert_allclose(terms.sum(axis=(0, 1)), sum(diagonals), rtol=1e-10, atol=1e-10)
    A = np.random.default_rng(1).standard_normal((M, N, N))
    rotated = form.rotated(A).sums(t, u)
    pulled = [np.matrix_transpose(A) @ a for a in (t, u)]
    assert_allclose(rotated, form.sums(*pulled), rtol=1e-10, atol=1e-10)


@groupings
def test_products_within_groups_are_over_all_rows(parts, groups):
    Q, omega, rows, *_ = parts
    form = summed(groups, 1 / 3, Q, COMMON, omega, rows)
    for group in groups:
        flat = Q[group].reshape(-1, n)
        assert_allclose(form.stacked(group), flat @ flat.T, rtol=1e-12)


@groupings
@pairings
def test_a_sample_of_all_rows_gives_the_exact_sums(parts, groups, pairing):
    Q, omega, _, t, u = parts
    exact = PairGram.zeros(N, [slice(0, M)], like=Q)
    exact.add(Q, pairing, omega)
    every = PairSampling(0.5).zeros(N, groups, like=Q)
    every.groups.add(Q, pairing, omega)
    every.sample.add(Q, pairing, omega)
    assert_allclose(every.sums(t, u), exact.sums(t, u), rtol=1e-10, atol=1e-10)
    assert_allclose(every.applied(t), exact.applied(t), rtol=1e-10, atol=1e-10)
    if groups == GROUPS["lone"]:
        # Between groups, terms of single pairs are corrected by the mean over a group.
        assert_allclose(every.by_pair(t), exact.by_pair(t), rtol=1e-10, atol=1e-10)


@pairings
def test_sums_over_random_samples_are_unbiased(parts, pairing):
    Q, omega, _, t, _ = parts
    exact = PairGram.zeros(N, [slice(0, M)], like=Q)
    exact.add(Q, pairing, omega)
    rng, share = np.random.default_rng(3), 0.4
    draws = np.array(
        [
            summed(GROUPS["two"], share, Q, pairing, omega, np.flatnonzero(rng.random(n) < share))
            .sums(t)
            .distinct
            for _ in range(600)
        ]
    )
    score = (draws.mean(axis=0) - exact.sums(t).distinct) / (draws.std(axis=0) / len(draws) ** 0.5)
    assert np.all(np.abs(score) < 3.5)


def test_rows_are_sampled_by_number_whatever_the_blocks():
    X, numbers = np.zeros((3000, 1)), np.arange(3000)
    sampling = PairSampling(0.2)

    def chosen(few):
        block = Block(X[few], X[few].T, None, numbers[few])
        return numbers[few][sampling.rows(block)]

    every = chosen(slice(None))
    assert 520 < len(every) < 680
    pieces = [chosen(slice(a, a + 700)) for a in range(0, 3000, 700)]
    assert np.array_equal(np.concatenate(pieces), every)
    assert ALL_ROWS.rows(Block(X, X.T, None, numbers)) is None


# ---------------------------------------------------------------- fits


def table(rows=8000):
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (rows, 2))
    sd = 0.2 + 0.15 * X[:, 0]
    y = np.sin(3 * X[:, 0]) * X[:, 1] + sd * rng.standard_normal(rows)
    return X, y, rng.uniform(0.5, 2, rows), rng.uniform(-1, 1, (200, 2))


def model(**parameters):
    options = {"n_estimators": 4, "n_neurons": 30, "input_map": None, "expand_inputs": None}
    return ELMEnsembleRegressor(**{**options, "random_state": 0, **parameters})


def exact_fit(fitted):
    """The same estimator with products between members over all rows."""
    fit = fitted.fitted_
    spec = replace(fit.spec, regression=replace(fit.spec.regression, exact=True))
    again = type(fitted)(**fitted.get_params())
    vars(again).update(vars(fitted))
    again.fitted_ = build(fit.rows.data, spec)
    return again


KINDS = {
    "constant": {"noise": "homoskedastic"},
    "naive": {"noise": "homoskedastic", "variance": "NHo"},
    "modelled": {"noise": "auto"},
    "per row": {"noise": "heteroskedastic"},
    "three members": {"noise": "heteroskedastic", "variance": "S3", "hc": "HC2"},
    "jackknife": {"noise": "heteroskedastic", "hc": "HC3-exact"},
    "single precision": {"noise": "homoskedastic", "dtype": "float32", "alpha": 1e-2},
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def standard_errors(fitted, X):
    return fitted.predict_var(X, component="model") ** 0.5


# Squared residuals of single rows vary more than the variance that rows share.
TOLERANCES = {"per row": 0.015, "three members": 0.03, "jackknife": 0.015}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_from_a_sample_are_those_of_all_rows(name, weighted):
    X, y, w, points = table()
    sampled = model(**KINDS[name]).fit(X, y, w if weighted else None)
    exact = exact_fit(sampled)
    assert_allclose(sampled.predict(points), exact.predict(points), rtol=1e-6)
    ratio = standard_errors(sampled, points) / standard_errors(exact, points)
    tolerance = TOLERANCES.get(name, 0.01)
    assert np.mean((ratio - 1) ** 2) ** 0.5 < tolerance
    assert abs(np.mean(ratio) - 1) < 0.7 * tolerance
    assert np.any(ratio != 1)


def pair_form(fitted):
    """The form of the default estimate."""
    fit = fitted.fitted_
    (form,) = next(iter(fit.ensemble.regressions[0].forms.values())).forms
    return form


def test_exact_sums_are_products_of_the_coordinates_of_all_rows():
    X, y, *_ = table()
    sampled = model(noise="homoskedastic").fit(X, y)
    exact = exact_fit(sampled)
    assert isinstance(pair_form(sampled), SampledPairs)
    assert isinstance(pair_form(exact), PairGram)
    ensemble = exact.fitted_.ensemble
    rows = np.concatenate(
        [fits[0].t for _, fits in ensemble.row_fits(exact.fitted_.rows.data)], axis=2
    )
    flat = rows.reshape(-1, rows.shape[2])
    k = flat.shape[0] // 4
    strong = ensemble.regressions[0].smoother.n_strong
    keep = np.concatenate([m * k + np.arange(strong) for m in range(4)])
    stacked = pair_form(exact).stacked(slice(0, 4))
    assert_allclose(stacked, (flat @ flat.T)[np.ix_(keep, keep)], rtol=1e-8, atol=1e-8)


def test_few_rows_or_one_member_are_not_sampled():
    X, y, *_ = table(3900)
    assert isinstance(pair_form(model(noise="homoskedastic").fit(X, y)), PairGram)
    layer = model().fit(X, y).fitted_.ensemble.layer
    assert pair_sampling(3900, layer, exact=False) is ALL_ROWS
    assert pair_sampling(10**6, layer, exact=True) is ALL_ROWS
    assert pair_sampling(10**6, layer.members(slice(0, 1)), exact=False) is ALL_ROWS
    assert pair_sampling(10**6, layer, exact=False).share == 2e-3


@kinds
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_streams_sample_the_rows_that_tables_in_memory_do(kind, n_jobs):
    X, y, w, points = table()
    table_in_memory = model(**kind).fit(X, y, w)
    blocks = [(X[a : a + 1900], y[a : a + 1900], w[a : a + 1900]) for a in range(0, len(X), 1900)]
    streamed = model(**kind, n_jobs=n_jobs).fit_blocks(blocks)
    rtol = 2e-2 if "dtype" in kind else 1e-6
    first, second = (standard_errors(one, points) for one in (table_in_memory, streamed))
    assert_allclose(second, first, rtol=rtol)


@pytest.mark.parametrize("in_memory", [True, False])
def test_intervals_for_the_function_agree_with_those_of_all_rows(in_memory):
    X, y, _, points = table()
    one = model(noise="homoskedastic")
    sampled = one.fit(X, y)
    exact = exact_fit(sampled)
    if not in_memory:
        sampled = model(noise="homoskedastic").fit_blocks([(X, y)])
    assert_allclose(sampled.noise_variance_, exact.noise_variance_, rtol=1e-6)
    width, expected = (
        np.diff(m.predict_interval(points, kind="confidence", target="function"))[:, 0]
        for m in (sampled, exact)
    )
    ratio = width / expected
    assert np.mean((ratio - 1) ** 2) ** 0.5 < 0.03
    assert abs(np.mean(ratio) - 1) < 0.015


def test_torch_samples_the_same_rows():
    torch = pytest.importorskip("torch")
    X, y, _, points = table()
    expected = standard_errors(model(noise="homoskedastic").fit(X, y), points)
    fitted = model(noise="homoskedastic").fit(torch.asarray(X), torch.asarray(y))
    found = standard_errors(fitted, torch.asarray(points))
    assert_allclose(np.asarray(found), expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["constant", "modelled", "per row"])
def test_designs_and_covariances_use_sampled_sums(kind):
    X, y, _, points = table()
    sampled = model(**KINDS[kind]).fit(X, y)
    exact = exact_fit(sampled)
    designs = [one.next_points(points[:40], n=3) for one in (sampled, exact)]
    assert len(set(designs[0]) & set(designs[1])) >= 2
    covariance, expected = (one.predict_cov(points[:30]) for one in (sampled, exact))
    sd = np.sqrt(np.diagonal(expected))
    assert np.max(np.abs(covariance - expected) / np.outer(sd, sd)) < 0.05
    assert_allclose(np.diagonal(covariance), sampled.predict_var(points[:30], "model"), rtol=1e-8)


def test_partitions_of_a_cluster_are_sampled():
    pytest.importorskip("dask")
    import dask.array as da

    import ulmus.dask

    X, y, _, points = table()
    expected = standard_errors(model(noise="homoskedastic").fit(X, y), points)
    arrays = da.from_array(X, chunks=(1900, 2)), da.from_array(y, chunks=1900)
    fitted = ulmus.dask.fit(model(noise="homoskedastic"), *arrays)
    assert isinstance(pair_form(fitted), SampledPairs)
    # Partitions have no row numbers, and so another sample.
    ratio = standard_errors(fitted, points) / expected
    assert np.mean((ratio - 1) ** 2) ** 0.5 < 0.01


def test_fits_with_sampled_sums_are_saved_and_loaded(tmp_path):
    from ulmus import load

    X, y, _, points = table()
    fitted = model(noise="homoskedastic").fit(X, y)
    fitted.save(tmp_path / "model.ulmus")
    loaded = load(tmp_path / "model.ulmus")
    assert np.array_equal(standard_errors(loaded, points), standard_errors(fitted, points))


@groupings
def test_a_block_without_sampled_rows_adds_nothing(groups):
    """By members, as on a processor, and by spans, as on a GPU."""
    total = PairGram.zeros(N, groups, like=np.zeros(1))
    none = np.zeros((M, N, 0))
    total.add(none)
    assert not np.any(total._add_by_span(none, None))
    assert not any(np.any(row) for row in total.upper)
