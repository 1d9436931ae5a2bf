"""The lines of a shell that do what the Python call of a plan does."""

import ast
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_PLACEHOLDERS = {"data": "DATA", "target": "--target NAME"}
_KINDS = {"PureDP": "epsilon", "ZCDP": "rho", "GDP": "mu", "MIDP": "bits"}
_FOLLOWING = {"regress": "regress {file} --target NAME", "pca": "pca {file} --k {0}"}


def as_command(
    call: str,
    described: str = "--schema FILE",
    output: str = "FILE",
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Return the command that stands for a call of a gate, for columns that are `described`.

    `settings` are those of a file that the command names: what they say is not said again.
    """
    gate, _ = _parts(call)
    words = ["dplinear release", _name(gate).removeprefix("release_")]
    placeholders = _PLACEHOLDERS | {"schema": described}
    words += [
        placeholders.get(each.id, each.id) for each in gate.args if isinstance(each, ast.Name)
    ]
    words += [
        _flag(str(each.arg), each.value) for each in gate.keywords if not _is_said(each, settings)
    ]
    return " ".join([*words, f"--output {output}"])


def as_commands(call: str) -> tuple[str, str]:
    """Return the command that releases, and the one that reads the file it writes.

    Words in capitals are the user's: a table, a schema, a release, and the name of the target.
    """
    gate, after = _parts(call)
    file = "RELEASE.parquet" if _name(gate) == "release_rows" else "RELEASE.json"
    method = "" if after is None else _name(after)
    said = [ast.unparse(each) for each in ([] if after is None else after.args)]
    following = _FOLLOWING.get(method, "report {file}").format(*said, file=file)
    return as_command(call, "--schema SCHEMA.json", file), f"dplinear {following}"


def _parts(call: str) -> tuple[Any, Any]:
    """Return the call of a gate, and that of what is done with the release afterwards, if any."""
    node: Any = ast.parse(call, mode="eval").body
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
        return node.func.value, node
    return node, None


def _name(node: Any) -> str:
    return str(node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id)


def _is_said(given: ast.keyword, settings: Mapping[str, Any]) -> bool:
    """Return whether settings hold an argument: the user's own column, or the same value."""
    name, value = str(given.arg), given.value
    if isinstance(value, ast.Name):
        return name in settings
    return isinstance(value, ast.Constant) and settings.get(name) == value.value


def _flag(name: str, value: ast.expr) -> str:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):  # guarantee=ZCDP(0.1)
        numbers = " ".join(ast.unparse(each) for each in value.args)
        return f"--{_KINDS[value.func.id]} {numbers}"
    if isinstance(value, ast.Name):  # unit=unit: the user's own column
        return f"--{name} COLUMN"
    text = str(value.value) if isinstance(value, ast.Constant) else ast.unparse(value)
    return f"--{name.replace('_', '-')} {shlex.quote(text)}"
