"""Validation of points, and conversion of results to the shape and array type of the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ulmus.core.arrays.backend import dense, is_foreign, like, to_numpy
from ulmus.core.data.scaling import n_extrapolated
from ulmus.estimators._columns import encoded_points
from ulmus.estimators._validation import checked_points, require_dense
from ulmus.exceptions import ExtrapolationWarning, InputError, warn
from ulmus.messages import Message, Setting

# The inputs that are dates: the name of the column and its median step in days.
DateInputs = dict[int, tuple[str, float]]


class PointConversion:
    """Validation of points and conversion of results."""

    device: str | None
    fitted_: Any

    def _checked_points(self, X: Any) -> Any:
        """Validated points, with warnings about extrapolation."""
        X = self._valid_points(X)
        self._warn_about_extrapolation([X])
        return X

    def _valid_points(self, X: Any) -> Any:
        """Validated points."""
        check_is_fitted(self)
        schema = vars(self).get("columns_")
        if schema is not None:
            points = encoded_points(schema, X)
            if not len(points):
                text = "X has no rows"
                raise InputError(Message("no-rows", text, suggestions=("give at least one",)))
            return points
        X = checked_points(self, X)
        require_dense(X, self.device, self.fitted_.ensemble.layer.W)
        return X

    def _warn_about_extrapolation(self, blocks: Iterable[Any]) -> None:
        """Warn about points outside the training range, and about unknown categories."""
        inputs, scale = self.fitted_.ensemble.layer.inputs, self.fitted_.scale
        dates = self._date_inputs()
        margin = 0.1 * (scale.high - scale.low)
        margin[list(dates)] = np.inf  # forecasts have a warning of their own
        outside, total, unseen, forecasts = 0, 0, Counter[int](), Counter[int]()
        for X in blocks:
            total += X.shape[0]
            outside += n_extrapolated(X, scale, margin)
            for j, (_, step) in dates.items():
                days = to_numpy(X[:, j])
                beyond = (days < scale.low[j] - step) | (days > scale.high[j] + step)
                forecasts[j] += int(np.sum(beyond))
            unseen.update(inputs.unknown_values(dense(X)) if inputs.one_hot else {})
        if outside:
            text = (
                f"{outside} of {total} points lie outside the range of the training inputs by more "
                "than a tenth of it; predictions and error bars there are extrapolations"
            )
            warn(Message("outside-range", text, topic="extrapolation"), ExtrapolationWarning)
        if any(forecasts.values()):
            self._warn_about_dates({j: n for j, n in forecasts.items() if n}, dates, total)
        schema = vars(self).get("columns_")
        for j, count in unseen.items():
            name = j if schema is None else repr(schema.features[j])
            text = (
                f"{count} of {total} points have a value of input {name} that is none of its "
                "one-hot levels, so that its indicators are zero there"
            )
            phrase = "use {} if its values are not categories"
            remedy = Setting("expand_inputs", "normal_scores", phrase)
            message = Message("unseen-level", text, suggestions=(remedy,), topic="extrapolation")
            warn(message, ExtrapolationWarning)

    def _date_inputs(self) -> DateInputs:
        schema = vars(self).get("columns_")
        if schema is None:
            return {}
        return {schema.origins.index(name): (name, step) for name, step in schema.date_steps}

    def _warn_about_dates(self, counts: dict[int, int], dates: DateInputs, total: int) -> None:
        """Warn of dates before the first or after the last ones of the training rows."""
        schema, scale, columns = vars(self)["columns_"], self.fitted_.scale, []
        for j, count in counts.items():
            name = dates[j][0]
            first, last = (schema.shown(name, float(end[j])) for end in (scale.low, scale.high))
            columns.append(f"{count} of {total} points have {name!r} outside {first} to {last}")
        text = (
            f"dates lie outside those of the training rows: {', '.join(columns)}; seasons continue "
            "there, but the trend is not extrapolated reliably, and intervals cover less than "
            "their level"
        )
        remedies = (
            "refit the model when later rows are available",
            "fit it to the residuals of a trend that can be justified",
        )
        message = Message("outside-dates", text, suggestions=remedies, topic="extrapolation")
        warn(message, ExtrapolationWarning)

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
