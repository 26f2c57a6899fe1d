"""What must hold for any data: invariances, bounds, and sums that split anywhere."""

import functools
import itertools
import operator

import numpy as np
import pytest
from core_fits import core_fit
from fit_comparison import raw_variances
from hypothesis import assume, given
from hypothesis import strategies as st
from models import plain_ensemble
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.core.data.scaling import OutputUnits
from ulmus.core.data.source import Block
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.ridge.moments import FirstPass
from ulmus.core.ridge.preconditioner import sample_whitening
from ulmus.core.ridge.sampled_pairs import ALL_ROWS

seeds = st.integers(0, 10_000)
hcs = st.sampled_from(["HC0", "HC2", "HC3", "HC3-exact", "pooled"])
alphas = st.sampled_from([0.0, 0.3])


def paper_ensemble(alpha=0.3, **parameters):
    """A small ensemble with every estimate; the paper's noise estimate by default."""
    parameters = {"noise_variance": "residual", "variance": "all"} | parameters
    return plain_ensemble(4, 6, alpha=alpha, weight_scale=2.0, random_state=0, **parameters)


def results(model, X):
    """Predictions and all variances, stacked."""
    return np.stack([model.predict(X), *raw_variances(model.fitted_, X)[:, :, 0]])


# ---------------------------------------------------------------- symmetries


@given(seed=seeds, alpha=alphas, hc=hcs, n=st.sampled_from([20, 45]))
def test_order_of_rows_does_not_matter(make_table, seed, alpha, hc, n):
    data = make_table(n, seed=seed)
    order = np.random.default_rng(seed).permutation(n)
    model = paper_ensemble(alpha, hc=hc)
    first = results(model.fit(data.X, data.y, data.w), data.X_new)
    leverage, loo = model.leverage_, model.loo_residuals_
    model.fit(data.X[order], data.y[order], data.w[order])
    assert_allclose(results(model, data.X_new), first, rtol=1e-7, atol=1e-10)
    assert_allclose(model.leverage_, leverage[order], rtol=1e-7)
    assert_allclose(model.loo_residuals_, loo[order], rtol=1e-6, atol=1e-9)


@given(seed=seeds, alpha=alphas, hc=hcs, constant=st.booleans(), dual=st.booleans())
def test_order_of_members_does_not_matter(make_table, make_layer, seed, alpha, hc, constant, dual):
    data = make_table(40, seed=seed)
    layer = make_layer(5, 6, 3, seed=seed, constant=constant)
    order = np.random.default_rng(seed).permutation(5)
    shuffled = HiddenLayer(layer.W[order], layer.b[order], layer.inputs, "logistic", constant)
    fits = [
        core_fit(members, [Block(data.X, data.y[None, :], None)], alpha=alpha, hc=hc, dual=dual)
        for members in (layer, shuffled)
    ]
    assert_allclose(fits[1].mean(data.X_new), fits[0].mean(data.X_new), rtol=1e-8)
    first, second = (raw_variances(fit, data.X_new) for fit in fits)
    assert_allclose(second, first, rtol=1e-7, atol=1e-12)


@pytest.mark.slow
@given(seed=seeds, alpha=st.sampled_from([0.0, 0.3, "loo", "gcv"]), hc=hcs)
@pytest.mark.parametrize("factor", [-1.0, 1e-6, 37.5])
@pytest.mark.parametrize("noise_variance", ["residual", "pilot"])
def test_variance_scales_with_the_square_of_the_outputs(
    make_table, noise_variance, factor, seed, alpha, hc
):
    data = make_table(45, seed=seed)
    model = paper_ensemble(alpha, hc=hc, noise_variance=noise_variance)
    first = results(model.fit(data.X, data.y), data.X_new)
    scaled = results(model.fit(data.X, factor * data.y), data.X_new)
    assert_allclose(scaled[0], factor * first[0], rtol=1e-8)
    assert_allclose(scaled[1:], factor**2 * first[1:], rtol=1e-7, atol=1e-12 * factor**2)


@given(seed=seeds, shift=st.floats(-1e4, 1e4), alpha=st.sampled_from([0.0, 0.3, "loo"]), hc=hcs)
def test_a_constant_added_to_the_outputs_shifts_the_mean_alone(make_table, seed, shift, alpha, hc):
    data = make_table(45, seed=seed)
    model = paper_ensemble(alpha, hc=hc)
    first = results(model.fit(data.X, data.y), data.X_new)
    moved = results(model.fit(data.X, data.y + shift), data.X_new)
    assert_allclose(moved[0], first[0] + shift, rtol=1e-8, atol=1e-7)
    assert_allclose(moved[1:], first[1:], rtol=1e-6, atol=1e-9)


@given(seed=seeds, factor=st.floats(1e-3, 1e3), criterion=st.sampled_from(["loo", "gcv"]), hc=hcs)
def test_scale_of_the_weights_does_not_matter_when_alpha_is_chosen(
    make_table, seed, factor, criterion, hc
):
    data = make_table(45, seed=seed)
    model = paper_ensemble(criterion, hc=hc)
    first = results(model.fit(data.X, data.y, data.w), data.X_new)
    noise = model.noise_variance_
    scaled = results(model.fit(data.X, data.y, factor * data.w), data.X_new)
    assert_allclose(scaled, first, rtol=1e-7, atol=1e-10)
    # The noise variance is that of a row of weight 1.
    assert_allclose(model.noise_variance_, factor * noise, rtol=1e-8)


@given(seed=seeds, alpha=st.sampled_from([0.0, 0.3, "loo", "gcv"]), hc=hcs)
@pytest.mark.parametrize("noise_variance", ["residual", "pilot"])
def test_rows_of_weight_zero_are_ignored(make_table, noise_variance, seed, alpha, hc):
    data = make_table(60, seed=seed)
    keep = np.random.default_rng(seed).random(60) < 0.7
    keep[:2] = True  # the corners of the range
    model = paper_ensemble(alpha, hc=hc, noise_variance=noise_variance)
    model.fit(data.X[keep], data.y[keep], data.w[keep])
    first, dof, sigma2 = results(model, data.X_new), model.dof_, model.noise_variance_
    # What such a row holds does not matter either.
    X, y = np.where(keep[:, None], data.X, 3.0), np.where(keep, data.y, 1e9)
    model.fit(X, y, np.where(keep, data.w, 0.0))
    assert_allclose(results(model, data.X_new), first, rtol=1e-7, atol=1e-10)
    assert_allclose(model.dof_, dof, rtol=1e-9)
    assert_allclose(model.noise_variance_, sigma2, rtol=1e-8)


# ---------------------------------------------------------------- limits and bounds


@given(seed=seeds, intercept=st.booleans(), hc=hcs)
def test_ridge_tends_to_least_squares(make_table, seed, intercept, hc):
    data = make_table(45, seed=seed)
    tiny, none = (paper_ensemble(a, hc=hc, fit_intercept=intercept) for a in (1e-9, 0.0))
    tiny.fit(data.X, data.y), none.fit(data.X, data.y)
    assume(np.linalg.cond(none.fitted_.ensemble.regressions[0].smoother.to_t).max() < 1e3)
    assert_allclose(results(tiny, data.X_new), results(none, data.X_new), rtol=1e-5, atol=1e-9)
    assert_allclose(tiny.dof_, none.dof_, rtol=1e-6)


@given(seed=seeds, alpha=st.sampled_from([0.0, 1e-6, 0.3, 50.0]), n=st.sampled_from([9, 20, 60]))
def test_leverages_lie_in_the_unit_interval_and_add_up_to_the_trace(
    make_table, make_layer, seed, alpha, n
):
    data = make_table(n, seed=seed)
    layer = make_layer(3, 6, 3, seed=seed, constant=True)
    root = np.sqrt(data.w)
    blocks = [Block(data.X, data.y[None, :], root)]
    paper_ensemble = core_fit(layer, blocks, alpha=alpha, hc="HC2").ensemble
    ((_, (rows,)),) = paper_ensemble.row_fits(blocks)
    p, members = rows.weighted.square_length, rows.smoother
    assert np.all(p >= 0)
    assert np.all(p <= 1 + 1e-9)
    assert_allclose(p.sum(axis=1), members.trace, rtol=1e-8)
    assert np.all(members.trace <= members.dof * (1 + 1e-12))
    assert np.all(members.dof <= members.rank * (1 + 1e-12))
    if alpha == 0:
        assert_allclose(members.dof, members.rank, rtol=1e-12)


@given(seed=seeds, value=st.floats(-1e6, 1e6), alpha=st.sampled_from([0.0, 0.3, "loo", "gcv"]))
@pytest.mark.parametrize("noise_variance", ["residual", "pilot"])
def test_constant_outputs_have_no_variance(make_table, noise_variance, seed, value, alpha):
    data = make_table(45, seed=seed)
    model = paper_ensemble(alpha, noise_variance=noise_variance).fit(data.X, np.full(45, value))
    size = max(abs(value), 1e-300)
    mean, std = model.predict(data.X_new, return_std=True)
    assert_allclose(mean, value, rtol=1e-9)
    assert np.all(np.isfinite(std))
    assert np.all(std <= 1e-9 * size)
    assert 0 <= model.noise_variance_ <= (1e-9 * size) ** 2


# ---------------------------------------------------------------- row blocks


def in_blocks(X, y, root_weight, ends):
    """The same rows in blocks that end at the given positions."""
    edges = [0, *sorted(set(ends)), len(X)]
    return [
        Block(X[a:b], y[:, a:b], None if root_weight is None else root_weight[a:b])
        for a, b in itertools.pairwise(edges)
        if b > a
    ]


def alphas_of(fit):
    """Ridge parameter of each output."""
    return fit.ensemble.per_output(part.smoother.alpha for part in fit.ensemble.regressions)


@given(
    seed=seeds,
    ends=st.lists(st.integers(1, 59), max_size=8),
    alpha=st.sampled_from([0.0, 0.3, "loo", "gcv"]),
    hc=hcs,
    constant=st.booleans(),
    weighted=st.booleans(),
    dual=st.booleans(),
)
def test_any_split_into_blocks_gives_the_same_model(
    make_table, make_layer, seed, ends, alpha, hc, constant, weighted, dual
):
    data = make_table(60, seed=seed)
    layer = make_layer(4, 6, 3, seed=seed, constant=constant)
    Y = np.stack([data.y, 3 * data.X[:, 0] - 50])
    root = np.sqrt(data.w) if weighted else None
    whole = in_blocks(data.X, Y, root, [])
    fits = [
        core_fit(layer, blocks, alpha=alpha, hc=hc, sample=sample, dual=dual)
        for blocks, sample in [
            (whole, whole[0]),
            (in_blocks(data.X, Y, root, ends), whole[0]),
            (in_blocks(data.X, Y, root, [25, *ends]), in_blocks(data.X, Y, root, [25])[0]),
        ]
    ]
    expected = raw_variances(fits[0], data.X_new)
    for fit in fits[1:]:
        assert_allclose(alphas_of(fit), alphas_of(fits[0]), rtol=1e-8)
        assert_allclose(fit.sigma2, fits[0].sigma2, rtol=1e-7)
        assert_allclose(fit.mean(data.X_new), fits[0].mean(data.X_new), rtol=1e-7)
        assert_allclose(raw_variances(fit, data.X_new), expected, rtol=1e-6, atol=1e-10)


@given(seed=seeds, ends=st.lists(st.integers(1, 59), min_size=2, max_size=6), data=st.data())
def test_moments_merge_in_any_order_and_grouping(make_table, make_layer, seed, ends, data):
    table = make_table(60, seed=seed)
    layer = make_layer(3, 5, 3, seed=seed, constant=True)
    y, root = table.y[None, :], np.sqrt(table.w)
    whitening = sample_whitening(layer, Block(table.X[:30], y[:, :30], root[:30]))
    moments = FirstPass(whitening, OutputUnits(np.zeros(1), np.ones(1)), [slice(0, 3)])
    whole = moments(in_blocks(table.X, y, root, []))
    parts = [moments([block]) for block in in_blocks(table.X, y, root, ends)]
    parts = data.draw(st.permutations(parts))
    middle = data.draw(st.integers(1, max(1, len(parts) - 1)))
    groups = [group for group in (parts[:middle], parts[middle:]) if group]
    merged = functools.reduce(operator.add, [functools.reduce(operator.add, g) for g in groups])
    assert merged.n_rows == whole.n_rows == 60
    for ours, expected in [
        (merged.gram.single, whole.gram.single),
        (merged.cross, whole.cross),
        (merged.y_square, whole.y_square),
        *zip(merged.gram.upper, whole.gram.upper, strict=True),
    ]:
        assert_allclose(ours, expected, rtol=1e-9, atol=1e-9)


def test_merging_leaves_its_parts_alone(make_table, make_layer):
    table = make_table(20)
    layer = make_layer(3, 5, 3)
    block = Block(table.X, table.y[None, :], None)
    whitening = sample_whitening(layer, block)
    moments = FirstPass(whitening, OutputUnits(np.zeros(1), np.ones(1)), [slice(0, 3)])
    one, other = (moments([block]) for _ in range(2))
    total = one + other
    total.add(whitening(block), block, ALL_ROWS)
    assert_array_equal(one.gram.single, other.gram.single)
    assert one.n_rows == 20
    assert total.n_rows == 60
