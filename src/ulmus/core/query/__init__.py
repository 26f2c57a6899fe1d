"""Queries of a fit: leave-one-out predictions, joint covariances, kriging, sequential design.

What is computed from a finished fit, for intervals, effects and diagnostics, enters here.
"""
