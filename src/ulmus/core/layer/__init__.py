"""The random hidden layer: its inputs, units, features, derivatives, and linear functionals.

Belongs here: what maps rows of a table to hidden features, and nothing that depends on y.
"""
