"""``python -m ulmus.cli``."""

from ulmus.cli import app

app(prog_name="ulmus")
