"""Preconditioner of the hidden features from a sample of rows.

Hidden matrices have condition numbers of 1e5 to 1e10, which H'H squares. Features are multiplied
by the inverse triangular factor of a sample, so that sums over row blocks are well conditioned.
"""

from __future__ import annotations

from dataclasses import dataclass

from ulmus.core.arrays.backend import Array, namespace, transposed
from ulmus.core.arrays.linalg import inverted_triangle, lower_product, triangular_factor
from ulmus.core.arrays.threads import mapped
from ulmus.core.data.source import Block
from ulmus.core.layer.hidden_layer import HiddenLayer
from ulmus.exceptions import InputError
from ulmus.messages import Message, Setting


@dataclass(frozen=True)
class Whitening:
    """Whitened features phi = P h of a hidden layer."""

    layer: HiddenLayer  # the hidden units
    # (M, N): mean of the units over the sample, without a constant one; zero without an intercept.
    center: Array
    R: Array  # (M, N, N): triangular factor of the sample's centred units, raised to the floor
    # (M, N', N'): the preconditioner, the inverse of R'. Its first column subtracts the centre,
    # times the constant unit.
    P: Array

    def __call__(self, block: Block) -> Array:
        """Whitened rows, scaled by the square roots of their weights, shape (M, N', n)."""
        return lower_product(self.P, scaled_rows(self.layer(block.X), block.root_weight))


def sample_rows(n_units: int) -> int:
    """Sample size: 10 rows per unit, and down to 3 above 5,000 rows, where QR dominates."""
    return min(10 * n_units, max(3 * n_units, 5000))


def scaled_rows(features: Array, root_weight: Array | None) -> Array:
    """Multiply each row (last axis) by the square root of its weight."""
    return features if root_weight is None else features * root_weight


def centred_units(layer: HiddenLayer, block: Block) -> tuple[Array, Array, Array]:
    """Centred and weighted units (M, n, N) of a block, their weighted mean (M, N), and a size (M,).

    Without an intercept the mean is zero. The size is the norm of the mean: much smaller
    differences are round-off.
    """
    H = layer(block.X)
    xp, root_weight = namespace(H), block.root_weight
    if not float(xp.max(xp.abs(H))) < 1e150:
        text = "squares of hidden features are beyond the range of float64"
        smaller = Setting("standardize", True, "use {} and a smaller weight_scale")
        suggestions = smaller, Setting("activation", phrase="another {}")
        raise InputError(Message("feature-overflow", text, suggestions=suggestions))
    units = H[:, int(layer.constant) :, :]
    center, size = xp.zeros_like(units[:, :, 0]), xp.zeros_like(units[:, 0, 0])
    if layer.constant:
        weight = xp.ones_like(H[0, 0, :]) if root_weight is None else root_weight**2
        mass = xp.sum(weight)
        center = (units @ weight) / mass
        units = units - center[:, :, None]
        size = xp.sqrt(mass * xp.sum(center**2, axis=1))
    return transposed(scaled_rows(units, root_weight)), center, size


def sample_whitening(layer: HiddenLayer, sample: Block) -> Whitening:
    """Whitening from the triangular factor of a sample of rows."""
    parts = mapped(lambda some: _sample_whitening(some, sample), layer.portions(sample.X.shape[0]))
    xp = namespace(layer.W)
    center, R, P = (xp.concat(list(arrays)) for arrays in zip(*parts, strict=True))
    return Whitening(layer, center, R, P)


def _sample_whitening(layer: HiddenLayer, sample: Block) -> tuple[Array, Array, Array]:
    """Centre, triangular factor and preconditioner of some members."""
    units, center, size = centred_units(layer, sample)
    xp, N = namespace(units), units.shape[2]
    size = xp.maximum(size, xp.sqrt(xp.sum(units**2, axis=(1, 2))))
    # Directions absent from the sample may occur in later rows.
    floor = 1e-9 * xp.where(size > 0, size, xp.ones_like(size))
    eye = xp.eye(N, dtype=units.dtype, device=units.device)
    R = triangular_factor(xp.concat([units, floor[:, None, None] * eye], axis=1))
    P = inverted_triangle(transposed(R))
    if layer.constant:
        P = bordered(P, column=-(P @ center[:, :, None])[:, :, 0])
    return center, R, P


def bordered(A: Array, corner: Array | float = 1.0, column: Array | None = None) -> Array:
    """Stack of matrices with a leading unit row and column, (M, r, N) to (M, r+1, N+1)."""
    xp, (M, r, N) = namespace(A), A.shape
    out = xp.zeros((M, r + 1, N + 1), dtype=A.dtype, device=A.device)
    out[:, 1:, 1:] = A
    out[:, 0, 0] = corner
    if column is not None:
        out[:, 1:, 0] = column
    return out
