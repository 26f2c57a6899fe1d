"""Progress of methods that may take long, printed for ``verbose`` above 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from ulmus.progress import Lines, reported_to

Method = TypeVar("Method", bound=Callable[..., Any])


def prints_progress(method: Method) -> Method:
    """A method that prints its stages, and their details for ``verbose`` above 1."""

    @wraps(method)
    def printing(self: Any, *args: Any, **options: Any) -> Any:
        lines = Lines(print, details=self.verbose > 1) if self.verbose else None
        with reported_to(lines):
            return method(self, *args, **options)

    return cast(Method, printing)
