"""The random hidden layer: its inputs, units, features, derivatives, and linear functionals.

What maps rows of a table to hidden features enters here, and nothing that depends on y.
"""
