"""A schema from flags: `--column "age 0 100"`, `--column "smoker no,yes"`, or a file of them."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplinear.cli.errors import CommandError
from dplinear.cli.settings import split_names

if TYPE_CHECKING:
    from dplinear.schema import Schema

_TYPES = ("number", "integer", "date")
HINT = 'write --column "age 0 100", --column "smoker no,yes" or --column "member boolean".'


def read_schema(said: dict[str, Any]) -> "Schema":
    """Return the schema that a command's arguments describe, and take them out of `said`.

    `schema` is a file; `columns` a table of a file of settings; `column` the flags, which add to
    both and win.
    """
    from dplinear.schema import Schema

    path = said.pop("schema", None)
    if isinstance(path, str) and Path(path).suffix not in {".toml", ".json"}:
        told = f"--schema takes a .toml or .json file, and '{Path(path).name}' is none."
        raise CommandError(told, HINT)
    content = {} if path is None else Schema.from_file(path).to_dict()
    table = said.pop("columns", {})
    if not isinstance(table, dict):
        hint = "begin it with [columns], then lines such as age = [0, 100]."
        raise CommandError("The setting 'columns' must be a table.", hint)
    columns = content.get("columns", {}) | table
    columns |= _read_flags(said.pop("column", []))
    if not columns:
        raise CommandError("The command does not say which columns there are.", HINT)
    for key in ("derived", "row_norm"):
        if key in said:
            content[key] = said.pop(key)
    if isinstance(content.get("derived"), list):
        content["derived"] = split_names(content["derived"])
    return Schema.from_dict(content | {"columns": columns})


def _read_flags(texts: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, declared in map(read_column, texts):
        if name in found:
            hint = "say it once: it is not for the order of flags to decide what is public."
            raise CommandError(f"The column '{name}' is described twice.", hint)
        found[name] = declared
    return found


def read_column(text: str) -> tuple[str, Any]:
    """Return a column's name and its declaration: bounds, levels, or "boolean"."""
    words = text.split()
    if len(words) == 2 and words[1] == "boolean":
        return words[0], "boolean"
    if len(words) >= 2 and "," in words[-1]:
        levels = words[-1].split(",")
        if len(levels) == 2 and all(map(_is_date, levels)):
            return " ".join(words[:-1]), {"type": "date", "low": levels[0], "high": levels[1]}
        numbers = [_number(level) for level in levels]
        chosen = levels if None in numbers else numbers
        return " ".join(words[:-1]), {"type": "category", "levels": chosen}
    if len(words) >= 3:
        kind = words[-3] if len(words) > 3 and words[-3] in _TYPES else None
        name = " ".join(words[: -3 if kind else -2])
        low, high = words[-2:]
        if kind == "date" or (kind is None and _is_date(low) and _is_date(high)):
            return name, {"type": "date", "low": low, "high": high}
        if None not in {_number(low), _number(high)}:
            return name, {"type": kind or "number", "low": low, "high": high}
    raise CommandError(f"The column '{text}' has no bounds and no levels.", HINT)


def _number(text: str) -> float | int | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _is_date(text: str) -> bool:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10
