"""Finished chunks on disk, so that an interrupted run continues from what it has."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ulmus.datasets import FloatArray

Chunk = dict[str, FloatArray]


@dataclass(frozen=True)
class Store:
    """Chunks in a folder, or nowhere if there is none.

    Parameters
    ----------
    folder : path or None
        Where the files are; made when the first one is written.
    """

    folder: Path | None

    def path(self, key: dict[str, Any], span: range) -> Path | None:
        """File of a chunk; its name holds a digest of everything the numbers depend on."""
        if self.folder is None:
            return None
        text = json.dumps(key, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return self.folder / f"{key['study']['name']}-{digest}-{span.start}-{span.stop}.npz"

    def load(self, key: dict[str, Any], span: range) -> Chunk | None:
        """A finished chunk, or None; a file that cannot be read counts as missing."""
        path = self.path(key, span)
        if path is None or not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        except (OSError, ValueError, zipfile.BadZipFile):
            return None

    def save(self, key: dict[str, Any], span: range, chunk: Chunk) -> None:
        """Write a chunk; an interruption leaves either all of it or nothing."""
        path = self.path(key, span)
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez(file, allow_pickle=False, **chunk)
        os.replace(partial, path)
