"""The page as text: what it contains, what it refuses, and that it is written as a whole."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from models import mapped_ensemble, plain_ensemble
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from ulmus import ELMEnsembleRegressor, load
from ulmus.explore import explorer_html, explorer_panel, write_explorer

pytestmark = pytest.mark.filterwarnings("ignore::ulmus.exceptions.UlmusWarning")


def table(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.2 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def model():
    return plain_ensemble(3, 20, random_state=0).fit(*table())


def specification(page):
    data = re.search(r'id="ulmus-explorer-data">(.*?)</script>', page, re.DOTALL).group(1)
    return json.loads(data)


def test_the_page_loads_nothing_and_escapes_names(model):
    page = explorer_html(model, target="</script><b>", title="<i>&")
    assert not re.search(r'(src|href)\s*=\s*["\']?(https?:)?//', page)
    assert "<i>&<" not in page
    assert "&lt;i&gt;&amp;" in page
    assert page.count("</script>") == 3
    assert specification(page)["target"] == "</script><b>"


def test_controls_start_at_a_training_row_in_their_range(model):
    X, _ = table()
    spec = specification(explorer_html(model))
    start = [control["start"] for control in spec["controls"]]
    assert np.min(np.abs(X - start).sum(axis=1)) == pytest.approx(0, abs=1e-12)
    for j, control in enumerate(spec["controls"]):
        assert (control["low"], control["high"]) == (X[:, j].min(), X[:, j].max())
    assert [control["name"] for control in spec["controls"]] == ["x0", "x1", "x2"]


def test_levels_rows_and_outputs_are_options(model):
    spec = specification(explorer_html(model, confidence_level=0.67, max_rows=10))
    levels = spec["observations"]["levels"]
    assert levels[spec["level"]] == 0.67
    assert spec["rows"]["index"]["shape"] == [10]
    assert specification(explorer_html(model, max_rows=0))["rows"] is None
    X, y = table()
    two = plain_ensemble(3, 20, random_state=0).fit(X, np.column_stack([y, 5 * y + 1]))
    first, second = (specification(explorer_html(two, output=k)) for k in (0, 1))
    assert first["prediction"]["mean"]["shift"] != second["prediction"]["mean"]["shift"]


def test_columns_have_controls_of_their_types():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "day": pd.date_range("2024-01-01", periods=150, freq="5D"),
            "kind": rng.choice(["elm", "oak"], 150),
            "wet": rng.random(150) < 0.5,
            "count": rng.integers(0, 6, 150),
            "share": rng.random(150),
        }
    )
    model = plain_ensemble(3, 20, random_state=0).fit(frame, rng.normal(size=150))
    controls = specification(explorer_html(model))["controls"]
    assert [one["kind"] for one in controls] == ["date", "category", "boolean", "number", "number"]
    assert controls[1]["labels"] == ["elm", "oak"]
    assert controls[3]["values"] == [0, 1, 2, 3, 4, 5]
    assert controls[4]["step"] == 0.005


def test_what_a_page_cannot_contain_is_refused(model):
    X, y = table()
    for value, name in ((2, "output"), (-1, "output"), (0.5, "output")):
        with pytest.raises(ValueError, match=name):
            explorer_html(model, output=value)
    with pytest.raises(ValueError, match="max_rows"):
        explorer_html(model, max_rows=-1)
    with pytest.raises(ValueError, match="confidence_level"):
        explorer_html(model, confidence_level=95)
    with pytest.raises(ValueError, match="Pipeline"):
        explorer_html(make_pipeline(StandardScaler(), plain_ensemble(3, 9)).fit(X, y))
    with pytest.raises(ValueError, match="activation"):
        explorer_html(plain_ensemble(3, 9, activation=np.tanh).fit(X, y))
    transformer = FunctionTransformer(np.arcsinh, np.sinh, validate=True).fit(y[:, None])
    with pytest.raises(ValueError, match="target_transform"):
        explorer_html(plain_ensemble(3, 9, target_transform=transformer).fit(X, y))
    exact = plain_ensemble(4, 9, noise="heteroskedastic", hc="jackknife", variance="S2")
    with pytest.raises(ValueError, match="jackknife"):
        explorer_html(exact.fit(X, y))
    with pytest.raises(ValueError, match="compress"):
        explorer_html(plain_ensemble(3, 9).fit(X, y).compress())


def test_nothing_is_written_if_the_page_fails(tmp_path):
    X, y = table()
    bad = plain_ensemble(3, 9, activation=np.tanh).fit(X, y)
    with pytest.raises(ValueError, match="activation"):
        write_explorer(bad, tmp_path / "p.html")
    assert not list(tmp_path.iterdir())


def test_a_loaded_model_has_the_same_page(model, tmp_path):
    model.save(tmp_path / "m.ulmus")
    assert explorer_html(load(tmp_path / "m.ulmus")) == explorer_html(model)


def test_the_panel_has_no_page_around_it(model):
    panel = explorer_panel(model)
    assert "<html" not in panel
    assert not specification(panel)["reads_link"]


@pytest.mark.parametrize("n", [2, 3, 12])
def test_tables_of_few_rows(n):
    model = ELMEnsembleRegressor(3, 5, alpha=0.1, input_map=None, random_state=0).fit(*table(n))
    assert specification(explorer_html(model))["rows"]["index"]["shape"] == [n]


def test_degenerate_columns():
    X, y = table()
    X = np.column_stack([X[:, 0], np.ones(len(X)), np.where(X[:, 1] > 0, 1e12, -1e12)])
    spec = specification(explorer_html(mapped_ensemble(3, 20).fit(X, y)))
    assert spec["controls"][1]["values"] == [1.0]
    assert np.isfinite(spec["controls"][2]["step"])


def test_a_constant_target_has_no_variance():
    X, _ = table(60)
    model = plain_ensemble(4, 15, alpha=0.1, random_state=0).fit(X, np.full(60, 3.0))
    forms = specification(explorer_html(model))["prediction"]["forms"]
    assert forms["coordinates"]["shape"][0] == 1
