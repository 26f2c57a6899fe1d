"""Suggestions for correlated errors, as part of messages."""

from __future__ import annotations

from ulmus.messages import Setting

# Structures of ulmus.noise, each with the option of the command line that implies it.
CORRELATED_NOISE = (
    Setting(
        "time",
        phrase="use {} for a time series",
        python="use noise=AR1() of ulmus.noise for a time series",
    ),
    Setting("groups", phrase="{} for clusters", python="Clustered() for clusters"),
    Setting("coords", phrase="{} for spatial data", python="Exponential() for spatial data"),
    Setting("n_neurons", phrase="a larger {} if rows are merely sorted by an input"),
)
