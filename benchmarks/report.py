"""Rows of figures with their targets, and how the benchmarks print them."""

import argparse
import datetime
import os
import platform
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

FORMATS = {"x": "{:.1f} x", "ratio": "{:.2f}", "MB": "{:.0f} MB", "share": "{:.0%}"}
FORMATS |= {"Gflop/s": "{:.1f} Gflop/s", "difference": "{:.1e}"}
FORMATS |= {"rate": "{:.3f}", "times": "{:.0f} x", "s": "{:.2f} s"}
BOUNDS = {">=": np.greater_equal, "<=": np.less_equal, "<": np.less}
TITLES = ("measure", "figure", "target", "reached", "from")
LINE = "{:<66} {:>12} {:>9} {:>7}  {}"


@dataclass(frozen=True)
class Row:
    """One figure; without a target it is a reference for the others."""

    measure: str
    value: float
    unit: str
    source: str
    bound: str = ""
    target: float | None = None

    def cells(self) -> tuple[str, ...]:
        """Texts for ``TITLES``; a figure that could not be measured, nan, reaches nothing."""
        show = FORMATS[self.unit]
        if self.target is None:
            return self.measure, show.format(self.value), "-", "-", self.source
        target = f"{self.bound} {show.replace('.1f', '.0f').format(self.target)}"
        reached = "yes" if BOUNDS[self.bound](self.value, self.target) else "NO"
        return self.measure, show.format(self.value), target, reached, self.source


def machine() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return f"{next(names, platform.processor() or platform.machine())}, {os.cpu_count()} cores"


def parser(doc: str, names: Iterable[str]) -> argparse.ArgumentParser:
    """Options that every benchmark has."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    options.add_argument("--only", choices=list(names), help="run one part")
    options.add_argument("--markdown", action="store_true", help="print a Markdown table")
    return options


class Printer:
    """Prints cells in columns, or as a Markdown table with command, machine and date.

    Parameters
    ----------
    script : str
        Name of the benchmark's file.
    options : argparse.Namespace
        What ``parser`` has read.
    """

    def __init__(self, script: str, options: argparse.Namespace) -> None:
        self.markdown = options.markdown
        only = f" --only {options.only}" if options.only else ""
        self.context = (f"`benchmarks/{script}{only}`", machine(), str(datetime.date.today()))

    def titles(self) -> None:
        self.cells(TITLES, ("command", "machine", "date"))
        if self.markdown:
            self.cells(("---",) * len(TITLES), ("---",) * len(self.context))

    def row(self, row: Row) -> None:
        self.cells(row.cells(), self.context)

    def cells(self, cells: tuple[str, ...], first: tuple[str, ...]) -> None:
        line = f"| {' | '.join(first + cells)} |" if self.markdown else LINE.format(*cells)
        print(line, flush=True)

    def text(self, *lines: str) -> None:
        """Print text outside the Markdown table."""
        if not self.markdown:
            print(*lines, sep="\n", flush=True)


def print_parts(
    script: str, options: argparse.Namespace, header: Iterable[str], parts: Iterable[Callable]
) -> None:
    """Print the rows of the first part, the reference for the others, and of the selected ones."""
    printer = Printer(script, options)
    printer.text(*header)
    printer.titles()
    for i, part in enumerate(parts):
        if i == 0 or options.only in (None, part.__name__):
            for row in part():
                printer.row(row)
    printer.text(f"\nload at the end {os.getloadavg()[0]:.1f}")


def simulate(script: str, doc: str, parts: dict[str, Callable]) -> None:
    """Command line of simulations: each part yields lines, and rows that are printed after them."""
    options = parser(doc, parts)
    options.add_argument("--replications", type=int, help="of each simulation")
    options.add_argument("--jobs", type=int, default=2, help="processes")
    chosen = options.parse_args()
    threadpool_limits(1)
    printer = Printer(script, chosen)
    printer.text(", ".join(printer.context[1:]))
    if chosen.markdown:
        printer.titles()
    for name in [chosen.only] if chosen.only else parts:
        start, rows = time.perf_counter(), []
        for item in parts[name](chosen.jobs, chosen.replications):
            if isinstance(item, Row):
                rows.append(item)
            else:
                printer.text(item)
        if not chosen.markdown:
            print()
            printer.titles()
        for row in rows:
            printer.row(row)
        printer.text(f"({time.perf_counter() - start:.0f} s)\n")
