"""A page for every registered mechanism: what the registry knows, and `mechanisms.toml`."""

import dataclasses
import sys
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))
from argument_tables import WORDS, Argument, table, type_name

from dplinear.arguments import ArgumentError
from dplinear.mechanisms.contract import Mechanism
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import Facts, catalogue, find

OWN_WORDS = Path(__file__).parent / "mechanisms.toml"
FOLDER = "reference/mechanisms"
GUARANTEES: tuple[Guarantee, ...] = (PureDP(1), ApproxDP(1, 1e-6), ZCDP(0.1), GDP(0.5), MIDP(0.5))
SHOWN = (
    "    options:",
    "      members: false",
    "      show_root_heading: false",
    "      show_root_toc_entry: false",
)
GATES = {
    "moments": "`release_moments`",
    "sketch": "`release_sketch`",
    "model in a set": "`release_model` with a `constraint`, without a schema",
    "rows": "`release_rows`",
}


def on_config(config: Any) -> Any:
    """Put the pages of all mechanisms behind the page that lists them."""
    found = [{name: f"{FOLDER}/{name}.md"} for name in _entries()]
    _put(config["nav"], "reference/mechanisms.md", found)
    return config


def _put(nav: list[Any], page: str, found: list[dict[str, str]]) -> None:
    for entry in nav:
        for title, inner in entry.items() if isinstance(entry, dict) else ():
            if inner == page:
                entry[title] = [page, *found]
            elif isinstance(inner, list):
                _put(inner, page, found)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, which are made of the code."""
    for name, uses in _entries().items():
        text = page(find(name), uses)
        files.append(File.generated(config, f"{FOLDER}/{name}.md", content=text))
    return files


def _entries() -> dict[str, list[Facts]]:
    """Return the facts of each mechanism; one may be of use to several gates."""
    found: dict[str, list[Facts]] = {}
    for each in catalogue():
        found.setdefault(each.name, []).append(each)
    return found


def page(kind: Any, uses: list[Facts]) -> str:
    """Return the page of a mechanism in Markdown."""
    first = uses[0]
    words = tomllib.loads(OWN_WORDS.read_text(encoding="utf-8")).get(first.name, {})
    lines = [
        ("released by", " and ".join(_gate(each.releases) for each in uses)),
        ("guarantees and neighbours", "<br>".join(supported(kind))),
        ("units of several rows", _said(kind.for_units)),
        ("survey weights", _said(kind.for_units or kind.for_weights)),
        ("groups", _groups(kind, first.releases)),
        ("numerics", f"{kind.numerics} ([why that matters](../../explanation/exact-noise.md))"),
    ]
    lines += [(name, words[name]) for name in ("noise",) if name in words]
    lines += [("use it", words["when"])] if "when" in words else []
    if "proof" in words:
        lines.append(("proof", f"[{first.name}](../../theory/{words['proof']}) in the theory"))
    rows = "\n".join(f"| {name} | {text} |" for name, text in lines)
    own = options(kind)
    return "\n\n".join(
        [
            f"# {first.name}",
            first.summary,
            f"| what | {first.name} |\n|---|---|\n{rows}",
            "## Options",
            table(own) if own else "It has no options of its own.",
            "## Requirements and guarantee",
            "\n".join([f"::: {first.path}", *SHOWN]),
        ]
    )


def _gate(releases: str) -> str:
    model, _, loss = releases.partition(", ")
    return GATES.get(releases) or f"`release_{model}` ({loss})"


def _groups(kind: type[Mechanism], releases: str) -> str:
    """Return whether `by=` can be given, in the words of the gate's rule."""
    if releases != "moments" and not releases.startswith("model, "):
        return "no"
    return "yes" if kind.for_groups else 'with "add_remove", without a unit'


def _said(holds: bool) -> str:  # noqa: FBT001 - a fact, said in a word
    return "yes" if holds else "no"


def supported(kind: Any) -> list[str]:
    """Return which guarantees a mechanism takes, each with the neighbours it takes them for."""
    taken = {}
    for guarantee in GUARANTEES:
        names = [f'"{each.value}"' for each in Neighbours if _takes(kind, guarantee, each)]
        if names:
            taken[f"`{type(guarantee).__name__}`"] = ", ".join(names)
    return [f"{guarantee}: {names}" for guarantee, names in taken.items()]


def _takes(kind: Any, guarantee: Guarantee, neighbours: Neighbours) -> bool:
    needed = {
        field.name: 2  # a number of something, such as of released numbers
        for field in dataclasses.fields(kind)
        if field.init and field.default is field.default_factory is dataclasses.MISSING
    }
    try:
        kind(**needed | {"guarantee": guarantee, "neighbours": neighbours})
    except ArgumentError:
        return False
    return True


def options(kind: type[Mechanism]) -> list[Argument]:
    """Return a mechanism's own options; those of other packages have no words yet."""
    known = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    words = known["shared"] | known["mechanisms"].get(kind.__name__, {})
    found = []
    for field in dataclasses.fields(kind):
        if not field.init or field.name in {"guarantee", "neighbours", "release"}:
            continue
        default = "its own" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
        if field.default is field.default_factory is dataclasses.MISSING:
            default = "required"
        values, meaning = words.get(field.name, ("", ""))
        found.append(Argument(field.name, type_name(field.type), default, values, meaning))
    return found
