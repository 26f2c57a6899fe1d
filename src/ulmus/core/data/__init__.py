"""Rows of data: sources of row blocks, random samples, scaling, and blocks for cross-validation.

Belongs here: what concerns rows before hidden units are computed.
"""
