"""The map of the inputs, learned by marginal likelihood, and the sensitivity to each input.

A few probe networks with fixed hidden units are Bayesian ridge regressions, and the map maximises
their marginal likelihood. Belongs here: what estimates or evaluates a map.
"""
