"""Variance estimates: the table of the paper, their quadratic forms, and the undersmoothed fit.

What turns coordinates t and noise variances into variances and covariances enters here.
"""
