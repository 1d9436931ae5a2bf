"""Inputs of `load`: files of releases and of released rows, damaged or written to deceive."""

import copy
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dplinear
from dplinear.analyst.releases import container, files
from dplinear.analyst.rows import row_files
from dplinear.noise import simulation
from dplinear.privacy import ZCDP
from dplinear.schema import Schema

from .cases import Case
from .dice import Dice
from .strange import damaged
from .values import odd

_JSON: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**70,
    10**399,
    0.5,
    -0.0,
    1e308,
    5e-324,
    "",
    "x",
    "\ud800",
    "é\u202e",
    "a" * 5000,
    [],
    {},
    [1],
    [[]],
    {"a": 1},
    {"": None},
    [None] * 50,
    "add_remove",
    "number",
    "1/3",
    "1e999",
    "9" * 500,
    "ZCDP",
    "analyze_gauss",
    "exact",
    ["a", "b"],
    [0, 1],
)


@cache
def sound_files() -> dict[str, bytes]:
    """Return the bytes of one release of each kind that is one file of JSON."""
    with simulation.door(1):
        made = list(_releases())
    found = {release.__class__.__name__: files.pack(release) for release in made}
    return {name: content for name, content in found.items() if content is not None}


def _releases() -> Any:
    rows = np.column_stack([np.linspace(-1, 1, 40), np.linspace(0, 1, 40) ** 2])
    schema = Schema(a=(-1, 1), b=(0, 1))
    asked: dict[str, Any] = {"guarantee": ZCDP(10.0), "request": "r", "threads": 1}
    yield dplinear.release_moments(rows, schema, **asked)
    yield dplinear.release_sketch(rows, schema, epsilon=1.0, delta=1e-6, request="r", threads=1)
    yield dplinear.release_model(rows, schema, "b", mechanism="adassp", **asked)
    yield dplinear.release_mean(rows, schema, **asked)
    yield dplinear.release_covariance(rows, schema, **asked)
    del asked["threads"]
    learning: dict[str, Any] = {
        "row_norm": 2.0,
        "constraint": 1.0,
        "target_bounds": (0, 1),
        "mechanism": "noisy_gradient",
        "steps": 2,
    }
    yield dplinear.release_model(
        rows, target=rows[:, 1], projection="gaussian", dimension=2, seed=3, **learning, **asked
    )


@cache
def sound_rows() -> dict[str, dict[str, bytes]]:
    """Return the files of released rows, by suffix: those of a folder, by name."""
    rows = np.column_stack([np.linspace(-1, 1, 40), np.linspace(0, 1, 40) ** 2])
    schema = Schema(a=(-1, 1), b=(0, 1))
    found: dict[str, dict[str, bytes]] = {}
    for suffix in row_files.SUFFIXES:
        with TemporaryDirectory() as place, simulation.door(1):
            folder = Path(place)
            asked: tuple[dict[str, Any], ...] = ({"bits": 0.5}, {"epsilon": 1.0, "k": 2})
            for number, more in enumerate(asked):
                dplinear.release_rows(
                    rows,
                    schema,
                    output=folder / f"{number}{suffix}",
                    request="r",
                    threads=1,
                    **more,
                )
                written = {file.name: file.read_bytes() for file in folder.iterdir()}
                found[f"{number}{suffix}"] = {
                    name: content
                    for name, content in written.items()
                    if name.startswith(str(number))
                }
    return found


def release_file(dice: Dice) -> Case:
    name = dice.pick(sorted(sound_files()))
    content = sound_files()[name]
    arguments: dict[str, Any] = {}
    if dice.chance(0.1):
        arguments[dice.pick(("kind", "largest"))] = odd(dice)
    match dice.below(10):
        case 0:
            given = odd(dice)
            return Case(("load",), lambda _: dplinear.load(given, **arguments), releases=False)
        case 1 | 2 | 3:
            content = damaged(dice, content)
        case 4:
            content = _signed(damaged(dice, content))
        case _:
            content = _rewritten(dice, content)

    named = dice.pick(("release.json", "release.csv", "release", "release.parquet"))

    def call(folder: Path) -> Any:
        file = folder / named
        file.write_bytes(content)
        return _used(dplinear.load(file, **arguments))

    return Case(("load",), call, releases=False)


def _signed(content: bytes) -> bytes:
    """Return the content with the checksum that belongs to it, wherever the checksum stands."""
    place = content.find(b"sha256:") + 7
    if place < 7:
        return content
    blank = content[:place] + b"0" * 64 + content[place + 64 :]
    return blank[:place] + hashlib.sha256(blank).hexdigest().encode() + blank[place + 64 :]


def _rewritten(dice: Dice, content: bytes) -> bytes:
    """Return a well-formed file in which a few facts or numbers are others."""
    parts = container.read(content, "a release")
    facts = copy.deepcopy(dict(parts.facts))
    arrays = {name: np.array(array) for name, array in parts.arrays.items()}
    for _ in range(dice.pick((1, 1, 1, 2))):
        if dice.chance(0.75):
            _change(dice, facts)
        else:
            name = dice.pick(sorted(arrays))
            arrays[name] = _other(dice, arrays[name])
    if dice.chance(0.05):
        arrays["more"] = np.ones((1, 1))
    try:
        return container.write(container.Parts(parts.kind, facts, arrays))
    except ValueError:  # what `write` refuses cannot be in a file of the right form
        return _signed(
            content.replace(
                b": 1", dice.pick((b": 2", b": null", b": 1e999", b": NaN")), 1 + dice.below(5)
            )
        )


def _change(dice: Dice, facts: Any) -> None:
    """Change one fact, at any depth: to anything, away, or to another's."""
    while True:
        keys = list(facts) if isinstance(facts, Mapping) else list(range(len(facts)))
        if not keys:
            return
        key = dice.pick(keys)
        if isinstance(facts[key], dict | list) and facts[key] and dice.chance(0.8):
            facts = facts[key]
            continue
        match dice.below(8):
            case 0:
                del facts[key]
            case 1 if isinstance(facts, dict):
                facts[dice.pick(("new", "", "a", "intercept"))] = dice.pick(_JSON)
            case 2:
                facts[key] = facts[dice.pick(keys)]
            case 3 if isinstance(facts[key], int | float) and not isinstance(facts[key], bool):
                facts[key] = dice.pick(
                    (-facts[key], facts[key] + 1, facts[key] * 1e9, str(facts[key]), [facts[key]])
                )
            case _:
                facts[key] = dice.pick(_JSON)
        return


def _other(dice: Dice, array: Any) -> Any:
    match dice.below(6):
        case 0:
            array.flat[dice.below(array.size)] = dice.pick((1e308, -1e308, 5e-324, 0.0, -1.0))
        case 1:
            return array[:-1] if len(array) > 1 else np.vstack([array, array])
        case 2:
            return array[:, ::-1].copy()
        case 3:
            return array.T.copy()
        case 4:
            return np.zeros_like(array)
        case _:
            return array * dice.pick((-1.0, 1e300, 1e-300))
    return array


def _used(release: Any) -> Any:
    """Use a release that was loaded: whatever a file says, it must hold together."""
    assert str(release)
    assert repr(release)
    assert files.pack(release) is not None or release.names
    return release


def rows_file(dice: Dice) -> Case:
    name = dice.pick(sorted(sound_rows()))
    written = dict(sound_rows()[name])
    match dice.below(8):
        case 0 | 1 | 2:
            victim = dice.pick(sorted(written))
            written[victim] = damaged(dice, written[victim])
        case 3:
            other = dice.pick(sorted(sound_rows()))
            written[name] = sound_rows()[other][other]
        case 4 if len(written) > 1:
            del written[dice.pick(sorted(written))]
        case _:
            written = _other_head(dice, name, written)
    reads = dice.chance(0.8)

    def call(folder: Path) -> Any:
        for each, content in written.items():
            (folder / each).write_bytes(content)
        release: Any = dplinear.load(folder / name)
        if reads:
            assert release.values.shape == (release.rows, len(release.names))
        return release

    return Case(("load", "values"), call, releases=False)


def _other_head(dice: Dice, name: str, written: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files with another head: a few facts are changed, or the rows' own types are."""
    side = f"{name}.certificate.json"
    if side in written:
        facts = json.loads(written[side])
        _change(dice, facts)
        return written | {side: _text(facts)}
    source = pa.BufferReader(written[name])
    whole = (
        pq.read_table(source) if name.endswith(".parquet") else pa.ipc.open_file(source).read_all()
    )
    facts = json.loads(whole.schema.metadata[b"dplinear"])
    if dice.chance(0.7):
        _change(dice, facts)
    else:
        kind = dice.pick((pa.float32(), pa.string(), pa.list_(pa.float64()), pa.null()))
        whole = whole.set_column(
            0, pa.field(whole.column_names[0], kind), pa.nulls(whole.num_rows, kind)
        )
    whole = whole.replace_schema_metadata({b"dplinear": _text(facts)})
    sink = pa.BufferOutputStream()
    if name.endswith(".parquet"):
        pq.write_table(whole, sink)
    else:
        with pa.ipc.new_file(sink, whole.schema) as writer:
            writer.write_table(whole)
    return written | {name: sink.getvalue().to_pybytes()}


def _text(facts: Any) -> bytes:
    try:
        return container.facts_text(facts)
    except (ValueError, TypeError):
        return json.dumps(facts).encode()
