"""The sentences of a report: what the numbers say, in plain words."""

from __future__ import annotations

from ulmus.diagnostics.finding import Finding
from ulmus.plot._variance import CHOICE, MODEL, OBSERVATION, OWN, SHARED, WEIGHTS
from ulmus.report.facts import Facts
from ulmus.report.influences import CURVE_ROWS, MOST_INPUTS
from ulmus.report.judgement import LINEAR, Judgement
from ulmus.report.numbers import count, fixed, number, share
from ulmus.report.spread import Members, Parts
from ulmus.report.subject import LEFT_OUT, NEW

# A difference of so many standard errors is not chance.
CLEAR = 2.0
# The finding about rows that hang together.
NEIGHBOURS = "dependence"
# Findings about sizes and settings; all others are about error bars.
SIZES = (
    "misfit",
    "step",
    "hidden units",
    "rows",
    "extrapolation",
    "bias",
    "leverage",
    "members",
    "choices",
)

MEANINGS = {
    SHARED: "noise in the training data that all members share; more members will not help, more "
    "rows will",
    OWN: "noise in the training data that each member sees in its own way; more members average "
    "it out",
    WEIGHTS: "caused by the random hidden weights; more members will help (n_estimators)",
    CHOICE: "caused by choosing the ridge parameter and the map of the inputs on the same rows; "
    "more rows will help",
    MODEL: "that of one network with its hidden weights as they were drawn; what drawing them "
    "again would change is not known, and an ELMEnsembleRegressor would tell",
}


def verdict(facts: Facts) -> str:
    """The whole report in a paragraph."""
    judged = facts.judgement
    if judged is None:
        return (
            "Nothing here tells how good the model is: no observations were given, and the model "
            "keeps no training rows to leave out. Give X and y of new rows for that."
        )
    parts = (_accuracy(facts, judged), _extrapolation(judged), _error_bars(judged, facts))
    return " ".join(part for part in parts if part)


def _accuracy(facts: Facts, judged: Judgement) -> str:
    model, *others = judged.scores
    which = "that were left out" if facts.judged_by == LEFT_OUT else "it had not seen"
    against = " and ".join(f"{number(s.rmse, 3)} for {s.name}" for s in others)
    against = f", against {against}" if against else ""
    typical = f"a typical error (RMSE) of {number(model.rmse, 3)}{against}"
    if facts.target is not None and facts.target.is_constant:
        return f"All values of {facts.target_name} are the same: there is nothing to explain."
    if model.r2 <= 0:
        return (
            f"In rows {which}, the model does not predict {facts.target_name} better than its "
            f"mean does: it has {typical}."
        )
    text = (
        f"In rows {which}, the model explains {share(model.r2)} of the variance of "
        f"{facts.target_name} (R² {fixed(model.r2)}), with {typical}."
    )
    gain = judged.gains.get(LINEAR)
    if gain is None:
        return text
    if gain > CLEAR:
        return f"{text} It is better than a linear model by more than chance."
    if gain < -CLEAR:
        return f"{text} A linear model does better, by more than chance: prefer it."
    return f"{text} A linear model does about as well."


def _extrapolation(judged: Judgement) -> str:
    """What rows far outside the training range do to the accuracy."""
    if judged.inside is None:
        return ""
    return (
        f"{count(int(judged.outside.sum()), 'row lies', 'rows lie')} far outside the range of the "
        f"training inputs; without, the RMSE is {number(judged.inside.rmse, 3)} and R² "
        f"{fixed(judged.inside.r2)}."
    )


def _error_bars(judged: Judgement, facts: Facts) -> str:
    wrong = [finding.name for finding in judged.report.findings if finding.light != "green"]
    text = ""
    if facts.judged_by == NEW:
        text = f"Of {count(len(judged.observed), 'row')}, {judged.coverage:.1%} lay in their 95% "
        text += "prediction intervals. "
    if not wrong:
        return f"{text}No check speaks against its error bars."
    listed = ", ".join(dict.fromkeys(wrong))
    total = len(judged.report.findings)
    if judged.report.light == "red":
        return f"{text}{len(wrong)} of {total} checks failed or warn ({listed}): see below why."
    return f"{text}{len(wrong)} of {total} checks ask for a look ({listed})."


def rows(facts: Facts) -> str:
    """Which rows the report is about, and how it judges."""
    fit = f"The model was fitted to {count(facts.n_training, 'row')}."
    if facts.is_training:
        seen = (
            " The map of the inputs was learned with all rows in view, which makes this a little "
            "too good."
        )
        return (
            f"{fit} They are the rows of this report: each is predicted from all others, by exact "
            f"leave-one-out formulas.{seen if facts.map_saw_all else ''} Rows that resemble each "
            "other (repeated measurements, neighbours in time or space) look better than new ones "
            "would; new rows are the honest test."
        )
    if facts.judged_by == NEW and facts.keeps_rows:
        return (
            f"{fit} This report judges it by {count(facts.n_rows, 'new row')}, which are not those "
            "of the fit: an honest test, as far as they are like the rows that will come."
        )
    if facts.judged_by == NEW:
        same = facts.n_rows == facts.n_training
        hint = " Their number is that of the fit, so they may well be." if same else ""
        return (
            f"{fit} It keeps none of them, so that nobody can tell whether the "
            f"{count(facts.n_rows, 'row')} of this report are new. If they are the training rows, "
            f"all that follows looks better than it is.{hint}"
        )
    if facts.judged_by == LEFT_OUT:
        return (
            f"{fit} {count(facts.n_rows, 'further row')} came without observations: how good the "
            "model is, left-out training rows tell, and the new rows serve the sections about "
            "inputs and variance."
        )
    return (
        f"{fit} It keeps none of them, and no observations were given: sections that need either "
        "say so."
    )


def notes(judged: Judgement) -> list[str]:
    """What scores and figures leave out, if anything."""
    n, out = len(judged.observed), []
    if n < judged.of_rows:
        out.append(f"This is about {number(n)} rows drawn at random from {number(judged.of_rows)}.")
    if len(judged.drawn) < n:
        out.append(f"Figures show {number(len(judged.drawn))} of them, drawn at random.")
    if judged.inside is not None:
        out.append("Rows far outside the training range may lie beyond the axes of the figures.")
    return out


def outside(judged: Judgement) -> str:
    """How many rows are far outside."""
    n = int(judged.outside.sum())
    return f"Outside the range of the training inputs: {count(n, 'row')}"


def honesty(facts: Facts) -> str:
    """What the coverage of left-out or new rows can tell."""
    if facts.judged_by == LEFT_OUT:
        return (
            "Intervals of left-out rows are made from the residuals of the others, so that all "
            "rows together are covered as often as promised by construction. What tells is the "
            "coverage of groups, and the predicted distributions in the figures."
        )
    return (
        "New rows are a test of everything: the level of the intervals, their width in each group "
        "of rows, and the shape of the predicted distributions."
    )


def neighbours(facts: Facts) -> str:
    """What the residuals of neighbouring rows tell."""
    if facts.neighbours is None:
        return "Whether residuals of neighbouring rows agree, only a model with its rows can tell."
    text = (
        "Noise that neighbours share, in time or space, does not average out: error bars that take "
        "rows as independent are then too small. Each bar is the correlation of left-out residuals "
        "of rows that are so many rows apart, and the grey band holds 19 of 20 of them if rows are "
        "independent. In a table that is sorted by an input, a function that the model does not "
        "follow looks the same."
    )
    if facts.neighbours.in_space is not None:
        text += (
            " The variogram has half the mean squared difference of residuals by distance: it "
            "starts low where neighbours agree, and is flat where rows are independent."
        )
    return text


def inputs(facts: Facts) -> str:
    """What relevance is, and how many inputs are drawn."""
    found, text = facts.relevance, ""
    if len(found.names) > MOST_INPUTS:
        text = (
            f"Of {len(found.names)} inputs the {MOST_INPUTS} most relevant are drawn; together "
            f"they have {share(float(sum(found.shares[:MOST_INPUTS])))}. "
        )
    text += (
        "The relevance of an input is half the mean squared change of the prediction when its "
        "value is exchanged for that of another row, as a share of the sum over inputs"
    )
    if found.deviations is None:
        return f"{text}."
    return f"{text}; bars have one standard deviation, from the map that the fit learned."


def curves(facts: Facts) -> str:
    """What the curves are."""
    n = min(CURVE_ROWS, facts.n_inside)
    return (
        f"Each curve is the mean prediction over {count(n, 'row')} when one input is set to the "
        "value on the axis, all others as they are. The band holds the expected curve with 95% "
        "at each point. It describes the model, not what a change in the world would do."
    )


def variance(parts: Parts, members: Members | None) -> str:
    """What the variance is made of, and what would help."""
    if sum(parts.prediction.values()) <= 0:
        return "There is no variance to split: the fit has no noise."
    largest = max(parts.shares, key=lambda name: parts.shares[name])
    size = parts.shares[largest]
    if largest == SHARED and members is not None:
        # What all members share is what would be left with endlessly many.
        size = min(members.limit / sum(parts.prediction.values()), 1.0)
    text = f"{share(size)} of the variance of a prediction is {MEANINGS[largest]}."
    noise = parts.observation_shares[OBSERVATION]
    if noise > 0.5:
        return (
            f"{text} Of the variance of a new observation, {share(noise)} is noise around the "
            "function: better predictions need other inputs or more exact measurements, not a "
            "larger model."
        )
    return (
        f"{text} Of the variance of a new observation, only {share(noise)} is noise around the "
        "function; the rest is uncertainty of the prediction, and more rows will help."
    )


def enough(facts: Facts) -> str:
    """Whether members suffice, in numbers."""
    members = facts.members
    if members is None:
        return "The model is one network; whether more would help only an ensemble can tell."
    ratio = members.suggested / members.fitted
    text = f"The ensemble has {members.fitted} members; with {members.suggested}, redrawing the "
    text += "hidden weights would add at most 5% to the variance of nine in ten predictions."
    if ratio <= 1:
        return f"{text} That is enough."
    return f"{text} More members would make predictions less random."


def points(facts: Facts) -> str:
    """How to read the rows that stand out."""
    if facts.judgement is None:
        return "Rows that stand out need observations, and none are known."
    errors = "Large errors may be wrong measurements, or the rows that teach most."
    if facts.judged_by == NEW:
        return (
            f"{errors} The leverage of a new row says how far it is from the training rows: from "
            "1 on, its prediction is less certain than an observation is."
        )
    return (
        f"{errors} The leverage of a training row is its weight in its own prediction, from 0 to "
        "1: where it is high, look at the inputs again."
    )


def about_error_bars(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings about coverage, spread and distributions."""
    return tuple(f for f in findings if f.name not in (*SIZES, NEIGHBOURS))


def about_neighbours(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings about rows that hang together."""
    return tuple(finding for finding in findings if finding.name == NEIGHBOURS)


def about_sizes(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Findings about rows, members, units and misfit."""
    return tuple(finding for finding in findings if finding.name in SIZES)
