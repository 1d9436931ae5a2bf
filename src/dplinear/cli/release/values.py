"""Values of flags that are not one number or one text."""

from collections.abc import Mapping
from typing import Any

from dplinear.cli.errors import CommandError
from dplinear.cli.settings import split_names


def read(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with texts of several values read."""
    return {key: _READERS.get(key, _same)(key, value) for key, value in said.items()}


def _same(_: str, value: Any) -> Any:
    return value


def _names(_: str, value: Any) -> Any:
    return split_names(value)


def _count(key: str, value: Any) -> Any:
    """Return a whole number where there is one; otherwise the text."""
    return int(value) if isinstance(value, str) and value.strip().isdecimal() else _same(key, value)


def _numbers(key: str, value: Any) -> Any:
    """Return one number, or several between commas."""
    if isinstance(value, str):
        try:
            value = [float(part) for part in value.replace(",", " ").split()]
        except ValueError:
            name = key.replace("_", "-")
            raise CommandError(f"The value of --{name} must be numbers, between commas.") from None
        return value[0] if len(value) == 1 else value
    return value


def _pair(key: str, value: Any) -> Any:
    found = _numbers(key, value)
    if isinstance(found, list):
        return tuple(found)
    return found


_READERS = {
    "by": _names,
    "columns": _names,
    "features": _names,
    "rows": _count,
    "scale": _numbers,
    "shares": _pair,
    "within": _pair,
}
