"""The checks: each returns findings, whose codes and topics are registered in ``finding.CHECKS``.

``calibration`` covers coverage and the predictive distribution, ``residual_correlation`` correlated
errors, ``fit_checks`` misfit, bias, leverage, extrapolation, and rows, members and hidden units,
``target_checks`` the target and its scale.
"""
