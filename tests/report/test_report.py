"""The report: its numbers are those of the library, and its page is complete for odd tables too."""

import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from messages import mentions
from models import plain_ensemble, plain_member, small_ensemble
from numpy.testing import assert_allclose
from scipy.sparse import csr_array
from sklearn.compose import make_column_transformer
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.diagnostics.baselines import leave_one_out_mean, linear_baseline
from ulmus.report import report_html, write_report
from ulmus.report.contents import report_contents
from ulmus.report.numbers import counted, number, share
from ulmus.report.relevance import exchange_shares
from ulmus.report.report_input import (
    GIVEN,
    LEAVE_ONE_OUT,
    MIXED,
    NEW,
    NOTHING,
    prepare_input,
)
from ulmus.report.text import (
    rows_text,
    variance_text,
    verdict_label,
    verdict_text,
)
from ulmus.tables import TableEncoder

SECTIONS = ["verdict", "data", "predictions", "answers", "calibration", "more", "checks"]
SECTIONS += ["correlation", "relevance", "variance", "outliers", "reproducibility", "citation"]
NAUGHTY = ["<script>alert(1)</script>", '"quote" & co', "größe µ", "long " * 40]


def drawn_table(n=150, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.uniform(-1, 1, (n, d)), columns=[f"c{j}" for j in range(d)])
    y = 2 + np.sin(3 * X.iloc[:, 0]) + X.iloc[:, -1] ** 2 + 0.3 * rng.standard_normal(n)
    return X, y.to_numpy()


def contents(model, X, y, target="y"):
    return report_contents(prepare_input(model, X, y), "a title", target)


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


@pytest.fixture(scope="module")
def rows():
    return drawn_table()


@pytest.fixture(scope="module")
def model(rows):
    return small_ensemble(4, 15, alpha=0.1).fit(*rows)


@pytest.fixture(scope="module")
def page(model, rows):
    return report_html(model, *rows, title="A title", target="height")


# ---------------------------------------------------------------- the page


def test_all_sections_and_the_title(page):
    read = Page(page)
    assert set(SECTIONS) <= read.ids()
    assert "A title" in read.text
    assert "height" in read.text


def test_it_is_small_and_loads_nothing(page):
    assert len(page.encode()) < 1_000_000
    read = Page(page)
    for tag, attrs in read.tags:
        assert "src" not in attrs, tag
        if tag == "link" or (tag == "a" and "://" in attrs["href"]):
            assert attrs["href"].startswith("https://doi.org/")
    assert "@import" not in page
    assert "url(" not in page.split("</style>")[0]
    policy = next(a for t, a in read.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy["content"]


FIGURES = {
    *("predictions", "coverage", "pit", "residuals", "correlogram", "relevance", "variance"),
    *("ensemble-size", "curve-0", "curve-1"),
}


def test_every_figure_has_a_description(page):
    drawn = [a for _, a in Page(page).tags if a.get("class") == "plot"]
    assert {a["id"].removeprefix("figure-") for a in drawn} >= FIGURES
    for attrs in drawn:
        assert attrs["role"] == "img"
        assert re.search(r"\d", attrs["aria-label"])


def test_colours_of_figures_are_those_of_the_page(page):
    drawings = re.findall(r"<svg(?! class=\"ux-).*?</svg>", page, re.DOTALL)
    assert len(drawings) >= len(FIGURES)
    for one in drawings:
        assert not re.findall(r"#[0-9a-f]{6}", one)
        assert "var(--" in one
        assert "viewBox" in one
        assert "font-family" not in one
    style = page.split("<style>")[1].split("</style>")[0]
    for name in set(re.findall(r"var\(--([a-z]+)\)", " ".join(drawings))):
        assert style.count(f"--{name}:") == 3, name


def test_identifiers_are_unique(page):
    found = [attrs["id"] for _, attrs in Page(page).tags if "id" in attrs]
    assert len(found) == len(set(found))
    for name in re.findall(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"", page):
        assert (name[0] or name[1]) in found


def test_verdict_predictions_curves_answers_and_calibration_come_in_this_order(page):
    names = ["verdict", "data", "predictions", "curves", "answers", "calibration", "more"]
    places = [page.index(f'id="{name}"') for name in names]
    assert places == sorted(places)
    after = page[page.index('id="more"') :].split("</section>")[0]
    assert after.count('class="fold"') == 7


def test_the_interactive_panel_is_part_of_the_page_if_it_can_be(model, rows, page):
    found = [
        page.index(text) for text in ("figure-predictions", "ulmus-explorer-data", "figure-curve")
    ]
    assert found == sorted(found)
    assert "ulmus-explorer" not in report_html(model, *rows, explorer=False)
    transformer = FunctionTransformer(np.arcsinh, np.sinh)
    other = plain_ensemble(3, 10, target_transform=transformer, random_state=0).fit(*rows)
    assert "ulmus-explorer" not in report_html(other, *rows)


def test_writing_returns_the_path(model, rows, tmp_path):
    path = write_report(model, *rows, str(tmp_path / "report.html"))
    assert isinstance(path, Path)
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.slow
def test_the_report_is_not_loaded_with_the_package():
    code = (
        "import sys, ulmus, ulmus.report\n"
        "print(*(name in sys.modules for name in ('matplotlib', 'jinja2')))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("name", ["matplotlib", "jinja2"])
def test_a_missing_library_is_named(model, rows, monkeypatch, name):
    for loaded in [m for m in sys.modules if m.split(".")[0] == name]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=mentions("pip install 'ulmus[report]'")):
        report_html(model, *rows)


# ---------------------------------------------------------------- numbers


def test_leave_one_out_scores_are_those_of_the_library(model, rows, page):
    X, y = rows
    found = contents(model, X, y).evaluation
    own, mean, linear = found.scores
    assert_allclose(found.predicted, model.loo_predictions_)
    assert_allclose(own.r2, r2_score(y, model.loo_predictions_))
    assert_allclose(own.rmse, root_mean_squared_error(y, model.loo_predictions_))
    assert_allclose(mean.rmse, root_mean_squared_error(y, leave_one_out_mean(y)))
    linear_predictions = linear_baseline(X.to_numpy(), y).loo_predictions
    assert_allclose(linear.rmse, root_mean_squared_error(y, linear_predictions))
    assert number(own.rmse) in Page(page).text
    assert f"{own.r2:.3f}" in Page(page).text


def test_findings_are_those_of_check(model, rows):
    found = contents(model, *rows).evaluation.report
    expected = model.check()
    assert [(f.name, f.severity, f.message) for f in found.findings] == [
        (f.name, f.severity, f.message) for f in expected.findings
    ]
    assert found.coverage == expected.coverage


def test_every_finding_is_listed_and_problems_come_first(model, rows):
    X, y = rows
    page, found = report_html(model, X + 0.5, y + 1), contents(model, X + 0.5, y + 1)
    checks, top = (page.split(f'id="{name}"')[1] for name in ("checks", "verdict"))
    for finding in model.check(X + 0.5, y + 1).findings:
        assert checks.split("</table>")[0].count(f"</span></td><td>{finding.name}</td>") == 1
        assert (f"{finding.name}:</span>" in top.split("</section>")[0]) == (
            finding.severity != "ok"
        )
    assert found.severity == "error"
    assert "error" in verdict_label(found)
    assert "not to be trusted" in verdict_text(found)


def test_no_praise_above_a_warning(model, rows):
    found = contents(model, *rows)
    quiet = replace(found, warnings=(), evaluation=with_findings(found.evaluation, ()))
    assert (quiet.severity, verdict_label(quiet)) == ("ok", "all 0 checks are ok")
    assert "passed all checks" in verdict_text(quiet)
    warned = replace(quiet, warnings=("something is doubtful",))
    assert (warned.severity, verdict_label(warned)) == ("warning", "1 warning")
    assert "passed all checks" not in verdict_text(warned)
    assert warned.problems[0].message == "something is doubtful"


def with_findings(evaluation, findings):
    return replace(evaluation, report=replace(evaluation.report, findings=findings))


def test_a_check_that_is_ok_names_its_limit(model, rows):
    X, y = rows
    X_new, y_new = drawn_table(90, seed=1)
    for report in (model.check(), model.check(X_new.clip(-0.95, 0.95), y_new)):
        for finding in report.findings:
            if re.search(r"\d", finding.message) and finding.severity == "ok":
                assert finding.limit, finding
    page = report_html(model, X, y)
    assert "Warning: z above 3 and a correlation above 0.1." in Page(page).text


def test_leave_one_out_errors_are_standardised(model, rows):
    found = contents(model, *rows).evaluation
    assert_allclose(found.scaled * found.sd, model.loo_residuals_)
    assert_allclose(found.leverage, model.leverage_)


def test_new_rows_are_an_out_of_sample_test(model):
    X, y = drawn_table(80, seed=1)
    X = X.clip(-0.95, 0.95)
    found = contents(model, X, y)
    evaluation = found.evaluation
    assert found.evaluated_on == NEW
    assert_allclose(evaluation.predicted, model.predict(X))
    assert_allclose(evaluation.pit, model.predict_dist(X).cdf(y))
    assert_allclose(evaluation.bounds, model.predict_interval(X))
    expected = model.check(X, y)
    assert evaluation.report.coverage == expected.coverage
    assert_allclose(evaluation.coverage, expected.coverage[3].coverage)
    text = rows_text(found)
    assert "80 new rows" in text
    assert "out-of-sample test" in text


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_training_rows_in_another_order_are_no_new_rows(model, rows, dtype):
    X, y = rows
    order = np.random.default_rng(0).permutation(len(y))
    shuffled, ours = contents(model, X.iloc[order].astype(dtype), y[order].astype(dtype)), rows
    assert shuffled.evaluated_on == LEAVE_ONE_OUT
    expected = contents(model, *ours).evaluation
    assert shuffled.evaluation.scores == expected.scores
    assert shuffled.evaluation.report == expected.report
    assert shuffled.evaluation.labels == expected.labels
    assert "They are the rows of this report" in rows_text(shuffled)


def test_some_training_rows_are_evaluated_leave_one_out(model, rows):
    X, y = rows
    few = np.array([7, 3, 90, 41])
    found = contents(model, X.iloc[few], y[few])
    assert found.evaluated_on == LEAVE_ONE_OUT
    assert found.evaluation.labels == ("3", "7", "41", "90")
    assert_allclose(found.evaluation.predicted, model.loo_predictions_[np.sort(few)])
    assert "The 4 rows of this report are among them" in rows_text(found)


def test_training_rows_among_new_ones_are_evaluated_leave_one_out(model, rows):
    (X, y), (X_new, y_new) = rows, drawn_table(30, seed=1)
    table = pd.concat([X_new, X.iloc[:10], X.iloc[:5]], ignore_index=True)
    found = contents(model, table, np.concatenate([y_new, y[:10], y[:5]]))
    evaluation = found.evaluation
    assert found.evaluated_on == MIXED
    assert_allclose(evaluation.predicted[:30], model.predict(X_new))
    assert_allclose(evaluation.predicted[30:], model.loo_predictions_[:10])
    assert_allclose(evaluation.observed, np.concatenate([y_new, y[:10]]))
    assert len(evaluation.scores) == 3
    text = rows_text(found)
    assert "10 rows of this report are among them" in text
    assert "The other 30 rows are not part of the fit" in text
    assert "5 further rows are not counted" in text
    assert "leave-one-out, and in new rows" in verdict_text(found)
    page = report_html(model, table, np.concatenate([y_new, y[:10], y[:5]]))
    assert set(SECTIONS) <= Page(page).ids()


def test_new_rows_evaluate_a_model_of_one_output_with_two_axes(model, rows):
    X, y = rows
    column = small_ensemble(4, 15, alpha=0.1).fit(X, y[:, None])
    new = drawn_table(80, seed=1)
    ours, expected = (contents(m, *new).evaluation for m in (column, model))
    assert_allclose(ours.scaled, expected.scaled)
    assert ours.gains == pytest.approx(expected.gains)
    assert "<h2" in report_html(column, *new)


def test_simple_models_of_new_rows_come_from_the_training_rows(model, rows):
    X_train, y_train = rows
    X, y = drawn_table(80, seed=1)
    _, mean, linear = contents(model, X, y).evaluation.scores
    assert_allclose(mean.rmse, np.sqrt(np.mean((y - y_train.mean()) ** 2)))
    expected = linear_baseline(X_train.to_numpy(), y_train).predict(X.to_numpy())
    assert_allclose(linear.rmse, root_mean_squared_error(y, expected))


def test_rows_without_observations(model):
    found = contents(model, drawn_table(70, seed=2)[0], None)
    assert found.evaluated_on == LEAVE_ONE_OUT
    assert found.n_rows == 70
    assert_allclose(found.evaluation.predicted, model.loo_predictions_)
    assert "70 further rows" in rows_text(found)


def test_parts_of_the_variance_are_those_of_the_library(model, rows):
    X, y = rows
    found = contents(model, X, y).variance
    assert_allclose(sum(found.prediction.values()), np.mean(model.predict_var(X, "model")))
    assert_allclose(found.noise, np.mean(model.predict_var(X, "noise")))
    assert_allclose(sum(found.shares.values()), 1)
    assert_allclose(sum(found.observation_shares.values()), 1)


def test_members_are_those_of_the_library(model, rows):
    X, y = rows
    found = contents(model, X, y).ensemble_size
    assert found.suggested == model.suggest_n_estimators(X)
    assert_allclose(found.variance[0], np.mean(model.variance_at(X, found.counts[0])))
    assert found.fitted == 4


def test_curves_are_partial_dependences(model, rows):
    X, y = rows
    curve = next(c for c in contents(model, X, y).curves if c.name == "c0")
    frame = model.partial_dependence(X, "c0", grid=list(curve.grid))
    assert_allclose(curve.estimate, frame.estimate)
    assert_allclose(curve.bounds, frame[["conf_low", "conf_high"]])


def test_intervals_in_the_picture_are_those_that_are_counted(model, rows):
    found = contents(model, *rows)
    low, high = found.evaluation.bounds.T
    covered = np.mean((low <= found.observed) & (found.observed <= high))
    assert_allclose(covered, found.evaluation.coverage)


@pytest.mark.slow
def test_relevance_is_that_of_the_map():
    X, y = drawn_table(120, 2)
    model = ELMEnsembleRegressor(4, 30, random_state=0).fit(X, y)
    found = contents(model, X, y).relevance
    order = np.argsort(-model.feature_relevance_)
    assert found.names == tuple(X.columns[order])
    assert_allclose(found.shares, model.feature_relevance_[order])
    assert_allclose(found.deviations, model.feature_relevance_std_[order])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ColumnWarning")
def test_relevance_behind_a_table_encoder_is_that_of_the_summary():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"t": rng.uniform(0, 9, 120), "kind": rng.choice(["oak", "elm", "ash"], 120)})
    X["none"] = 1.0
    y = 3.0 * (X.kind == "elm") + 0.1 * X.t + 0.3 * rng.standard_normal(120)
    pipe = make_pipeline(TableEncoder(), ELMEnsembleRegressor(3, 30, random_state=0)).fit(X, y)
    found = contents(pipe, X, y.to_numpy()).relevance
    expected = ulmus.inference(pipe).summary(columns=pipe[0].schema_.origins).relevance
    assert found.names[:2] == tuple(r.name for r in expected)
    assert_allclose(found.shares[:2], [r.share for r in expected])
    assert_allclose(found.deviations[:2], [r.sd for r in expected])


def test_few_rows_are_evaluated_out_of_fold_with_respect_to_the_map():
    X, y = drawn_table(60, 2)
    model = ELMEnsembleRegressor(4, 30, random_state=0).fit(X, y)
    everything = contents(model, X, y)
    found = everything.evaluation
    assert model.fitted_.folded
    assert not everything.map_saw_all
    assert np.max(np.abs(found.predicted - model.loo_predictions_)) > 1e-6
    assert_allclose(found.scaled * found.sd, y - found.predicted)


def test_a_map_that_was_optimised_on_all_rows_is_mentioned():
    X, y = drawn_table(410, 2)
    found = contents(ELMEnsembleRegressor(4, 30, random_state=0).fit(X, y), X, y)
    assert found.map_saw_all
    assert "optimised on all rows" in rows_text(found)


def test_exchange_shares_of_a_linear_function():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((20_000, 3)), columns=list("abc"))
    shares, deviations = exchange_shares(lambda t: t.to_numpy() @ [1.0, 2.0, 0.0], table)
    # Var(b x) = b^2, so that total effects are 1, 4 and 0.
    assert_allclose(shares, [0.2, 0.8, 0], atol=0.02)
    assert np.all(np.abs(shares - [0.2, 0.8, 0]) <= 4 * deviations)


def test_deviations_of_exchange_shares_are_those_of_other_rows():
    rng, found = np.random.default_rng(0), []
    for _ in range(200):
        table = pd.DataFrame(rng.standard_normal((100, 2)), columns=list("ab"))
        found.append(exchange_shares(lambda t: t.to_numpy() @ [1.0, 1.5], table))
    shares, deviations = np.array(found).swapaxes(0, 1)
    assert_allclose(np.sqrt(np.mean(deviations**2)), np.std(shares[:, 0]), rtol=0.25)


def test_exchange_shares_of_a_constant_function():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 1.0, 1.0]})
    shares, deviations = exchange_shares(lambda t: np.zeros(len(t)), table)
    assert_allclose(shares, [0.5, 0.5])
    assert_allclose(deviations, 0)


# ---------------------------------------------------------------- odd models and tables


@pytest.mark.slow
def test_a_pipeline_with_categories_is_about_the_original_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"kind": rng.choice(["oak", "elm", "ash"], 120), "t": rng.uniform(0, 9, 120)})
    y = 3.0 * (X.kind == "elm") + 0.1 * X.t + 0.3 * rng.standard_normal(120)
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    pipe = make_pipeline(encode, small_ensemble(4, 15, alpha=0.1)).fit(X, y)
    found = contents(pipe, X, y)
    assert found.evaluated_on == LEAVE_ONE_OUT
    assert found.relevance.names == ("kind", "t")
    assert found.columns[0].type_name == "categories"
    assert "oak (" in found.columns[0].values
    kinds = next(curve for curve in found.curves if curve.name == "kind")
    assert kinds.labels == ("ash", "elm", "oak")
    assert not kinds.connected
    assert "remainder__t" in str(found.evaluation.report.coverage)
    search = GridSearchCV(pipe, {"elmensembleregressor__n_neurons": [15]}, cv=2).fit(X, y)
    text = Page(report_html(search, X, y)).text
    assert "elm (" in text


def test_arrays_have_columns_x0_x1(rows):
    X, y = rows
    model = small_ensemble(4, 15, alpha=0.1).fit(X.to_numpy(), y)
    assert contents(model, X.to_numpy(), y).relevance.names[0] in ("x0", "x1", "x2")
    # A frame for a model of arrays keeps its names.
    assert set(contents(model, X, y).relevance.names) == set(X.columns)
    assert (
        contents(small_ensemble(4, 15, alpha=0.1).fit(X, y), X.to_numpy(), y).columns[0].name
        == "c0"
    )


def test_one_member_lacks_the_variance_of_its_weights(rows):
    model = plain_member(15, alpha=0.1, random_state=0).fit(*rows)
    found = contents(model, *rows)
    assert found.ensemble_size is None
    assert "one network" in variance_text(found.variance, found.ensemble_size)
    assert set(SECTIONS) <= Page(report_html(model, *rows)).ids()


@pytest.mark.filterwarnings("ignore:n_estimators=1")
def test_an_ensemble_of_one(rows):
    found = contents(small_ensemble(1, 15, alpha=0.1).fit(*rows), *rows)
    assert found.ensemble_size is None


def test_weighted_rows(rows):
    X, y = rows
    w = np.where(np.arange(len(y)) % 9 == 4, 0, 1.5)
    model = small_ensemble(4, 15, alpha=0.1).fit(X, y, w)
    evaluation = contents(model, X, y).evaluation
    assert len(evaluation.observed) == np.sum(w > 0)
    assert_allclose(evaluation.predicted, model.loo_predictions_[w > 0])
    assert evaluation.labels[4] == "5"
    assert len(evaluation.scores) == 3


def test_rows_that_the_map_was_not_optimised_on_evaluate(rows):
    model = ELMEnsembleRegressor(4, 20, tuning_fraction=0.4, random_state=0).fit(*rows)
    evaluation = contents(model, *rows).evaluation
    assert 0 < len(evaluation.observed) < len(rows[1])
    assert len(evaluation.labels) == len(evaluation.observed)


def test_a_compressed_model_cannot_recognise_its_training_rows(rows):
    model = small_ensemble(4, 15, alpha=0.1).fit(*rows).compress()
    found = contents(model, *rows)
    assert found.evaluated_on == GIVEN
    assert len(found.evaluation.scores) == 1
    assert "cannot be determined" in rows_text(found)
    assert "equals that of the fit" in rows_text(found)
    text = Page(report_html(model, *rows)).text
    assert "which the model does not keep" in text


def test_a_model_without_rows_and_without_observations(rows):
    model = small_ensemble(4, 15, alpha=0.1).fit(*rows).compress()
    found = contents(model, rows[0], None)
    assert found.evaluated_on == NOTHING
    assert found.observed is None
    assert "was not evaluated" in verdict_text(found)
    read = Page(report_html(model, rows[0], None))
    assert set(SECTIONS) <= read.ids()
    assert "Calibration requires observations" in read.text


def test_a_streamed_model(rows):
    X, y = rows
    blocks = [(X.to_numpy()[i::3], y[i::3]) for i in range(3)]
    model = small_ensemble(4, 15, alpha=0.1).fit_blocks(blocks)
    assert contents(model, X.to_numpy(), y).evaluated_on == GIVEN
    assert set(SECTIONS) <= Page(report_html(model, X.to_numpy(), y)).ids()


def test_a_sparse_table(rows):
    X, y = rows
    model = small_ensemble(4, 15, alpha=0.1).fit(csr_array(X.to_numpy()), y)
    found = contents(model, csr_array(X.to_numpy()), y)
    assert found.evaluated_on == LEAVE_ONE_OUT
    assert_allclose(found.evaluation.predicted, model.loo_predictions_)
    assert len(found.evaluation.scores) == 3


def test_single_precision(rows):
    X, y = rows
    model = small_ensemble(4, 15, alpha=0.1, dtype="float32").fit(X, y.astype("float32"))
    assert contents(model, X, y).evaluated_on == LEAVE_ONE_OUT


def test_a_constant_target():
    X, _ = drawn_table(60, 2)
    y = np.full(60, 3.0)
    model = small_ensemble(4, 15, alpha=0.1).fit(X, y)
    found = contents(model, X, y)
    assert "nothing to explain" in verdict_text(found)
    assert np.isnan(found.evaluation.scores[0].r2)
    assert set(SECTIONS) <= Page(report_html(model, X, y)).ids()


@pytest.mark.slow
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
    model = small_ensemble(4, 15, alpha=0.1).fit(X, y)
    page = report_html(model, X, y, title="<b>title</b>", target="</script><i>")
    read = Page(page)
    assert "<script>alert" not in page
    assert "<b>title" not in page
    assert "</script><i>" not in page
    for name in (*NAUGHTY[:3], "<b>title</b>"):
        assert name in read.text
    drawn = page.split('id="figure-relevance"')[1].split("</svg>")[0]
    assert "&lt;script&gt;" in drawn
    assert "<script" not in drawn


@pytest.mark.slow
def test_many_inputs_are_drawn_in_part():
    X, y = drawn_table(90, 300)
    model = small_ensemble(4, 15, alpha=0.1).fit(X, y)
    page = report_html(model, X, y)
    assert page.count('id="figure-curve-') == 12
    assert "The 12 most relevant of 300 inputs are shown" in Page(page).text


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
    pipe = make_pipeline(FunctionTransformer(encoded), small_ensemble(4, 15, alpha=0.1)).fit(X, y)
    found = contents(pipe, X, y)
    columns = {column.name: column for column in found.columns}
    assert columns["gap"].missing == 18
    assert columns["flag"].type_name == "booleans"
    assert columns["when"].type_name == "dates"
    assert columns["same"].values == "only (90)"
    curves = {curve.name: curve for curve in found.curves}
    assert set(curves) == {"gap", "flag", "mostly", "grade"}
    assert curves["grade"].labels == ("low", "high")
    assert set(SECTIONS) <= Page(report_html(pipe, X, y)).ids()


def test_rows_outside_the_range_are_listed_and_warned_of(model):
    X, y = drawn_table(50, seed=3)
    X.iloc[7, 0] = 9.0
    page, found = report_html(model, X, y), contents(model, X, y)
    assert found.evaluation.outside.sum() == 1
    assert found.n_inside == 49
    assert len(found.warnings) == 1
    text = Page(page).text
    assert "Outside the range of the training inputs: 1 row" in text
    assert "1 row lies outside" in text
    inside = np.arange(50) != 7
    expected = r2_score(y[inside], model.predict(X[inside]))
    assert_allclose(found.evaluation.inside.r2, expected)
    # It dominates neither averages nor axes.
    assert_allclose(found.variance.noise, np.mean(model.predict_var(X[inside], "noise")))
    assert 7 not in found.evaluation.drawn


def test_only_rows_outside_the_range():
    X, y = drawn_table(60, 2)
    model = small_ensemble(4, 15, alpha=0.1).fit(X, y)
    found = contents(model, X + 50, y + 1)
    assert found.evaluation.inside is None
    assert found.n_inside == 60
    assert set(SECTIONS) <= Page(report_html(model, X + 50, y + 1)).ids()


def test_many_new_rows_are_sampled(model):
    X, y = drawn_table(6000, seed=4)
    found = contents(model, X, y)
    assert len(found.evaluation.observed) == 2000
    assert found.evaluation.of_rows == 6000
    assert "Random sample of 2,000 of 6,000 rows" in Page(report_html(model, X, y)).text


@pytest.mark.slow
def test_many_training_rows_are_drawn_in_part():
    X, y = drawn_table(2500)
    model = small_ensemble(4, 15, alpha=0.1).fit(X, y)
    evaluation = contents(model, X, y).evaluation
    assert len(evaluation.observed) == 2500
    assert evaluation.bounds.shape == (2500, 2)
    assert len(evaluation.drawn) == 500
    assert "Figures show 500 of the 2,500 rows" in Page(report_html(model, X, y)).text


# ---------------------------------------------------------------- bad input


def test_several_outputs_are_refused(rows):
    X, y = rows
    model = small_ensemble(4, 15, alpha=0.1).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=mentions("one output", "2", "a report for each")):
        report_html(model, X, y)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X, y: (X.drop(columns="c1"), y), ("X lacks", "'c1'")),
        (lambda X, y: (X.to_numpy()[:, :2], y), ("2 columns", "3")),
        (lambda X, y: (X.to_numpy()[0], y), ("rows and columns",)),
        (lambda X, y: (X, y[:-1]), ("y has shape", "150 rows")),
        (lambda X, y: (X, np.where(np.arange(150) == 3, np.nan, y)), ("y contains NaN", "row 3")),
    ],
)
def test_bad_rows_are_named(model, rows, change, words):
    with pytest.raises(ValueError, match=mentions(*words)):
        report_html(model, *change(*rows))


# ---------------------------------------------------------------- text and numbers


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
    assert (counted(1, "row"), counted(2, "row")) == ("1 row", "2 rows")


def test_the_sentence_about_the_variance(model, rows):
    found = contents(model, *rows)
    # The limit of infinitely many members, as in the summary.
    left = found.ensemble_size.limit / sum(found.variance.prediction.values())
    text = variance_text(found.variance, found.ensemble_size)
    assert text.startswith(share(left))
    assert left == pytest.approx(model.summary().variance_shares.data, abs=0.03)
    assert "not with more members" in text


def test_the_citation_has_the_facts_of_its_file(page):
    facts = (Path(__file__).parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"doi: (\S+)", facts)[1] in page
    assert " ".join(re.search(r'title: "([^"]+)"', facts)[1].split()) in page
    for word in ("Guignard", "Amato", "Kanevski", "Neurocomputing", "456", "436", "449", "2021"):
        assert word in facts
        assert word in Page(page).text
    assert ulmus.__version__ in page


def test_settings_reproduce_the_model(model, rows):
    found = contents(model, *rows).settings
    assert ("alpha", "0.1", False) in found.parameters
    assert ("fit_intercept", "True", True) in found.parameters
    line = next(line for line in found.code.splitlines() if line.startswith("model = "))
    assert line.startswith("model = ELMEnsembleRegressor(")
    assert len(found.digest) == 64
    X, y = rows
    assert contents(model, X, y + 1).settings.digest != found.digest
