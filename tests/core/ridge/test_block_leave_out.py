"""Leave-block-out, against refits without the block."""

from dataclasses import replace

import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from parametrisations import intercepts, weightings

from ulmus.core.arrays.threads import thread_pool
from ulmus.core.data import source
from ulmus.core.data.cv_blocks import block_runs
from ulmus.core.data.source import Block, RowBlocks, first_rows, reduced, regroup_blocks
from ulmus.core.ensemble.regression import RegressionSpec, sample_scaling
from ulmus.core.ensemble.stream import fitted_moments, fitted_stream
from ulmus.core.fit.build import build
from ulmus.core.fit.refits import fold_rows
from ulmus.core.fit.spec import FitSpec
from ulmus.core.layer.inputs import Inputs
from ulmus.core.query.leave_out import leave_one_out_shifts
from ulmus.core.ridge import alpha as alpha_module
from ulmus.core.ridge.alpha import RELATIVE_GRID
from ulmus.core.ridge.moments import FirstPass
from ulmus.core.ridge.residuals import leave_block_out
from ulmus.intervals.observations import prediction_bounds
from ulmus.intervals.prediction import neglects_shifts
from ulmus.model_file.serialisation import from_arrays, to_arrays

N, M, ALPHA = 60, 3, 0.2
# Unequal blocks, single rows and blocks of more rows than units, in the order of the rows.
SIZES = [1, 1, 7, 7, 12, 1, 4, 4, 4, 4, 15]
IN_ORDER = np.repeat(np.arange(len(SIZES)), SIZES)
SCATTERED = np.random.default_rng(5).permutation(IN_ORDER)
orders = pytest.mark.parametrize("block_ids", [IN_ORDER, SCATTERED], ids=["in order", "scattered"])


@pytest.fixture
def problem(make_table, make_layer, units):
    """Function that returns rows with block ids, a layer and what the oracles need."""

    def problem(block_ids, *, weighted=False, intercept=True, outputs=1, n_units=6):
        data = make_table(len(block_ids))
        y = np.stack([data.y, np.cos(4 * data.X[:, 1]) + 0.2 * data.y])[:outputs]
        w = np.where(np.arange(len(block_ids)) % 9 == 4, 0, data.w) if weighted else None
        rows = RowBlocks(
            data.X, y, None if w is None else np.sqrt(w), np.empty(0), block_ids=block_ids
        )
        layer = make_layer(M, n_units, 3, constant=intercept)
        return rows, layer, (units(layer, data.X), units(layer, data.X_new)), data.X_new, w

    return problem


def fit_of(rows, layer, alpha=ALPHA, estimates=("BR",), min_gain_in_se=None):
    regression = RegressionSpec(alpha, "residual", "HC2", tuple(estimates))
    spec = FitSpec(layer, regression, min_gain_in_se, one_output=len(rows.y) == 1)
    return build(rows, spec)


def without_block(H, h, y, alpha, intercept, w, block_ids, block):
    """Member predictions (M, p) of a refit without the rows of a block."""
    gone = np.flatnonzero(block_ids == block)
    return oracles.predictions_without(gone, H, h, y, alpha, intercept, w)


def block_residuals(H, y, alpha, intercept, w, block_ids):
    out = np.empty((len(H), len(y)))
    for block in np.unique(block_ids):
        here = np.flatnonzero(block_ids == block)
        h = [H_m[here] for H_m in H]
        out[:, here] = y[here] - without_block(H, h, y, alpha, intercept, w, block_ids, block)
    return out


# ---------------------------------------------------------------- leave-block-out


@orders
@weightings
@intercepts
@pytest.mark.parametrize("n_units", [6, 40], ids=["few units", "many units"])
def test_residuals_and_expected_errors_are_those_of_refits(
    problem, block_ids, weighted, intercept, n_units
):
    rows, layer, (H, _), _, w = problem(
        block_ids, weighted=weighted, intercept=intercept, outputs=2, n_units=n_units
    )
    fit = fit_of(rows, layer)
    for k, y in enumerate(rows.y):
        expected = block_residuals(H, y, ALPHA, intercept, w, block_ids)
        ours = fit.rows.loo[:, k] * fit.ensemble.unit[k]
        assert_allclose(ours, expected, rtol=0, atol=1e-8)
    errors = np.empty((M, N))
    for block in np.unique(block_ids):
        here = np.flatnonzero(block_ids == block)
        rest = [np.delete(H_m, here, axis=0) for H_m in H]
        w_rest = None if w is None else np.delete(w, here)
        h = [H_m[here] for H_m in H]
        errors[:, here] = oracles.expected_errors(rest, h, ALPHA, intercept, w_rest)
    assert_allclose(fit.rows.loo_leverage[0], errors.mean(axis=0), rtol=1e-8)


@weightings
@intercepts
def test_blocks_of_one_row_are_plain_leave_one_out(problem, weighted, intercept):
    rows, layer, _, X, _ = problem(np.arange(N), weighted=weighted, intercept=intercept, outputs=2)
    singles, plain = (fit_of(r, layer) for r in (rows, replace(rows, block_ids=None)))
    assert_allclose(singles.rows.loo, plain.rows.loo, rtol=1e-12, atol=1e-12)
    assert_allclose(singles.rows.loo_leverage, plain.rows.loo_leverage, rtol=1e-12)
    for method in ("auto", "jackknife+"):
        ours, expected = (prediction_bounds(f, X, [0.8], method) for f in (singles, plain))
        assert_allclose(ours, expected, rtol=1e-12)
    chosen, expected = (
        fit_of(rows, layer, rule).ensemble.regressions[0].smoother.alpha
        for rule in ("block-loo", "loo")
    )
    assert chosen == expected


def test_a_block_that_the_fit_reproduces_has_finite_residuals(problem):
    # With more units than rows and hardly any ridge, P of every block is the identity.
    rows, layer, *_ = problem(IN_ORDER, n_units=100)
    fit = fit_of(rows, layer, 1e-9)
    assert np.all(np.isfinite(fit.rows.loo))
    assert np.all(np.isfinite(fit.rows.loo_leverage))
    assert np.all(fit.rows.loo_leverage > 0)


@weightings
def test_block_ids_change_only_leave_out_results(problem, weighted):
    # Rows come in another order, and results of single rows are returned in the original order.
    rows, layer, _, X, _ = problem(SCATTERED, weighted=weighted)
    names = ("NHo", "BR", "NHe", "S2", "S3")
    ours, plain = (fit_of(r, layer, 0.2, names) for r in (rows, replace(rows, block_ids=None)))
    assert_allclose(ours.mean(X), plain.mean(X), rtol=1e-10)
    assert_allclose(ours.rows.leverage, plain.rows.leverage, rtol=1e-10)
    for name in names:
        for one, other in zip(ours.parts(X, name), plain.parts(X, name), strict=True):
            assert_allclose(one, other, rtol=1e-8)
    # Noise of single rows: coordinates are kept, or made again.
    ours, plain = (fit_of(r, layer, 0.2, ["S2"]) for r in (rows, replace(rows, block_ids=None)))
    assert_allclose(ours.rows.omega, plain.rows.omega, rtol=1e-8)
    assert_allclose(
        ours.undersmoothed_parts(X).noise, plain.undersmoothed_parts(X).noise, rtol=1e-6
    )


@pytest.mark.slow
def test_other_array_libraries(xp):
    rng = np.random.default_rng(0)
    t, residual, root = (
        rng.normal(size=(2, 5, N)) / 9,
        rng.normal(size=(2, 3, N)),
        rng.uniform(size=N),
    )
    expected = leave_block_out(t, residual, root, IN_ORDER)
    ours = leave_block_out(*map(xp.asarray, (t, residual, root)), IN_ORDER)
    for one, other in zip(ours, expected, strict=True):
        assert_allclose(np.asarray(one), other, rtol=1e-10)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=12))
def test_runs_are_all_rows_in_blocks_of_equal_size(sizes):
    block_ids = np.repeat(np.arange(len(sizes)), sizes)
    runs = list(block_runs(block_ids))
    assert [run.size for run in runs for _ in range(run.n_blocks)] == sizes
    assert_array_equal(np.concatenate([block_ids[run.rows] for run in runs]), block_ids)
    values = np.arange(2 * len(block_ids)).reshape(1, 2, -1)
    for run in runs:
        assert_array_equal(run.unstacked(run.stacked(values)), values[:, :, run.rows])


# ---------------------------------------------------------------- the choice of alpha


def squared_errors(H, y, alpha, intercept, w, block_ids):
    """Weighted sum of squared errors of the ensemble, each row by refits without its block."""
    errors = block_residuals(H, y, alpha, intercept, w, block_ids).mean(axis=0)
    return np.sum((oracles.root_weights(len(y), w) * errors) ** 2)


@pytest.mark.slow
@orders
@weightings
@intercepts
def test_alpha_has_the_least_errors_of_refits(problem, block_ids, weighted, intercept):
    rows, layer, (H, _), _, w = problem(
        block_ids, weighted=weighted, intercept=intercept, outputs=2, n_units=40
    )
    fit = fit_of(rows, layer, "block-loo")
    chosen = fit.per_regression(lambda part: np.full(len(part.outputs), part.smoother.alpha))
    step = RELATIVE_GRID[1] / RELATIVE_GRID[0]
    for y, alpha in zip(rows.y, chosen, strict=True):
        least = squared_errors(H, y, alpha, intercept, w, block_ids)
        for steps in (-12, -6, -2, -1, 1, 2, 6, 12):
            other = squared_errors(H, y, alpha * step**steps, intercept, w, block_ids)
            assert least < other
    assert all(np.all(part.alpha_deviation > 0) for part in fit.ensemble.regressions)


def test_with_many_rows_every_second_block_is_scored(problem, monkeypatch):
    monkeypatch.setattr(alpha_module, "SCORED_ROWS", 25)
    rows, layer, (H, _), _, _ = problem(SCATTERED, n_units=40)
    y, scored, step = rows.y[0], SCATTERED % 2 == 0, RELATIVE_GRID[1] / RELATIVE_GRID[0]
    (alpha,) = {
        part.smoother.alpha for part in fit_of(rows, layer, "block-loo").ensemble.regressions
    }

    def score(alpha):
        errors = block_residuals(H, y, alpha, True, None, SCATTERED).mean(axis=0)
        return np.sum(errors[scored] ** 2)

    assert all(score(alpha) < score(alpha * step**steps) for steps in (-6, -2, -1, 1, 2, 6))
    # All blocks together would have chosen another.
    monkeypatch.undo()
    assert fit_of(rows, layer, "block-loo").ensemble.regressions[0].smoother.alpha != alpha


def test_other_array_libraries_choose_the_same(problem, xp):
    rows, layer, *_ = problem(SCATTERED, weighted=True, outputs=2)
    expected = fit_of(rows, layer, "block-loo")
    W, b, zeros, ones = (xp.asarray(a) for a in (layer.W, layer.b, np.zeros(3), np.ones(3)))
    foreign = replace(layer, W=W, b=b, inputs=Inputs(zeros, ones))
    ours = fit_of(replace(rows, X=xp.asarray(rows.X), reference=W), foreign, "block-loo")
    for one, other in zip(ours.ensemble.regressions, expected.ensemble.regressions, strict=True):
        assert_allclose(one.smoother.alpha, other.smoother.alpha, rtol=1e-8)
    assert_allclose(ours.rows.loo, expected.rows.loo, rtol=1e-6, atol=1e-9)


class Stream:
    """Blocks of rows with block ids that are read in order."""

    def __init__(self, blocks):
        self.blocks = blocks

    def reduce(self, row_pass):
        return reduced(row_pass, self.blocks)

    def sample(self, n_rows):
        return first_rows(self.blocks, n_rows)

    def for_width(self, width):
        return self


def streamed(rows, size):
    """The rows in blocks of some size, which split cross-validation blocks."""
    pieces = [slice(i, i + size) for i in range(0, rows.n_rows, size)]
    blocks = [rows.block(piece)._replace(block_ids=rows.block_ids[piece]) for piece in pieces]
    return Stream(blocks)


@pytest.mark.slow
@weightings
@pytest.mark.parametrize("size", [1, 5, 13, 60])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_stream_chooses_as_rows_in_memory_do(problem, weighted, size, n_threads):
    rows, layer, *_ = problem(IN_ORDER, weighted=weighted, n_units=20)
    expected = fit_of(rows, layer, "block-loo").ensemble.regressions[0].smoother.alpha
    stream = streamed(rows, size)
    how = RegressionSpec("block-loo", "residual", "HC2", ("BR",))
    start = sample_scaling(stream.sample(N), layer)
    with thread_pool(n_threads):
        fitted = fitted_stream(stream, layer, how, start)
    assert_allclose(fitted.regressions[0].smoother.alpha, expected, rtol=1e-8)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=14))
def test_regrouped_blocks_are_the_same_rows_without_split_ids(sizes):
    n = sum(sizes)
    block_ids = np.sort(np.random.default_rng(n).integers(0, 6, n))
    X, y = np.arange(n, dtype=float)[:, None], np.arange(n, dtype=float)[None, :]
    ends = np.cumsum(sizes)
    blocks = [
        Block(X[b - s : b], y[:, b - s : b], None, np.arange(b - s, b), block_ids[b - s : b])
        for s, b in zip(sizes, ends, strict=True)
    ]
    regrouped = [block for block in regroup_blocks(blocks) if len(block.block_ids)]
    assert_array_equal(np.concatenate([block.rows for block in regrouped] or [[]]), np.arange(n))
    for block in regrouped:
        assert_array_equal(block.y[0], block.rows)
        assert_array_equal(block.block_ids, block_ids[block.rows])
    ids = [one for block in regrouped for one in np.unique(block.block_ids)]
    assert len(ids) == len(set(ids))


def test_block_ids_that_reappear_are_refused():
    def with_ids(*block_ids):
        return Block(
            np.zeros((len(block_ids), 1)),
            np.zeros((1, len(block_ids))),
            None,
            None,
            np.array(block_ids),
        )

    for blocks in ([with_ids(0, 1, 0)], [with_ids(1, 1), with_ids(0)]):
        with pytest.raises(ValueError, match=r"block ids decrease.*sort the rows by block"):
            list(regroup_blocks(blocks))


def test_block_loo_without_block_ids_is_refused(problem):
    rows, layer, *_ = problem(IN_ORDER)
    with pytest.raises(ValueError, match=r"requires blocks.*use alpha='loo'"):
        fit_of(replace(rows, block_ids=None), layer, "block-loo")
    start = sample_scaling(rows.sample(N), layer)
    moments = rows.reduce(FirstPass(start.whitening, start.units, [slice(0, M)]))
    how = RegressionSpec("block-loo", "residual", "HC2", ("BR",))
    with pytest.raises(ValueError, match=r"two passes.*use alpha='gcv'"):
        fitted_moments(moments, start, layer, how, None)


# ---------------------------------------------------------------- prediction intervals


@orders
@weightings
@intercepts
def test_shifts_and_bounds_are_those_of_refits(
    problem, block_ids, weighted, intercept, monkeypatch
):
    rows, layer, (H, h), X, w = problem(
        block_ids, weighted=weighted, intercept=intercept, outputs=2
    )
    # Several blocks of rows, with block ids on both sides of their ends.
    pieces = [slice(i, min(i + 13, N)) for i in range(0, N, 13)]
    monkeypatch.setattr(source, "row_blocks", lambda *_: iter(pieces))
    fit = fit_of(rows, layer)
    (chunk,) = leave_one_out_shifts(fit, fit.rows, X)
    used = rows.used
    for k, y in enumerate(rows.y):
        f = np.empty((N, len(X)))
        for block in np.unique(block_ids):
            f[block_ids == block] = without_block(
                H, h, y, ALPHA, intercept, w, block_ids, block
            ).mean(axis=0)
        assert_allclose(fit.mean(X)[k] - chunk.shift[k], f, rtol=0, atol=1e-8)
        size = np.abs(block_residuals(H, y, ALPHA, intercept, w, block_ids).mean(axis=0))[used]
        rank = oracles.upper_rank(0.2, len(size))
        ours = prediction_bounds(fit, X, [0.8], "jackknife+")[:, 0, :, k]
        low = [oracles.ranked(c - size, len(size) + 1 - rank) for c in f[used].T]
        high = [oracles.ranked(c + size, rank) for c in f[used].T]
        assert_allclose(ours, [low, high], rtol=0, atol=1e-8)


def test_auto_rests_on_errors_expected_without_the_block(problem):
    rows, layer, _, X, _ = problem(IN_ORDER)
    fit, plain = fit_of(rows, layer), fit_of(replace(rows, block_ids=None), layer)
    assert np.all(fit.rows.loo_leverage >= plain.rows.loo_leverage * (1 - 1e-10))
    own, other = (prediction_bounds(f, X, [0.8], "auto") for f in (fit, plain))
    assert not np.allclose(own, other, rtol=1e-3)


def test_many_rows_in_few_blocks_do_not_use_in_sample_predictions(make_layer):
    rng = np.random.default_rng(0)
    X, n = rng.uniform(-1, 1, (5000, 1)), 5000
    y = np.sin(3 * X.T) + 0.1 * rng.standard_normal((1, n))
    rows = RowBlocks(X, y, None, np.empty(0), block_ids=np.arange(n) // 500)
    layer = make_layer(2, 10, 1, constant=True)
    assert neglects_shifts(fit_of(replace(rows, block_ids=None), layer))
    assert not neglects_shifts(fit_of(rows, layer))
    assert neglects_shifts(fit_of(replace(rows, block_ids=np.arange(n) // 5), layer))


# ---------------------------------------------------------------- the rest of a fit


def test_a_fit_with_block_ids_is_saved_as_arrays(problem):
    rows, layer, _, X, _ = problem(SCATTERED)
    fit = fit_of(rows, layer)
    again = from_arrays(*to_arrays(fit))
    assert_array_equal(again.rows.data.block_ids, SCATTERED)
    bounds = (prediction_bounds(f, X, [0.8], "auto") for f in (fit, again))
    assert_array_equal(*bounds)


def test_a_model_of_the_noise_is_learned_without_the_block(problem):
    rows, layer, *_ = problem(IN_ORDER)
    fit = fit_of(rows, layer, min_gain_in_se=0.0)
    assert fit.rows.noise.shape == (1, N)
    assert np.all(np.isfinite(fit.rows.noise))
    assert np.all(fit.rows.noise > 0)


def test_rows_of_a_block_are_in_one_fold(problem):
    rows, *_ = problem(SCATTERED, weighted=True)
    parts = fold_rows(rows, 0)
    assert_array_equal(np.sort(np.concatenate(parts)), np.flatnonzero(rows.used))
    ids = [set(SCATTERED[part]) for part in parts]
    assert sum(map(len, ids)) == len(set().union(*ids))


def test_dependent_noise_is_smoothed_more_by_blocks(make_layer):
    # Single rows are predicted from neighbours that share their noise: the fit follows it.
    n, dof, error = 200, {"loo": [], "block-loo": []}, {"loo": [], "block-loo": []}
    X = np.linspace(-1, 1, n)[:, None]
    truth = np.sin(3 * X[:, 0]) + X[:, 0] / 2
    layer = make_layer(3, 60, 1, scale=8.0, constant=True)
    for seed in range(8):
        e = np.random.default_rng(seed).standard_normal(n)
        for i in range(1, n):
            e[i] = 0.8 * e[i - 1] + 0.6 * e[i]
        y = (truth + 0.3 * e)[None, :]
        rows = RowBlocks(X, y, None, np.empty(0), block_ids=np.arange(n) // 20)
        for rule in dof:
            fit = fit_of(rows, layer, rule)
            dof[rule].append(fit.gamma[0])
            error[rule].append(np.mean((fit.mean(X)[0] - truth) ** 2))
    assert np.mean(dof["block-loo"]) < 0.7 * np.mean(dof["loo"])
    assert np.mean(error["block-loo"]) < 0.7 * np.mean(error["loo"])
