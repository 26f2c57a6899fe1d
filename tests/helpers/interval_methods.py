"""Intervals by every method and for every target."""

LEVELS = [0.5, 0.8, 0.9]
PREDICTION_METHODS = ["auto", "jackknife+", "gaussian"]
TARGETS = ["function", "expectation"]


def every_interval(model, X, levels):
    """Prediction intervals of each method and confidence intervals of each target, by name."""
    out = {m: model.predict_interval(X, levels, method=m) for m in PREDICTION_METHODS}
    for target in TARGETS:
        for method in ("t", "normal"):
            out[f"{target}, {method}"] = model.predict_interval(
                X, levels, kind="confidence", target=target, method=method
            )
    return out
