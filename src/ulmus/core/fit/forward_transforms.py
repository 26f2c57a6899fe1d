"""Outputs of blocks on the link scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ulmus.core.arrays.backend import like, to_numpy
from ulmus.core.data.source import Block
from ulmus.core.response.transformer import AnyTransform
from ulmus.exceptions import InputError
from ulmus.messages import Message


@dataclass(frozen=True)
class ForwardTransforms:
    """Maps the outputs of blocks to the link scale."""

    transforms: tuple[AnyTransform, ...]

    def __call__(self, block: Block) -> Block:
        """The block with transformed outputs."""
        y = to_numpy(block.y).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.stack([one.forward(part) for one, part in zip(self.transforms, y, strict=True)])
        if block.root_weight is not None:  # rows of weight zero may have impossible outputs
            z = np.where(to_numpy(block.root_weight) > 0, z, 0.0)
        _require_finite(z, y, self.transforms)
        return block._replace(y=like(z.astype(to_numpy(block.y).dtype), block.y))


def _require_finite(z: np.ndarray, y: np.ndarray, transforms: Sequence[AnyTransform]) -> None:
    """Raise an error for outputs without a transformed value."""
    if np.all(np.isfinite(z)):
        return
    k, i = np.argwhere(~np.isfinite(z))[0]
    text = f"maps the value {y[k, i]:g} of y to {z[k, i]:g}"
    remedies = "use another transformation", "exclude such rows"
    name = transforms[k].name
    raise InputError(Message("not-transformable", text, "target_transform", name, remedies))
