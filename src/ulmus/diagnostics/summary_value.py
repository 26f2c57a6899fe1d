"""A summary as a value: numbers as fields, and the same as text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any, NamedTuple

from ulmus.diagnostics.finding import Finding, hanging, mark
from ulmus.messages import Dialect, Message, python

# Inputs that are named; the others are summed.
MOST_NAMED, LONGEST_NAME = 8, 40
# Smaller shares of the variance are zero in whole percents.
VISIBLE_SHARE = 0.005
OUT_OF_SAMPLE = "model.check(X_new, y_new) is an out-of-sample test."
ALL_CHECKS = "model.check() returns all diagnostics; " + OUT_OF_SAMPLE
INTERVALS = "model.predict_interval(X) returns prediction intervals for new observations."


class FeatureRelevance(NamedTuple):
    """Share of an input in the prediction.

    Parameters
    ----------
    name : str
        Name of the input.
    share : float
        Its share; the shares of all inputs sum to one.
    sd : float
        Standard deviation of the share.

    Examples
    --------
    >>> from ulmus.diagnostics import FeatureRelevance
    >>> rain = FeatureRelevance("rain", share=0.4, sd=0.05)
    >>> f"{rain.name}: {rain.share:.0%}"
    'rain: 40%'
    """

    name: str
    share: float
    sd: float


class VarianceShares(NamedTuple):
    """Components of the variance of a prediction, as shares that sum to one.

    Parameters
    ----------
    data : float
        Noise of the training rows, common to all members.
    members : float
        Random hidden weights; inversely proportional to the number of members.
    choices : float
        Selection of alpha and the input map.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> shares = model.summary().variance_shares
    >>> round(sum(shares), 6), shares.data > shares.members > shares.choices
    (1.0, True)
    """

    data: float
    members: float
    choices: float


@dataclass(frozen=True, repr=False)
class Summary:
    """A summary of a fit, to print or to read by its fields.

    Fields of the target, the ridge, the noise and the leave-one-out errors are one value, or a
    tuple with one for each output if y had several. What was not computed is None.

    Parameters
    ----------
    title : str
        Title of the summary.
    n_rows, n_features : int
        Rows of positive weight, and inputs.
    n_outputs : int or None
        Number of outputs; None if y had one axis.
    target_mean, target_sd : float, tuple of float or None
        Weighted mean and standard deviation of the target.
    n_estimators, n_neurons : int
        Members, and hidden units of each.
    activation : str
        Activation function of the hidden units.
    input_map : str or None
        Type of the input map: ``"ard"``, ``"full"``, ``"common"``, ``"given"``.
    alpha, dof : float or tuple of float
        Ridge parameter, and effective degrees of freedom.
    noise_sd : float or tuple of float
        Standard deviation of the noise of an observation of mean weight.
    noise_modelled : bool or tuple of bool
        Whether it is a function of the inputs.
    noise_range : (float, float), tuple of these and None, or None
        If so, its range over the training rows that are kept.
    noise_share : float, tuple of float or None
        Share of the noise in the variance of the target.
    noise_covariance : str, tuple of str or None
        Estimated covariance of correlated noise in a phrase.
    relevance : tuple of FeatureRelevance
        In decreasing order; empty without a learned input map.
    rmse, rmse_of_mean, r2 : float, tuple of float or None
        Leave-one-out error of the model, that of the mean, and coefficient of determination.
    coverage : float, tuple of float or None
        Coverage of the prediction intervals of the training rows, leave-one-out.
    coverage_level : float
        Level of these intervals.
    variance_shares : VarianceShares, tuple of these or None
        Components of the variance of predictions, mean over training rows.
    suggested_n_estimators : int or None
        Members that limit the variance of the random weights to a twentieth of the rest.
    warnings : tuple of Finding or None
        Findings of ``check`` that are not ok; None if it was not run.
    notes : tuple of str
        What was not computed, and why.
    advice : tuple of Message
        Suggestions that follow from the numbers.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.summary : Returns one.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> summary = model.summary()
    >>> summary.n_rows, summary.n_estimators, summary.noise_modelled
    (100, 5, False)
    >>> print(str(summary).splitlines()[2])
    target         mean 0.0905, standard deviation 0.7094.
    """

    title: str
    n_rows: int
    n_features: int
    n_outputs: int | None
    target_mean: Any
    target_sd: Any
    n_estimators: int
    n_neurons: int
    activation: str
    input_map: str | None
    alpha: Any
    dof: Any
    noise_sd: Any
    noise_modelled: Any
    noise_range: Any
    noise_share: Any
    noise_covariance: Any = None
    relevance: tuple[FeatureRelevance, ...] = ()
    rmse: Any = None
    rmse_of_mean: Any = None
    r2: Any = None
    coverage: Any = None
    coverage_level: float = 0.95
    variance_shares: Any = None
    suggested_n_estimators: int | None = None
    warnings: tuple[Finding, ...] | None = None
    notes: tuple[str, ...] = ()
    advice: tuple[Message, ...] = ()

    def to_dict(self, dialect: Dialect = python) -> dict[str, Any]:
        """The fields as JSON values; numbers that are not finite are None.

        Parameters
        ----------
        dialect : callable, default=ulmus.messages.python
            Renders the parameters of suggestions.

        Returns
        -------
        values : dict
            One entry for each field.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.warnings is not None:
            values["warnings"] = [one.to_dict(dialect) for one in self.warnings]
        values["advice"] = [one.render(dialect) for one in self.advice]
        return _plain(values)

    def format(self, dialect: Dialect = python, next_steps: Sequence[str] | None = None) -> str:
        """The summary as text.

        Parameters
        ----------
        dialect : callable, default=ulmus.messages.python
            Renders the parameters of suggestions.
        next_steps : sequence of str, optional
            Last lines; by default methods of the estimator to call next.

        Returns
        -------
        text : str
            One entry for each label, aligned.
        """
        entries = list(self._entries(dialect, next_steps))
        width = max(len(label) for label, _ in entries)
        lines = [self._headline]
        for label, texts in entries:
            for i, text in enumerate(texts):
                lines += hanging(f"{label if i == 0 else '':<{width}}  ", text)
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """A plain table for notebooks."""
        left = ' style="text-align: left; vertical-align: top"'
        rows = [
            f"<tr><th{left}>{escape(label)}</th>"
            f"<td{left}>{'<br>'.join(escape(text) for text in texts)}</td></tr>"
            for label, texts in self._entries(python, None)
        ]
        return f"<table><caption>{escape(self._headline)}</caption>{''.join(rows)}</table>"

    # ------------------------------------------------------------ text

    @property
    def _headline(self) -> str:
        outputs = "" if self.n_outputs is None else f", {_counted(self.n_outputs, 'output')}"
        inputs = _counted(self.n_features, "input")
        return f"{self.title}: {_counted(self.n_rows, 'row')}, {inputs}{outputs}."

    def _entries(
        self, dialect: Dialect, next_steps: Sequence[str] | None
    ) -> Iterator[tuple[str, list[str]]]:
        """Labels with the lines beside them."""
        yield "network", [self._network()]
        for label, text in (
            ("target", self._target),
            ("ridge", self._ridge),
            ("noise", self._noise),
            ("noise covariance", self._noise_covariance),
            ("leave-one-out", self._leave_one_out),
            ("variance", self._variance),
        ):
            for k in range(self.n_outputs or 1):
                line = text(k)
                if line:
                    yield label if self.n_outputs is None else f"{label}, output {k}", [line]
        if self.relevance:
            yield "relevance", self._relevance()
        if self.warnings is not None:
            yield "warnings", _warning_lines(self.warnings, dialect)
        if self.notes:
            yield "not computed", list(self.notes)
        steps = self._next_steps() if next_steps is None else next_steps
        advice = [*(one.render(dialect) for one in self.advice), *steps]
        if advice:
            yield "next", advice

    def _next_steps(self) -> list[str]:
        """Methods to call next."""
        return [OUT_OF_SAMPLE if self.warnings is None else ALL_CHECKS, INTERVALS]

    def _of(self, name: str, k: int) -> Any:
        """A field's value for an output."""
        value = getattr(self, name)
        return value if self.n_outputs is None or value is None else value[k]

    def _network(self) -> str:
        units = f"{self.n_neurons} hidden units ({self.activation})"
        members = "one network of" if self.n_estimators == 1 else f"{self.n_estimators} members of"
        maps = {None: "no input map", "given": "input map given"}
        learned = f"input map optimised ({self.input_map})"
        return f"{members} {units}; {maps.get(self.input_map, learned)}."

    def _target(self, k: int) -> str:
        mean, sd = self._of("target_mean", k), self._of("target_sd", k)
        return "" if mean is None else f"mean {mean:.4g}, standard deviation {sd:.4g}."

    def _ridge(self, k: int) -> str:
        alpha, dof = self._of("alpha", k), self._of("dof", k)
        return f"alpha = {alpha:.3g}; {dof:.1f} effective degrees of freedom."

    def _noise(self, k: int) -> str:
        sd, share = self._of("noise_sd", k), self._of("noise_share", k)
        between = self._of("noise_range", k)
        text = f"standard deviation {sd:.3g}"
        if not self._of("noise_modelled", k):
            text += ", constant"
        elif between is None:
            text += " on average, a function of the inputs"
        else:
            text += f" on average, {between[0]:.3g} to {between[1]:.3g} over the rows"
        if share is not None and math.isfinite(share):
            text += f"; {share:.0%} of the variance of the target"
        return text + "."

    def _noise_covariance(self, k: int) -> str:
        phrase = self._of("noise_covariance", k)
        return "" if phrase is None else f"{phrase}."

    def _leave_one_out(self, k: int) -> str:
        rmse, r2 = self._of("rmse", k), self._of("r2", k)
        if rmse is None:
            return ""
        if not math.isfinite(r2):
            return f"RMSE {rmse:.3g}; the target does not vary."
        mean, covered = self._of("rmse_of_mean", k), self._of("coverage", k)
        return (
            f"R2 {r2:.3f}; RMSE {rmse:.3g} ({mean:.3g} for the mean); {covered:.1%} of the rows "
            f"in their {self.coverage_level:.0%} intervals (nominal by construction)."
        )

    def _variance(self, k: int) -> str:
        shares = self._of("variance_shares", k)
        if shares is None:
            return ""
        parts = [f"{shares.data:.0%} noise of the training rows"]
        if self.n_estimators > 1:
            parts.append(f"{shares.members:.0%} random weights")
        if shares.choices >= VISIBLE_SHARE:
            parts.append(f"{shares.choices:.0%} selection of alpha and input map")
        return f"of a prediction: {', '.join(parts)}."

    def _relevance(self) -> list[str]:
        named, others = self.relevance[:MOST_NAMED], self.relevance[MOST_NAMED:]
        lines = [(_shortened(r.name), r.share, f"(sd {r.sd:.1%})") for r in named]
        if others:
            lines.append((f"{len(others)} more", sum(r.share for r in others), "together"))
        width = max(len(name) for name, *_ in lines)
        return [f"{name:<{width}} {share:6.1%}  {more}" for name, share, more in lines]


def _warning_lines(findings: tuple[Finding, ...], dialect: Dialect) -> list[str]:
    if not findings:
        return ["none; all leave-one-out checks are ok."]
    lines = []
    for one in findings:
        suggestion = one.suggestion_in(dialect)
        line = f"{mark(one.severity)} {one.name}: {one.message}"
        lines.append(f"{line} -> {suggestion}" if suggestion else line)
    return lines


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _plain(value: Any) -> Any:
    """Lists and dicts of plain values."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
