"""Public attributes of a fitted estimator, computed from its ``Fit``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.training_rows import TrainingRows
from ulmus.core.query.leave_out import loo_residuals
from ulmus.estimators._threads import threaded
from ulmus.intervals.response import leave_one_out_means, observed_outputs
from ulmus.tables.frames import default_feature_names


class FittedAttributes:
    """Attributes of a fitted estimator; those of length n require the training rows."""

    fitted_: Fit
    n_features_in_: int

    @property
    def alpha_(self) -> Any:
        """Ridge parameter, or one for each output."""
        return self._one_or_all(self._fit.ensemble.per_output(self._of_smoothers("alpha")))

    @property
    def dof_(self) -> Any:
        """Effective degrees of freedom, mean of tr(2P - P^2) over members, or one per output."""
        return self._one_or_all(self._fit.ensemble.per_output(self._of_smoothers("gamma")))

    @property
    def rank_(self) -> np.ndarray:
        """Numerical rank of each member, intercept included."""
        ranks = [part.smoother.rank for part in self._fit.ensemble.regressions]
        return np.max(ranks, axis=0)

    @property
    def noise_variance_(self) -> Any:
        """Noise variance of a row of weight 1, or one for each output."""
        return self._one_or_all(self._fit.sigma2)

    @property
    def noise_covariance_(self) -> Any:
        """Estimated noise covariance, or one for each output; only with noise of ulmus.noise."""
        estimates = self._fit.noise_covariance
        if estimates is None:
            text = "noise_covariance_ requires a fit with noise of ulmus.noise, such as AR1()."
            raise AttributeError(text)
        return estimates[0] if self._fit.one_output else list(estimates)

    @property
    def coef_(self) -> np.ndarray:
        """Output weights, (M, N) or (M, n_outputs, N)."""
        ensemble = self._fit.ensemble
        coef = ensemble.coefficients[:, int(ensemble.layer.constant) :, :].transpose(0, 2, 1)
        return self._shaped(coef)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, (M,) or (M, n_outputs)."""
        ensemble = self._fit.ensemble
        constant = ensemble.coefficients[:, 0, :] + ensemble.shift
        return self._shaped(constant if ensemble.layer.constant else np.zeros_like(constant))

    @property
    def hidden_weights_(self) -> np.ndarray:
        """Hidden weights, (M, d', N), for the inputs of the layer, multiplied by the map."""
        return to_numpy(self._fit.ensemble.layer.W).transpose(0, 2, 1)

    @property
    def hidden_biases_(self) -> np.ndarray:
        """Hidden biases, (M, N)."""
        return to_numpy(self._fit.ensemble.layer.b)

    @property
    def input_map_(self) -> np.ndarray | None:
        """Map of the layer's inputs, (d', d'), or None without one."""
        return None if self._fit.input_map is None else self._fit.input_map.matrix.copy()

    @property
    def feature_relevance_(self) -> np.ndarray:
        """Share of each feature in the variation of the prediction, (n_features,).

        The total-effect sensitivity index (Jansen, 1999): half the mean squared change of the
        prediction when the value of the feature is replaced by that of another row, divided by the
        sum over features. It is computed with the probe networks of the learned map.
        """
        return self._relevance(0)

    @property
    def feature_relevance_std_(self) -> np.ndarray:
        """Standard deviation of ``feature_relevance_``, from the Hessian at the learned map."""
        return self._relevance(1)

    def _relevance(self, part: int) -> np.ndarray:
        """Relevance of the user's columns, or its standard deviation, (n_features,)."""
        # Imported here, because it loads parts of scikit-learn that a fit does not need.
        from ulmus.diagnostics.relevance import grouped_relevance

        schema = vars(self).get("columns_")
        groups: Sequence[int] = range(self.n_features_in_)
        if schema is not None:
            groups = self._column_numbers(schema.origins)
        found = grouped_relevance(self._fit, groups, self.n_features_in_)
        if found is None:
            raise AttributeError(
                "feature_relevance_ requires a learned input map, and this fit has none: use "
                "input_map='auto', a named activation, at least 30 rows and at most 1000 inputs, "
                "and inputs and outputs that vary."
            )
        return found[part]

    def _column_numbers(self, names: Sequence[str]) -> list[int]:
        """Numbers of some columns among those of the training table."""
        default = default_feature_names(self.n_features_in_)
        position = {str(n): j for j, n in enumerate(getattr(self, "feature_names_in_", default))}
        return [position[name] for name in names]

    @property
    def variance_estimates_(self) -> tuple[str, ...]:
        """Computed variance estimates, the default first."""
        return self._fit.estimates

    @property
    def variance_tolerance_(self) -> float:
        """Largest relative error of standard errors by forms of low rank; zero for exact ones."""
        return self._fit.variance_tolerance

    @property
    @threaded
    def undersmoothing_gap_(self) -> float:
        """Largest distance between the prediction and an undersmoothed fit, in standard errors.

        Over at most 500 training rows; NaN where there are no intervals for the function.
        """
        return self._fit.undersmoothing_gap

    @property
    def leverage_(self) -> np.ndarray:
        """Mean leverage of each training row, (n,) or (n, n_outputs)."""
        return self._shaped(self._rows.with_copies(self._rows.leverage).T)

    @property
    def target_transform_(self) -> str | list[str]:
        """Transformation of the target, or distribution of counts; a list for several outputs."""
        families = self._fit.response
        if families is None:
            names = ["identity"] * self._fit.ensemble.n_outputs
        else:
            names = [family.name for family in families]
        return names[0] if self._fit.one_output else names

    @property
    def loo_residuals_(self) -> np.ndarray:
        """Exact leave-one-out residuals."""
        rows = self._rows
        if self._fit.response is not None:
            return self._shaped(observed_outputs(self._fit).T) - self.loo_predictions_
        residuals = loo_residuals(self._fit, rows)
        return self._shaped(rows.with_copies(residuals).T)

    @property
    def loo_predictions_(self) -> np.ndarray:
        """Exact leave-one-out predictions."""
        rows = self._rows
        if self._fit.response is not None:
            return self._shaped(rows.with_copies(leave_one_out_means(self._fit)).T)
        return self._shaped(rows.data.y.T) - self.loo_residuals_

    @property
    def _fit(self) -> Fit:
        if "fitted_" not in vars(self):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet; call fit first.")
        return self.fitted_

    @property
    def _rows(self) -> TrainingRows:
        if self._fit.rows is None:
            text = "attributes of the training rows require a fit in memory without compress()."
            raise AttributeError(text)
        return self._fit.rows

    def _of_smoothers(self, name: str) -> list[float]:
        return [getattr(part.smoother, name) for part in self._fit.ensemble.regressions]

    def _one_or_all(self, values: np.ndarray) -> Any:
        """A number for one-dimensional y, else an array with one number for each output."""
        return float(values[0]) if self._fit.one_output else values

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """Values without the axis of outputs for one-dimensional y."""
        return values[:, 0] if self._fit.one_output else values
