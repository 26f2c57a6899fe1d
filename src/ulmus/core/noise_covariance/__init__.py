r"""Covariance of the noise between rows: in time, in space, within groups.

If the noise of the rows has covariance :math:`\Sigma = L L'`, every variance is a sum of products
:math:`(L'Q_m)'(L'Q_l)`: with the coordinates of the rows replaced by ``root.applied(Q')``, all
forms are those of independent noise of variance one. Only the locations of the rows are used:
nothing here depends on members, layers or fits.

    locations           times, coordinates and groups of the rows
    kernels             correlation as a function of distance
    structure           parametric covariances: terms with scales and shares, a nugget
    hac                 residual products weighted by a kernel (Newey-West, Conley, clusters)
    spec                the covariance assumed for a fit, and the locations of its rows
    reml                restricted likelihood of scales and shares, and its curvature
    estimate            estimated scales and shares, and the covariance that they imply
    smoothed_space      directions of the rows that the smoother retains
    whitening           solves with a covariance: banded, dense or by nearest neighbours
    roots               roots L of covariances, applied to coordinates of rows
    recursions          cumulative sums over blocks of rows, for roots in time and groups
    quadratic_spectral  a root by frequencies, of the quadratic spectral kernel
    vecchia             a root for many rows in space, by nearest neighbours
    kriging_weights     weights by which the noise of the rows predicts noise elsewhere
    diagnostics         correlation of residuals: correlogram, variogram and tests
    errors              errors about covariances and locations
"""
