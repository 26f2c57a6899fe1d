"""The methods ``fit``, ``fit_blocks`` and ``partial_fit``: each validates and builds a ``Fit``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from ulmus.core.fit.build import build, update
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.layer import quiet
from ulmus.core.input_map.optimisation import Log
from ulmus.core.noise_covariance.spec import CovarianceSpec
from ulmus.estimators import _validation as check
from ulmus.estimators._fit_warnings import print_progress, warn_about_fit, warn_about_series
from ulmus.estimators._parameters import fit_spec, needs_residuals, require_same_layer
from ulmus.exceptions import NeedsTwoPassesError
from ulmus.noise.assumptions import noise_assumption
from ulmus.noise.locations import default_block_ids
from ulmus.tables.blocks import BlockSource, block_reader, checked_blocks, no_progress, progress_bar
from ulmus.tables.frames import column


def _sees_rows_once(estimator: Any) -> bool:
    """Whether the estimates asked for need each row only once."""
    return not needs_residuals(estimator.noise, estimator._variance_choice())


class FitMethods:
    """Methods that fit an estimator; a fit that fails leaves the previous one usable."""

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        time: Any = None,
        coords: Any = None,
        groups: Any = None,
    ) -> Self:
        """Fit the output weights.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training inputs. Torch tensors and CuPy arrays are computed with where they are.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Training outputs.
        sample_weight : array-like of shape (n_samples,), default=None
            Inverse noise variance of each row, up to a constant factor. A row of weight zero
            is left out. A new observation is taken to have the mean weight of the others.
        time : array-like of shape (n_samples,), default=None
            Times of the rows, numbers or dates, for noise along time (:mod:`ulmus.noise`); without
            it, rows follow one another in steps of one.
        coords : array-like of shape (n_samples, n_coords), default=None
            Coordinates of the rows, for noise in space.
        groups : array-like of shape (n_samples,), default=None
            Groups of the rows: clusters, or several series.

        Returns
        -------
        self : object
            The fitted estimator. A fit that fails leaves the previous one usable.

        Examples
        --------
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0)
        >>> model.fit(X, y).predict([[1.0], [4.0]]).round(1)
        array([ 0.8, -0.7])
        >>> model.alpha_ > 0, round(model.noise_variance_, 1)  # 0.1 in truth
        (True, 0.1)
        """
        fresh = self._unfitted()
        rows, one_output = check.rows_in_memory(fresh, X, y, sample_weight)
        spec = fit_spec(fresh, rows.X.shape[1], len(rows.y), one_output)
        arguments = {"time": time, "coords": coords, "groups": groups}
        covariance = check.checked_covariance_spec(
            fresh, rows.n_rows, lambda name: column(X, name), arguments
        )
        rows = rows.own_copy()
        if covariance is not None:
            rows = replace(rows, block_ids=default_block_ids(covariance, rows.used))
        fit = build(rows, spec, covariance, fresh._log)
        return self._adopt(fresh, fit, covariance)

    def fit_blocks(self, blocks: Any, *, time: Any = None, groups: Any = None) -> Self:
        """Fit a table that comes in blocks of rows and need not fit into memory.

        Parameters
        ----------
        blocks : re-iterable of (X, y) or (X, y, sample_weight)
            A list of arrays (or of slices of a ``numpy.memmap``), a function that returns a
            fresh iterator, or :func:`ulmus.tables.from_arrow`. After a look at the inputs'
            means and ranges, and one for the sample that a map is learned from, it is read once
            for homoskedastic and twice for heteroskedastic estimates, once more for
            ``alpha="loo"``, and four times more for the model of the noise variance, which
            ``noise="homoskedastic"`` saves.

            Noise that hangs together may be ``AR1``, ``NeweyWest`` with its default kernel, or
            ``Clustered`` of :mod:`ulmus.noise`. Rows follow one another as they are read, in steps
            of one, or times and groups are told by names of columns, which a first reading
            collects. Rows of a group come together and in the order of their times. Rows that
            ``alpha="loo"`` leaves out together are in memory together.
        time, groups : array-like of shape (n_samples,), default=None
            Times and groups of all rows as they are read, where no column has them.

        Returns
        -------
        self : object
            The fitted estimator, equal to what ``fit`` gives on all rows, without the attributes
            of length ``n_samples``. A fit that fails leaves the previous one usable.

        Examples
        --------
        >>> import numpy as np
        >>> from ulmus import ELMEnsembleRegressor
        >>> from ulmus.datasets import make_sine
        >>> X, y, *_ = make_sine(100, random_state=0)
        >>> blocks = [(X[:60], y[:60]), (X[60:], y[60:])]
        >>> model = ELMEnsembleRegressor(5, 20, input_map=None, random_state=0)
        >>> streamed = model.fit_blocks(blocks).predict(X)
        >>> bool(np.allclose(streamed, model.fit(X, y).predict(X)))
        True
        """
        fresh = self._unfitted()
        check.refuse_tuning_fraction(fresh, "fit_blocks")
        read = block_reader(blocks)
        first = next(checked_blocks(read), None)
        if first is None:
            raise ValueError("blocks contain no rows; give at least two rows of data.")
        source = BlockSource(
            read,
            first,
            check.checked_reference(fresh, first.X),
            width=first.X.shape[1],
            n_threads=check.n_threads(fresh),
            progress=progress_bar if fresh.verbose else no_progress,
        )
        fresh._set_features(first.X.shape[1], first.names)
        spec = fit_spec(fresh, first.X.shape[1], first.y.shape[0], first.one_output)
        arguments = {"time": time, "groups": groups}
        source, covariance = check.blocks_with_locations(fresh, source, arguments)
        fit = build(source, spec, covariance, fresh._log)
        return self._adopt(fresh, fit, covariance)

    @available_if(_sees_rows_once)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add rows to the fit without keeping them.

        The result is that of one ``fit`` to all rows so far, except for what the first call
        sets for good: the mean and standard deviation that ``standardize=True`` uses, the map of
        the inputs, and the hidden layer. Give the first call some thousand rows that look like
        the others, or scale the inputs yourself and use ``standardize=False`` and
        ``input_map=None``: then the order of rows does not matter. ``alpha="loo"`` is replaced by
        generalised cross-validation, as leave-one-out needs all rows again; ``fit_blocks`` has
        neither limit. Heteroskedastic estimates need two passes over the rows, and have no
        ``partial_fit``; with ``noise="auto"`` the noise variance is a constant here.

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
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    setattr(fresh, name, getattr(self, name))
        first = earlier is None
        rows, one_output = check.rows_in_memory(fresh, X, y, sample_weight, reset=first)
        layer = None
        if earlier is not None:
            check.require_same_outputs(len(rows.y), earlier)
            layer, one_output = earlier.spec.layer, earlier.one_output
        spec = fit_spec(fresh, rows.X.shape[1], len(rows.y), one_output, layer)
        return self._adopt(fresh, update(rows, spec, earlier, fresh._log))

    def __getattr__(self, name: str) -> Any:
        """Say why there is no ``partial_fit`` where there is none; others say it themselves."""
        if name == "partial_fit" and noise_assumption(self.noise).correlated:
            raise NeedsTwoPassesError(
                "partial_fit sees each row once and forgets it, and how noise hangs together "
                f"(noise={self.noise!r}) is told from all rows in their order; use fit_blocks, or "
                "noise='homoskedastic'."
            )
        if name == "partial_fit":
            raise NeedsTwoPassesError(
                "partial_fit sees each row once and cannot make the heteroskedastic estimates of "
                f"noise={self.noise!r}, variance={self._variance_choice()!r}, which need two "
                "passes; use fit_blocks, or noise='homoskedastic' and variance='auto'."
            )
        return object.__getattribute__(self, name)

    # ------------------------------------------------------------ the fitted value

    def _unfitted(self) -> Any:
        return type(self)(**self.get_params(deep=False))

    @property
    def _log(self) -> Log:
        return print_progress if self.verbose else quiet

    def _set_features(self, n_features: int, names: Any) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _adopt(self, fresh: Any, fit: Fit, covariance: CovarianceSpec | None = None) -> Self:
        """Take over a fit that succeeded, and what scikit-learn keeps of its table."""
        for name in ("fitted_", "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        vars(self).update({k: v for k, v in vars(fresh).items() if k.endswith("_in_")})
        self.fitted_ = fit
        self._warn_about_fit(fit)
        if covariance is not None:
            warn_about_series(covariance.locations)
        return self

    def _warn_about_fit(self, fit: Fit) -> None:
        """Say what a user should know; subclasses may know more."""
        warn_about_fit(fit, self.noise)
