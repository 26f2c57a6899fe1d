"""What the noise variance is learned from: left-out residuals of the fit, row by row.

The left-out residual of a row has a mean square of noise x (1/weight + e), with e the error that is
expected of its prediction, in units of the noise; divided by the bracket, its square u^2 is an
estimate of the noise variance there. All squares are in units of the mean noise variance, so that
their logarithms have no unit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy
from ulmus.core.data.source import Block, RowPass, Source
from ulmus.core.ensemble.ensemble import Ensemble

# Squared residuals get this share of the mean noise variance before the logarithm is taken.
LOG_OFFSET = 1e-4
# Logarithms beyond this are not believed, up or down: the offset shows no smaller variance.
LARGEST_LOG = -float(np.log(LOG_OFFSET))
# Mean of |u| over the root of the exponential of the mean of log u^2, for normal u.
NORMAL_RATIO = 1.506
# A residual counts as at most so many times its mean size: tails may be heavy.
LARGEST_RATIO = 5.0


def unit_variance(ensemble: Ensemble) -> np.ndarray:
    """Unit of squared residuals of each output, the mean noise variance, shape (K,)."""
    sigma2 = ensemble.ordered([to_numpy(part.variance.sigma2) for part in ensemble.regressions])
    return np.where(sigma2 > 0, sigma2, 1.0)


def residual_squares(loo: Array, norm: Array, root_weight: Array | None, unit: Array) -> Array:
    """Squares u^2 (K, n) from left-out residuals and expected errors of members, (M, K, n)."""
    xp = namespace(loo)
    weight = 1.0 if root_weight is None else root_weight**2
    u2 = weight * xp.mean(loo, axis=0) ** 2 / (1 + weight * xp.mean(norm, axis=0))
    return u2 / unit[:, None]


def residual_logs(u2: Array) -> Array:
    """Logarithms of squared residuals, the first labels."""
    return namespace(u2).log(u2 + LOG_OFFSET)


def sharper_labels(u2: Array, g: Array) -> Array:
    r"""Labels with less noise, from a first prediction g of log u^2 by a model without the row.

    .. math:: g + 2 \left( \frac{|u|}{c \, e^{g/2}} - 1 \right)

    is the working response of the scoring algorithm for the mean absolute residual. For normal
    residuals it has variance 2.3, where a logarithm has 4.9 because small residuals weigh too
    much in it; a squared residual would have 2 and suffer from heavy tails.
    """
    xp = namespace(u2)
    g = xp.clip(g, min=-LARGEST_LOG, max=LARGEST_LOG)
    ratio = xp.clip(u2**0.5 * xp.exp(-g / 2) / NORMAL_RATIO, max=LARGEST_RATIO)
    return g + 2 * (ratio - 1)


def used_rows(root_weight: Array | None) -> Array | None:
    """One for rows of positive weight and zero for others, as root weights of the labels."""
    if root_weight is None:
        return None
    return namespace(root_weight).astype(root_weight > 0, root_weight.dtype)


# ------------------------------------------------------------ rows that are not kept


@dataclass(frozen=True)
class Labels:
    """Makes the labels of blocks that are not kept.

    Parameters
    ----------
    members : Ensemble
        Members whose left-out residuals are taken.
    output : int
        The output whose noise is learned.
    first : Ensemble or None
        Ensemble for the logarithms; with it, labels are the sharper ones.
    """

    members: Ensemble
    output: int
    first: Ensemble | None = None

    def squares(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Array]]:
        """Blocks with labels as outputs, and the squared residuals (1, n) behind them."""
        members = self.members
        one, unit = slice(self.output, self.output + 1), unit_variance(members)
        unit = like(unit, members.layer.b)[one]
        for block, fits in members.row_fits(blocks):
            xp = namespace(block.y)
            loo = members.ordered([fit.loo for fit in fits], axis=1)
            norms = [xp.broadcast_to(f.left_out_norm[:, None, :], f.residual.shape) for f in fits]
            norm = members.ordered(norms, axis=1)
            u2 = residual_squares(loo[:, one, :], norm[:, one, :], block.root_weight, unit)
            logs = block._replace(y=residual_logs(u2), root_weight=used_rows(block.root_weight))
            if self.first is None:
                yield logs, u2
            else:
                yield logs._replace(y=sharper_labels(u2, left_out(self.first, logs))), u2

    def __call__(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks with labels as outputs."""
        for block, _ in self.squares(blocks):
            yield block


def left_out(logs: Ensemble, block: Block) -> Array:
    """Left-out predictions (K, n) of an ensemble for the outputs of one of its training blocks."""
    ((_, fits),) = logs.row_fits([block])
    unit = logs.units.unit[:, None]
    loo = logs.ordered([namespace(unit).mean(fit.loo, axis=0) for fit in fits])
    return block.y - loo * unit


@dataclass(frozen=True)
class LabelledSource:
    """The rows of a source with labels as outputs, made block by block."""

    source: Source
    labels: Labels

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over the labelled blocks."""
        return self.source.reduce(LabelledPass(row_pass, self.labels))

    def sample(self, n_rows: int) -> Block:
        """Some rows with their labels."""
        (block,) = self.labels([self.source.sample(n_rows)])
        return block

    def for_width(self, width: int) -> LabelledSource:
        """The same rows in blocks that suit the hidden features which the labels are made of."""
        width = max(width, self.labels.members.layer.width)
        return replace(self, source=self.source.for_width(width))


@dataclass(frozen=True)
class LabelledPass:
    """A pass over blocks whose outputs are replaced by labels."""

    row_pass: RowPass
    labels: Labels

    @property
    def title(self) -> str:
        """What the pass is called while it runs."""
        return f"noise model: {getattr(self.row_pass, 'title', 'reading')}"

    def __call__(self, blocks: Iterable[Block]) -> Any:
        """Result of the pass."""
        return self.row_pass(self.labels(blocks))
