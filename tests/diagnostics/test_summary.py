"""Summaries: numbers against attributes and refits, and text for every type of fit."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn
from messages import mentions
from models import plain_member, small_ensemble
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score, root_mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.core.query.leave_out import leave_one_out_accuracy
from ulmus.diagnostics import FeatureRelevance, Summary, VarianceShares, fit_summary
from ulmus.diagnostics.finding import finding
from ulmus.estimators._presentation import DOCUMENTATION


def learned(**parameters):
    """An ensemble with an input map."""
    return ELMEnsembleRegressor(3, 30, **{"random_state": 0} | parameters)


@pytest.fixture(scope="module")
def data(make_table):
    return make_table(80)


@pytest.fixture(scope="module")
def model(data):
    return small_ensemble(4, 20).fit(data.X, data.y)


# ---------------------------------------------------------------- oracle of leave-one-out errors


@pytest.mark.filterwarnings("ignore::ulmus.exceptions.ExtrapolationWarning")
@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_r2_is_that_of_refits_without_each_row(make_table, weighted):
    data = make_table(24)
    w = data.w if weighted else np.ones(24)
    parameters = {"alpha": 0.3, "standardize": False}
    model = small_ensemble(4, 6, **parameters).fit(data.X, data.y, w if weighted else None)
    predictions = []
    for i in range(24):
        others = np.arange(24) != i
        again = small_ensemble(4, 6, **parameters).fit(data.X[others], data.y[others], w[others])
        assert_allclose(again.hidden_weights_, model.hidden_weights_)
        predictions.append(again.predict(data.X[[i]])[0])
    summary = model.summary()
    assert_allclose(summary.r2, r2_score(data.y, predictions, sample_weight=w), rtol=1e-8)
    rmse = root_mean_squared_error(data.y, predictions, sample_weight=w)
    assert_allclose(summary.rmse, rmse, rtol=1e-8)
    assert_allclose(summary.r2, 1 - (summary.rmse / summary.rmse_of_mean) ** 2)


def test_few_rows_are_out_of_fold_with_respect_to_the_map(data):
    model = learned().fit(data.X, data.y)
    found = leave_one_out_accuracy(model.fitted_, model.fitted_.rows)
    folds = model.fitted_.folds
    residuals = np.empty(80)
    for fold in folds:
        residuals[fold.rows] = fold.residuals[0]
    assert_allclose(found.rmse, np.sqrt(np.mean(residuals**2)))
    assert found.rmse > np.sqrt(
        np.mean(model.loo_residuals_**2)
    )  # the map was optimised on the row too


def test_rows_that_the_map_was_optimised_on_do_not_count(make_table):
    data = make_table(120)
    model = learned(tuning_fraction=0.5).fit(data.X, data.y)
    calibration_rows = ~model.fitted_.rows.map_rows
    expected = r2_score(data.y[calibration_rows], model.loo_predictions_[calibration_rows])
    assert_allclose(model.summary().r2, expected)


# ---------------------------------------------------------------- numbers


def test_numbers_are_the_attributes(data, model):
    summary, left = model.summary(), 80 - model.dof_
    assert isinstance(summary, Summary)
    assert (summary.n_rows, summary.n_features, summary.n_outputs) == (80, 3, None)
    assert (summary.n_estimators, summary.n_neurons) == (4, 20)
    assert (summary.activation, summary.input_map) == ("logistic", None)
    assert summary.alpha == model.alpha_
    assert summary.dof == model.dof_
    assert_allclose(summary.target_mean, data.y.mean())
    assert_allclose(summary.target_sd, data.y.std())
    assert_allclose(summary.noise_sd**2, model.noise_variance_)
    assert_allclose(summary.noise_share, model.noise_variance_ / data.y.var())
    low, high = np.sqrt(model.noise_variance_ * left / stats.chi2.ppf([0.975, 0.025], left))
    assert_allclose(summary.noise_sd_interval, (low, high))
    assert summary.noise_modelled is False
    assert summary.noise_range is None
    assert_allclose(summary.r2, r2_score(data.y, model.loo_predictions_))
    assert_allclose(summary.rmse, root_mean_squared_error(data.y, model.loo_predictions_))
    (row,) = [r for r in model.check().coverage if r.group == "all" and r.level == 0.95]
    assert (summary.coverage, summary.coverage_level) == (row.coverage, 0.95)


def test_warnings_are_the_findings_that_are_not_ok(data, model):
    findings = [f for f in model.check().findings if f.severity != "ok"]
    assert findings
    assert [f.name for f in model.summary().warnings] == [f.name for f in findings]


def test_shares_of_the_variance(data, model):
    shares = model.summary().variance_shares
    assert_allclose(sum(shares), 1)
    parts = model.variance_components(data.X)
    redrawing = model.predict_var(data.X, "weights").sum()
    own = sum(part.sum() for part in parts)
    choice = model.predict_var(data.X, "model").sum() - own
    total = own + choice
    assert_allclose(shares, [(own - redrawing) / total, redrawing / total, choice / total])
    # The limit of infinitely many members is common to all of them.
    endless = model.variance_at(data.X, 10**9).sum()
    assert_allclose(shares.data, endless / total, rtol=1e-6)
    assert model.summary().suggested_n_estimators == model.suggest_n_estimators(data.X)


def test_noise_that_is_modelled_has_a_range(rng):
    X = rng.uniform(-2, 2, (500, 1))
    y = np.exp(X[:, 0]) * rng.standard_normal(500)
    model = small_ensemble(4, 20, noise="auto").fit(X, y)
    summary = model.summary()
    assert summary.noise_modelled is True
    low, high = summary.noise_range
    sd = model.predict_var(X, "noise") ** 0.5
    assert_allclose(
        [low, high], [sd.min(), sd.max()], rtol=0.5
    )  # those of the rows are out-of-fold
    assert f"{low:.3g} to {high:.3g} over the rows" in str(summary)


def test_weighted_rows(data):
    w = np.where(np.arange(80) % 9 == 4, 0, 1e6 * data.w)
    model = small_ensemble(4, 20).fit(data.X, data.y, w)
    summary = model.summary()
    assert summary.n_rows == np.sum(w > 0)
    mean = np.average(data.y, weights=w)
    variance = np.average((data.y - mean) ** 2, weights=w)
    assert_allclose([summary.target_mean, summary.target_sd], [mean, variance**0.5])
    # The noise of an observation of mean weight, whatever the unit of the weights.
    assert_allclose(
        summary.noise_sd, small_ensemble(4, 20).fit(data.X, data.y, w / 1e6).summary().noise_sd
    )
    assert 0.01 < summary.noise_share < 1


# ---------------------------------------------------------------- relevance


@pytest.mark.slow
def test_relevance_has_names_and_the_largest_first(data):
    frame = pd.DataFrame(data.X, columns=["a", "b", "c"])
    model = learned().fit(frame, data.y)
    relevance = model.summary().relevance
    order = np.argsort(-model.feature_relevance_)
    assert [r.name for r in relevance] == ["abc"[j] for j in order]
    assert_allclose([r.share for r in relevance], model.feature_relevance_[order])
    assert_allclose([r.sd for r in relevance], model.feature_relevance_std_[order])
    assert learned().fit(data.X, data.y).summary().relevance[0].name == f"x{order[0]}"


def test_relevance_of_one_column_is_summed(data):
    model = learned().fit(data.X, data.y)
    share, sd = model.feature_relevance_, model.feature_relevance_std_
    by_name = {r.name: r for r in model.summary(columns=("kind", "t", "kind")).relevance}
    assert set(by_name) == {"kind", "t"}
    assert_allclose(by_name["kind"][1:], [share[0] + share[2], np.hypot(sd[0], sd[2])])
    with pytest.raises(ValueError, match=mentions("columns", "2 entries", "3 features")):
        model.summary(columns=("kind", "t"))


def test_relevance_beyond_the_eighth_input_is_summed():
    summary = some_summary(relevance=tuple(FeatureRelevance(f"r{j}", 0.1, 0.01) for j in range(10)))
    lines = [line for line in str(summary).splitlines() if "%  " in line]
    assert len(lines) == 9
    assert lines[-1].split() == ["2", "more", "20.0%", "together"]


# ---------------------------------------------------------------- types of fits


def texts(summary):
    """The text of a summary, after all its other forms."""
    values = summary.to_dict()
    assert json.loads(json.dumps(values, allow_nan=False)) == values
    assert max(map(len, str(summary).splitlines())) <= 100
    assert repr(summary) == str(summary)
    return str(summary)


def test_several_outputs_have_a_line_each(data):
    y = np.column_stack([data.y, 3 - data.y**2, np.full(80, 7.0)])
    model = small_ensemble(4, 20).fit(data.X, y)
    summary = model.summary()
    text = texts(summary)
    assert_allclose(summary.alpha, model.alpha_)
    assert_allclose(summary.target_sd, y.std(axis=0))
    assert_allclose(
        summary.r2[:2], r2_score(y, model.loo_predictions_, multioutput="raw_values")[:2]
    )
    assert np.isnan(summary.r2[2])
    assert summary.to_dict()["r2"][2] is None
    assert summary.variance_shares[2] is None
    assert "80 rows, 3 inputs, 3 outputs." in text
    for k in range(3):
        assert f"leave-one-out, output {k}" in text
    assert "the target does not vary" in text
    column = (
        small_ensemble(4, 20).fit(data.X, y[:, [0]]).summary()
    )  # one output with an axis of its own
    assert column.n_outputs == 1
    assert column.alpha == (small_ensemble(4, 20).fit(data.X, y[:, 0]).alpha_,)


def test_a_single_network(data):
    summary = plain_member(20, random_state=0).fit(data.X, data.y).summary()
    text = texts(summary)
    assert text.startswith("ELMRegressor: 80 rows, 3 inputs.")
    assert "one network of 20 hidden units" in text
    assert "ELMEnsembleRegressor" in advice(summary)
    assert summary.suggested_n_estimators is None
    assert summary.variance_shares.members == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("n", [2, 3, 5, 60])
def test_a_handful_of_rows(make_table, n):
    data = make_table(n)
    summary = ELMEnsembleRegressor(random_state=0).fit(data.X, data.y).summary()
    assert "rows" in [f.name for f in summary.warnings]
    texts(summary)


def test_a_constant_target(data):
    summary = small_ensemble(4, 20).fit(data.X, np.full(80, 3.3)).summary()
    text = texts(summary)
    assert (summary.target_mean, summary.target_sd) == (pytest.approx(3.3), 0)
    assert np.isnan(summary.r2)
    assert summary.variance_shares is None
    assert "the target does not vary" in text
    assert "[warning] target: y is constant" in text
    assert "rows:" not in text


def test_targets_in_extreme_units(data):
    usual = small_ensemble(4, 20).fit(data.X, data.y).summary()
    for unit in (1e150, 1e-150):
        summary = small_ensemble(4, 20).fit(data.X, unit * data.y).summary()
        assert_allclose(summary.r2, usual.r2)
        assert_allclose(summary.target_sd, unit * usual.target_sd)
        texts(summary)


def test_a_stream_omits_what_requires_rows(make_table):
    data = make_table(300)
    y = np.column_stack([data.y, data.y**2])
    model = small_ensemble(4, 20)
    for rows in (slice(0, 200), slice(200, 300)):
        model.partial_fit(data.X[rows], y[rows], sample_weight=data.w[rows])
    summary, whole = model.summary(), small_ensemble(4, 20).fit(data.X, y, data.w).summary()
    text = texts(summary)
    assert summary.rmse is summary.r2 is summary.coverage is summary.warnings is None
    assert_allclose(summary.target_mean, whole.target_mean)
    assert_allclose(summary.target_sd, whole.target_sd)
    assert "keeps no training rows" in text
    assert "leave-one-out, output 0" not in text
    assert summary.variance_shares is not None  # at the points that a stream keeps
    bare = small_ensemble(4, 20, fit_intercept=False).partial_fit(data.X, y).summary()
    assert bare.target_mean is bare.noise_share is None
    texts(bare)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_compressed_fit_of_modelled_noise_has_no_range(rng, weighted):
    X = rng.uniform(-2, 2, (500, 1))
    y = np.exp(X[:, 0]) * rng.standard_normal(500)
    weight = rng.uniform(0.5, 2, 500) if weighted else None
    model = small_ensemble(4, 20, noise="auto").fit(X, y, weight)
    assert model.summary().noise_range is not None
    summary = model.compress().summary()
    assert summary.noise_modelled is True
    assert summary.noise_range is None
    texts(summary)


def test_a_compressed_fit_omits_more(data):
    summary = small_ensemble(4, 20).fit(data.X, data.y).compress().summary()
    text = texts(summary)
    assert_allclose(summary.target_sd, data.y.std())
    assert summary.variance_shares is None
    assert "no rows to compute them at" in text
    assert "check(X_new, y_new)" in text


def test_other_arrays_and_precisions(data, torch):
    expected = small_ensemble(4, 20).fit(data.X, data.y).summary()
    tensors = torch.asarray(data.X), torch.asarray(data.y)
    for X, y in (tensors, (scipy.sparse.csr_array(data.X), data.y)):
        summary = small_ensemble(4, 20).fit(X, y).summary()
        assert_allclose([summary.r2, summary.dof], [expected.r2, expected.dof], rtol=1e-6)
        assert_allclose(summary.variance_shares, expected.variance_shares, rtol=1e-6, atol=1e-12)
        texts(summary)
    single = small_ensemble(4, 20, dtype="float32").fit(data.X, data.y).summary()
    assert_allclose(single.r2, expected.r2, rtol=0.05)
    texts(single)


def test_a_function_as_activation(data):
    assert (
        small_ensemble(4, 20, activation=np.tanh).fit(data.X, data.y).summary().activation == "tanh"
    )


def test_an_estimator_that_is_not_fitted():
    with pytest.raises(NotFittedError):
        small_ensemble(4, 20).summary()


# ---------------------------------------------------------------- words


def some_summary(**changes):
    values = {
        "title": "Model",
        "n_rows": 1200,
        "n_features": 1,
        "n_outputs": None,
        "target_mean": 1.0,
        "target_sd": 2.0,
        "n_estimators": 8,
        "n_neurons": 30,
        "activation": "tanh",
        "input_map": "ard",
        "alpha": 0.1,
        "dof": 7.0,
        "noise_sd": 1.0,
        "noise_modelled": False,
        "noise_range": None,
        "noise_share": 0.25,
    }
    return Summary(**values | changes)


def test_a_summary_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        some_summary().n_rows = 3


def test_variance_components_in_a_sentence():
    rows = some_summary(variance_shares=VarianceShares(0.93, 0.02, 0.05))
    assert "93% noise of the training rows, 2% random weights" in flat(rows)
    assert "5% selection of alpha and input map." in flat(rows)
    members = some_summary(variance_shares=VarianceShares(0.6, 0.4, 0.0))
    assert "60% noise of the training rows, 40% random weights." in flat(members)
    assert "selection" not in str(members)


def flat(summary):
    """The text in one line."""
    return " ".join(str(summary).split())


def test_the_headline_counts():
    assert str(some_summary()).startswith("Model: 1,200 rows, 1 input.")


def advice(summary):
    """All advice in one line."""
    return " ".join(one.render() for one in summary.advice)


def test_warnings_come_with_their_suggestions():
    one = finding("rows", "error", 1.0, "too few.", suggestions=("add rows",))
    assert "[error] rows: too few. -> add rows." in str(some_summary(warnings=(one,)))
    assert "none; all leave-one-out checks" in str(some_summary(warnings=()))
    assert "warnings" not in str(some_summary())


def test_advice_follows_the_numbers(rng):
    X = rng.uniform(-1, 1, (400, 1))
    y = np.sin(9 * X[:, 0]) + 0.01 * rng.standard_normal(400)
    few = small_ensemble(4, 8).fit(X, y).summary()
    assert few.suggested_n_estimators > 8
    # The warning of the check suggests the number of the summary, once.
    assert flat(few).count(f"n_estimators={few.suggested_n_estimators}") == 1
    stream = small_ensemble(4, 8).partial_fit(X, y).summary()
    assert f"n_estimators={stream.suggested_n_estimators}" in advice(stream)


def test_the_share_of_noise_in_errors_says_what_was_computed(data, model):
    summary = model.summary()
    share, bounds = summary.noise_share_of_error, summary.noise_sd_interval
    assert_allclose(share.share, min(model.noise_variance_ / summary.rmse**2, 1))
    expected = [min((bound / summary.rmse) ** 2, 1) for bound in bounds]
    assert_allclose([share.low, share.high], expected)
    text = flat(summary)
    assert f"misfit included, is {share.share:.0%} of the mean squared error" in text
    assert f"(95% interval {share.low:.0%} to {share.high:.0%})" in text
    known = small_ensemble(4, 20, noise_variance=0.1).fit(data.X, data.y).summary()
    assert known.noise_sd_interval is known.noise_share_of_error is None
    assert "interval" not in str(known).split("ridge")[1].split("leave-one-out")[0]


def test_a_front_end_renders_advice_and_next_steps(rng):
    def option(parameter, value, item=None):
        return f"--{parameter.replace('_', '-')} {value}" if parameter == "n_estimators" else None

    X = rng.uniform(-1, 1, (400, 1))
    few = (
        small_ensemble(4, 8).fit(X, np.sin(9 * X[:, 0]) + 0.01 * rng.standard_normal(400)).summary()
    )
    text, values = few.format(option, ["ulmus predict"]), few.to_dict(option)
    assert f"--n-estimators {few.suggested_n_estimators}" in " ".join(text.split())
    assert f"--n-estimators {few.suggested_n_estimators}" in str(values["warnings"])
    assert text.endswith("ulmus predict")
    for name in ("n_estimators", "n_neurons=", "model."):
        assert name not in text


@pytest.mark.slow
@pytest.mark.parametrize("noisy", [False, True])
def test_sixty_rows_get_no_contradictory_suggestions(make_table, rng, noisy):
    data = make_table(60)
    y = rng.standard_normal(60) if noisy else data.y
    model = learned().fit(data.X, y)
    text = flat(model.summary())
    assert "add rows" in text  # few rows make standard errors uncertain
    claims = ("more rows", "neither rows", "mostly noise", "would lower", "larger alpha")
    for claim in (*claims, "members do not"):
        assert claim not in text
    # A parameter is suggested in one direction only, and alpha only where it was given.
    for report in (model.check(), small_ensemble(4, 20, alpha=1e-3).fit(data.X, y).check()):
        suggestions = " ".join(one.suggestion for one in report.findings)
        assert "larger n_neurons" not in suggestions or "smaller n_neurons" not in suggestions
    assert "alpha" not in " ".join(one.suggestion for one in model.check().findings)


def test_html_escapes_names():
    name = "<script>alert('x')</script>"
    html = some_summary(relevance=(FeatureRelevance(name, 1.0, 0.1),), title="A & B")._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "A &amp; B" in html


# ---------------------------------------------------------------- in a Pipeline


@pytest.fixture(scope="module")
def pipe(data):
    table = pd.DataFrame({"t": data.X[:, 0], "kind": np.array(list("abcd") * 20)})
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    return make_pipeline(encode, learned()).fit(table, data.y)


def test_a_pipeline_names_encoded_features(pipe):
    summary = ulmus.inference(pipe).summary()
    names = {"onehotencoder__kind_a", "remainder__t"}
    assert names <= {r.name for r in summary.relevance}
    assert summary.n_features == 5
    grouped = ulmus.inference(pipe).summary(columns=("kind",) * 4 + ("t",))
    assert {r.name for r in grouped.relevance} == {"kind", "t"}
    assert_allclose(sum(r.share for r in grouped.relevance), 1)


def test_a_pipeline_without_names(data):
    steps = (StandardScaler(), FunctionTransformer(np.tanh))
    for pipe in (
        make_pipeline(*steps, small_ensemble(4, 20)),
        make_pipeline(small_ensemble(4, 20)),
    ):
        pipe.fit(data.X, data.y)
        assert ulmus.inference(pipe).summary().r2 == pipe[-1].summary().r2


# ---------------------------------------------------------------- in a notebook


def test_a_brief_summary_computes_nothing(data, monkeypatch):
    model = learned().fit(data.X, data.y)
    fit = model.fitted_
    monkeypatch.setattr("ulmus.diagnostics.summary.diagnostic_report", pytest.fail)
    html = model._repr_html_()
    assert "80 rows, 3 inputs." in html
    assert "leave-one-out accuracy and diagnostics; summary() computes them" in html
    assert not {"folds", "undersmoothing", "undersmoothing_gap", "misfit"} & set(vars(fit))
    model.fitted_ = fit.with_refits()
    assert "for the mean)" in model._repr_html_()  # the refits are stored
    assert "undersmoothing" not in vars(fit)


def test_a_brief_summary_has_the_numbers_of_the_whole(data, model):
    brief = fit_summary(model.fitted_, "Model", list("abc"), brief=True)
    whole = model.summary()
    for name in ("alpha", "noise_sd", "r2", "rmse", "coverage", "target_sd"):
        assert getattr(brief, name) == getattr(whole, name)
    assert brief.warnings is brief.variance_shares is None
    assert brief.notes
    stream = fit_summary(
        small_ensemble(4, 20).partial_fit(data.X, data.y).fitted_, "Model", "abc", brief=True
    )
    assert "keeps no training rows" in texts(stream)


def test_the_diagram_of_a_fitted_estimator_has_its_summary(data, model):
    for html in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert "80 rows, 3 inputs." in html
        assert html.count("<caption>") == 1
    assert "<caption>" not in small_ensemble(4, 20)._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_an_estimator_is_shown_in_whatever_state_it_is(data):
    model = small_ensemble(4, 20).fit(data.X, data.y)
    model.fitted_ = "broken"
    assert "ELMEnsembleRegressor" in model._repr_html_()
    unnamed = small_ensemble(4, 20).fit(data.X, data.y)
    del unnamed.n_features_in_
    assert "ELMEnsembleRegressor" in unnamed._repr_html_()


def test_the_display_does_not_compute_the_undersmoothing_gap(data):
    model = small_ensemble(4, 20).fit(data.X, data.y)
    if not hasattr(sklearn.base.BaseEstimator, "_get_fitted_attr_html"):
        pytest.skip("this scikit-learn shows no attributes")
    assert np.isnan(model._get_fitted_attr_html()["undersmoothing_gap_"]["value"])
    assert np.isfinite(model.undersmoothing_gap_)
    assert np.isnan(model._get_fitted_attr_html()["undersmoothing_gap_"]["value"])


def test_estimators_link_to_their_page(model):
    for one in (model, plain_member()):
        link = one._get_doc_link()
        assert link.startswith(f"{DOCUMENTATION}/reference/")
        assert link.endswith(f"/ulmus.{type(one).__name__}.html")
        assert link in one._repr_html_()


def test_notes_about_columns_are_notes(rng):
    """They stood under "not computed"."""
    frame = pd.DataFrame({"kind": ["elm", "oak"] * 20, "x": rng.normal(size=40)})
    model = ELMEnsembleRegressor(3, 10, input_map=None, random_state=0)
    model.fit(frame, rng.normal(size=40))
    (line,) = [line for line in str(model.summary()).splitlines() if "categories" in line]
    assert line.startswith("notes ")
