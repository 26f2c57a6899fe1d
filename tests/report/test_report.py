"""The report: its numbers are the library's, its page is whole, and odd tables do not break it."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from numpy.testing import assert_allclose
from plain import plain_ensemble, plain_member
from scipy.sparse import csr_array
from shared import says
from sklearn.compose import make_column_transformer
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.diagnostics.baselines import left_out_mean, linear_baseline
from ulmus.report import report_html, write_report
from ulmus.report.facts import facts
from ulmus.report.influences import exchange_shares
from ulmus.report.numbers import count, number, share
from ulmus.report.subject import LEFT_OUT, NEW, NOTHING, subject
from ulmus.report.words import rows as about_rows
from ulmus.report.words import variance, verdict

SECTIONS = ["data", "accuracy", "honesty", "neighbours", "inputs", "variance", "enough"]
SECTIONS += ["points", "settings"]
NAUGHTY = ["<script>alert(1)</script>", '"quote" & co', "größe µ", "long " * 40]


def small(M=4, N=15, **parameters):
    how = {"alpha": 0.1, "random_state": 0}
    return plain_ensemble(M, N, **how | parameters)


def drawn_table(n=150, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, d)), columns=[f"c{j}" for j in range(d)])
    y = 2 + np.sin(3 * X.iloc[:, 0]) + X.iloc[:, -1] ** 2 + 0.3 * rng.standard_normal(n)
    return X, y.to_numpy()


def told(model, X, y, target="y"):
    return facts(subject(model, X, y), "a title", target)


class Page(HTMLParser):
    """Texts, tags and their attributes of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    def ids(self):
        return {attrs["id"] for _, attrs in self.tags if "id" in attrs}


def figures_of(page):
    start = '<script type="application/json" id="figures">'
    return json.loads(page.split(start)[1].split("</script>")[0])


@pytest.fixture(scope="module")
def rows():
    return drawn_table()


@pytest.fixture(scope="module")
def model(rows):
    return small().fit(*rows)


@pytest.fixture(scope="module")
def page(model, rows):
    return report_html(model, *rows, title="A title", target="height")


# ---------------------------------------------------------------- the page


def test_all_sections_and_the_title(page):
    read = Page(page)
    assert set(SECTIONS) | {"cite"} <= read.ids()
    assert "A title" in read.text
    assert "height" in read.text


def test_it_is_small_and_loads_nothing(page):
    assert len(page.encode()) < 3_000_000
    read = Page(page)
    for tag, attrs in read.tags:
        assert "src" not in attrs, tag
        if tag == "link" or (tag == "a" and "://" in attrs["href"]):
            assert attrs["href"].startswith("https://doi.org/")
    assert "@import" not in page
    assert "url(" not in page.split("</style>")[0]
    policy = next(a for t, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy["content"]


def test_the_script_of_plotly_is_there_once(page):
    assert page.count('id="plotly"') == 1


def test_every_figure_is_one_that_plotly_accepts(page):
    figures = figures_of(page)
    assert set(figures) == {
        *("target", "observed", "calibration", "places", "residuals"),
        *("relevance", "dependence", "variance", "members", "correlogram"),
    }
    for several in figures.values():
        for figure in several:
            # The page fills in colours for the names of its variables.
            text = re.sub(r'"--[a-z]+"', '"#123456"', json.dumps(figure))
            go.Figure(json.loads(text)["traces"], json.loads(text)["layout"])


def test_every_figure_has_a_place_with_words(page):
    locations = [a for _, a in Page(page).tags if "data-figure" in a]
    assert {a["data-figure"] for a in locations} == set(figures_of(page))
    for attrs in locations:
        assert attrs["role"] == "img"
        assert re.search(r"\d", attrs["aria-label"])


def test_writing_returns_the_path(model, rows, tmp_path):
    path = write_report(model, *rows, str(tmp_path / "report.html"))
    assert isinstance(path, Path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_the_report_is_not_loaded_with_the_package():
    code = (
        "import sys, ulmus, ulmus.report; print('plotly' in sys.modules, 'jinja2' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("name", ["plotly", "jinja2"])
def test_a_missing_library_is_named(model, rows, monkeypatch, name):
    for loaded in [m for m in sys.modules if m.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=says("pip install 'ulmus[report]'")):
        report_html(model, *rows)


# ---------------------------------------------------------------- numbers


def test_scores_of_left_out_rows_are_those_of_the_library(model, rows, page):
    X, y = rows
    found = told(model, X, y).judgement
    own, mean, linear = found.scores
    assert_allclose(found.predicted, model.loo_predictions_)
    assert_allclose(own.r2, r2_score(y, model.loo_predictions_))
    assert_allclose(own.rmse, root_mean_squared_error(y, model.loo_predictions_))
    assert_allclose(mean.rmse, root_mean_squared_error(y, left_out_mean(y)))
    linear_left_out = linear_baseline(X.to_numpy(), y).left_out
    assert_allclose(linear.rmse, root_mean_squared_error(y, linear_left_out))
    assert number(own.rmse) in Page(page).text
    assert f"{own.r2:.3f}" in Page(page).text


def test_findings_are_those_of_check(model, rows):
    found = told(model, *rows).judgement.report
    expected = model.check()
    assert [(f.name, f.light, f.says) for f in found.findings] == [
        (f.name, f.light, f.says) for f in expected.findings
    ]
    assert found.coverage == expected.coverage


def test_errors_of_left_out_rows_are_in_their_standard_deviations(model, rows):
    found = told(model, *rows).judgement
    assert_allclose(found.scaled * found.sd, model.loo_residuals_)
    assert_allclose(found.leverage, model.leverage_)


def test_new_rows_are_an_honest_test(model):
    X, y = drawn_table(80, seed=1)
    X = X.clip(-0.95, 0.95)
    found = told(model, X, y)
    judged = found.judgement
    assert found.judged_by == NEW
    assert_allclose(judged.predicted, model.predict(X))
    assert_allclose(judged.pit, model.predict_dist(X).cdf(y))
    assert_allclose(judged.bounds.T, model.predict_interval(X))
    expected = model.check(X, y)
    assert judged.report.coverage == expected.coverage
    assert_allclose(judged.coverage, expected.coverage[3].coverage)
    text = about_rows(found)
    assert "80 new rows" in text
    assert "honest test" in text


def test_new_rows_judge_a_model_of_one_output_with_two_axes(model, rows):
    X, y = rows
    column = small().fit(X, y[:, None])
    new = drawn_table(80, seed=1)
    ours, expected = (told(m, *new).judgement for m in (column, model))
    assert_allclose(ours.scaled, expected.scaled)
    assert ours.gains == pytest.approx(expected.gains)
    assert "<h2" in report_html(column, *new)


def test_simple_models_of_new_rows_come_from_the_training_rows(model, rows):
    X_train, y_train = rows
    X, y = drawn_table(80, seed=1)
    _, mean, linear = told(model, X, y).judgement.scores
    assert_allclose(mean.rmse, np.sqrt(np.mean((y - y_train.mean()) ** 2)))
    expected = linear_baseline(X_train.to_numpy(), y_train).predict(X.to_numpy())
    assert_allclose(linear.rmse, root_mean_squared_error(y, expected))


def test_rows_without_observations(model):
    found = told(model, drawn_table(70, seed=2)[0], None)
    assert found.judged_by == LEFT_OUT
    assert found.n_rows == 70
    assert_allclose(found.judgement.predicted, model.loo_predictions_)
    assert "70 further rows" in about_rows(found)


def test_parts_of_the_variance_are_those_of_the_library(model, rows):
    X, y = rows
    found = told(model, X, y).parts
    assert_allclose(sum(found.prediction.values()), np.mean(model.predict_var(X, "model")))
    assert_allclose(found.noise, np.mean(model.predict_var(X, "noise")))
    assert_allclose(sum(found.shares.values()), 1)
    assert_allclose(sum(found.observation_shares.values()), 1)


def test_members_are_those_of_the_library(model, rows):
    X, y = rows
    found = told(model, X, y).members
    assert found.suggested == model.suggest_n_estimators(X)
    assert_allclose(found.variance[0], np.mean(model.variance_at(X, found.counts[0])))
    assert found.fitted == 4


def test_curves_are_partial_dependences(model, rows):
    X, y = rows
    curve = next(c for c in told(model, X, y).dependences if c.name == "c0")
    frame = model.partial_dependence(X, "c0", grid=list(curve.values))
    assert_allclose(curve.estimate, frame.estimate)
    assert_allclose(curve.low, frame.conf_low)


def test_relevance_is_that_of_the_map():
    X, y = drawn_table(120, 2)
    model = ELMEnsembleRegressor(4, 30, random_state=0).fit(X, y)
    found = told(model, X, y).relevance
    order = np.argsort(-model.feature_relevance_)
    assert found.names == tuple(X.columns[order])
    assert_allclose(found.shares, model.feature_relevance_[order])
    assert_allclose(found.deviations, model.feature_relevance_std_[order])


def test_few_rows_are_judged_behind_maps_that_have_not_seen_them():
    X, y = drawn_table(60, 2)
    model = ELMEnsembleRegressor(4, 30, random_state=0).fit(X, y)
    everything = told(model, X, y)
    found = everything.judgement
    assert model.fitted_.folded
    assert not everything.map_saw_all
    assert np.max(np.abs(found.predicted - model.loo_predictions_)) > 1e-6
    assert_allclose(found.scaled * found.sd, y - found.predicted)


def test_a_map_that_saw_all_rows_is_owned_up_to():
    X, y = drawn_table(410, 2)
    found = told(ELMEnsembleRegressor(4, 30, random_state=0).fit(X, y), X, y)
    assert found.map_saw_all
    assert "all rows in view" in about_rows(found)


def test_exchange_shares_of_a_linear_function():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((20_000, 3)), columns=list("abc"))
    shares = exchange_shares(lambda t: t.to_numpy() @ [1.0, 2.0, 0.0], table)
    # Var(b x) = b^2, so that total effects are 1, 4 and 0.
    assert_allclose(shares, [0.2, 0.8, 0], atol=0.02)


def test_exchange_shares_where_nothing_matters():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]})
    assert_allclose(exchange_shares(lambda t: np.zeros(len(t)), table), [0.5, 0.5])


# ---------------------------------------------------------------- odd models and tables


def test_a_pipeline_with_categories_is_about_the_original_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"kind": rng.choice(["oak", "elm", "ash"], 120), "t": rng.uniform(0, 9, 120)})
    y = 3.0 * (X.kind == "elm") + 0.1 * X.t + 0.3 * rng.standard_normal(120)
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    pipe = make_pipeline(encode, small()).fit(X, y)
    found = told(pipe, X, y)
    assert found.is_training
    assert found.relevance.names == ("kind", "t")
    assert found.columns[0].kind == "categories"
    assert "oak (" in found.columns[0].values
    kinds = next(curve for curve in found.dependences if curve.name == "kind")
    assert kinds.values == ("ash", "elm", "oak")
    assert not kinds.connected
    assert "remainder__t" in str(found.judgement.report.coverage)
    search = GridSearchCV(pipe, {"elmensembleregressor__n_neurons": [15]}, cv=2).fit(X, y)
    text = Page(report_html(search, X, y)).text
    assert "elm (" in text


def test_arrays_have_columns_x0_x1(rows):
    X, y = rows
    model = small().fit(X.to_numpy(), y)
    assert told(model, X.to_numpy(), y).relevance.names[0] in ("x0", "x1", "x2")
    # A frame for a model of arrays keeps its names.
    assert set(told(model, X, y).relevance.names) == set(X.columns)
    assert told(small().fit(X, y), X.to_numpy(), y).columns[0].name == "c0"


def test_one_member_says_what_it_leaves_out(rows):
    model = plain_member(15, alpha=0.1, random_state=0).fit(*rows)
    found = told(model, *rows)
    assert found.members is None
    assert "one network" in variance(found.parts, found.members)
    assert set(SECTIONS) <= Page(report_html(model, *rows)).ids()


@pytest.mark.filterwarnings("ignore:n_estimators=1")
def test_an_ensemble_of_one(rows):
    found = told(small(1).fit(*rows), *rows)
    assert found.members is None


def test_weighted_rows(rows):
    X, y = rows
    w = np.where(np.arange(len(y)) % 9 == 4, 0, 1.5)
    model = small().fit(X, y, w)
    judged = told(model, X, y).judgement
    assert len(judged.observed) == np.sum(w > 0)
    assert_allclose(judged.predicted, model.loo_predictions_[w > 0])
    assert judged.labels[4] == "5"
    assert len(judged.scores) == 3


def test_rows_kept_from_the_map_judge(rows):
    model = ELMEnsembleRegressor(4, 20, tuning_fraction=0.4, random_state=0).fit(*rows)
    judged = told(model, *rows).judgement
    assert 0 < len(judged.observed) < len(rows[1])
    assert len(judged.labels) == len(judged.observed)


def test_a_compressed_model_cannot_tell_whether_rows_are_new(rows):
    model = small().fit(*rows).compress()
    found = told(model, *rows)
    assert found.judged_by == NEW
    assert len(found.judgement.scores) == 1
    assert "may well be" in about_rows(found)
    text = Page(report_html(model, *rows)).text
    assert "keeps no training rows" in text


def test_a_model_without_rows_and_without_observations(rows):
    model = small().fit(*rows).compress()
    found = told(model, rows[0], None)
    assert found.judged_by == NOTHING
    assert found.target is None
    assert "Nothing here tells" in verdict(found)
    read = Page(report_html(model, rows[0], None))
    assert set(SECTIONS) <= read.ids()
    assert "Calibration needs observations" in read.text


def test_a_streamed_model(rows):
    X, y = rows
    blocks = [(X.to_numpy()[i::3], y[i::3]) for i in range(3)]
    model = small().fit_blocks(blocks)
    assert told(model, X.to_numpy(), y).judged_by == NEW
    assert set(SECTIONS) <= Page(report_html(model, X.to_numpy(), y)).ids()


def test_a_sparse_table(rows):
    X, y = rows
    model = small().fit(csr_array(X.to_numpy()), y)
    found = told(model, csr_array(X.to_numpy()), y)
    assert found.is_training
    assert_allclose(found.judgement.predicted, model.loo_predictions_)
    assert len(found.judgement.scores) == 3


def test_single_precision(rows):
    X, y = rows
    model = small(dtype="float32").fit(X, y.astype("float32"))
    assert told(model, X, y).is_training


def test_a_constant_target():
    X, _ = drawn_table(60, 2)
    y = np.full(60, 3.0)
    model = small().fit(X, y)
    found = told(model, X, y)
    assert "nothing to explain" in verdict(found)
    assert np.isnan(found.judgement.scores[0].r2)
    assert set(SECTIONS) <= Page(report_html(model, X, y)).ids()


@pytest.mark.parametrize("d", [1, 2])
def test_few_inputs_and_sixty_rows(d):
    X, y = drawn_table(60, d)
    model = ELMEnsembleRegressor(random_state=0).fit(X, y)
    read = Page(report_html(model, X, y))
    assert set(SECTIONS) <= read.ids()
    assert "60 rows" in read.text


def test_names_are_shown_as_they_are():
    X, y = drawn_table(80, 4)
    X.columns = NAUGHTY
    model = small().fit(X, y)
    page = report_html(model, X, y, title="<b>title</b>", target="</script><i>")
    read = Page(page)
    assert "<script>alert" not in page
    assert "<b>title" not in page
    assert "</script><i>" not in page
    for name in (*NAUGHTY[:3], "<b>title</b>"):
        assert name in read.text
    drawn = json.dumps(figures_of(page)["relevance"][0]["layout"], ensure_ascii=False)
    assert "&lt;script&gt;" in drawn
    assert "<script" not in drawn


def test_many_inputs_are_drawn_in_part():
    X, y = drawn_table(90, 300)
    model = small().fit(X, y)
    page = report_html(model, X, y)
    assert len(figures_of(page)["dependence"]) == 12
    assert "Of 300 inputs the 12 most relevant are drawn" in Page(page).text


def test_odd_columns_of_a_pipeline():
    n, rng = 90, np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "gap": np.where(np.arange(n) % 5, rng.uniform(0, 1, n), np.nan),
            "flag": rng.uniform(0, 1, n) > 0.5,
            "when": pd.date_range("2020-01-01", periods=n),
            "same": "only",
            "mostly": np.where(np.arange(n) < 88, 0.0, rng.uniform(0, 1, n)),
            "grade": pd.Categorical(rng.choice(["low", "high"], n), ["low", "high"], ordered=True),
        }
    )

    def encoded(table):
        grade = (table.grade == "high").astype(float)
        out = [table.gap.fillna(0.5), table.flag.astype(float), table.mostly, grade]
        return np.column_stack(out)

    y = X.gap.fillna(0.5) + X.flag + 0.1 * rng.standard_normal(n)
    pipe = make_pipeline(FunctionTransformer(encoded), small()).fit(X, y)
    found = told(pipe, X, y)
    columns = {column.name: column for column in found.columns}
    assert columns["gap"].missing == 18
    assert columns["flag"].kind == "yes or no"
    assert columns["when"].kind == "dates"
    assert columns["same"].values == "only (90)"
    curves = {curve.name: curve for curve in found.dependences}
    assert set(curves) == {"gap", "flag", "mostly", "grade"}
    assert curves["grade"].values == ("low", "high")
    assert set(SECTIONS) <= Page(report_html(pipe, X, y)).ids()


def test_rows_outside_the_range_are_listed_and_warned_of(model):
    X, y = drawn_table(50, seed=3)
    X.iloc[7, 0] = 9.0
    page, found = report_html(model, X, y), told(model, X, y)
    assert found.judgement.outside.sum() == 1
    assert found.n_inside == 49
    assert len(found.warnings) == 1
    text = Page(page).text
    assert "Outside the range of the training inputs: 1 row" in text
    assert "1 row lies far outside" in text
    inside = np.arange(50) != 7
    expected = r2_score(y[inside], model.predict(X[inside]))
    assert_allclose(found.judgement.inside.r2, expected)
    # It rules neither averages nor axes.
    assert_allclose(found.parts.noise, np.mean(model.predict_var(X[inside], "noise")))
    low, high = figures_of(page)["observed"][0]["layout"]["xaxis"]["range"]
    assert low < np.min(model.predict(X[inside])) < np.max(model.predict(X[inside])) < high < 9


def test_only_rows_outside_the_range():
    X, y = drawn_table(60, 2)
    model = small().fit(X, y)
    found = told(model, X + 50, y + 1)
    assert found.judgement.inside is None
    assert found.n_inside == 60
    assert set(SECTIONS) <= Page(report_html(model, X + 50, y + 1)).ids()


def test_many_new_rows_are_sampled(model):
    X, y = drawn_table(6000, seed=4)
    found = told(model, X, y)
    assert len(found.judgement.observed) == 2000
    assert found.judgement.of_rows == 6000
    assert "2,000 rows drawn at random from 6,000" in Page(report_html(model, X, y)).text


def test_many_training_rows_are_drawn_in_part():
    X, y = drawn_table(2500)
    model = small().fit(X, y)
    judged = told(model, X, y).judgement
    assert len(judged.observed) == 2500
    assert judged.bounds.shape == (2, 2000)
    assert_allclose(judged.bounds.T, model.predict_interval(X.iloc[judged.drawn]))
    page = report_html(model, X, y)
    assert len(figures_of(page)["observed"][0]["traces"][0]["x"]) == 2000
    assert "Figures show 2,000 of them" in Page(page).text


# ---------------------------------------------------------------- bad input


def test_several_outputs_are_refused(rows):
    X, y = rows
    model = small().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=says("one output", "2", "one at a time")):
        report_html(model, X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X.drop(columns="c1"), y), ("X lacks", "'c1'")),
        (lambda X, y: (X.to_numpy()[:, :2], y), ("2 columns", "3")),
        (lambda X, y: (X.to_numpy()[0], y), ("rows and columns",)),
        (lambda X, y: (X, y[:-1]), ("y has shape", "150 rows")),
        (lambda X, y: (X, np.where(np.arange(150) == 3, np.nan, y)), ("y holds NaN", "row 3")),
    ],
)
def test_bad_rows_are_named(model, rows, change, words):
    with pytest.raises(ValueError, match=says(*words)):
        report_html(model, *change(*rows))


# ---------------------------------------------------------------- words and numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (12345, "12,345"),
        (0.123456, "0.1235"),
        (-2.5, "\N{MINUS SIGN}2.500"),
        (123.456, "123.5"),
        (1.5e9, "1.5e+09"),
        (float("nan"), "\N{EN DASH}"),
    ],
)
def test_numbers_have_four_digits(value, text):
    assert number(value) == text


def test_shares_and_counts():
    assert [share(v) for v in (0, 0.004, 0.93, 0.999, 1)] == [
        *("0%", "less than 1%", "93%", "more than 99%", "100%"),
    ]
    assert (count(1, "row"), count(2, "row")) == ("1 row", "2 rows")


def test_the_sentence_about_the_variance(model, rows):
    found = told(model, *rows)
    # What would be left with endlessly many members, as the summary says it.
    left = found.members.limit / sum(found.parts.prediction.values())
    text = variance(found.parts, found.members)
    assert text.startswith(share(left))
    assert left == pytest.approx(model.summary().variance_shares.data, abs=0.03)
    assert "more members will not help" in text


def test_the_citation_has_the_facts_of_its_file(page):
    facts = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"doi: (\S+)", facts)[1] in page
    assert " ".join(re.search(r'title: "([^"]+)"', facts)[1].split()) in page
    for word in ("Guignard", "Amato", "Kanevski", "Neurocomputing", "456", "436", "449", "2021"):
        assert word in facts
        assert word in Page(page).text
    assert ulmus.__version__ in page


def test_settings_name_what_was_set_and_make_the_model_again(model, rows):
    found = told(model, *rows).settings
    assert ("alpha", "0.1", False) in found.parameters
    assert ("fit_intercept", "True", True) in found.parameters
    line = next(line for line in found.code.splitlines() if line.startswith("model = "))
    assert line.startswith("model = ELMEnsembleRegressor(")
    assert len(found.digest) == 64
    X, y = rows
    assert told(model, X, y + 1).settings.digest != found.digest


def test_the_code_of_a_pipeline_runs(rows):
    X, y = rows
    encode = make_column_transformer((OneHotEncoder(), []), remainder=StandardScaler())
    pipe = make_pipeline(encode, small(weight_scale=1.25, noise_variance=0.09)).fit(X, y)
    code = told(pipe, X, y).settings.code
    names = {}
    exec(code.split("model.fit")[0], names)
    assert_allclose(names["model"].fit(X, y).predict(X), pipe.predict(X))
