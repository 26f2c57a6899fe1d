"""Arrays of any library: dispatch to NumPy, torch and CuPy, and factorisations that do not fail.

Functions that know nothing of statistics enter here, and all that names an array library.
"""
