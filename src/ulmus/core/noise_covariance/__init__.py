r"""Noise that hangs together: along time, in space, in groups.

If the noise of the rows has covariance :math:`\Sigma = L L'`, every variance is a sum of products
:math:`(Q_m L)(Q_l L)'`: with the coordinates of the rows replaced by ``root.applied(Q)``, all forms
are those of independent noise of variance one. A module for each word:

    places          where the rows are: times, coordinates, groups
    kernels         correlation as a function of distance
    running         running sums over rows, in blocks, for the roots of time and groups
    roots           roots L of covariances, applied to coordinates of rows
    spectral        a root by frequencies, of the quadratic spectral kernel
    neighbours      a root for many rows in space, by nearest neighbours
    families        what a covariance is made of: terms, their scales and shares, a nugget
    whitening       solves with such covariances, in time, in space, for few rows and many
    smoothed_space  the directions of the rows that the smoother keeps
    likelihood      scales and shares from what the smoother leaves of y
    fitted          what came out: parameters, their errors, the root they make
    kriging         weights by which the noise of rows predicts noise elsewhere
    checks          whether residuals hang together
"""
