"""Rows of data: sources of row blocks, random samples, scaling, and blocks for cross-validation.

What concerns rows before any hidden unit is computed enters here.
"""
