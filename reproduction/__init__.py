"""The simulations of the paper: every table and figure, compared with the published numbers.

Nothing here is needed to use the estimators. Tables need no further package, figures need
matplotlib, printing needs rich.

Activations, triangular factors and their inverses are those of ``ulmus.core``. What is not
shared is the order of the work: a study fits tens of thousands of ensembles that live only until
their predictions are summed, so that members of many ensembles are factorised side by side
(``members.py``, by two Cholesky factors of N x N products instead of a QR factorisation of n x N
rows) and every form is summed over members as they come (``sums.py``), where a fit would keep
coordinates for later inference. Both ways agree to 1e-7 on the same weights,
which the tests assert.
"""

from reproduction.reproduction import figure, hyper_parameters, table
from reproduction.runs import Options, Result, simulated
from reproduction.settings import FIGURES, STUDIES, TABLES, Study
from reproduction.tables import Record, published, records

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
