"""The paper's experiments: every table and every figure, with the paper's numbers beside.

Nothing here is needed to use the estimators. Tables need no further package, figures need
matplotlib, printing needs rich.
"""

from ulmus.experiments.reproduction import figure, hyper_parameters, table
from ulmus.experiments.runs import Options, Result, simulated
from ulmus.experiments.settings import FIGURES, STUDIES, TABLES, Study
from ulmus.experiments.tables import Record, published, records

__all__ = [
    "FIGURES",
    "STUDIES",
    "TABLES",
    "Options",
    "Record",
    "Result",
    "Study",
    "figure",
    "hyper_parameters",
    "published",
    "records",
    "simulated",
    "table",
]
