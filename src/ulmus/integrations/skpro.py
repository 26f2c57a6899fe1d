"""An adapter to skpro: frames of quantiles and intervals, and distributions."""

# skpro has no type information, so its base class looks like Any.
# mypy: disallow-subclassing-any=False, disable-error-code="import-not-found,import-untyped"

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

try:
    import pandas as pd
    from skpro.distributions.empirical import Empirical
    from skpro.distributions.normal import Normal
    from skpro.regression.base import BaseProbaRegressor
    from skpro.utils.sklearn import prep_skl_df
except ImportError as error:
    raise ImportError("ulmus.skpro needs the package skpro; run `pip install skpro`.") from error

__all__ = ["ELMProbaRegressor"]

# Quantiles of equal probability that stand for a distribution that is not normal.
QUANTILES = 200


class ELMProbaRegressor(BaseProbaRegressor):
    r"""An ulmus estimator as a probabilistic regressor of skpro.

    skpro's own adapter for scikit-learn, ``SklearnProbaReg``, works as well, but uses only the
    mean and the standard deviation: its intervals and quantiles are those of a normal
    distribution. Here they are the estimator's own, from leave-one-out residuals.

    Parameters
    ----------
    estimator : ELMRegressor or ELMEnsembleRegressor
        The estimator; it is cloned before it is fitted.
    method : str, default="auto"
        Method of prediction intervals, as in ``estimator.predict_interval``.

    Attributes
    ----------
    estimator_ : ELMRegressor or ELMEnsembleRegressor
        The fitted clone.

    Notes
    -----
    ===================== ==================================================================
    method of skpro       comes from
    ===================== ==================================================================
    ``predict``           ``predict``
    ``predict_var``       ``predict_var``, model and noise together
    ``predict_proba``     a normal distribution with that mean and variance; of a transformed,
                          bounded or counted target, 200 quantiles of ``predict_dist``
    ``predict_interval``  ``predict_interval``, conformal unless ``method="gaussian"``
    ``predict_quantiles`` ``predict_quantiles``, from scaled leave-one-out residuals
    ===================== ==================================================================

    Only a normal distribution would make the ends of an interval of coverage c equal to the
    quantiles at :math:`(1 \pm c) / 2`; here they are close.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.integrations.skpro import ELMProbaRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = ELMProbaRegressor(ELMEnsembleRegressor(random_state=0)).fit(X, y.to_frame())
    >>> model.predict_interval(X.head(3), coverage=0.9).columns.to_list()
    [('target', 0.9, 'lower'), ('target', 0.9, 'upper')]
    >>> model.predict_proba(X.head(3)).shape
    (3, 1)
    """

    _tags: ClassVar[dict[str, Any]] = {
        "capability:multioutput": True,
        "capability:missing": False,
        "X_inner_mtype": "pd_DataFrame_Table",
        "y_inner_mtype": "pd_DataFrame_Table",
    }

    def __init__(self, estimator: Any, method: str = "auto") -> None:
        self.estimator = estimator
        self.method = method
        super().__init__()

    def _fit(self, X: pd.DataFrame, y: pd.DataFrame) -> Self:
        outputs = y.to_numpy()
        outputs = outputs[:, 0] if outputs.shape[1] == 1 else outputs
        self.estimator_ = clone(self.estimator).fit(_named(X), outputs)
        return self

    def _predict(self, X: pd.DataFrame) -> pd.DataFrame:
        return self._frame(self.estimator_.predict(_named(X)), X, "predict")

    def _predict_var(self, X: pd.DataFrame) -> pd.DataFrame:
        return self._frame(self.estimator_.predict_var(_named(X)), X, "predict_var")

    def _predict_proba(self, X: pd.DataFrame) -> Any:
        if self.estimator_.fitted_.response is not None:
            return self._quantiles_as_sample(X)
        mean, sd = self.estimator_.predict(_named(X), return_std=True)
        mu, sigma = (self._frame(values, X, "predict") for values in (mean, sd))
        return Normal(mu=mu, sigma=sigma, index=X.index, columns=mu.columns)

    def _quantiles_as_sample(self, X: pd.DataFrame) -> Empirical:
        """Quantiles of equal probability of each row, as an empirical distribution."""
        levels = (np.arange(QUANTILES) + 0.5) / QUANTILES
        distribution = self.estimator_.predict_dist(_named(X))
        values = distribution.ppf(levels.reshape(-1, *(1 for _ in distribution.shape)))
        index = pd.MultiIndex.from_product([range(QUANTILES), X.index])
        columns = self._get_columns(method="predict")
        sample = pd.DataFrame(values.reshape(len(index), -1), index=index, columns=columns)
        return Empirical(sample, index=X.index, columns=columns)

    def _predict_interval(self, X: pd.DataFrame, coverage: list[float]) -> pd.DataFrame:
        intervals = self.estimator_.predict_interval(_named(X), coverage, method=self.method)
        # Both ends of a level side by side, where ulmus has all lower ends first.
        values = np.swapaxes(intervals, -1, -2)
        return self._frame(values, X, "predict_interval", coverage=coverage)

    def _predict_quantiles(self, X: pd.DataFrame, alpha: list[float]) -> pd.DataFrame:
        quantiles = self.estimator_.predict_quantiles(_named(X), alpha)
        return self._frame(quantiles, X, "predict_quantiles", alpha=alpha)

    def _frame(
        self, values: np.ndarray, X: pd.DataFrame, method: str, **levels: list[float]
    ) -> pd.DataFrame:
        """Frame with the rows of X and the columns that skpro gives to a method's result."""
        columns = self._get_columns(method=method, **levels)
        return pd.DataFrame(values.reshape(len(X), -1), index=X.index, columns=columns)

    @classmethod
    def get_test_params(cls, parameter_set: str = "default") -> list[dict[str, Any]]:
        """Parameters of the instances that skpro's own checks make.

        Parameters
        ----------
        parameter_set : str, default="default"
            Not used.

        Returns
        -------
        parameters : list of dict
            Arguments of the constructor.
        """
        from ulmus.estimators import ELMEnsembleRegressor, ELMRegressor

        quick: dict[str, Any] = {"input_map": None, "expand_inputs": None, "random_state": 0}
        return [
            {"estimator": ELMEnsembleRegressor(3, 10, **quick)},
            {"estimator": ELMRegressor(10, **quick), "method": "gaussian"},
        ]


def _named(X: pd.DataFrame) -> pd.DataFrame:
    """The frame with column names that scikit-learn accepts."""
    return prep_skl_df(X, copy_df=True)
