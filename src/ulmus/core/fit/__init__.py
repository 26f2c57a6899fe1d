"""From rows and a specification to a fit, and what a fit computes.

``build(source, spec)`` is the only way from rows to a ``Fit``: scale of the inputs, input map,
hidden layer, regressions and noise model. A ``FitSpec`` contains everything that determines a fit,
apart from the rows. ``Fit`` is immutable; results that are computed on first use depend on its
fields alone. Belongs here: what composes the subpackages below; formulas of a single step belong
there.
"""
