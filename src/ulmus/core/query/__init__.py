"""Queries of a fit: leave-one-out predictions, joint covariances, kriging, sequential design.

Belongs here: what is computed from a finished fit, for intervals, effects and diagnostics, such as
linear terms of dropped inputs.
"""
