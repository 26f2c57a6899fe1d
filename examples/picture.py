"""The figure of the README: prediction, confidence band and prediction band.

``python examples/picture.py [FILE]``, by default docs/picture.png.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from ulmus import ELMEnsembleRegressor

rng = np.random.default_rng(7)
x = np.sort(rng.uniform(0, 10, 250))
truth = lambda t: np.sin(1.5 * t) + 0.15 * t  # noqa: E731
y = truth(x) + (0.08 + 0.06 * x) * rng.standard_normal(len(x))

model = ELMEnsembleRegressor(random_state=0).fit(x[:, None], y)
grid = np.linspace(0, 10, 400)
function = model.predict_interval(grid[:, None], kind="confidence")
observation = model.predict_interval(grid[:, None])

figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
axes.fill_between(grid, *observation.T, color="#d7e8f5", label="95 % for a new observation")
axes.fill_between(grid, *function.T, color="#7fb6dd", label="95 % for the true function")
axes.plot(grid, model.predict(grid[:, None]), color="#08519c", label="prediction")
axes.plot(grid, truth(grid), "--", color="#d95f02", linewidth=1.2, label="true function")
axes.plot(x, y, ".", color="#444444", markersize=3, label="250 rows")
axes.set(xlabel="x", ylabel="y", xlim=(0, 10))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper left")
axes.set_ylim(top=axes.get_ylim()[1] + 0.8)
target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/picture.png")
figure.savefig(target, dpi=110)
print(f"wrote {target.name}")
