"""The value that a summary is: numbers as fields, and the same in words for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from html import escape
from typing import Any, NamedTuple

from ulmus.diagnostics.finding import MARKS, Finding, hanging

# Inputs that are named; the others are added up.
MOST_NAMED, LONGEST_NAME = 8, 40
# Smaller shares of the variance of a prediction are not worth more members.
SMALL_SHARE = 0.05
# Smaller ones are zero in whole percents.
VISIBLE_SHARE = 0.005


class Relevance(NamedTuple):
    """Share of an input in the prediction.

    Parameters
    ----------
    name : str
        Name of the input.
    share : float
        Its share; those of all inputs add up to one.
    sd : float
        Standard deviation of the share.

    Examples
    --------
    >>> from ulmus.diagnostics import Relevance
    >>> rain = Relevance("rain", share=0.4, sd=0.05)
    >>> f"{rain.name}: {rain.share:.0%}"
    'rain: 40%'
    """

    name: str
    share: float
    sd: float


class VarianceShares(NamedTuple):
    """What the variance of a prediction is made of, as shares that add up to one.

    Parameters
    ----------
    data : float
        Noise of the training rows, which all members share: only more rows lower it.
    members : float
        What redrawing the hidden weights changes: more members lower it.
    choices : float
        What choosing alpha and the map of the inputs adds.

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
    """What was fitted; ``print`` it, or read its fields.

    Fields of the target, the ridge, the noise and the left-out rows are one value, or a tuple with
    one for each output if y had several. What is not known is None.

    Parameters
    ----------
    title : str
        What was fitted.
    n_rows, n_features : int
        Rows of positive weight, and inputs.
    n_outputs : int or None
        Number of outputs; None if y had one axis.
    target_mean, target_sd : float, tuple of float or None
        Mean and standard deviation of the target, weighted as the rows are.
    n_members, n_units : int
        Members, and hidden units of each.
    activation : str
        Of the hidden units.
    input_map : str or None
        How the map of the inputs was found: ``"ard"``, ``"full"``, ``"common"``, ``"given"``.
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
    dependence : str, tuple of str or None
        How the noise hangs together, in a phrase, where this was asked for.
    relevance : tuple of Relevance
        The largest first; empty where no map was learned.
    rmse, rmse_of_mean, r2 : float, tuple of float or None
        Errors of left-out training rows, those of their mean, and the share explained.
    coverage : float, tuple of float or None
        Share of left-out training rows in their prediction intervals.
    coverage_level : float
        Level of these intervals.
    variance_shares : VarianceShares, tuple of these or None
        What the variance of predictions at training rows is made of.
    enough_members : int or None
        Members after which redrawing weights adds next to nothing to the variance.
    warnings : tuple of Finding or None
        Findings of ``check`` that are not green; None if it was not asked.
    notes : tuple of str
        What is left out, and why.
    advice : tuple of str
        What to do next.

    See Also
    --------
    ulmus.ELMEnsembleRegressor.summary : Makes one.

    Examples
    --------
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.datasets import make_sine
    >>> X, y, *_ = make_sine(100, random_state=0)
    >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0).fit(X, y)
    >>> summary = model.summary()
    >>> summary.n_rows, summary.n_members, summary.noise_modelled
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
    n_members: int
    n_units: int
    activation: str
    input_map: str | None
    alpha: Any
    dof: Any
    noise_sd: Any
    noise_modelled: Any
    noise_range: Any
    noise_share: Any
    dependence: Any = None
    relevance: tuple[Relevance, ...] = ()
    rmse: Any = None
    rmse_of_mean: Any = None
    r2: Any = None
    coverage: Any = None
    coverage_level: float = 0.95
    variance_shares: Any = None
    enough_members: int | None = None
    warnings: tuple[Finding, ...] | None = None
    notes: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as values that JSON has; what is no number is None.

        Returns
        -------
        values : dict
            One entry for each field.
        """
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    def __str__(self) -> str:
        entries = list(self._entries())
        width = max(len(label) for label, _ in entries)
        lines = [self._headline]
        for label, texts in entries:
            for i, text in enumerate(texts):
                lines += hanging(f"{label if i == 0 else '':<{width}}  ", text)
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """A plain table for notebooks."""
        left = ' style="text-align: left; vertical-align: top"'
        rows = [
            f"<tr><th{left}>{escape(label)}</th>"
            f"<td{left}>{'<br>'.join(escape(text) for text in texts)}</td></tr>"
            for label, texts in self._entries()
        ]
        return f"<table><caption>{escape(self._headline)}</caption>{''.join(rows)}</table>"

    # ------------------------------------------------------------ in words

    @property
    def _headline(self) -> str:
        outputs = "" if self.n_outputs is None else f", {_counted(self.n_outputs, 'output')}"
        inputs = _counted(self.n_features, "input")
        return f"{self.title}: {_counted(self.n_rows, 'row')}, {inputs}{outputs}."

    def _entries(self) -> Iterator[tuple[str, list[str]]]:
        """Labels, and what stands beside each, line by line."""
        yield "network", [self._network()]
        for label, text in (
            ("target", self._target),
            ("ridge", self._ridge),
            ("noise", self._noise),
            ("dependence", self._dependence),
            ("left-out rows", self._left_out),
            ("variance", self._variance),
        ):
            for k in range(self.n_outputs or 1):
                line = text(k)
                if line:
                    yield label if self.n_outputs is None else f"{label}, output {k}", [line]
        if self.relevance:
            yield "relevance", self._relevance()
        if self.warnings is not None:
            yield "warnings", self._warnings(self.warnings)
        if self.notes:
            yield "not here", list(self.notes)
        if self.advice:
            yield "next", list(self.advice)

    def _of(self, name: str, k: int) -> Any:
        """A field's value for an output."""
        value = getattr(self, name)
        return value if self.n_outputs is None or value is None else value[k]

    def _network(self) -> str:
        units = f"{self.n_units} hidden units ({self.activation})"
        members = "one network of" if self.n_members == 1 else f"{self.n_members} members of"
        maps = {None: "no map of the inputs", "given": "map of the inputs given"}
        learned = maps.get(self.input_map, f"map of the inputs learned ({self.input_map})")
        return f"{members} {units}; {learned}."

    def _target(self, k: int) -> str:
        mean, sd = self._of("target_mean", k), self._of("target_sd", k)
        return "" if mean is None else f"mean {mean:.4g}, standard deviation {sd:.4g}."

    def _ridge(self, k: int) -> str:
        alpha, dof = self._of("alpha", k), self._of("dof", k)
        return f"alpha = {alpha:.3g}; the fit spends {dof:.1f} degrees of freedom."

    def _noise(self, k: int) -> str:
        sd, share = self._of("noise_sd", k), self._of("noise_share", k)
        between = self._of("noise_range", k)
        modelled = self._of("noise_modelled", k)
        text = f"standard deviation {sd:.3g} {'on average' if modelled else 'everywhere'}"
        if modelled:
            text += "" if between is None else f", {between[0]:.3g} to {between[1]:.3g}"
            text += " as the inputs go"
        if share is not None and math.isfinite(share):
            text += f"; {share:.0%} of the variance of the target"
        return text + "."

    def _dependence(self, k: int) -> str:
        found = self._of("dependence", k)
        return "" if found is None else f"{found}."

    def _left_out(self, k: int) -> str:
        rmse, r2 = self._of("rmse", k), self._of("r2", k)
        if rmse is None:
            return ""
        if not math.isfinite(r2):
            return f"RMSE {rmse:.3g}; the target does not vary."
        mean, covered = self._of("rmse_of_mean", k), self._of("coverage", k)
        return (
            f"R2 {r2:.3f}; RMSE {rmse:.3g}, where the mean alone has {mean:.3g}; {covered:.1%} lie "
            f"in their {self.coverage_level:.0%} intervals, by construction."
        )

    def _variance(self, k: int) -> str:
        shares = self._of("variance_shares", k)
        if shares is None:
            return ""
        parts = [f"that of a prediction is {shares.data:.0%} noise of the training rows"]
        if self.n_members > 1:
            parts[0] += " (which all members share)"
            parts.append(f"{shares.members:.0%} random weights")
        if shares.choices >= VISIBLE_SHARE:
            parts.append(f"{shares.choices:.0%} the choice of alpha and map")
        return f"{', '.join(parts)}; {self._cure(shares)}."

    def _cure(self, shares: VarianceShares) -> str:
        """What would lower the variance of a prediction."""
        if self.n_members == 1:
            return "what other random weights would change is in none of it"
        if shares.members > SMALL_SHARE:
            return "more members lower it, and so do more rows"
        return "more rows lower it, more members do not"

    def _relevance(self) -> list[str]:
        named, others = self.relevance[:MOST_NAMED], self.relevance[MOST_NAMED:]
        lines = [(_shortened(r.name), r.share, f"(sd {r.sd:.1%})") for r in named]
        if others:
            lines.append((f"{len(others)} more", sum(r.share for r in others), "together"))
        width = max(len(name) for name, *_ in lines)
        return [f"{name:<{width}} {share:6.1%}  {more}" for name, share, more in lines]

    def _warnings(self, findings: tuple[Finding, ...]) -> list[str]:
        if not findings:
            return ["none: all checks by left-out rows are green."]
        return [f"{MARKS[f.light]} {f.name}: {f.says} -> {f.remedy}" for f in findings]


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"


def _plain(value: Any) -> Any:
    """Lists and dicts of plain values."""
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
