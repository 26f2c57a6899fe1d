"""The command line, ``ulmus``: commands only call the library. Needs the extra ``ulmus[cli]``."""

from __future__ import annotations


def main() -> None:
    """Run the command line, or say what is missing."""
    try:
        from ulmus.cli.app import app
    except ModuleNotFoundError as error:
        message = f"ulmus: the command line needs {error.name}: pip install 'ulmus[cli]'"
        raise SystemExit(message) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    app(prog_name="ulmus")
