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


def _groups(key: str, value: Any) -> Any:
    """Return names of columns; or groups between semicolons, each of columns and their levels.

    "hospital=north, sex=f; hospital=south, sex=m" is two of them.
    """
    if not isinstance(value, str) or "=" not in value:
        return _names(key, value)
    found = []
    for group in filter(str.strip, value.split(";")):
        pairs = [part.partition("=") for part in group.split(",")]
        names = [name.strip() for name, _, _ in pairs]
        if not all(sign for _, sign, _ in pairs) or len(set(names)) < len(names):
            told = "The value of --by must be names of columns, or groups of levels."
            hint = (
                "write --by hospital,sex for all groups, or list some of them: --by "
                '"hospital=north, sex=f; hospital=south, sex=m". Levels with such marks go into a '
                "file of settings, with --config."
            )
            raise CommandError(told, hint)
        found.append({name.strip(): level.strip() for name, _, level in pairs})
    return found


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


def _guarantee(key: str, value: Any) -> Any:
    """Return ε and δ between commas as a guarantee, or ε alone."""
    found = _numbers(key, value)
    if not isinstance(found, float | int | list):
        return found
    from dplinear.privacy.guarantees import ApproxDP, PureDP

    amounts = found if isinstance(found, list) else [found]
    if len(amounts) > 2:
        raise CommandError(f"The value of --{key} must be ε, or ε and δ between commas.")
    return PureDP(*amounts) if len(amounts) == 1 else ApproxDP(*amounts)


def _counts(_: str, value: Any) -> Any:
    """Return whole numbers between commas; any other text as it is."""
    if not isinstance(value, str):
        return value
    parts = value.replace(",", " ").split()
    return [int(part) for part in parts] if all(map(str.isdecimal, parts)) else value


def _weight(key: str, value: Any) -> Any:
    """Return a column's name and two bounds, the name perhaps of several words."""
    if not isinstance(value, str):
        return value
    parts = value.replace(",", " ").rsplit(maxsplit=2)
    return (parts[0], *_pair(key, " ".join(parts[1:]))) if len(parts) == 3 else value


_READERS = {
    "by": _groups,
    "candidates": _counts,
    "columns": _names,
    "features": _names,
    "planned": _guarantee,
    "rows": _count,
    "scale": _numbers,
    "scores": _names,
    "shares": _pair,
    "weight": _weight,
    "within": _pair,
}
