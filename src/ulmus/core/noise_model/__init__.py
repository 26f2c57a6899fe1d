"""The noise variance as a function of the inputs, by a regression of log squared residuals.

``model`` fits rows in memory, ``stream`` rows that are not kept. Belongs here: models that predict
the variance of a new observation; noise assumptions of the standard errors are in ``noise``.
"""
