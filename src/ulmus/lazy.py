"""Packages whose public names and modules are imported with their first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def lazy_package(
    package: str, names: Mapping[str, str], modules: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The functions ``__getattr__`` and ``__dir__`` of a package.

    ``names`` are its public names, each with the module of the package that defines it, and
    ``modules`` are modules that are attributes of the package.
    """

    def attribute(name: str) -> Any:
        """A public name or module, imported with its first use."""
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{names[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def attributes() -> list[str]:
        """All names of the package, imported or not."""
        return sorted({*vars(sys.modules[package]), *names, *modules})

    return attribute, attributes
