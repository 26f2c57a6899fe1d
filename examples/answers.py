"""Ask a fitted function: averages, differences, slopes and curves, each with an error bar."""

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes

from ulmus import ELMEnsembleRegressor

console = Console()
COLUMNS = ("estimate", "std_error", "p_value", "conf_low", "conf_high")


def shown(title, frame, *labels):
    """Print some columns of an answer."""
    table = Table(title=title, title_justify="left")
    for name in (*labels, *COLUMNS):
        table.add_column(name, justify="left" if name in labels else "right")
    for _, row in frame.iterrows():
        cells = [f"{row[name]:.3g}" for name in COLUMNS]
        table.add_row(*(str(row[name]) for name in labels), *cells)
    console.print(table)


X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
model = ELMEnsembleRegressor(random_state=0).fit(X, y)
group = np.where(X.age < 50, "below 50", "50 and older")

shown("Mean progression by age", model.average(X, by=group), "by")
difference = model.average(X, by=group, hypothesis="pairwise")
shown("Do the groups differ?", difference, "term")
shown("What if the body mass index were 30 instead of 25?", model.compare(X, {"bmi": (25, 30)}))
shown("For each unit of these, on average", model.slope(X, ["bmi", "bp", "s5"]), "term")

curve = model.partial_dependence(X, "bmi", grid=[20, 25, 30, 35], simultaneous=True)
shown("Along the body mass index, a band for all four", curve, "bmi")

sick = model.exceedance(X, 250)
console.print(f"Patients who exceed 250 with probability over one half: {np.sum(sick > 0.5)}\n")

# Errors at different patients are correlated: they come from the same fit.
right = model.average(X).std_error[0]
each = model.predict_var(X, component="model")
console.print(
    f"Standard error of the mean over {len(X)} patients: {right:.2f}.\n"
    f"If their errors were independent it would be {np.sqrt(each.sum()) / len(X):.2f}, "
    f"and {right * len(X) / np.sqrt(each.sum()):.1f} times too small."
)
