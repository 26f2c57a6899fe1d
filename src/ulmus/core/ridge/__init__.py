"""Ridge regressions of all members: preconditioner, moments, factor, alpha, smoother, residuals.

Belongs here: the algebra of one regression per member, its factorisation, its ridge parameter, its
coordinates t, its residuals, and sums over pairs of members.
"""
