"""Correlated noise in tables that are read in blocks: the numbers of ``fit``, or an error."""

import numpy as np
import pandas as pd
import pytest
from fit_comparison import assert_same_fit, cut
from messages import mentions
from models import every_estimate_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal

from ulmus.exceptions import NeedsTwoPassesError
from ulmus.noise import AR1, Clustered, Conley, Exponential, Matern, NeweyWest
from ulmus.noise.locations import group_codes
from ulmus.tables import from_arrow
from ulmus.tables.blocks import BlockSource, checked_blocks

# Rows of these tables are correlated, also where a fit assumes independence.
pytestmark = pytest.mark.filterwarnings("ignore::ulmus.exceptions.CorrelatedErrorsWarning")

SERIES = {
    "rows in steps of one": AR1(),
    "irregular times": AR1(time="t"),
    "no nugget": AR1(nugget=False, time="t"),
    "a kernel": NeweyWest(),
    "a kernel of known reach": NeweyWest(bandwidth=3.5, time="t"),
    "clusters": Clustered("site"),
    "panel": AR1(time="t") * Clustered("site"),
    "panel with a kernel": NeweyWest() * Clustered("site"),
}


@pytest.fixture(scope="module")
def grouped_series():
    """A table of irregular times in groups, its outputs, and weights of which some are zero."""
    n, rng = 240, np.random.default_rng(0)
    t = np.cumsum(rng.exponential(1.0, n))
    e = rng.standard_normal(n)
    for i in range(1, n):
        phi = np.exp(-(t[i] - t[i - 1]) / 4)
        e[i] = phi * e[i - 1] + np.sqrt(1 - phi**2) * e[i]
    columns = {"a": rng.uniform(-1, 1, n), "b": rng.uniform(-1, 1, n), "t": t}
    columns["site"] = np.repeat([3.0, 1.0, 2.0, 9.0, 7.0, 5.0], n // 6)  # in no order
    y = np.sin(3 * columns["a"]) + 0.6 * e + 0.2 * rng.standard_normal(n)
    weight = rng.uniform(0.3, 3, n) * (rng.random(n) > 0.15)
    return pd.DataFrame(columns), y, weight


# ---------------------------------------------------------------- the numbers of fit


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [23, 100, 240])
@pytest.mark.parametrize("kind", SERIES)
def test_any_cut_into_blocks_gives_the_fit_of_all_rows(grouped_series, kind, size, weighted):
    table, y, w = grouped_series
    w = w if weighted else None
    expected = every_estimate_ensemble(noise=SERIES[kind]).fit(table, y, w)
    blocks = cut(table, y, size=size) if w is None else cut(table, y, w, size=size)
    streamed = every_estimate_ensemble(noise=SERIES[kind]).fit_blocks(blocks)
    assert_same_fit(streamed, expected, table[::31])
    assert type(streamed.noise_covariance_) is type(expected.noise_covariance_)
    for name in ("values", "bandwidth", "sill"):
        if hasattr(expected.noise_covariance_, name):
            pair = [getattr(m.noise_covariance_, name) for m in (streamed, expected)]
            assert_allclose(*pair, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["irregular times", "clusters"])
def test_blocks_of_one_row_some_of_weight_zero(grouped_series, kind):
    table, y, w = grouped_series
    expected = every_estimate_ensemble(noise=SERIES[kind]).fit(table, y, w)
    streamed = every_estimate_ensemble(noise=SERIES[kind]).fit_blocks(cut(table, y, w, size=1))
    assert_same_fit(streamed, expected, table[::31])


def test_some_of_these_series_are_correlated(grouped_series):
    table, y, _ = grouped_series
    found = every_estimate_ensemble(noise=AR1(time="t")).fit_blocks(cut(table, y)).noise_covariance_
    assert not found.independent


@pytest.mark.parametrize("kind", ["irregular times", "clusters", "panel"])
def test_threads(grouped_series, kind):
    table, y, w = grouped_series
    expected = every_estimate_ensemble(noise=SERIES[kind]).fit(table, y, w)
    streamed = every_estimate_ensemble(noise=SERIES[kind], n_jobs=3).fit_blocks(
        cut(table, y, w, size=9)
    )
    assert_same_fit(streamed, expected, table[::31])


def test_alpha_is_chosen_without_whole_blocks(grouped_series):
    table, y, _ = grouped_series
    blocks = cut(table, y)
    by_blocks = every_estimate_ensemble(noise=AR1()).fit_blocks(blocks).alpha_
    assert_allclose(
        by_blocks, every_estimate_ensemble(noise=AR1(), alpha="block-loo").fit(table, y).alpha_
    )
    assert (
        by_blocks > 1.1 * every_estimate_ensemble(noise="homoskedastic").fit_blocks(blocks).alpha_
    )
    given = every_estimate_ensemble(noise=AR1(), alpha=0.1)
    assert_same_fit(
        given.fit_blocks(blocks),
        every_estimate_ensemble(noise=AR1(), alpha=0.1).fit(table, y),
        table,
    )


@pytest.mark.slow
def test_wide_layers_and_many_rows_have_the_same_space():
    # Beyond 600 rows the space that the smoother keeps is searched for, from a random start.
    n, rng = 1200, np.random.default_rng(1)
    X, e = rng.uniform(-1, 1, (n, 2)), rng.standard_normal(n)
    for i in range(1, n):
        e[i] += 0.7 * e[i - 1]
    y = np.sin(4 * X[:, 0]) * X[:, 1] + 0.3 * e
    expected = every_estimate_ensemble(5, 60, noise=AR1()).fit(X, y)
    streamed = every_estimate_ensemble(5, 60, noise=AR1()).fit_blocks(cut(X, y, size=170))
    assert_same_fit(streamed, expected, X[:9])


def test_one_member_and_several_outputs(grouped_series):
    table, y, w = grouped_series
    several = np.stack([y, y**2 - 2 * table["b"].to_numpy()], axis=1)
    how = {"noise": AR1(time="t"), "weight_scale": 2.0, "random_state": 0}
    expected = plain_member(8, **how).fit(table, several, w)
    assert_same_fit(plain_member(8, **how).fit_blocks(cut(table, several, w)), expected, table[:9])


def test_files_name_times_and_groups(grouped_series, tmp_path):
    pytest.importorskip("pyarrow", reason="files are read with pyarrow")
    table, y, w = grouped_series
    table.assign(y=y, w=w).to_csv(tmp_path / "table.csv", index=False)
    blocks = from_arrow(tmp_path / "table.csv", target="y", sample_weight="w", batch_rows=50)
    noise = AR1(time="t") * Clustered("site")
    expected = every_estimate_ensemble(noise=noise).fit(table, y, w)
    assert_same_fit(every_estimate_ensemble(noise=noise).fit_blocks(blocks), expected, table[::31])


def test_arrays_of_times_and_groups_of_all_rows(grouped_series):
    table, y, w = grouped_series
    inputs, locations = table[["a", "b"]], {"time": table["t"], "groups": table["site"].astype(str)}
    noise = AR1() * Clustered()
    expected = every_estimate_ensemble(noise=noise).fit(inputs, y, w, **locations)
    streamed = every_estimate_ensemble(noise=noise).fit_blocks(cut(inputs, y, w), **locations)
    assert_same_fit(streamed, expected, inputs[::31])
    with pytest.raises(ValueError, match=mentions("time given to fit has 239 rows", "X has 240")):
        every_estimate_ensemble(noise=AR1()).fit_blocks(cut(inputs, y), time=table["t"][1:])
    with pytest.raises(ValueError, match=mentions("time was given", "independent")):
        every_estimate_ensemble().fit_blocks(cut(inputs, y), time=table["t"])


def test_labels_and_columns_follow_the_rows(grouped_series):
    table, y, w = grouped_series
    raw = cut(table, y, w, size=50)
    first = next(checked_blocks(lambda: iter(raw)))
    source = BlockSource(lambda: iter(raw), first, np.empty(0))
    columns, used = source.row_columns(["t", "site"])
    assert_array_equal(columns["t"], table["t"])
    assert_array_equal(columns["site"], table["site"])
    assert_array_equal(used, w > 0)
    labels = np.arange(240) // 30
    labelled = BlockSource(lambda: iter(raw), first, np.empty(0), block_ids=labels)
    blocks = list(labelled.blocks())
    assert_array_equal(np.concatenate([block.block_ids for block in blocks]), labels)


def test_groups_are_numbered_as_they_come():
    assert_array_equal(group_codes(["b", "b", "a", "c", "a"]), [0, 0, 1, 2, 1])


# ---------------------------------------------------------------- what is refused


def refused(noise, table, y, *words, **parameters):
    """The fit is refused with these words, and the last fit is kept."""
    model = every_estimate_ensemble(**parameters).fit(table, y)
    before = model.predict(table)
    with pytest.raises(ValueError, match=mentions(*words)):
        model.set_params(noise=noise).fit_blocks(cut(table, y))
    assert_array_equal(model.predict(table), before)


def test_rows_out_of_order(grouped_series):
    table, y, _ = grouped_series
    later = table.copy()
    later.loc[[100, 101], "t"] = table.loc[[101, 100], "t"].to_numpy()
    refused(AR1(time="t"), later, y, "order", "row 101", "sort", "in memory")
    apart = table.copy()
    apart.loc[200, "site"] = 3.0
    for noise in (Clustered("site"), AR1() * Clustered("site")):
        refused(noise, apart, y, "order", "row 200", "group", "sort")


@pytest.mark.parametrize(
    "noise",
    [
        NeweyWest("qs"),
        Exponential(("a", "b")),
        Matern(("a", "b")),
        Conley(("a", "b"), cutoff=0.3),
        AR1() + Exponential(("a", "b")),
    ],
    ids=lambda noise: type(noise).__name__,
)
def test_noise_that_needs_all_rows_at_once(grouped_series, noise):
    table, y, _ = grouped_series
    refused(noise, table, y, repr(noise), "all rows at once", "AR1()", "in memory")


def test_columns_that_the_blocks_do_not_have(grouped_series):
    table, y, _ = grouped_series
    refused(AR1(time="hour"), table, y, "no column 'hour'", "a, b, t, site")
    refused(AR1(time="t"), table.to_numpy(), y, "no column 't'", "no column names")
    refused(Clustered(), table, y, "requires groups", "name of a column")


def test_blocks_that_change_between_readings(grouped_series):
    table, y, _ = grouped_series
    readings = []

    def growing():
        readings.append(0)
        yield from cut(table, y)
        if len(readings) > 5:  # two of them read the columns
            yield table[:5], y[:5]

    with pytest.raises(ValueError, match=mentions("other rows", "240 before")):
        every_estimate_ensemble(noise=AR1()).fit_blocks(growing)


def test_rows_that_come_once(grouped_series):
    table, y, _ = grouped_series
    model = every_estimate_ensemble(noise=AR1())
    assert not hasattr(model, "partial_fit")
    with pytest.raises(NeedsTwoPassesError, match=mentions("AR1(", "order", "fit_blocks")):
        model.partial_fit(table, y)


def test_partitions_of_a_cluster(grouped_series):
    dask_array = pytest.importorskip("dask.array", reason="needs dask")
    import ulmus.dask

    table, y, _ = grouped_series
    X, y = (dask_array.from_array(a, chunks=(60, *a.shape[1:])) for a in (table.to_numpy(), y))
    with pytest.raises(ValueError, match=mentions("AR1(", "order", "partitions", "fit_blocks")):
        ulmus.dask.fit(every_estimate_ensemble(noise=AR1()), X, y)
