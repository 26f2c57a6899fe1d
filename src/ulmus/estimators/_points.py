"""Points in, answers out: checks of the points, and results in their shape and array type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.backend import dense, is_foreign, like
from ulmus.core.data.feature_scaling import far_outside
from ulmus.estimators._validation import checked_points, require_dense
from ulmus.exceptions import ExtrapolationWarning, warn


class Points:
    """What every question about points needs before and after it is answered."""

    device: str | None
    fitted_: Any

    def _checked_points(self, X: Any) -> Any:
        """Points that can be predicted; those far outside the training range warn."""
        X = self._valid_points(X)
        self._warn_outside([X])
        return X

    def _valid_points(self, X: Any) -> Any:
        """Points that can be predicted, wherever they are."""
        check_is_fitted(self)
        X = checked_points(self, X)
        require_dense(X, self.device, self.fitted_.ensemble.layer.W)
        return X

    def _warn_outside(self, blocks: Iterable[Any]) -> None:
        """Warn about points far outside the training range, and about values never seen."""
        outside, total, unseen = 0, 0, Counter[int]()
        for X in blocks:
            total += X.shape[0]
            outside += far_outside(X, self.fitted_.scale)
            unseen.update(self._unseen_levels(X))
        if outside:
            warn(
                f"{outside} of {total} points lie outside the range of the training inputs "
                "by more than a tenth of it; predictions and error bars there rest on "
                "extrapolation.",
                ExtrapolationWarning,
            )
        for j, count in unseen.items():
            warn(
                f"{count} of {total} points have a value of input {j} that no training row "
                "had, of those that its levels were taken from; its indicator inputs are zero "
                "there. Use expand_inputs='normal_scores' for an input whose values are not categories.",
                ExtrapolationWarning,
            )

    def _unseen_levels(self, X: Any) -> dict[int, int]:
        """Points whose value is none of an input's levels, counted for each such input."""
        inputs = self.fitted_.ensemble.layer.inputs
        if not inputs.levels:
            return {}
        return inputs.unseen(dense(X))

    def _output(self, values: np.ndarray, X: Any) -> Any:
        """Result in the shape of y, and in the array type and precision of X."""
        return self._like_points(values[:, 0] if self.fitted_.one_output else values, X)

    def _interval_output(self, bounds: np.ndarray, X: Any, one_level: bool) -> Any:
        """Bounds (2, k, p, K) in the shape of y, MAPIE's order of axes and the dtype of X."""
        intervals = np.transpose(bounds, (2, 3, 0, 1))
        if self.fitted_.one_output:
            intervals = intervals[:, 0]
        return self._like_points(intervals[..., 0] if one_level else intervals, X)

    def _like_points(self, values: np.ndarray, X: Any) -> Any:
        """Result in the array type and precision of X."""
        return like(values, X) if is_foreign(X) else values.astype(X.dtype, copy=False)
