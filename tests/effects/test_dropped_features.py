"""Effects of columns that the input map drops warn, and no others."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, facts
from models import plain_ensemble
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.exceptions import DegenerateFitWarning


def weak_treatment_table(n=120):
    """A treatment that matters less than noise: its effect is .3, the noise has sd .5."""
    rng = np.random.default_rng(6)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, 3)), columns=["a", "b", "c"])
    X["treated"] = rng.integers(0, 2, n)
    y = np.sin(3 * X.a) + X.b + 0.3 * X.treated + 0.5 * rng.standard_normal(n)
    return X, y


def warned(compute, *arguments, **options):
    """Texts of the warnings, and the frame."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frame = compute(*arguments, **options)
    return [str(w.message) for w in caught if w.category is DegenerateFitWarning], frame


def with_map(X, y, diagonal, **parameters):
    """A model behind a given map."""
    given = {"input_map": np.diag(diagonal), "alpha": 0.1, "random_state": 0}
    return plain_ensemble(3, 15, **given | parameters).fit(X, y)


def test_a_treatment_that_the_learned_map_drops_is_named_with_the_suggestion():
    X, y = weak_treatment_table()
    model = ELMEnsembleRegressor(3, 40, noise="homoskedastic", random_state=6).fit(X, y)
    assert model.feature_relevance_[3] == 0
    (text,), frame = warned(model.compare, X, {"treated": (0, 1)})
    assert frame.conf_low[0] < 0.3 < frame.conf_high[0]  # the true effect
    assert 0 < frame.std_error[0] < 0.15
    assert re.search(r"learned input map drops 'treated'.* added .*fit with input_map=None", text)
    free = ELMEnsembleRegressor(3, 40, input_map=None, random_state=6).fit(X, y)
    nothing, frame = warned(free.compare, X, {"treated": (0, 1)})
    assert nothing == []
    assert frame.conf_low[0] < 0.3 < frame.conf_high[0]


def test_a_loaded_model_estimates_the_effect_of_a_dropped_column_too(tmp_path):
    X, y = weak_treatment_table(500)
    model = ELMEnsembleRegressor(4, 120, noise="homoskedastic", random_state=6)
    model.set_params(input_map=np.diag([1.0, 1.0, 0.0, 0.0]), expand_inputs=None).fit(X, y)
    model.save(tmp_path / "m.ulmus")
    _, expected = warned(model.compare, X, {"treated": (0, 1)})
    _, found = warned(ulmus.load(tmp_path / "m.ulmus").compare, X, {"treated": (0, 1)})
    np.testing.assert_allclose(found.estimate, expected.estimate, rtol=1e-6)
    np.testing.assert_allclose(found.std_error, expected.std_error, rtol=0.02)


@pytest.fixture(scope="module")
def model():
    """A model whose given map drops ``c`` and ``treated``."""
    return with_map(*weak_treatment_table(), [1.0, 1.0, 0.0, 0.0])


def test_all_effects_of_a_dropped_column_warn(model):
    X, _ = weak_treatment_table()
    for compute, columns, options in (
        (model.compare, "c", {}),
        (model.compare, {"c": (0.1, 0.2)}, {"comparison": "ratio"}),
        (model.slope, "c", {"by": "treated"}),
        (model.partial_dependence, "c", {"grid_resolution": 3}),
        (model.partial_dependence, "c", {"grid_resolution": 3, "centered": True}),
        (model.partial_dependence, "c", {"grid_resolution": 3, "kind": "slope"}),
        (model.partial_dependence, ["a", "c"], {"grid_resolution": 3}),
        (model.compare, {"c": (0, 0.5)}, {"target": "function"}),
    ):
        (text,), _ = warned(compute, X, columns, **options)
        assert "given input map drops 'c', so" in text
    (text,), _ = warned(model.slope, X)
    assert "drops 'c', 'treated', so" in text


def test_effects_of_other_columns_do_not_warn(model):
    X, _ = weak_treatment_table()
    assert warned(model.compare, X, "a", by="treated")[0] == []
    assert warned(model.slope, X, ["a", "b"])[0] == []
    assert warned(model.average, X, by="treated")[0] == []
    assert warned(model.functional, np.ones((1, 120)), X)[0] == []


def test_an_effect_over_many_blocks_of_rows_warns_once(model):
    X, _ = weak_treatment_table(5000)
    assert len(warned(model.compare, X, "c")[0]) == 1


def test_one_hot_indicators_have_no_slope_but_contrasts():
    X, y = weak_treatment_table()
    X["site"] = np.arange(120) % 3
    model = with_map(X, y, [1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0], expand_inputs="one_hot")
    (text,), frame = warned(model.slope, X, "site")
    assert frame.estimate[0] == 0
    assert re.search("keeps only one-hot indicators of 'site'.* compare", text)
    assert warned(model.compare, X, {"site": (0, 1)})[0] == []


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ([0.0, 0.0, 0.0], "drops 'kind', so"),
        ([0.0, 0.0, 1.0], "drops 'kind' (b - a), so"),
        ([0.0, 1.0, 0.0], "drops 'kind' (c - a), so"),
        ([1.0, 0.0, 0.0], None),
    ],
)
def test_categories_in_a_pipeline_whose_indicators_are_dropped(kept, expected):
    X, y = weak_treatment_table()
    X["kind"] = np.array(["a", "b", "c"])[np.arange(120) % 3]
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    model = plain_ensemble(3, 15, input_map=np.diag([*kept, 1, 1, 1, 1]), alpha=0.1)
    pipe = make_pipeline(encode, model).fit(X, y)
    texts, frame = warned(ulmus.inference(pipe).compare, X, "kind")
    assert list(frame.contrast) == ["b - a", "c - a"]
    assert len(texts) == (expected is not None)
    assert expected is None or expected in texts[0]


def test_a_column_that_a_transformer_drops_does_not_warn():
    X, y = weak_treatment_table()
    drop = make_column_transformer(("drop", ["c"]), remainder="passthrough")
    model = plain_ensemble(3, 15, input_map=np.diag([1.0, 1.0, 0.0]), alpha=0.1)
    pipe = make_pipeline(drop, model).fit(X, y)
    assert warned(ulmus.inference(pipe).compare, X, "c")[0] == []


@pytest.mark.slow
def test_the_command_line_warns_and_has_the_suggestion(tmp_path):
    X, y = weak_treatment_table()
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    start = ("fit", tmp_path / "t.csv", "-t", "y", "-o", tmp_path / "m.ulmus", *SMALL)
    compare = ("compare", tmp_path / "m.ulmus", tmp_path / "t.csv", "--variables", "treated=0,1")
    facts(*start, "--random-state", "6")
    result = facts(*compare)
    assert result["effects"][0]["std_error"] > 0.05
    (note,) = result["notes"]
    assert "drops 'treated'" in note
    assert "fit with --input-map none" in note
    facts(*start, "--input-map", "none")
    result = facts(*compare)
    assert result["notes"] == []
    assert result["effects"][0]["estimate"] > 0
