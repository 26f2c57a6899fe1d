"""A preconditioner for the hidden features, taken from a sample of rows.

Hidden matrices have condition numbers of 1e5 to 1e10, and H'H squares them. Dividing the
features by the triangular factor of a sample first makes the sums over row blocks well
conditioned, so that they keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ulmus.core.arrays.backend import Array, namespace, transposed
from ulmus.core.arrays.linalg import inverted_triangle, lower_product, triangular_factor
from ulmus.core.data.source import Block
from ulmus.core.layer.hidden_layer import HiddenLayer

# Directions weaker than this in the sample are scaled as if they were this strong: they may
# come alive in later rows.
FLOOR = 1e-9
# Squares of larger hidden features are no numbers.
LARGEST_FEATURE = 1e150
# Rows wanted in the sample for each hidden unit; fewer where a layer is so wide that their
# factorisation would cost more than the rows are worth.
ROWS_PER_UNIT, FEWEST_ROWS_PER_UNIT = 10, 5
ENOUGH_ROWS = 20_000


@dataclass(frozen=True)
class Whitening:
    """Whitened features phi = P h of a hidden layer.

    Parameters
    ----------
    layer : HiddenLayer
        The hidden units.
    center : array of shape (M, N)
        Mean of the units over the sample, without a constant one; zero without an intercept.
    R : array of shape (M, N, N)
        Triangular factor of the sample's centred units, raised to the floor.
    P : array of shape (M, N', N')
        The preconditioner, the inverse of R'. It subtracts the centre by way of the constant
        unit, which it otherwise leaves alone.
    """

    layer: HiddenLayer
    center: Array
    R: Array
    P: Array

    def __call__(self, block: Block) -> Array:
        """Whitened rows, scaled by the square roots of their weights, shape (M, N', n)."""
        return lower_product(self.P, scaled_rows(self.layer(block.X), block.root_weight))


def sample_rows(n_units: int) -> int:
    """Rows wanted in the sample for so many hidden units."""
    return min(ROWS_PER_UNIT * n_units, max(FEWEST_ROWS_PER_UNIT * n_units, ENOUGH_ROWS))


def scaled_rows(features: Array, root_weight: Array | None) -> Array:
    """Multiply each row (last axis) by the square root of its weight."""
    return features if root_weight is None else features * root_weight


def centred_units(layer: HiddenLayer, block: Block) -> tuple[Array, Array, Array]:
    """Units of a block less their weighted mean, weighted (M, n, N); the mean; and a size.

    Without an intercept the mean is zero. The size (M,) is what the units amount to before they
    are centred: much smaller differences are round-off.
    """
    H = layer(block.X)
    xp, root_weight = namespace(H), block.root_weight
    if not float(xp.max(xp.abs(H))) < LARGEST_FEATURE:
        raise ValueError(
            "hidden features are beyond the range of numbers that can be squared; use "
            "standardize=True and a smaller weight_scale, or another activation."
        )
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
    parts = [_sample_whitening(some, sample) for some in layer.portions(sample.X.shape[0])]
    xp = namespace(layer.W)
    center, R, P = (xp.concat(list(arrays)) for arrays in zip(*parts, strict=True))
    return Whitening(layer, center, R, P)


def _sample_whitening(layer: HiddenLayer, sample: Block) -> tuple[Array, Array, Array]:
    """Centre, triangular factor and preconditioner of some members."""
    units, center, size = centred_units(layer, sample)
    xp, N = namespace(units), units.shape[2]
    size = xp.maximum(size, xp.sqrt(xp.sum(units**2, axis=(1, 2))))
    floor = FLOOR * xp.where(size > 0, size, xp.ones_like(size))
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
