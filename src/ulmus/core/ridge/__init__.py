"""Ridge regressions of all members: preconditioner, moments, factor, alpha, smoother, residuals.

The algebra of one regression per member enters here: its factorisation, its ridge parameter, its
coordinates t, its residuals, and sums over pairs of members.
"""
