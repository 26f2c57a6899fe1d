"""The ways to fit: rows in memory, in blocks, and block after block. Each makes a ``Fit``."""

from __future__ import annotations

import numbers
import os
import zlib
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from ulmus.blocks import BlockSource, checked_blocks, progress_bar, reader, silent
from ulmus.core.backend import Array, reference_array
from ulmus.core.fit import Fit
from ulmus.core.fitting import Specification
from ulmus.core.layer import UnitLaw
from ulmus.core.make import Task, fit_of_more, fit_of_rows, fit_of_stream
from ulmus.core.noise.dependent import Dependence, require_reading_order
from ulmus.core.recipe import FEWEST_ROWS, Recipe
from ulmus.core.scaling import FeatureScale, feature_scale, usable
from ulmus.core.source import RowBlocks, Source
from ulmus.estimators import _parameters as check
from ulmus.estimators._validation import checked_table, require_dense
from ulmus.exceptions import DegenerateFitWarning, DependenceWarning, NeedsTwoPassesError, warn
from ulmus.noise import DependentNoise
from ulmus.noise.rows import default_cut, dependence
from ulmus.tables import checked_weight, column

# A row whose leverage is this close to 1 determines its own prediction.
FULL_LEVERAGE = 1 - 1e-8
# Squares of larger numbers are beyond single precision.
LARGEST_SINGLE = 1e18
# Parameters that decide what the hidden layer is; rows added later need the same layer.
LAYER_PARAMETERS = (
    "n_estimators",
    "n_neurons",
    "activation",
    "weight_distribution",
    "weight_scale",
    "input_map",
    "expand_inputs",
    "tuning_fraction",
    "fit_intercept",
    "standardize",
    "random_state",
    "device",
    "dtype",
)


def _sees_rows_once(estimator: Any) -> bool:
    """Whether the estimates asked for need each row only once."""
    return not check.needs_residuals(estimator.noise, estimator._variance_choice())


class Fitting:
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
        table = X
        rows, one_output = fresh._rows_in_memory(X, y, sample_weight)
        rows = rows.own_copy()
        given = {"time": time, "coords": coords, "groups": groups}
        assumed = fresh._dependence(rows.n_rows, lambda name: column(table, name), given)
        if assumed is not None:
            rows = replace(rows, cut=default_cut(assumed, rows.used))
        scale = usable(rows.reduce(feature_scale))
        tuned = fresh._tuning_rows(rows)
        source = rows if tuned is None else rows.taken(np.flatnonzero(tuned))
        task = fresh._task(source, scale, one_output, rows.reference)
        task = replace(task, tuned=tuned, dependence=assumed)
        return self._adopt(fresh, fit_of_rows(rows, task))

    def fit_blocks(self, blocks: Any, *, time: Any = None, groups: Any = None) -> Self:
        """Fit a table that comes in blocks of rows and need not fit into memory.

        Parameters
        ----------
        blocks : re-iterable of (X, y) or (X, y, sample_weight)
            A list of arrays (or of slices of a ``numpy.memmap``), a function that returns a
            fresh iterator, or :func:`ulmus.blocks.from_arrow`. After a look at the inputs'
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
        fresh._refuse_tuning_fraction("fit_blocks")
        read = reader(blocks)
        first = next(checked_blocks(read), None)
        if first is None:
            raise ValueError("blocks holds no rows; give at least two rows of data.")
        reference = reference_array(first.X, fresh.device, fresh.dtype)
        require_dense(first.X, fresh.device, reference)
        progress = progress_bar if fresh.verbose else silent
        source = BlockSource(
            read, first, reference, n_threads=fresh._n_threads(), progress=progress
        )
        known = (first.X.shape[1], first.names, first.one_output, reference)
        source, assumed = fresh._with_places(source, {"time": time, "groups": groups})
        return self._adopt(fresh, fresh._fit_source(source, *known, assumed))

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
        fresh._refuse_tuning_fraction("partial_fit")
        if earlier is not None:
            fresh._require_same_layer(earlier)
            for name in ("n_features_in_", "feature_names_in_"):
                if hasattr(self, name):
                    setattr(fresh, name, getattr(self, name))
        rows, one_output = fresh._rows_in_memory(X, y, sample_weight, reset=earlier is None)
        scale = rows.reduce(feature_scale)
        if earlier is None:
            task = fresh._task(rows, usable(scale), one_output, rows.reference)
        else:
            _require_same_outputs(len(rows.y), earlier)
            scale = earlier.scale + scale
            task = fresh._task(rows, scale, earlier.one_output, rows.reference, earlier)
        return self._adopt(fresh, fit_of_more(rows, task, earlier))

    def __getattr__(self, name: str) -> Any:
        """Say why there is no ``partial_fit`` where there is none; others say it themselves."""
        if name == "partial_fit" and isinstance(self.noise, DependentNoise):
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

    # ------------------------------------------------------------ from parameters to a task

    def _unfitted(self) -> Any:
        return type(self)(**self.get_params(deep=False))

    def _adopt(self, fresh: Any, fit: Fit) -> Self:
        """Take over a fit that succeeded, and what scikit-learn keeps of its table."""
        for name in ("fitted_", "n_features_in_", "feature_names_in_"):
            vars(self).pop(name, None)
        vars(self).update({k: v for k, v in vars(fresh).items() if k.endswith("_in_")})
        self.fitted_ = fit
        self._warn_about_fit(fit)
        return self

    def _rows_in_memory(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True
    ) -> tuple[RowBlocks, bool]:
        """Checked rows as a source, and whether y has one axis."""
        self._estimates()
        X, y = checked_table(self, X, y, reset=reset)
        weight = checked_weight(sample_weight, X.shape[0], "the table", at_least=2 if reset else 0)
        outputs = np.ascontiguousarray(y.reshape(len(y), -1).T)
        root_weight = None if weight is None else np.sqrt(weight)
        self._require_range("y", float(np.max(np.abs(outputs))))
        reference = reference_array(X, self.device, self.dtype)
        require_dense(X, self.device, reference)
        rows = RowBlocks(X, outputs, root_weight, reference, X.shape[1], self._n_threads())
        return rows, y.ndim == 1

    def _fit_source(
        self,
        source: Source,
        n_features: int,
        names: Any,
        one_output: bool,
        reference: Array,
        assumed: Dependence | None = None,
    ) -> Fit:
        """Fit of rows that are read from a source and not kept."""
        if assumed is None and isinstance(self.noise, DependentNoise):
            raise ValueError(
                f"noise={self.noise!r} needs rows in their order, and partitions of a cluster have "
                "none; use fit, fit_blocks, or noise='auto'."
            )
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        self._estimates()
        scale = usable(source.for_width(n_features).reduce(feature_scale))
        task = self._task(source, scale, one_output, reference)
        return fit_of_stream(source, replace(task, dependence=assumed))

    def _with_places(
        self, source: BlockSource, given: dict[str, Any]
    ) -> tuple[BlockSource, Dependence | None]:
        """Blocks with labels of rows that are left out together, and the places of their rows."""
        if not isinstance(self.noise, DependentNoise):
            return source, self._dependence(0, None, given)
        if not self.noise.kind().serial:
            raise ValueError(
                f"noise={self.noise!r} needs all rows at once, and fit_blocks sees them block "
                "after block; use AR1(), NeweyWest() or Clustered(), or fit all rows in memory."
            )
        names = [name for name in self.noise.names().values() if name is not None]
        columns, used = source.row_columns(names)
        assumed = dependence(self.noise, len(used), columns.__getitem__, given)
        require_reading_order(assumed.places)
        if check.resolved_alpha(self.alpha, self.noise) == "block-loo":
            source = replace(source, cut=default_cut(assumed, used))
        return source, replace(assumed, places=assumed.places.taken(used))

    def _task(
        self,
        source: Source,
        scale: FeatureScale,
        one_output: bool,
        reference: Array,
        earlier: Fit | None = None,
    ) -> Task:
        n_outputs = source.sample(1).y.shape[0]
        spec = Specification(
            alpha=check.resolved_alpha(self.alpha, self.noise),
            noise_variance=check.checked_noise_variance(self.noise_variance, n_outputs, self.noise),
            hc=self.hc,
            estimates=self._estimates(),
        )
        self._require_range("X", float(max(np.max(-scale.low), np.max(scale.high))))
        recipe = None
        if earlier is None:
            recipe = self._recipe(len(scale.mean))
            layer, input_map = recipe.layer(source.for_width(len(scale.mean)), scale, reference)
        else:
            layer, input_map = earlier.ensemble.layer, earlier.input_map
        caution, drawn = check.noise_caution(self.noise), self._drawn_with()
        return Task(layer, input_map, scale, spec, caution, one_output, drawn, recipe)

    def _estimates(self) -> tuple[str, ...]:
        check.checked_noise(self.noise)
        check.checked_choice("hc", self.hc, check.HC_NAMES)
        check.checked_flag("fit_intercept", self.fit_intercept)
        check.checked_flag("standardize", self.standardize)
        check.checked_choice("dtype", self.dtype, ("float64", "float32"))
        return check.resolved_estimates(self._variance_choice(), self.noise, self._n_members())

    def _dependence(self, n_rows: int, columns: Any, given: dict[str, Any]) -> Dependence | None:
        """How the noise hangs together and where the rows are; None if it does not."""
        if isinstance(self.noise, DependentNoise):
            return dependence(self.noise, n_rows, columns, given)
        unused = [axis for axis, values in given.items() if values is not None]
        if unused:
            raise ValueError(
                f"{unused[0]} was given to fit, and noise={self.noise!r} takes rows as "
                "independent; use a kind of noise of ulmus.noise, such as AR1(), or leave it out."
            )
        return None

    def _tuning_rows(self, rows: RowBlocks) -> np.ndarray | None:
        """Rows set aside for the map, or None where it is learned from all."""
        fraction = check.checked_fraction("tuning_fraction", self.tuning_fraction)
        if fraction is None:
            return None
        used = np.flatnonzero(rows.used)
        n_tuned = int(np.ceil(fraction * len(used)))
        if n_tuned < FEWEST_ROWS or len(used) - n_tuned < 2:
            raise ValueError(
                f"tuning_fraction={fraction:g} of {len(used)} rows sets {n_tuned} aside for the "
                f"map, which needs at least {FEWEST_ROWS}, and leaves {len(used) - n_tuned}; use "
                "another fraction, or None."
            )
        seed = check.drawn_seeds(self.random_state)[1]
        chosen = np.zeros(rows.n_rows, dtype=bool)
        chosen[np.random.default_rng(seed).permutation(used)[:n_tuned]] = True
        return chosen

    def _refuse_tuning_fraction(self, method: str) -> None:
        if check.checked_fraction("tuning_fraction", self.tuning_fraction) is not None:
            raise ValueError(
                f"tuning_fraction={self.tuning_fraction!r} sets rows aside for prediction "
                f"intervals from left-out rows, which {method} does not make; use fit, or "
                "tuning_fraction=None."
            )

    def _recipe(self, n_features: int) -> Recipe:
        """The parameters of the hidden layer, checked."""
        activation = check.checked_activation(self.activation)
        seed, map_seed = check.drawn_seeds(self.random_state)
        return Recipe(
            seed=seed,
            n_members=self._n_members(),
            n_neurons=check.checked_neurons(self.n_neurons),
            law=UnitLaw(
                check.checked_distribution(self.weight_distribution),
                check.checked_scale(self.weight_scale, n_features),
                activation,
            ),
            input_map=check.checked_input_map(self.input_map, activation),
            expansions=check.checked_expansions(self.expand_inputs),
            standardize=bool(self.standardize),
            constant=bool(self.fit_intercept),
            map_seed=map_seed,
            report=told if self.verbose else untold,
        )

    def _drawn_with(self) -> dict[str, str]:
        """The parameters of the layer as text."""
        known = self.get_params(deep=False)
        return {name: _text(known[name]) for name in LAYER_PARAMETERS if name in known}

    def _require_same_layer(self, earlier: Fit) -> None:
        now = self._drawn_with()
        for name, value in earlier.drawn.items():
            if now.get(name) != value:
                raise ValueError(
                    f"{name} was {value} when the rows before were fitted and is {now.get(name)} "
                    "now; rows can only be added to the same hidden layer. Set it back, or start "
                    "a new estimator."
                )

    def _require_range(self, what: str, largest: float) -> None:
        if self.dtype == "float32" and largest > LARGEST_SINGLE:
            raise ValueError(
                f"{what} reaches {largest:.1g}, too large to be squared in dtype='float32'; use "
                "dtype='float64', or multiply it by a factor that brings it near 1."
            )

    def _n_threads(self) -> int:
        if self.n_jobs is None:
            return 1
        n_jobs = self.n_jobs
        if isinstance(n_jobs, bool) or not isinstance(n_jobs, (int, np.integer)) or n_jobs == 0:
            raise ValueError(f"n_jobs must be None or a whole number, -1 for all, got {n_jobs!r}.")
        cores = os.cpu_count() or 1
        return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))

    def _warn_about_fit(self, fit: Fit) -> None:
        if fit.rows is not None and fit.rows.largest_leverage > FULL_LEVERAGE:
            warn(
                "some training rows have leverage 1: the fit passes through them whatever their "
                "value, and their leave-one-out residuals are not usable. Use alpha='loo' or "
                "fewer n_neurons.",
                DegenerateFitWarning,
            )
        if fit.input_map is not None and fit.input_map.trouble:
            warn(
                f"no map of the inputs could be learned ({fit.input_map.trouble}), so that all "
                "have the same scale; look for inputs with extreme values, or use input_map=None.",
                DegenerateFitWarning,
            )
        overlooked = fit.overlooked_dependence
        if overlooked is not None:
            warn(
                f"left-out residuals of successive rows have a correlation of "
                f"{overlooked.correlation:.2f}, {overlooked.z:.1f} standard errors from none, and "
                f"noise={self.noise!r} takes rows as independent: error bars are too small. If "
                "rows follow one another in time, use noise=AR1() of ulmus.noise (Clustered() for "
                "groups, Exponential() in space); if the table is only sorted by an input, the "
                "fit does not follow the function there, and more n_neurons may.",
                DependenceWarning,
            )
        part = fit.ensemble.regressions[0].smoother
        saturated = int(np.sum(part.rank < part.to_t.shape[1]))
        if part.alpha == 0 and saturated:
            warn(
                f"{saturated} of {part.n_members} members have hidden units that are constant "
                "or repeat one another; they are dropped. Use a smaller weight_scale, "
                "standardize=True or alpha='loo'.",
                DegenerateFitWarning,
            )


def told(sentence: str) -> None:
    """Print what has been learned of the map."""
    print(f"input map: {sentence}")


def untold(sentence: str) -> None:
    """Say nothing."""


def _text(value: Any) -> str:
    """A parameter as text; of a generator or a function only its kind, as it may be a copy."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}, checksum {zlib.crc32(value.tobytes())}"
    plain = (str, numbers.Number, type(None), list, tuple)
    return repr(value) if isinstance(value, plain) else type(value).__name__


def _require_same_outputs(n_outputs: int, earlier: Fit) -> None:
    if n_outputs != earlier.ensemble.n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, the rows before had {earlier.ensemble.n_outputs}; give "
            "the same ones."
        )
