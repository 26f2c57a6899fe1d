"""The numbers from which a page computes predictions and their variances.

A prediction and its standard error need few quantities that are linear in the hidden features:
predictions of the members, coordinates of the forms of low rank, and shifts due to the choice of
alpha and of the input map. The page computes these at a point, and the variance from them; for
the difference of two points it takes their differences. All are in the units of y, on the scale of
the regression. ``model.js`` is the other half of this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.ensemble.ensemble import Ensemble, Regression
from ulmus.core.fit.fit import Fit
from ulmus.core.fit.refits import Fold
from ulmus.core.fit.small_forms import SmallForms, compared_features
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.core.layer.inputs import Inputs
from ulmus.core.variance.estimates import ESTIMATES
from ulmus.exceptions import InputError
from ulmus.explore.arrays import (
    Packed,
    lower_triangle,
    packed,
    quantised_rows,
    refined_rows,
    restored_rows,
)
from ulmus.messages import Message, Setting

# Errors of standard errors by rounding that need no more digits.
LARGEST_ROUNDING = 1e-2
# Largest number of hidden weights that have 64 bits, and of those of all folds that have 32.
MOST_EXACT, MOST_OF_FOLDS = 2 * 10**4, 10**5


@dataclass
class SharedInputs:
    """Inputs of the layers of a model; layers with the same inputs share them."""

    found: list[Inputs] = field(default_factory=list)

    def index(self, inputs: Inputs) -> int:
        """Position of inputs, which are added where they are new."""
        same = (i for i, one in enumerate(self.found) if _equal(one, inputs))
        position = next(same, len(self.found))
        if position == len(self.found):
            self.found.append(inputs)
        return position

    @property
    def arrays(self) -> list[dict[str, Any]]:
        """All inputs."""
        return [_inputs(one) for one in self.found]


@dataclass(frozen=True)
class Output:
    """One output of a fit."""

    fit: Fit
    k: int  # index of the output

    @property
    def index(self) -> int:
        """Index of its regression."""
        parts = self.fit.ensemble.regressions
        return next(i for i, part in enumerate(parts) if self.k in part.outputs)

    @property
    def regression(self) -> Regression:
        """Its regression."""
        return self.fit.ensemble.regressions[self.index]

    @property
    def column(self) -> int:
        """Its index among the outputs of the regression."""
        return self.regression.outputs.index(self.k)

    @property
    def unit(self) -> float:
        """Its unit."""
        return float(self.fit.ensemble.unit[self.k])


def prediction_arrays(output: Output) -> dict[str, Any]:
    """What predictions and their variances are computed from, without the forms."""
    fit, shared = output.fit, SharedInputs()
    arrays = {
        "mean": _predictor(fit.ensemble, output.k, shared),
        "alpha": _alpha(output),
        "folds": _folds(output, shared),
        "map": _first_order_map(output),
        "noise": _noise(output, shared),
        "dof": {
            "residual": float(np.minimum(fit.n_rows - fit.gamma, fit.covariance_dof)[output.k]),
            "noise": float(fit.noise_dof[output.k]),
            "members": fit.ensemble.n_members - 1,
        },
    }
    return arrays | {"inputs": shared.arrays}


# ------------------------------------------------------------ predictions


def _inputs(inputs: Inputs) -> dict[str, Any]:
    scores = [
        {
            "column": one.column,
            "knots": packed(one.knots),
            "heights": packed(one.heights),
            "pieces": [packed(a) for a in one.pieces],
        }
        for one in inputs.normal_scores
    ]
    indicators = [
        {"column": one.column, "values": packed(one.values), "tolerance": float(one.tolerance)}
        for one in inputs.one_hot
    ]
    standardised = {"offset": packed(inputs.offset), "scale": packed(inputs.scale)}
    return standardised | {"scores": scores, "indicators": indicators}


def _equal(a: Inputs, b: Inputs) -> bool:
    if a is b:
        return True
    columns = [one.column for one in a.normal_scores] == [one.column for one in b.normal_scores]
    if not columns or len(a.one_hot) != len(b.one_hot):
        return False
    pairs = [(a.offset, b.offset), (a.scale, b.scale)]
    for one, other in zip(a.normal_scores, b.normal_scores, strict=True):
        pairs += [(one.knots, other.knots), (one.heights, other.heights)]
    for first, second in zip(a.one_hot, b.one_hot, strict=True):
        pairs.append((first.values, second.values))
        if first.column != second.column:
            return False
    return all(np.array_equal(to_numpy(x), to_numpy(y)) for x, y in pairs)


def _layer(layer: HiddenLayer, shared: SharedInputs, *, bits: int) -> dict[str, Any]:
    if not isinstance(layer.activation, str):
        text = "is a function, which a page cannot contain"
        remedies = (Setting("activation", "tanh", "fit with a name such as {}"),)
        name = getattr(layer.activation, "__name__", "function")
        raise InputError(Message("activation-not-exported", text, "activation", name, remedies))
    W = to_numpy(layer.W)
    active = np.flatnonzero(np.any(W != 0, axis=(0, 1)))  # the map drops other inputs
    weights = W[:, :, active].reshape(-1, len(active))
    return {
        "size": list(W.shape[:2]),
        "active": packed(active),
        "weights": packed(weights) if weights.size <= MOST_EXACT else quantised_rows(weights, bits),
        "biases": packed(layer.b),
        "inputs": shared.index(layer.inputs),
        "activation": layer.activation,
        "constant": int(layer.constant),
    }


def _predictor(
    one: Ensemble | Fold, k: int, shared: SharedInputs, *, bits: int = 32
) -> dict[str, Any]:
    """Layer, coefficients (M, N') and shift of one output."""
    return {
        "layer": _layer(one.layer, shared, bits=bits),
        "coefficients": packed(one.coefficients[:, :, k]),
        "shift": float(one.shift[k]) if one.layer.constant else 0.0,
    }


# ------------------------------------------------------------ variances


def form_arrays(output: Output, small: SmallForms, most_elements: int) -> dict[str, Any]:
    """The forms of low rank: coordinates and their matrices.

    They are as accurate as so many elements of 16 bits permit, or as necessary: with features that
    are nearly collinear, as those of few units without much of a penalty, results are small sums
    of large terms.
    """
    name, part = output.fit.estimates[0], small.forms.parts[output.index]
    pairs, j = part.pairs[ESTIMATES[name].pairing], output.column
    f = j if pairs.single.shape[0] > 1 else 0
    M = output.fit.ensemble.n_members
    C, single = to_numpy(part.C).astype(float), to_numpy(pairs.single[f, :, :])
    features = np.flatnonzero(np.any(C != 0, axis=0))
    triangles = int(1.5 * part.rank * (part.rank + 1))
    left = most_elements - part.rank * len(features) - triangles
    bits = 32 if left >= triangles else 16
    coordinates = refined_rows(C[:, features], left - triangles)
    if _rounding_error(output.fit, C, features, coordinates, single) > LARGEST_ROUNDING:
        bits, coordinates = 32, refined_rows(C[:, features], C.size)
    means = np.eye(2)  # of the form over members, and over pairs of them
    shares = ESTIMATES[name].part(means[0], means[1], M)
    return {
        "features": packed(features),
        "coordinates": coordinates,
        "lengths": lower_triangle(part.lengths, bits),
        "single": lower_triangle(single, bits),
        "distinct": lower_triangle(pairs.distinct[f, :, :], bits),
        "scale": float(to_numpy(pairs.scale)[j]) * output.unit**2,
        "shares": [float(share) for share in shares],
    }


def _rounding_error(
    fit: Fit, C: np.ndarray, features: np.ndarray, coordinates: Packed, single: np.ndarray
) -> float:
    """Relative error of standard errors by rounded coordinates, root mean square."""
    points = compared_features(fit)
    if points is None:
        return 0.0
    h = to_numpy(points).astype(float)
    h = h.reshape(-1, h.shape[2])[features]
    exact, error = C[:, features] @ h, (C[:, features] - restored_rows(coordinates)) @ h
    variance, excess = (np.sum(c * (single @ c), axis=0) for c in (exact, error))
    share = np.divide(excess, variance, out=np.zeros_like(excess), where=variance > 0)
    return float(np.sqrt(np.mean(np.abs(share))))


def _alpha(output: Output) -> Any:
    """Coefficients (2, M N') of the shifts due to the choice of alpha; None for a fixed one."""
    part = output.regression
    if not np.any(part.alpha_deviation > 0):
        return None
    return packed(to_numpy(part.alpha_weights)[:, output.column] * output.unit)


def _folds(output: Output, shared: SharedInputs) -> list[dict[str, Any]]:
    """Predictors behind the maps of the folds, for the variance of the map."""
    fit, k = output.fit, output.k
    if not fit.folded:
        return []
    size = sum(np.prod(fold.layer.W.shape) for fold in fit.folds)
    bits = 32 if size <= MOST_OF_FOLDS else 16
    return [_predictor(fold, k, shared, bits=bits) for fold in fit.folds]


def _first_order_map(output: Output) -> Any:
    """What the shifts due to the choice of the map to first order are computed from."""
    fit, k, uncertainty = output.fit, output.k, output.fit.map_uncertainty
    if fit.folded or uncertainty is None or not len(uncertainty.changes):
        return None
    slopes, covariances = (
        to_numpy(a)[:, :, :, k].astype(float) * output.unit / fit.ensemble.n_members
        for a in (uncertainty.slopes, uncertainty.covariances)
    )
    changes = uncertainty.changes
    diagonals = np.diagonal(changes, axis1=1, axis2=2)
    diagonal = bool(np.count_nonzero(changes) == np.count_nonzero(diagonals))
    return {
        "changes": packed(diagonals if diagonal else changes, single=True),
        "diagonal": diagonal,
        "slopes": packed(slopes + covariances, single=True),
        "covariances": packed(covariances, single=True),
    }


# ------------------------------------------------------------ noise


def _noise(output: Output, shared: SharedInputs) -> dict[str, Any]:
    """Variance of a new observation of mean weight around its prediction, in the units of y."""
    fit, k, model = output.fit, output.k, output.fit.noise_model
    square = output.unit**2
    residual = float(fit.per_regression(lambda part: part.noise_variance.residual)[k]) * square
    constant = residual if model is None else float(model.flat[k]) * square
    noise = {
        "sigma2": float(fit.sigma2[k]),
        "residual": residual,
        "weight": fit.mean_weight,
        "correlated": bool(fit.has_covariance[k]),
        "constant": constant,
    }
    logs = None if model is None else model.logs[k]
    if model is None or logs is None:
        return noise
    return noise | {
        "constant": None,
        "logs": _predictor(logs, 0, shared),
        "share": float(model.share[k]),
        "factor": float(model.factor[k]) * square,
        "low": float(model.low[k]),
        "high": float(model.high[k]),
    }
