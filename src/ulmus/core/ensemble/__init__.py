"""Members and their ridge regressions, fitted to rows in memory or to a stream.

An ``Ensemble`` is a hidden layer, the units of y and a ``Regression`` for each ridge parameter.
Belongs here: modules that run passes over rows for all members, or combine members into predictions
and variances. The algebra of one ridge regression is in ``ridge``, that of pairs of members in
``variance``.
"""
