"""The methods ``fit``, ``fit_blocks`` and ``partial_fit``: each validates and builds a ``Fit``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from ulmus.core.data.copies import copied_rows, copies_message
from ulmus.core.fit.build import build, update
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer import MapSearch
from ulmus.core.fit.training_rows import FULL_LEVERAGE
from ulmus.core.noise_covariance.locations import Locations
from ulmus.core.noise_covariance.reml import FEWEST_LEFT
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.estimators import _validation as check
from ulmus.estimators._column_blocks import encoded_blocks
from ulmus.estimators._columns import set_features, training_table
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._importance import tree_importances
from ulmus.estimators._parameters import fit_spec, needs_residuals, require_same_layer
from ulmus.estimators._threads import threaded
from ulmus.exceptions import (
    CorrelatedErrorsWarning,
    DegenerateFitWarning,
    DuplicateRowsWarning,
    NeedsTwoPassesError,
    warn,
)
from ulmus.messages import Message, Setting, named
from ulmus.noise.assumptions import noise_assumption
from ulmus.noise.locations import default_block_ids, location_columns_of
from ulmus.noise.suggestions import CORRELATED_NOISE
from ulmus.progress import detail
from ulmus.tables.blocks import BlockSource, block_reader, checked_blocks
from ulmus.tables.schema import Schema


def _one_pass_suffices(estimator: Any) -> bool:
    """Whether no more than one pass over the rows is needed."""
    return not needs_residuals(estimator.noise, estimator._variance_choice())


# Attributes that describe the columns of the training table.
COLUMN_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "columns_")


def column_attributes(estimator: Any) -> dict[str, Any]:
    """Those of an estimator that are set."""
    return {k: v for k, v in vars(estimator).items() if k in COLUMN_ATTRIBUTES}


class FitMethods:
    """Methods that fit an estimator; a fit that fails leaves the previous one usable."""

    @shared_docs
    @threaded
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        time: Any = None,
        coords: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the input map, the ridge parameter and the output weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs. Torch tensors and CuPy arrays are used on their device.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Training outputs.
        sample_weight : array-like of shape (n_samples,), default=None
            Inverse noise variance of each row, up to a constant factor. Rows of weight zero are
            excluded. Predictions take the weights of new observations, which otherwise have the
            mean weight of the others.
        time : array-like of shape (n_samples,), default=None
            Times of the rows, numbers or dates, for autocorrelated noise (:mod:`ulmus.noise`); by
            default rows are equally spaced.
        coords : array-like of shape (n_samples, n_coords), default=None
            Coordinates of the rows, for spatially correlated noise.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows: clusters, or several series.

        Returns
        -------
        self : object
            The fitted estimator. A fit that fails leaves the previous one usable.

        Notes
        -----
        Rows that are exact copies of others (in inputs, outputs, and times, coordinates and groups)
        count once, with a warning, unless they may coincide by chance (:doc:`/guide/calibration`).

        Examples
        --------
        {sine_model}
        >>> model.alpha_ > 0, round(model.noise_variance_, 1)  # the true value is 0.1
        (True, 0.1)
        """
        locations = {"time": time, "coords": coords, "groups": groups}
        return self._fit_table(X, y, sample_weight, locations)

    def _fit_table(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        locations: dict[str, Any],
        *,
        learn_columns: bool | None = None,
    ) -> Self:
        """Fit a table; with ``learn_columns``, a table of complete numbers has a schema too."""
        fresh = self._unfitted()
        table = training_table(fresh, X, y, sample_weight, locations, learn_columns=learn_columns)
        rows, one_output = table.checked(fresh)
        fresh._set_columns(table.source, table.schema)
        spec = fit_spec(fresh, rows.X.shape[1], len(rows.y), one_output, schema=table.schema)
        covariance = check.checked_covariance_spec(
            fresh, rows.n_rows, table.column, table.locations
        )
        rows = rows.own_copy()
        columns = [] if covariance is None else location_columns_of(covariance)
        rows = rows.counted_once(copied_rows(rows, columns))
        if covariance is not None:
            rows = replace(rows, block_ids=default_block_ids(covariance, rows.used))
        fit = build(rows, spec, covariance, fresh._map_search)
        return self._adopt(fresh, fit, covariance)

    @shared_docs
    @threaded
    def fit_blocks(self, blocks: Any, *, time: Any = None, groups: Any = None) -> Self:
        """Fit a table that comes in blocks of rows and need not fit into memory.

        Parameters
        ----------
        blocks : re-iterable of (X, y) or (X, y, sample_weight)
            A list of arrays (or of slices of a ``numpy.memmap``), a function that returns a
            fresh iterator, or :func:`ulmus.tables.from_arrow`. It is read once for the means and
            ranges of the inputs, once for the sample of the input map, once for homoskedastic and
            twice for heteroskedastic estimates, once more for ``alpha="loo"``, and four times more
            for the noise model unless ``noise="homoskedastic"``.

            Correlated noise may be ``AR1``, ``NeweyWest`` with its default kernel, or
            ``Clustered`` of :mod:`ulmus.noise`. Rows are equally spaced in the order in which they
            are read, or names of columns define times and groups, which an additional pass reads.
            Rows must be sorted by group, and by time within a group. Rows that ``alpha="loo"``
            leaves out together are in memory together.
        time, groups : array-like of shape (n_samples,), default=None
            Times and groups of all rows in the order in which they are read.

        Returns
        -------
        self : object
            The fitted estimator, equal to what ``fit`` gives on all rows, without the attributes
            of length ``n_samples``, and without a search for copies of rows, which would have to
            compare all of them. With at most 400 rows, the variance due to a learned map is of
            first order instead of from folds. A fit that fails leaves the previous one usable.

        Examples
        --------
        {sine_model}
        >>> in_memory = model.predict(X)
        >>> streamed = model.fit_blocks([(X[:60], y[:60]), (X[60:], y[60:])]).predict(X)
        >>> bool(abs(streamed - in_memory).max() < 1e-6)
        True
        """
        return self._fit_blocks(blocks, {"time": time, "groups": groups})

    def _fit_blocks(
        self, blocks: Any, locations: dict[str, Any], *, learn_columns: bool = False
    ) -> Self:
        """Fit blocks; with ``learn_columns``, blocks of complete numbers have a schema too."""
        fresh = self._unfitted()
        check.refuse_tuning_fraction(fresh, "fit_blocks")
        encoded = encoded_blocks(fresh, block_reader(blocks), learn_columns=learn_columns)
        read, schema = encoded.read, encoded.schema
        first = next(checked_blocks(read), None)
        if first is None:
            raise ValueError("blocks contain no rows; give at least two rows of data.")
        source = BlockSource(
            read,
            first,
            check.checked_reference(fresh, first.X),
            width=first.X.shape[1],
        )
        fresh._set_features(first.X.shape[1], first.names)
        fresh._set_columns(encoded.first, schema)
        n_outputs = first.y.shape[0]
        spec = fit_spec(fresh, first.X.shape[1], n_outputs, first.one_output, schema=schema)
        row_columns = source.row_columns if schema is None else encoded.row_columns
        source, covariance = check.blocks_with_locations(fresh, source, locations, row_columns)
        fit = build(source, spec, covariance, fresh._map_search)
        return self._adopt(fresh, fit, covariance)

    @available_if(_one_pass_suffices)  # type: ignore[untyped-decorator]
    @threaded
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to the fit without keeping them.

        The result is that of one ``fit`` to all rows so far, except that the first call determines
        the mean and standard deviation for ``standardize=True``, the input map and the hidden
        layer. Its rows should be some thousand and representative of the others; with scaled
        inputs, ``standardize=False`` and ``input_map=None``, the order of the rows does not matter.
        ``alpha="loo"`` is replaced by generalised cross-validation, as leave-one-out requires a
        second pass; ``fit_blocks`` has neither limit. Heteroskedastic estimates require two
        passes, and have no ``partial_fit``; with ``noise="auto"`` the noise variance is constant.
        Copies of rows count as rows. Standard errors exclude the variance due to learning the map.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Further training inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their outputs.
        sample_weight : array-like of shape (n_samples,), default=None
            Inverse noise variance of each row, up to a constant factor.

        Returns
        -------
        self : object
            The estimator, fitted to all rows so far. A call that fails changes nothing.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0)
        >>> model.partial_fit(X[:60], y[:60]).partial_fit(X[60:], y[60:]).predict([[1.0]]).round(1)
        array([0.8])
        """
        fresh, earlier = self._unfitted(), vars(self).get("fitted_")
        check.refuse_tuning_fraction(fresh, "partial_fit")
        if earlier is not None:
            require_same_layer(fresh, earlier)
            vars(fresh).update(column_attributes(self))
        # How cells are encoded is learned from the first rows.
        schema, learn_columns = vars(fresh).get("columns_"), None if earlier is None else False
        table = training_table(fresh, X, y, sample_weight, {}, schema, learn_columns=learn_columns)
        rows, one_output = table.checked(fresh, reset=earlier is None)
        if earlier is None:
            fresh._set_columns(table.source, table.schema)
        layer = None
        if earlier is not None:
            check.require_same_outputs(len(rows.y), earlier)
            layer, one_output = earlier.spec.layer, earlier.one_output
        spec = fit_spec(fresh, rows.X.shape[1], len(rows.y), one_output, layer, table.schema)
        return self._adopt(fresh, update(rows, spec, earlier, fresh._map_search))

    def __getattr__(self, name: str) -> Any:
        """Explain why ``partial_fit`` is unavailable."""
        if name != "partial_fit":
            return object.__getattribute__(self, name)
        if noise_assumption(self.noise).correlated:
            cause = f"the covariance of noise={self.noise!r} is estimated from all rows in order"
        else:
            names = f"noise={self.noise!r}, variance={self._variance_choice()!r}"
            cause = f"the heteroskedastic estimates of {names} require two passes"
        instead = "use fit_blocks, or noise='homoskedastic' and variance='auto'"
        raise NeedsTwoPassesError(f"partial_fit reads each row once, and {cause}; {instead}.")

    # ------------------------------------------------------------ the fitted value

    def _unfitted(self) -> Any:
        return type(self)(**self.get_params(deep=False))

    def _set_columns(self, X: Any, schema: Schema | None) -> None:
        """Record the columns of a table with a schema."""
        if schema is not None:
            set_features(self, X)
            self.columns_ = schema

    @property
    def _map_search(self) -> MapSearch:
        return MapSearch(detail, tree_importances)

    def _set_features(self, n_features: int, names: Any) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _adopt(self, fresh: Any, fit: Fit, covariance: CovarianceSpec | None = None) -> Self:
        """Set the fit, and the features that scikit-learn records."""
        for name in ("fitted_", *COLUMN_ATTRIBUTES):
            vars(self).pop(name, None)
        vars(self).update(column_attributes(fresh))
        self.fitted_ = fit
        self._warn_about_fit(fit)
        if covariance is not None:
            locations = covariance.used_locations
            if fit.rows is not None:
                locations = locations.taken(fit.rows.data.used)
            warn_about_series(locations)
        return self

    def __sklearn_tags__(self) -> Any:
        """Declare sparse input and missing values to scikit-learn."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags

    def _warn_about_fit(self, fit: Fit) -> None:
        warn_about_fit(fit, self.noise)


# ------------------------------------------------------------ warnings


def warn_about_fit(fit: Fit, noise: Any) -> None:
    """Warn of properties of a fit that make its error bars unreliable."""
    checks = (_full_leverage, _failed_map, _missed_signal, _few_residual_dof, _saturated_units)
    for degenerate in checks:
        message = degenerate(fit)
        if message is not None:
            warn(message, DegenerateFitWarning)
    if fit.rows is not None and fit.rows.data.n_copies:
        warn(copies_message(fit.rows.data), DuplicateRowsWarning)
    correlated = _correlated_residuals(fit, noise)
    if correlated is not None:
        warn(correlated, CorrelatedErrorsWarning)


def _full_leverage(fit: Fit) -> Message | None:
    if fit.rows is None or fit.rows.largest_leverage <= FULL_LEVERAGE:
        return None
    text = (
        "some training rows have leverage 1: the fit passes through them regardless of their "
        "values, and their leave-one-out residuals are not usable"
    )
    remedies = (Setting("alpha", "loo"), Setting("n_neurons", phrase="use fewer {}"))
    return Message("full-leverage", text, suggestions=remedies)


def _failed_map(fit: Fit) -> Message | None:
    if fit.input_map is None or not fit.input_map.failure:
        return None
    text = (
        f"no map of the inputs could be learned ({fit.input_map.failure}), so that all have the "
        "same scale"
    )
    remedies = ("look for inputs with extreme values", Setting("input_map", None))
    return Message("no-input-map", text, suggestions=remedies)


def _missed_signal(fit: Fit) -> Message | None:
    if fit.input_map is None or not fit.input_map.missed_signal:
        return None
    text = (
        "the fit explains almost none of the variance of y, while boosted trees explain part of "
        "it out of sample: the search of the input map has missed the inputs that matter"
    )
    remedies = (
        "drop inputs that are known to be irrelevant",
        "use more rows",
        Setting("random_state", phrase="try another {}"),
    )
    return Message("missed-signal", text, suggestions=remedies, topic="inputs")


def _few_residual_dof(fit: Fit) -> Message | None:
    """Few degrees of freedom remain to estimate the noise covariance."""
    if fit.noise_covariance is None:
        return None
    left = min((one.n_left for one in fit.covariances), default=math.inf)
    if left > FEWEST_LEFT:
        return None
    text = (
        f"only {left} residual degrees of freedom of {fit.n_rows} rows remain to estimate the "
        "error covariance, on which all error bars depend"
    )
    remedies = (
        "use more rows",
        Setting("alpha", phrase="a larger {}"),
        Setting("n_neurons", phrase="fewer {}"),
    )
    return Message("few-residual-dof", text, suggestions=remedies)


def _saturated_units(fit: Fit) -> Message | None:
    smoother = fit.ensemble.regressions[0].smoother
    saturated = int(np.sum(smoother.rank < fit.ensemble.layer.n_units))
    if smoother.alpha != 0 or not saturated:
        return None
    text = (
        f"{saturated} of {smoother.n_members} members have hidden units that are constant or "
        "linearly dependent, which are dropped"
    )
    remedies = (
        Setting("weight_scale", phrase="use a smaller {}"),
        Setting("standardize", True),
        Setting("alpha", "loo"),
    )
    return Message("saturated-units", text, suggestions=remedies)


def _correlated_residuals(fit: Fit, noise: Any) -> Message | None:
    """Residuals of rows that were assumed independent are correlated."""
    if fit.rows is None or fit.noise_covariance is not None:
        return None
    found = fit.rows.strongest_correlation
    if found is None:
        return None
    text = (
        "leave-one-out residuals of successive rows have a correlation of "
        f"{found.correlation:.2f}, {found.z:.1f} standard errors from zero, and ",
        named("noise", noise),
        " assumes independent errors: error bars are too small",
    )
    return Message("residual-correlation", text, suggestions=CORRELATED_NOISE)


def warn_about_series(locations: Locations) -> None:
    """Warn if ties in time suggest several series."""
    if locations.coords is not None or locations.groups is not None:
        return
    _, counts = np.unique(locations.times, return_counts=True)
    tied = int(np.sum(counts[counts > 1]))
    if tied > 0.5 * locations.n:
        text = (
            f"{tied} of {locations.n} rows share their time with others, and all rows are assumed "
            "to be one series"
        )
        remedy = Setting("groups", phrase="give {} if they are several")
        warn(Message("tied-times", text, suggestions=(remedy,)), CorrelatedErrorsWarning)
