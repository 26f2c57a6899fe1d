"""Settings that reproduce the model, and citations."""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ulmus.core.response import Counts, PointMass
from ulmus.diagnostics.checks.residual_correlation import correlation_text
from ulmus.diagnostics.target_text import family_of, fitted_target, link_name, scale_name
from ulmus.intervals.response import observed_outputs
from ulmus.noise.structures import AXES, NOISE_STRUCTURES, CorrelatedNoise
from ulmus.report.columns import TableColumn
from ulmus.report.numbers import number
from ulmus.report.report_input import LEAVE_ONE_OUT, ReportInput
from ulmus.report.source import TableSource, fit_arguments, training_code
from ulmus.version import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "matplotlib")

SOFTWARE = (
    "The ulmus developers. ulmus: regression by ensembles of Extreme Learning Machines with "
    "closed-form error bars. Version {version}, BSD-3-Clause licence."
)
ARTICLE = (
    "F. Guignard, F. Amato and M. Kanevski (2021). Uncertainty Quantification in Extreme Learning "
    "Machine: Analytical Developments, Variance Estimates and Confidence Intervals. "
    "Neurocomputing 456, 436-449."
)
DOI = "10.1016/j.neucom.2021.04.027"


@dataclass(frozen=True)
class Settings:
    """How the model was fitted."""

    parameters: tuple[tuple[str, str, bool], ...]  # name, value, whether it is the default
    chosen: tuple[tuple[str, str], ...]  # name, value of what the fit selected or estimated
    versions: tuple[tuple[str, str], ...]  # name, version of the software
    code: str  # python code that refits the model
    digest: str  # SHA-256 of the table and the observations
    date: str  # date of the report

    @property
    def random_state(self) -> str:
        """The parameter ``random_state`` as code."""
        return next(value for name, value, _ in self.parameters if name == "random_state")


def settings(report_input: ReportInput, target: str, source: TableSource | None) -> Settings:
    """Settings of a fitted model."""
    model, fit = report_input.model, report_input.fit
    defaults = type(model)().get_params(deep=False)
    parameters = tuple(
        (name, repr(value), repr(value) == repr(defaults[name]))
        for name, value in model.get_params(deep=False).items()
    )
    noise = "constant" if fit.noise_model is None else "a function of the inputs"
    if fit.noise_covariance is not None:
        noise = correlation_text(fit.noise_covariance[0])
    chosen = (
        *_target_entries(report_input),
        ("members", number(fit.ensemble.n_members)),
        ("hidden units per member", number(fit.ensemble.layer.W.shape[1])),
        ("ridge parameter alpha", number(np.ravel(model.alpha_)[0])),
        ("effective degrees of freedom", number(fit.gamma[0])),
        *_noise_entries(report_input, noise),
    )
    versions = (
        ("ulmus", __version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in PACKAGES),
    )
    date = datetime.now(UTC).date().isoformat()
    code, digest = _code(report_input, target, source), data_digest(report_input)
    return Settings(parameters, chosen, versions, code, digest, date)


def _target_entries(report_input: ReportInput) -> tuple[tuple[str, str], ...]:
    """What was fitted, where it is not the target itself."""
    fit = report_input.fit
    family = family_of(fit, 0)
    if family is None:
        return ()
    y = None if fit.rows is None else observed_outputs(fit)[0, fit.rows.data.used]
    return (("fitted target", fitted_target(family, y)),)


def _noise_entries(report_input: ReportInput, noise: str) -> tuple[tuple[str, str], ...]:
    """The noise, on the scale of the regression; for counts their dispersion."""
    fit = report_input.fit
    family = family_of(fit, 0)
    if isinstance(family, Counts):
        return (("dispersion", number(family.dispersion, 2)),)
    if isinstance(family, PointMass):
        return ()
    scale = "" if scale_name(family) is None else f" of {link_name(family)}"
    at_weight = ", weight 1" if fit.weights_differ else ""
    return (
        ("noise variance or covariance", noise),
        (f"noise standard deviation{scale}{at_weight}", number(np.sqrt(fit.sigma2[0]))),
    )


def data_digest(report_input: ReportInput) -> str:
    """SHA-256 of pandas' hashes of the rows of the table, followed by the observations.

    Numbers are 64-bit floats, dates are days, and other values are texts, so that it does not
    depend on how the table was read.
    """
    import pandas as pd

    columns = (TableColumn.of(report_input, j) for j in range(len(report_input.names)))
    typed = {j: _hashed_values(one) for j, one in enumerate(columns)}
    hashes = pd.util.hash_pandas_object(pd.DataFrame(typed), index=False).to_numpy()
    digest = hashlib.sha256(hashes.astype("<u8").tobytes())
    if report_input.y is not None:
        digest.update(report_input.y.astype("<f8").tobytes())
    return digest.hexdigest()


def _hashed_values(column: TableColumn) -> Any:
    """Cells of a column as numbers or texts."""
    if column.numbers is None:
        return column.cells.astype(str).to_numpy()
    values = column.cells.to_numpy(dtype=float)
    return np.where(np.isnan(values), np.nan, values)  # one of the patterns of bits that are NaN


def _code(report_input: ReportInput, target: str, source: TableSource | None) -> str:
    """Code that reads the table, refits the model and writes the report."""
    # scikit-learn shortens long texts by default.
    text = report_input.outer.__repr__(N_CHAR_MAX=100_000)
    unknown, source = source is None, source or TableSource("table.csv")
    frame = report_input.takes_frame
    lines = [
        "import pandas as pd",
        *_imports(report_input.outer),
        "from ulmus.report import write_report",
        "",
        *(["# table.csv: the training rows"] if unknown else []),
        training_code(source, report_input.names, target, as_frame=frame),
        f"model = {text}",
        f"model.fit(X, y{_location_arguments(report_input, source)})",
    ]
    if report_input.evaluated_on == LEAVE_ONE_OUT:
        lines.append(f'write_report(model, X, y, "report.html", target={target!r})')
    else:
        lines += [
            "# new.csv: the rows of this report",
            f"new = {TableSource('new.csv').reading}",
            f"X_new, y_new = new[columns]{'' if frame else '.to_numpy()'}, new[{target!r}]",
            f'write_report(model, X_new, y_new, "report.html", target={target!r})',
        ]
    return "\n".join(lines)


def _location_arguments(report_input: ReportInput, source: TableSource) -> str:
    """Arguments of fit: weights, and the locations of rows unless the noise names their columns."""
    noise, rows = report_input.model.noise, report_input.fit.rows
    if not isinstance(noise, CorrelatedNoise) or rows is None:
        return fit_arguments(replace(source, locations={}))
    names = noise.names()
    passed = [a for a in AXES if getattr(rows.locations, a) is not None and names.get(a) is None]
    columns = {axis: source.locations.get(axis, axis) for axis in passed}
    return fit_arguments(replace(source, locations=columns))


def _imports(model: Any) -> list[str]:
    """Lines that import the class of a model, of all estimators within it, and of their noise."""
    values = model.get_params(deep=True).values()
    estimators = [*(value for value in values if isinstance(value, BaseEstimator)), model]
    within = {type(value) for value in estimators}
    lines = {f"from {_public(each.__module__)} import {each.__name__}" for each in within}
    shown = " ".join(repr(getattr(value, "noise", "")) for value in estimators)
    noise = [name for name in NOISE_STRUCTURES if f"{name}(" in shown]
    return sorted(lines | ({f"from ulmus.noise import {', '.join(noise)}"} if noise else set()))


def _public(module: str) -> str:
    """The package that a class is imported from."""
    parts = module.split(".")
    if parts[0] == "ulmus":
        return "ulmus"
    private = [i for i, part in enumerate(parts) if part.startswith("_") and i]
    return ".".join(parts[: private[0]] if private else parts)
