"""The paper's tables, figures and hyper-parameters, each by one call."""

from __future__ import annotations

from typing import Any

from reproduction import figures, selection, tables
from reproduction.runs import Options, simulated_results
from reproduction.settings import TABLES


def table(name: str, options: Options | None = None) -> list[tables.Record]:
    """Simulate ``"table1"`` to ``"table4"``: a record for each number, with the paper's beside."""
    _known(name, TABLES)
    return tables.records(name, simulated_results([name], options or Options()))


def figure(name: str, options: Options | None = None) -> Any:
    """Simulate and draw ``"figure1"`` to ``"figure4"``: a matplotlib figure."""
    _known(name, figures.DRAWINGS)
    return figures.DRAWINGS[name](simulated_results([name], options or Options()))


def hyper_parameters(options: Options | None = None) -> list[selection.Choice]:
    """Choose neurons and ridge parameters as the paper did, over new data sets."""
    return selection.choices(options or Options())


def _known(name: str, names: Any) -> None:
    if name not in names:
        raise ValueError(f"name must be one of {', '.join(names)}, got {name!r}.")
