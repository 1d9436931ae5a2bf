"""Schemas in files: TOML or JSON with a table `columns`, or a release that has a schema."""

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dplinear.arguments import rejection, wrong_type

_LARGEST_FILE = 16 * 2**20
_KEYS = {"columns", "derived", "intercept", "row_norm", "unit", "weight"}


def read_content(path: str | os.PathLike[str], where: str) -> Any:
    """Return what a schema file holds, for `Schema.from_dict`; raise where it is no such file."""
    if not isinstance(path, str | os.PathLike):
        raise wrong_type("path", where, "the path of a .toml or .json file", path)
    file = Path(path)
    if file.suffix not in {".toml", ".json"}:
        raise rejection("path", where, "the path of a .toml or .json file", file.name)
    if not file.is_file():
        raise rejection("path", where, "the path of an existing file", file.name)
    if file.stat().st_size > _LARGEST_FILE:
        raise rejection("path", where, "a file of at most 16 MiB", file.name)
    try:
        text = file.read_text(encoding="utf-8")
        content = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:  # not UTF-8, TOML or JSON; or too deep
        rule = f"a well-formed {file.suffix[1:].upper()} file ({error})"
        raise rejection("path", where, rule, file.name) from None
    if isinstance(content, Mapping) and content.get("format") == "dplinear-release":
        content = content.get("schema")  # of suggested bounds, or of any release's table
    return content


def read_declaration(content: Any, where: str) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Return what a schema file declares of columns, and its other options by their names."""
    if not isinstance(content, Mapping) or not isinstance(content.get("columns"), Mapping):
        rule = "a mapping with a table `columns`"  # a file of rows may stand here by mistake
        raise wrong_type("content", where, rule, type(content))
    unknown = sorted(str(key) for key in content if key not in _KEYS)
    if unknown:
        raise rejection("content", where, "made of " + ", ".join(sorted(_KEYS)), ", ".join(unknown))
    options = {key: content[key] for key in _KEYS - {"columns"} if key in content}
    return content["columns"], options
