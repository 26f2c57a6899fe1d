"""A preconditioner for the hidden features, taken from a sample of rows.

Hidden matrices have condition numbers of 1e5 to 1e10, and H'H squares them. Rotating and
scaling the features by the singular vectors of a sample first makes the sums over row blocks
well conditioned, so that they keep their digits.
"""

from __future__ import annotations

from dataclasses import dataclass

from ulmus.core.backend import Array, namespace, triangular_factor
from ulmus.core.hidden import HiddenLayer

# Directions weaker than this in the sample are scaled as if they were this strong: they may
# come alive in later rows.
FLOOR = 1e-9
# Rows wanted in the sample for each hidden unit.
ROWS_PER_UNIT = 10


@dataclass(frozen=True)
class Whitening:
    """Whitened features phi = P h of a hidden layer.

    Parameters
    ----------
    layer : HiddenLayer
        The hidden units.
    center : array of shape (M, N)
        Mean of the units over the sample, without a constant one; zero without an intercept.
    P : array of shape (M, N', N')
        The preconditioner. It subtracts the centre by way of the constant unit, which it
        otherwise leaves alone.
    P_inverse : array of shape (M, N, N)
        Inverse of P for centred units.
    """

    layer: HiddenLayer
    center: Array
    P: Array
    P_inverse: Array

    def __call__(self, X: Array, root_weight: Array | None = None) -> Array:
        """Whitened rows, scaled by the square root of their weights, shape (M, N', n)."""
        return self.P @ scaled_rows(self.layer(X), root_weight)


def scaled_rows(features: Array, root_weight: Array | None) -> Array:
    """Multiply each row (last axis) by the square root of its weight."""
    return features if root_weight is None else features * root_weight


def sample_whitening(layer: HiddenLayer, X: Array, root_weight: Array | None = None) -> Whitening:
    """Whitening from the thin SVD of a sample of rows."""
    H = layer(X)
    xp = namespace(H)
    units = H[:, int(layer.constant) :, :]
    center = xp.zeros_like(units[:, :, 0])
    if layer.constant:
        center = _weighted_mean(units, root_weight)
        units = units - center[:, :, None]
    units = scaled_rows(units, root_weight)
    n_units = units.shape[1]
    # H' = Q R and R = U S V' give H = V S (QU)': rotating by V' and dividing by S whitens.
    R = triangular_factor(xp.permute_dims(units, (0, 2, 1)))
    _, s, Vt = xp.linalg.svd(R, full_matrices=True)
    missing = n_units - s.shape[1]
    if missing > 0:
        s = xp.concat([s, xp.zeros((s.shape[0], missing), dtype=s.dtype, device=s.device)], axis=1)
    largest = xp.max(s, axis=1, keepdims=True)
    if layer.constant:
        # Units that hardly differ from their centre: what is left of them is round-off.
        rows = H.shape[2] if root_weight is None else xp.sum(root_weight**2)
        size = xp.sqrt(rows * xp.sum(center**2, axis=1, keepdims=True))
        largest = xp.maximum(largest, size)
    s = xp.maximum(s, FLOOR * xp.where(largest > 0, largest, xp.ones_like(largest)))
    P = Vt / s[:, :, None]
    P_inverse = xp.permute_dims(Vt, (0, 2, 1)) * s[:, None, :]
    if layer.constant:
        P = bordered(P, column=-(P @ center[:, :, None])[:, :, 0])
    return Whitening(layer, center, P, P_inverse)


def bordered(A: Array, corner: Array | float = 1.0, column: Array | None = None) -> Array:
    """Stack of matrices with a leading unit row and column, (M, N, N) to (M, N+1, N+1)."""
    xp = namespace(A)
    M, N = A.shape[0], A.shape[1]
    out = xp.zeros((M, N + 1, N + 1), dtype=A.dtype, device=A.device)
    out[:, 1:, 1:] = A
    out[:, 0, 0] = corner
    if column is not None:
        out[:, 1:, 0] = column
    return out


def _weighted_mean(H: Array, root_weight: Array | None) -> Array:
    xp = namespace(H)
    if root_weight is None:
        return xp.mean(H, axis=2)
    weight = root_weight**2
    return xp.sum(H * weight, axis=2) / xp.sum(weight)
