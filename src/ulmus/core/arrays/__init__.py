"""Arrays of any library: dispatch to NumPy, torch and CuPy, and factorisations that do not fail.

Belongs here: functions without statistical content, and all that names an array library.
"""
