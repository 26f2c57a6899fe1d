"""A model comes back from its file to the last bit, and the file contains what the guide states."""

import copy
import dataclasses
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from fit_comparison import cut
from interval_methods import every_interval
from models import every_estimate_ensemble, plain_ensemble, plain_member
from numpy.testing import assert_allclose, assert_array_equal
from safetensors import safe_open

import ulmus
from ulmus import ELMEnsembleRegressor, ELMRegressor
from ulmus.model_file import SKOPS_TRUSTED_TYPES, model_document, saving
from ulmus.noise import AR1, Clustered
from ulmus.tables import BooleanColumn, NumberColumn, Schema

LEVELS = [0.5, 0.9]

# Networks of few neurons do not follow the function, which is warned about.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.BiasWarning"),
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.DegenerateFitWarning"),
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.NegativeVarianceWarning"),
]


def mapped(**parameters):
    """A small ensemble with a learned map, scores and levels."""
    return ELMEnsembleRegressor(2, 12, random_state=0, **parameters)


def rounded(X):
    """Inputs of few values, the first of them skewed."""
    return np.column_stack([np.exp(2 * X[:, 0]), np.round(2 * X[:, 1]), X[:, 2:]])


def two(X, y):
    return np.column_stack([y, X[:, 0] ** 2])


FITS = {
    "default": lambda X, y, w: mapped().fit(X, y),
    "levels": lambda X, y, w: mapped(expand_inputs=["one_hot", "normal_scores"]).fit(rounded(X), y),
    "tuning": lambda X, y, w: mapped(tuning_fraction=0.7).fit(X, y),
    "plain": lambda X, y, w: every_estimate_ensemble().fit(X, y, w),
    "noise": lambda X, y, w: every_estimate_ensemble(noise="heteroskedastic", hc="HC3-exact").fit(
        X, y, w
    ),
    "outputs": lambda X, y, w: every_estimate_ensemble(noise="auto", alpha="loo").fit(X, two(X, y)),
    "wide": lambda X, y, w: every_estimate_ensemble(4, 40).fit(X, y, w),
    "least squares": lambda X, y, w: plain_ensemble(3, 5, alpha=0.0, random_state=1).fit(X, y),
    "single": lambda X, y, w: plain_member(9, random_state=0).fit(X, y),
    "sparse": lambda X, y, w: every_estimate_ensemble().fit(
        scipy.sparse.csr_array(X * (np.abs(X) > 0.3)), y
    ),
    "float32": lambda X, y, w: every_estimate_ensemble(dtype="float32").fit(X.astype("f4"), y),
    "blocks": lambda X, y, w: every_estimate_ensemble(noise="auto").fit_blocks(cut(X, y, w)),
    "stream": lambda X, y, w: every_estimate_ensemble(variance="BR").partial_fit(X, y, w),
    "along time": lambda X, y, w: every_estimate_ensemble(noise=AR1()).fit(
        X, y, w, time=np.cumsum(w)
    ),
    "in groups": lambda X, y, w: every_estimate_ensemble(4, 40, noise=Clustered()).fit(
        X, y, groups=X[:, 0] // 0.2
    ),
    "compressed": lambda X, y, w: every_estimate_ensemble(noise="auto").fit(X, y, w).compress(),
}


def points_for(name, X):
    if name == "levels":
        return rounded(X)
    return X.astype("f4") if name == "float32" else X


def results(model, X):
    """Everything that a model computes at points and about itself, by name."""
    mean, sd = model.predict(X, return_std=True)
    out = {"mean": mean, "sd": sd, "noise": model.predict_var(X, component="noise")}
    for estimate in model.variance_estimates_:
        out[estimate] = model.predict_var(X, component="model", estimate=estimate)
    for level in LEVELS:
        out[f"quantile {level}"] = model.predict_dist(X).ppf(level)
    single = model.dtype == "float32"
    if model.fitted_.rows is not None and not single:
        out |= every_interval(model, X, LEVELS)
        if model.tuning_fraction is None:
            out["cv+"] = model.predict_interval(X, LEVELS, method="cv+")
        out["loo"], out["leverage"] = model.loo_residuals_, model.leverage_
    out["auto"] = model.predict_interval(X, LEVELS)
    if model.fitted_.one_output and not single:
        out["average"] = np.asarray(model.average(X)[["estimate", "std_error", "conf_low"]])
        out["check"] = np.array(str(model.check()) if model.fitted_.rows is not None else "")
    for name in ("coef_", "alpha_", "rank_", "dof_", "noise_variance_", "undersmoothing_gap_"):
        out[name] = np.asarray(getattr(model, name))
    return out


def assert_same_results(ours, expected, X):
    expected = results(expected, X)
    for name, values in results(ours, X).items():
        assert_array_equal(values, expected[name], err_msg=name)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ulmus"


# ---------------------------------------------------------------- what comes back


@pytest.mark.slow
@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("name", FITS)
def test_a_model_comes_back_to_the_last_bit(make_table, path, name, rows):
    X, y, w, X_new = make_table(45)
    points = points_for(name, X_new if name != "levels" else X[:7])
    model = FITS[name](X, y, w)
    before = model.fitted_
    model.save(path, rows=rows)
    assert model.fitted_ is before
    again = ulmus.load(path)
    assert type(again) is type(model)
    assert again.get_params() == model.get_params()
    assert again.n_features_in_ == 3
    if not rows:
        assert again.fitted_.rows is None
        model = copy.deepcopy(model).compress()
    assert_same_results(again, model, points)
    # And a second time.
    again.save(path)
    assert_same_results(ulmus.load(path), model, points)


@pytest.mark.parametrize("intercept", [True, False])
def test_intervals_for_the_function_come_back_to_the_last_bit_without_rows(
    make_table, path, intercept
):
    X, y, w, X_new = make_table(200, p=50)
    model = plain_ensemble(4, 30, fit_intercept=intercept, random_state=0).fit(X, y, w).compress()
    model.save(path)
    bounds = [
        m.predict_interval(X_new, LEVELS, kind="confidence") for m in (ulmus.load(path), model)
    ]
    assert_array_equal(*bounds)


def test_large_triangles_come_back_to_the_last_bit_without_an_intercept(make_table, path):
    X, y, w, X_new = make_table(40, p=30)
    model = plain_ensemble(4, 110, fit_intercept=False, alpha=0.1, random_state=0).fit(X, y, w)
    model.save(path)
    assert_same_results(ulmus.load(path), model, X_new)


def test_rows_can_be_added_after_a_load(make_table, path):
    X, y, w, X_new = make_table(90)
    parameters = {"variance": "BR", "weight_scale": np.float64(2.0), "n_neurons": np.int64(8)}
    model = every_estimate_ensemble(**parameters).partial_fit(X[:50], y[:50], w[:50])
    model.save(path)
    again = ulmus.load(path)
    for one in (model, again):
        one.partial_fit(X[50:], y[50:], w[50:])
    assert_same_results(again, model, X_new)
    again.set_params(weight_scale=1.0).save(path)
    with pytest.raises(ValueError, match="weight_scale was"):
        ulmus.load(path).partial_fit(X, y)


@pytest.mark.slow
def test_cv_plus_of_many_rows_is_the_same_after_loading(make_table, path, monkeypatch):
    """Its refits are not in the file, and computed again from the rows."""
    monkeypatch.setattr("ulmus.core.fit.fit.MOST_FOLDED_ROWS", 30)
    X, y, _, X_new = make_table(45)
    model = mapped().fit(X, y)
    model.save(path)
    assert ulmus.load(path).fitted_.refits is None
    assert_array_equal(ulmus.load(path).predict_interval(X_new), model.predict_interval(X_new))
    bounds = model.predict_interval(X_new, method="cv+")
    assert_array_equal(ulmus.load(path).predict_interval(X_new, method="cv+"), bounds)
    before = arrays_of(path)
    model.save(path)  # what was computed in between changes nothing
    after = arrays_of(path)
    assert list(after) == list(before)


def test_names_of_columns_come_back(make_table, path):
    pd = pytest.importorskip("pandas")
    X, y, _, X_new = make_table(40)
    names = ["höhe", "t [°C]", "z\n"]
    model = plain_ensemble(2, 5, random_state=0).fit(pd.DataFrame(X, columns=names), y)
    model.save(path)
    again = ulmus.load(path)
    assert list(again.feature_names_in_) == names
    frame = pd.DataFrame(X_new, columns=names)
    assert_array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame.rename(columns={"höhe": "h"}))


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_not_kept_but_what_it_drew_is(make_table, path, make):
    X, y, _, X_new = make_table(60)
    model = plain_ensemble(2, 5, random_state=make(0)).partial_fit(X[:40], y[:40])
    model.save(path)
    again = ulmus.load(path)
    assert again.random_state is None
    assert "generator" in model_document(path)["notes"][0]
    assert_same_results(again, model, X_new)
    assert_same_results(again.partial_fit(X[40:], y[40:]), model.partial_fit(X[40:], y[40:]), X_new)


def test_arrays_among_the_parameters(make_table, path):
    X, y, _, X_new = make_table(40)
    given = {
        "input_map": np.diag([1.0, 2.0, 0.5]),
        "weight_scale": [1.0, 2.0, 0.5],
        "variance": ("BR", "S2"),
        "noise_variance": np.array([0.1]),
    }
    model = ELMEnsembleRegressor(2, 5, expand_inputs=None, random_state=0, **given).fit(X, y)
    model.save(path)
    again = ulmus.load(path)
    for name, value in given.items():
        assert type(getattr(again, name)) is type(value)
        assert_array_equal(getattr(again, name), value)
    assert_same_results(again, model, X_new)
    assert again.fit(X, y).predict(X_new).shape == (7,)


def test_a_fit_of_torch_comes_back_as_numpy_or_on_a_device(torch, make_table, path):
    X, y, _, X_new = make_table(60)
    model = every_estimate_ensemble(device="cpu").fit(X, y)
    model.save(path)
    again = ulmus.load(path)
    assert again.device is None
    assert isinstance(again.fitted_.ensemble.layer.W, np.ndarray)
    assert_allclose(again.predict_var(X_new), model.predict_var(X_new), rtol=1e-9)
    there = ulmus.load(path, device="cpu")
    assert there.device == "cpu"
    assert isinstance(there.fitted_.ensemble.layer.W, torch.Tensor)
    assert_array_equal(there.predict_interval(X_new), model.predict_interval(X_new))
    with pytest.raises(ValueError, match="device='warp' is not one that torch can use"):
        ulmus.load(path, device="warp")


def test_a_stream_of_torch_goes_on_elsewhere(torch, make_table, path):
    X, y, _, X_new = make_table(60)
    model = every_estimate_ensemble(variance="BR", device="cpu").partial_fit(X[:40], y[:40])
    model.save(path)
    model.partial_fit(X[40:], y[40:])
    for device in (None, "cpu"):
        again = ulmus.load(path, device=device).partial_fit(X[40:], y[40:])
        assert_allclose(again.predict_var(X_new), model.predict_var(X_new), rtol=1e-9)


def test_a_fit_of_numpy_stays_there(torch, make_table, path):
    X, y, _, _ = make_table(40)
    plain_member(5, random_state=0).fit(X, y).save(path)
    with pytest.raises(ValueError, match="device='cpu' is for models that were fitted with torch"):
        ulmus.load(path, device="cpu")


# ---------------------------------------------------------------- what is in a file


def test_the_document_of_a_file(make_table, path):
    X, y, _, _ = make_table(40)
    model = plain_ensemble(2, 5, random_state=0).fit(X, y)
    schema = Schema((NumberColumn("a"), NumberColumn("b"), BooleanColumn("c")))
    ulmus.model_file.save(model, path, columns=schema, target="yield")
    document = model_document(path)
    assert document["format"] == 2
    assert document["ulmus"] == ulmus.__version__
    assert document["class"] == "ELMEnsembleRegressor"
    assert document["parameters"]["random_state"] == 0
    assert document["target"] == "yield"
    assert document["columns"] == {
        "count": 3,
        "names": ["a", "b", "c"],
        "dtype": "float64",
        "schema": schema.describe(),
    }
    training = document["training"]
    assert (training["rows"], training["outputs"], training["rows_kept"]) == (40, 1, True)
    assert_array_equal(training["low"], X.min(axis=0))
    assert_array_equal(training["high"], X.max(axis=0))
    assert document["date"].endswith("+00:00")
    assert "fit" not in document


def arrays_of(path):
    """All arrays of a file by the library's own reader."""
    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def test_a_file_contains_arrays_that_safetensors_reads(make_table, path):
    X, y, _, _ = make_table(40)
    model = plain_ensemble(2, 5, random_state=0).fit(X, y)
    model.save(path)
    arrays = arrays_of(path)
    assert_array_equal(arrays["fit.ensemble.layer.W"], model.fitted_.ensemble.layer.W)
    assert_array_equal(arrays["fit.rows.data.X"], X)
    model.save(path, rows=False)
    arrays = arrays_of(path)
    assert not any(name.startswith("fit.rows") for name in arrays)
    assert arrays["fit.gap_points"].size == 0


@pytest.mark.slow
def test_the_same_model_gives_the_same_bytes(make_table, tmp_path, monkeypatch):
    X, y, _, _ = make_table(40)
    clock = iter([b"2030", b"2030", b"2031"])

    class Clock:
        @staticmethod
        def now(zone):
            year = int(next(clock))
            return real.now(zone).replace(year=year, month=1, day=1, hour=0, minute=0, second=0)

    real = saving.datetime
    monkeypatch.setattr(saving, "datetime", Clock)
    paths = [tmp_path / name for name in "abc"]
    for one in paths:
        mapped().fit(X, y).save(one)
    first, second, third = (one.read_bytes() for one in paths)
    assert first == second
    assert first != third
    former, latter = arrays_of(paths[0]), arrays_of(paths[2])
    assert list(former) == list(latter)
    assert all(former[name].tobytes() == latter[name].tobytes() for name in former)


# ---------------------------------------------------------------- what cannot be saved


def test_what_cannot_be_saved(make_table, path):
    X, y, _, _ = make_table(40)
    with pytest.raises(ValueError, match="not fitted"):
        plain_member(5).save(path)
    model = plain_ensemble(2, 5, activation=np.tanh, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"activation=<ufunc 'tanh'>.*activation by name"):
        model.save(path)
    model = plain_ensemble(2, 5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="rows must be True or False, got 'no'"):
        model.save(path, rows="no")
    with pytest.raises(ValueError, match=r"n_jobs=<object.*use plain values"):
        copy.deepcopy(model).set_params(n_jobs=object()).save(path)
    with pytest.raises(ValueError, match="folder that does not exist"):
        model.save(path / "model.ulmus")

    class Other(ELMRegressor):
        pass

    with pytest.raises(ValueError, match="ELMEnsembleRegressor or ELMRegressor, got Other"):
        Other(5, input_map=None).fit(X, y).save(path)
    assert os.listdir(path.parent) == []


def test_permissions_of_a_file(make_table, path):
    X, y, _, _ = make_table(40)
    model = plain_ensemble(2, 5, random_state=0).fit(X, y)
    other = path.with_name("other")
    other.touch()
    model.save(path)
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o640)
    model.save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_failed_save_leaves_the_old_file(make_table, path, monkeypatch):
    X, y, _, X_new = make_table(40)
    model = plain_ensemble(2, 5, random_state=0).fit(X, y)
    model.save(path)

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(saving, "to_arrays", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert os.listdir(path.parent) == ["model.ulmus"]
    assert_array_equal(ulmus.load(path).predict(X_new), model.predict(X_new))


SAVER = """
import sys
import ulmus
model = ulmus.load(sys.argv[1])
print("ready", flush=True)
while True:
    model.save(sys.argv[2])
"""


@pytest.mark.slow
def test_a_killed_process_leaves_a_whole_model(make_table, tmp_path):
    X, y, _, X_new = make_table(60)
    model = plain_ensemble(4, 30, random_state=0).fit(X, y)
    source, target = tmp_path / "source.ulmus", tmp_path / "target.ulmus"
    model.save(source)
    command = [sys.executable, "-c", SAVER, str(source), str(target)]
    for wait in np.random.default_rng(0).uniform(0, 0.08, 4):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
        if target.exists():
            assert_array_equal(ulmus.load(target).predict(X_new), model.predict(X_new))
    others = set(os.listdir(tmp_path)) - {"source.ulmus", "target.ulmus"}
    assert all(name.startswith(".target.ulmus.") and ".part" in name for name in others)


# ---------------------------------------------------------------- skops


@pytest.mark.slow
@pytest.mark.parametrize("name", [*FITS, "after inference"])
def test_skops_loads_the_trusted_types(make_table, name):
    skops = pytest.importorskip("skops.io", reason="needs skops")
    X, y, w, X_new = make_table(45)
    model = FITS.get(name, FITS["default"])(X, y, w)
    if name == "after inference":
        results(model, X_new)
    points = points_for(name, X_new if name != "levels" else X[:7])
    data = skops.dumps(model)
    assert set(skops.get_untrusted_types(data=data)) <= set(SKOPS_TRUSTED_TYPES)
    again = skops.loads(data, trusted=list(SKOPS_TRUSTED_TYPES))
    assert_array_equal(again.predict(points), model.predict(points))
    assert_array_equal(again.predict_interval(points), model.predict_interval(points))


def test_round_off_of_degenerate_fits_is_no_damage(tmp_path):
    """Weighted sums of squares of a constant output, and degrees of freedom, are not negative."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(60, 1)), rng.integers(0, 4, 60).astype(float)
    model = plain_ensemble(2, 10, alpha=1.0, standardize=True, random_state=0)
    model.fit(X, np.full(60, 3.7), sample_weight=w)
    (regression,) = model.fitted_.ensemble.regressions
    assert regression.y_square[0] >= 0
    model.save(tmp_path / "model.ulmus")
    assert_array_equal(ulmus.load(tmp_path / "model.ulmus").predict(X), model.predict(X))
    large = dataclasses.replace(regression.exact, gain=1.5 * np.ones_like(regression.exact.gain))
    assert np.all(large.dof >= large.trace)
