"""``python -m ulmus.cli``."""

from ulmus.cli import main

main()
