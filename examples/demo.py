"""Predict disease progression for diabetes patients, with error bars in closed form."""

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from ulmus import ELMEnsembleRegressor

console = Console()

X, y = load_diabetes(return_X_y=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=0)

model = ELMEnsembleRegressor(random_state=0).fit(X_train, y_train)
mean, sd = model.predict(X_test, return_std=True)
standard_error = np.sqrt(model.predict_var(X_test, component="model"))
lower, upper = mean - 1.96 * sd, mean + 1.96 * sd
inside = (lower <= y_test) & (y_test <= upper)

console.print(
    f"\n[bold]Disease progression after one year[/bold], predicted by {model.n_estimators} "
    f"networks\nof {model.coef_.shape[1]} random neurons, fitted to {len(y_train)} patients.\n"
    f"Ridge penalty {model.alpha_:.3g}, chosen by leave-one-out error.\n"
    f"Effective degrees of freedom {model.dof_:.1f}, "
    f"noise standard deviation {np.sqrt(np.mean(model.noise_variance_)):.1f}.\n"
)

patients = Table(
    title="Ten patients the model has not seen",
    caption="Standard error: how much the prediction would vary with other training\n"
    "patients' noise and other random neurons. 95% band: where a new patient's\n"
    "value should fall, individual variation included.",
)
columns = ("Patient", "Observed", "Predicted", "Standard error", "95% band", "Inside?")
for heading in columns:
    patients.add_column(heading, justify="right")
for i in range(10):
    patients.add_row(
        str(i + 1),
        f"{y_test[i]:.0f}",
        f"{mean[i]:.1f}",
        f"{standard_error[i]:.1f}",
        f"{lower[i]:.1f} to {upper[i]:.1f}",
        "yes" if inside[i] else "[red]no[/red]",
    )
console.print(patients)

components = model.variance_components(X_test)
share = np.mean(np.stack(components) / np.sum(components, axis=0), axis=1)
meaning = {
    "noise": "noise in the training data, averaged out over networks",
    "covariance": "noise in the training data, common to all networks",
    "weights": "random hidden weights, averaged out over networks",
}
decomposition = Table(
    title="Where the model's variance comes from",
    caption="Mean share over the test patients.\n"
    "More networks shrink the first and the last term, not the middle one.",
)
decomposition.add_column("Term")
decomposition.add_column("Source")
decomposition.add_column("Share", justify="right")
for name, part in zip(components._fields, share, strict=True):
    decomposition.add_row(name, meaning[name], f"{part:.1%}")
console.print(decomposition)

rmse = np.sqrt(np.mean((y_test - mean) ** 2))
rmse_of_mean = np.sqrt(np.mean((y_test - y_train.mean()) ** 2))
console.print(
    f"\nOn {len(y_test)} test patients the root mean squared error is {rmse:.1f};\n"
    f"it is {rmse_of_mean:.1f} if everyone is given the mean of the training patients.\n"
    f"The 95% band holds {inside.mean():.1%} of the observed values.\n"
)
