"""Variance estimates: the table of the paper, their quadratic forms, and the undersmoothed fit.

Belongs here: what turns coordinates t and noise variances into variances and covariances.
"""
