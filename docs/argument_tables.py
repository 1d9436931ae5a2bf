"""Tables of arguments: every public function's, from its signature and `arguments.toml`."""

import inspect
import re
import tomllib
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any

import dplinear
from dplinear.ledger import AnyLedger
from dplinear.privacy.guarantees import Guarantee
from dplinear.schema import SchemaLike

WORDS = Path(__file__).parent / "arguments.toml"
BLOCK = re.compile(r"^::: (?P<path>dplinear\.[\w.]+)$", re.MULTILINE)
HEADING = re.compile(r'<h3 id="(?P<path>dplinear\.[\w.]+)"')
TABLE = re.compile(r"<table>\n<thead>\n<tr>\n<th>argument</th>.*?</table>", re.DOTALL)
MEMBERS = '<div class="doc doc-children">'
OWN = "the mechanism's"  # the default of an option that only some mechanisms have
_ALIASES = {Guarantee: "Guarantee", AnyLedger: "ledger", SchemaLike: "Schema or mapping"}


@dataclass(frozen=True)
class Argument:
    """An argument as the reference shows it."""

    name: str
    type: str
    default: str
    values: str
    meaning: str


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put a table of arguments behind every public function or class of a page."""
    return BLOCK.sub(_with_table, markdown)


def on_page_content(content: str, **_: Any) -> str:
    """Put the table of a class before its members, where a function has it."""
    for found in reversed(list(TABLE.finditer(content))):
        start, end = found.span()
        heads = [name for name in HEADING.finditer(content, 0, start) if _is_own(name)]
        members = content.find(MEMBERS, heads[-1].end() if heads else start)
        if 0 <= members < start:
            before, after = content[:members], content[members:start]
            content = before + found[0] + after + content[end:]
    return content


def _is_own(heading: re.Match[str]) -> bool:
    return heading["path"].rpartition(".")[2] in documented()


def _with_table(found: re.Match[str]) -> str:
    name = found["path"].rpartition(".")[2]
    if name not in documented():
        return found[0]
    return f"{found[0]}\n\n{table(arguments_of(name))}\n"


def table(arguments: list[Argument]) -> str:
    """Return the table of some arguments in Markdown."""
    heads = ("argument", "type", "default", "values", "meaning")
    lines = [
        (f"`{each.name}`", each.type, each.default, each.values, each.meaning) for each in arguments
    ]
    rows = [f"| {' | '.join(_cell(text) for text in line)} |" for line in (heads, *lines)]
    return "\n".join([rows[0], f"|{'---|' * len(heads)}", *rows[1:]])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


@cache
def documented() -> dict[str, Callable[..., Any]]:
    """Return what of the public names takes arguments that a user gives."""
    found = {name: getattr(dplinear, name) for name in dplinear.__all__ if name != "__version__"}
    return {name: thing for name, thing in found.items() if _is_called(thing)}


def _is_called(thing: Any) -> bool:
    if inspect.isclass(thing) and (issubclass(thing, Exception | Enum) or is_protocol(thing)):
        return False
    return bool(inspect.signature(thing).parameters)


def is_protocol(thing: type) -> bool:
    """Return whether a class only says what others have."""
    return bool(getattr(thing, "_is_protocol", False))


def arguments_of(name: str) -> list[Argument]:
    """Return the arguments of a public function or class; what has no words raises KeyError."""
    words = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    known = words["shared"] | words.get(name, {})
    arguments = []
    for each, kind, default in parameters(documented()[name]):
        if each not in known:
            raise KeyError(f"{WORDS.name} has no words for {each} of {name}")
        arguments.append(Argument(each, type_name(kind), default, *known[each]))
    return arguments


def parameters(function: Callable[..., Any]) -> Iterator[tuple[str, Any, str]]:
    """Yield name, type and default of all parameters, and of the options behind them."""
    options: dict[str, Any] = {}
    for each in [*typing.get_overloads(function), function]:
        for found in inspect.signature(each).parameters.values():
            if typing.get_origin(found.annotation) is typing.Unpack:
                (group,) = typing.get_args(found.annotation)
                options |= typing.get_type_hints(group)
    taken = inspect.signature(function).parameters
    for name, found in taken.items():
        if name != "options":
            yield name, found.annotation, _default(found)
    for name, kind in options.items():
        if name not in taken:
            yield name, kind, OWN


def _default(found: inspect.Parameter) -> str:
    if found.kind is found.VAR_KEYWORD:
        return "none"
    if found.default is found.empty:
        return "required"
    if inspect.isbuiltin(found.default):
        return "none"
    value = found.default.value if isinstance(found.default, Enum) else found.default
    text = repr(value)
    return f"`{text}`" if len(text) < 40 else f"`{text[:24]}…`"


def type_name(kind: Any) -> str:
    """Return a type as a reader says it."""
    if kind in _ALIASES:
        return _ALIASES[kind]
    parts = typing.get_args(kind)
    if parts and NoneType in parts:
        rest = [part for part in parts if part is not NoneType]
        return f"{_joined(rest)} or None"
    return _joined(parts) if _is_union(kind) else _plain(kind)


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in {typing.Union, type(int | str)}


def _joined(parts: Any) -> str:
    """Return the alternatives of a union, those that have one name as that."""
    found = list(parts)
    names = []
    for alias, name in _ALIASES.items():
        members = typing.get_args(alias)
        if members and set(members) <= set(found):
            found = [part for part in found if part not in members]
            names.append(name)
    names += [_plain(part) for part in found]
    return " or ".join(dict.fromkeys(names))


def _plain(kind: Any) -> str:
    if kind is typing.Any:
        return "any"
    if inspect.isclass(kind) and not typing.get_args(kind):
        return kind.__name__
    text = re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", str(kind))
    return text.replace("Any", "any")
