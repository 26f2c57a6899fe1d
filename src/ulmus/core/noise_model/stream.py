"""The noise model of rows that are not kept: targets are computed block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ulmus.core.arrays.backend import Array, like, namespace, to_numpy
from ulmus.core.data.source import Block, RowPass, SamplePass, Source
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.regression import sample_scaling
from ulmus.core.ensemble.stream import fitted_stream
from ulmus.core.layer.inputs import Inputs
from ulmus.core.noise_model.model import (
    LOG_REGRESSION,
    MAP_ROWS,
    NOISE_MEMBERS,
    SEED,
    SHARES,
    NoiseVarianceModel,
    calibrated,
    calibration_sums,
    corrected_squares,
    log_of_mean,
    noise_layer,
    relative_errors,
    residual_logs,
    residual_squares,
    unit_variance,
    used_rows,
    working_response,
)


def streamed_noise_model(
    source: Source, inputs: Inputs, ensemble: Ensemble, min_gain_in_se: float
) -> tuple[NoiseVarianceModel, StreamedVariances]:
    """Model of rows that are not kept; and the noise variances of blocks by models without rows."""
    members = ensemble.members(slice(NOISE_MEMBERS))
    logs, sums, every = [], [], []
    for k in range(ensemble.n_outputs):
        targets = Targets(members, k)
        rows = TargetSource(source, targets).for_width(1)
        sample = rows.reduce(SamplePass(MAP_ROWS, SEED)).block
        layer = noise_layer(inputs, sample)
        scaling = sample_scaling(sample, layer)
        first = fitted_stream(rows, layer, LOG_REGRESSION, scaling)
        targets = replace(targets, first=first, mean=log_of_mean(first, sample))
        again = replace(rows, targets=targets)
        logs.append(fitted_stream(again, layer, LOG_REGRESSION, scaling))
        every.append(targets)
        sums.append(rows.source.reduce(CalibrationPass(targets, logs[k])))
    model = calibrated(logs, ensemble, np.concatenate(sums, axis=2), min_gain_in_se)
    return model, StreamedVariances(model, tuple(every))


@dataclass(frozen=True)
class Targets:
    """Targets of the regressions, for blocks of rows."""

    members: Ensemble  # members whose leave-one-out residuals are used
    output: int  # the output whose noise is modelled
    first: Ensemble | None = None  # the first regression; with it, targets are the working response
    mean: float = 0.0  # logarithm of the mean variance by the first regression

    def squares(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Array, Array]]:
        """Blocks with targets as outputs, and the squares and corrected squares, each (1, n)."""
        members = self.members
        one, unit = slice(self.output, self.output + 1), unit_variance(members)
        unit = like(unit, members.layer.b)[one]
        for block, fits in members.row_fits(blocks):
            xp = namespace(block.y)
            loo = members.ordered([fit.loo for fit in fits], axis=1)
            leverages = [(fit.leave_out_leverage[:, None, :], fit.residual.shape) for fit in fits]
            loo_leverage = members.ordered([xp.broadcast_to(*one) for one in leverages], axis=1)
            error = relative_errors(loo_leverage[:, one, :], block.root_weight)
            u2 = residual_squares(loo[:, one, :], error, block.root_weight, unit)
            logs = block._replace(y=residual_logs(u2), root_weight=used_rows(block.root_weight))
            if self.first is None:
                yield logs, u2, u2
            else:
                g = leave_one_out_predictions(self.first, logs)
                corrected = corrected_squares(u2, error, g, self.mean)
                yield logs._replace(y=working_response(corrected, g)), u2, corrected

    def __call__(self, blocks: Iterable[Block]) -> Iterator[Block]:
        """Blocks with targets as outputs."""
        for block, _, _ in self.squares(blocks):
            yield block


def leave_one_out_predictions(logs: Ensemble, block: Block) -> Array:
    """Leave-one-out predictions (K, n) of the outputs of a training block."""
    ((_, fits),) = logs.row_fits([block])
    unit = logs.units.unit[:, None]
    loo = logs.ordered([namespace(unit).mean(fit.loo, axis=0) for fit in fits])
    return block.y - loo * unit


@dataclass(frozen=True)
class TargetSource:
    """The rows of a source with targets as outputs."""

    source: Source
    targets: Targets

    def reduce(self, row_pass: RowPass) -> Any:
        """Run a pass over the blocks with targets."""
        return self.source.reduce(TargetPass(row_pass, self.targets))

    def sample(self, n_rows: int) -> Block:
        """Some rows with their targets."""
        (block,) = self.targets([self.source.sample(n_rows)])
        return block

    def for_width(self, width: int) -> TargetSource:
        """The same rows in blocks for this many features, or those of the members if more."""
        width = max(width, self.targets.members.layer.width)
        return replace(self, source=self.source.for_width(width))


@dataclass(frozen=True)
class TargetPass:
    """A pass over blocks whose outputs are replaced by targets."""

    row_pass: RowPass
    targets: Targets

    @property
    def title(self) -> str:
        """Title of the pass in a progress bar."""
        return f"Noise model: {getattr(self.row_pass, 'title', 'reading rows').lower()}"

    def __call__(self, blocks: Iterable[Block]) -> Any:
        """Result of the pass."""
        return self.row_pass(self.targets(blocks))


@dataclass(frozen=True)
class CalibrationPass:
    """Calibration sums of the second regression, by its leave-one-out predictions."""

    title: ClassVar[str] = "Noise model: calibration"

    targets: Targets
    logs: Ensemble

    def __call__(self, blocks: Iterable[Block]) -> np.ndarray:
        """Sums over the blocks for squares and corrected squares, shape (2, 6 + 4 S, 1)."""
        total = np.zeros((2, 6 + 4 * len(SHARES), 1))
        for block, *squares in self.targets.squares(blocks):
            g = leave_one_out_predictions(self.logs, block)
            total += np.stack([calibration_sums(one, g, block.root_weight) for one in squares])
        return total


@dataclass(frozen=True)
class StreamedVariances:
    """Noise variances of blocks of rows that are not kept."""

    model: NoiseVarianceModel
    targets: tuple[Targets, ...]  # targets of the regressions of each output

    def __call__(self, block: Block) -> np.ndarray:
        """Variances of the rows of a block, each by a model fitted without it, shape (K, b)."""
        logs = [np.zeros((1, block.y.shape[1]))] * len(self.targets)
        for k, (one, targets) in enumerate(zip(self.model.logs, self.targets, strict=True)):
            if one is not None:
                ((rows, _, _),) = targets.squares([block])
                logs[k] = to_numpy(leave_one_out_predictions(one, rows))
        return self.model.from_logs(np.concatenate(logs))
