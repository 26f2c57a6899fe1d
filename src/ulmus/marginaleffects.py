r"""An adapter to marginaleffects, which wants a linear model: a design matrix and a covariance.

A fitted function is one: at any point it is its prediction plus a linear combination of a few
hundred components, whose coefficients are zero and have the covariance of the fit's errors
(``ulmus.core.directions``). The package differentiates by finite steps where it cannot do so
exactly, once for each coefficient; since all of them but the first are zero, a step costs one
column of the matrix.
"""

# marginaleffects has no type information, so its base class looks like Any.
# mypy: disallow-subclassing-any=False, disable-error-code="import-not-found,import-untyped"

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.core.directions import Directions, error_directions
from ulmus.estimators._base import BaseELM
from ulmus.estimators._parameters import checked_estimate

try:
    import polars as pl
    from marginaleffects.classes import ModelAbstract, ModelVault
    from marginaleffects.utils import ingest
except ImportError as error:
    raise ImportError(
        "ulmus.marginaleffects needs the package marginaleffects, which is not installed; run "
        "`pip install marginaleffects 'polars<2'`."
    ) from error

__all__ = ["adapted"]

# Their matrices hold the square of this many numbers, and take half a minute.
MOST_DIRECTIONS = 6000
# The finite step of marginaleffects at a coefficient of zero is 1e-10. In these units it is a
# thousandth of the largest standard deviation of a coefficient: rounding is then far below it,
# and so is the curvature of ratios and elasticities.
UNITS = 1e7


def adapted(estimator: Any, data: Any, features: Sequence[str] | None = None) -> ELMModel:
    """A fitted estimator as a model that the functions of marginaleffects accept.

    Parameters
    ----------
    estimator : fitted ELMRegressor or ELMEnsembleRegressor
        The estimator, of one output.
    data : DataFrame of pandas, polars or another library that exports Arrow
        The rows that marginaleffects averages over unless told otherwise, usually the training
        table. It has a column for each input, and may have others, for ``by`` and ``wts``.
    features : list of str, default=None
        Columns that are the inputs, in their order. By default those that the estimator was
        fitted with; after a fit to an array, all columns of ``data``.

    Returns
    -------
    model : ELMModel
        For ``predictions``, ``comparisons``, ``slopes``, and their averages and plots.

    Notes
    -----
    Estimates are those of ``predict``. Standard errors are exact for everything linear in
    predictions (averages, differences, slopes, linear hypotheses) and by the delta method for
    the rest: they are the square root of a'Ca, with the joint covariance C of the predictions,
    whose diagonal is ``predict_var(X, component="model")``. Where that estimate is negative,
    which needs very few members, ``predict_var`` replaces it, and here the standard error is
    NaN. ``vcov="S2"``, or another estimate that was computed in ``fit``, chooses the estimate.

    Intervals and p-values have Student's distribution with as many degrees of freedom as the
    residuals. They are for the mean of the estimator, ``target="expectation"``: its bias is not
    in them. The estimator's own intervals also count the degrees of freedom of its members.

    marginaleffects drops rows with a missing value in any column, and takes ``slopes`` over
    steps of ``eps=1e-4``: give it another ``eps`` where the inputs are much smaller or larger
    than one.

    Examples
    --------
    >>> from marginaleffects import avg_comparisons
    >>> from sklearn.datasets import load_diabetes
    >>> from ulmus import ELMEnsembleRegressor
    >>> from ulmus.marginaleffects import adapted
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> est = ELMEnsembleRegressor(5, 40, input_map=None, random_state=0).fit(X, y)
    >>> effect = avg_comparisons(adapted(est, X), variables={"bmi": [25, 30]})
    >>> effect.columns[:4]
    ['term', 'contrast', 'estimate', 'std_error']
    """
    if not isinstance(estimator, BaseELM):
        raise ValueError(
            "estimator must be a fitted ELMRegressor or ELMEnsembleRegressor, got "
            f"{type(estimator).__name__}; of a Pipeline ask ulmus.answers, which has averages, "
            "comparisons and slopes of its own."
        )
    check_is_fitted(estimator)
    outputs = estimator.fitted_.ensemble.n_outputs
    if outputs != 1:
        raise ValueError(
            f"estimator has {outputs} outputs, and marginaleffects asks about one; fit an "
            "estimator for each."
        )
    directions = error_directions(estimator.fitted_)
    if directions.n_directions > MOST_DIRECTIONS:
        raise ValueError(
            f"estimator has {directions.n_directions} directions in which it can err, and "
            f"marginaleffects takes a step along each; at most {MOST_DIRECTIONS} are affordable. "
            "Use fewer n_neurons or n_estimators, or a learned input_map."
        )
    table = _table(data)
    # Those given: marginaleffects adds the index of a pandas table as a column.
    columns = [str(name) for name in data.columns]
    return ELMModel(estimator, directions, table, _features(estimator, columns, features))


class ELMModel(ModelAbstract):
    """An estimator as marginaleffects sees it; made by :func:`adapted`.

    Parameters
    ----------
    estimator : fitted ELMRegressor or ELMEnsembleRegressor
        The estimator.
    directions : Directions
        Directions in which it can err.
    data : polars.DataFrame
        The rows that are used unless others are given.
    features : list of str
        Columns that are the inputs.
    """

    def __init__(
        self, estimator: Any, directions: Directions, data: pl.DataFrame, features: list[str]
    ) -> None:
        self._directions, self._features = directions, features
        self._covariances: dict[str, np.ndarray] = {}
        covariance = self._covariance(checked_estimate(None, estimator.fitted_))
        self._unit = UNITS * (np.sqrt(np.max(np.abs(covariance), initial=0.0)) or 1.0)
        coefficients = np.zeros(1 + directions.n_directions)
        coefficients[0] = 1.0
        # Any function in the place of a formula says that the columns are no terms of one.
        vault = ModelVault(
            coef=coefficients, formula=self.get_exog, modeldata=data, package="ulmus"
        )
        super().__init__(estimator, vault)

    @property
    def df_resid(self) -> float:
        """Degrees of freedom of the residuals."""
        fit = self._directions.fit
        return float(np.minimum(fit.n_rows - fit.gamma, fit.dependence_dof)[0])

    def find_variables(self) -> list[str]:
        """Names of the inputs."""
        return list(self._features)

    def find_predictors(self) -> list[str]:
        """Names of the inputs."""
        return list(self._features)

    def find_response(self) -> None:
        """None: the output needs no column."""

    def get_coefnames(self) -> np.ndarray:
        """Refused: the coefficients have no meaning of their own."""
        raise ValueError(
            "hypotheses(model) tests coefficients, and those of an ensemble of networks mean "
            "nothing one by one; give hypothesis=... to predictions, comparisons or slopes."
        )

    def get_autodiff_args(self) -> dict[str, str]:
        """How predictions follow from the design matrix: linearly."""
        return {"model_type": "linear"}

    def get_vcov(self, vcov: Any = True) -> np.ndarray | None:
        """Covariance of the coefficients: of the first estimate, or of the named one."""
        if vcov is None or vcov is False:
            return None
        name = checked_estimate(None if vcov is True else vcov, self.model.fitted_)
        # The first coefficient, that of the prediction itself, is not estimated.
        return np.pad(self._covariance(name) / self._unit**2, ((1, 0), (1, 0)))

    def get_exog(self, newdata: pl.DataFrame) -> np.ndarray:
        """Predictions, and components along the directions, one column each."""
        X = newdata.select(self._features).to_pandas()
        if not hasattr(self.model, "feature_names_in_"):
            X = X.to_numpy()
        X = self.model._checked_points(X)
        prediction = self._directions.fit.mean(X).T
        components = self._directions.columns(X) * self._unit
        return np.asfortranarray(np.hstack([prediction, components]))

    def get_predict(self, params: np.ndarray, newdata: np.ndarray) -> pl.DataFrame:
        """Predictions for rows of the design matrix, with other coefficients than its own."""
        used = np.flatnonzero(params)
        estimate = newdata[:, used] @ params[used]
        rows = pl.Series("rowid", np.arange(len(estimate)), dtype=pl.Int32)
        return pl.DataFrame([rows, pl.Series("estimate", estimate)])

    def _covariance(self, estimate: str) -> np.ndarray:
        if estimate not in self._covariances:
            self._covariances[estimate] = self._directions.covariance(estimate)
        return self._covariances[estimate]


def _table(data: Any) -> pl.DataFrame:
    if not hasattr(data, "columns"):
        raise ValueError(
            f"data must be a data frame, got {type(data).__name__}; give one with a column for "
            "each input, such as pandas.DataFrame(X, columns=[...])."
        )
    table = ingest(data)
    # marginaleffects wants categories with a fixed list of levels.
    levels = {name: table[name].unique().cast(pl.String) for name in _categories(table)}
    kinds = {name: pl.Enum(values.drop_nulls().sort()) for name, values in levels.items()}
    return table.with_columns(pl.col(name).cast(kind) for name, kind in kinds.items())


def _categories(table: pl.DataFrame) -> list[str]:
    return [name for name, kind in table.schema.items() if kind == pl.Categorical]


def _features(estimator: Any, columns: list[str], features: Sequence[str] | None) -> list[str]:
    """Names of the input columns of the data, in the estimator's order."""
    names = getattr(estimator, "feature_names_in_", columns)
    chosen = list(names if features is None else features)
    if len(chosen) != estimator.n_features_in_:
        raise ValueError(
            f"features={chosen} are {len(chosen)} columns, and the estimator was fitted to "
            f"{estimator.n_features_in_}; name one for each input, in order."
        )
    missing = [name for name in chosen if name not in columns]
    if missing:
        raise ValueError(
            f"data has no columns {missing}; give a table with a column for each of the inputs "
            f"{chosen}."
        )
    return chosen
