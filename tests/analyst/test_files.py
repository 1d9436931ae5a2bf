"""The release format: what is saved comes back to the bit, and nothing else is let in."""

import base64
import datetime as dt
import gzip
import hashlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import refusals
from dplinear import Schema
from dplinear.analyst.noise_models.matrices import (
    InverseWishartNoise,
    NoiseModel,
    SketchNoise,
    SymmetricGaussian,
    WishartNoise,
)
from dplinear.analyst.releases import container, files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.files import MatrixKind, ReleaseError, load, save
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.arguments import ArgumentTypeError
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.privacy.guarantees import GDP, ApproxDP
from dplinear.privacy.neighbours import Neighbours

SCHEMA = Schema(
    {
        "age": (0, 100),
        "third": (Fraction(-1, 3), Fraction(10**30 + 1, 10**30)),
        "smoker": ["no", "yes"],
        "größe <é>": {"type": "category", "levels": [1, 2.5, 3], "drop_first": False, "other": 1},
        "visit": (dt.date(2020, 1, 1), dt.date(2026, 1, 1)),
        "rooms": {"type": "integer", "low": 0, "high": 9, "missing_indicator": True},
        "employed": "boolean",
    },
    derived=["age^2", "age*smoker", "age>=65", "visit>2023-05-06"],
    row_norm=Fraction(7, 3),
)
NOISE_MODELS: list[NoiseModel] = [
    SymmetricGaussian(2.5, 0.1 + 0.2),
    WishartNoise(883, 1e-300),
    SketchNoise(40, 5e-324),
    InverseWishartNoise(1e300, 0.0),
]
CERTIFICATE = Certificate(
    mechanism="Analyze Gauß",
    parameters={"sigma": 0.1, "cells": 2**40, "variant": "scaled", "paper": None, "exact": True},
    neighbours=Neighbours.REPLACE,
    asked=ApproxDP(1.0, 1e-6),
    holds=GDP(1 / 3),
    curve=((0.0, 0.1), (1.0, 1e-6)),
    numerics="exact",
    calibration="exact",
    simulated=True,
    request="8f3a",
    dataset="visits-2026",
    notes=("the noise is „seeded“",),
    version="0.1.0",
)


def symmetric(d: int, seed: int = 1) -> Floats:
    half = simulation.generator(seed).standard_normal((d, d)) * 1e3
    return half + half.T


def moments(
    law: NoiseModel = NOISE_MODELS[0],
    rows: int | None = 10**12,
    schema: Schema = SCHEMA,
    seed: int = 1,
) -> MomentsRelease:
    values = symmetric(schema.dimension, seed)
    values[0, 0], values[1, 1] = -0.0, 5e-324
    return MomentsRelease(schema, values, law, CERTIFICATE, rows)


def small() -> MomentsRelease:
    return moments(schema=Schema({"a": (0, 1), "s": ["x", "y"]}))


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("content") / "release"
    small().save(path)
    return path.read_bytes()


def sealed(content: bytes) -> bytes:
    """Forge: give a changed file the checksum of its new content."""
    found = re.search(rb'"checksum": "sha256:(.{64})"', content, re.DOTALL)
    assert found
    zeros = content[: found.start(1)] + b"0" * 64 + content[found.end(1) :]
    digest = hashlib.sha256(zeros).hexdigest().encode()
    return content[: found.start(1)] + digest + content[found.end(1) :]


def with_facts(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Forge: change the facts of a file, written as dplinear would."""
    document = json.loads(content)
    change(document)
    return sealed(json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")


def with_npy(content: bytes, npy: bytes) -> bytes:
    return with_facts(
        content, lambda document: document["arrays"].update(values=base64.b64encode(npy).decode())
    )


def npy_of(content: bytes) -> bytes:
    return base64.b64decode(json.loads(content)["arrays"]["values"])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refused(tmp_path: Path, damaged: bytes, **options: Any) -> str:
    path = tmp_path / "damaged"
    path.write_bytes(damaged)
    with pytest.raises(ReleaseError, match=r"(?s)^The 'path' parameter of load .*\n\nHint: ") as it:
        load(path, **options)
    assert it.value.__cause__ is None
    return str(it.value)


# What comes back


@pytest.mark.parametrize("law", NOISE_MODELS, ids=lambda law: law.kind)
@pytest.mark.parametrize("rows", [None, 0, 10**12])
def test_a_release_comes_back_to_the_bit(law: NoiseModel, rows: int | None, tmp_path: Path) -> None:
    before = moments(law, rows)
    before.save(tmp_path / "one")
    after = load(tmp_path / "one")
    assert type(after) is MomentsRelease
    assert after.values.dtype == np.float64
    assert after.values.tobytes() == before.values.tobytes()
    assert not after.values.flags.writeable
    assert after.noise_model == law
    assert after.noise_model.to_dict() == law.to_dict()
    assert after.certificate == CERTIFICATE
    assert after.schema == SCHEMA
    assert after.schema.features == SCHEMA.features
    assert after.schema.row_norm == Fraction(7, 3)
    assert after.rows == rows
    after.save(tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    assert (
        load(str(tmp_path / "one"), kind="moments").unbiased_estimate.tobytes()
        == before.unbiased_estimate.tobytes()
    )


def test_the_file_is_plain_json_with_a_plain_npy_array(content: bytes) -> None:
    document = json.loads(content)
    assert list(document) == [
        "format", "version", "kind", "checksum",
        "certificate", "schema", "law", "rows", "arrays",
    ]  # fmt: skip
    assert (document["format"], document["version"]) == ("dplinear-release", 1)
    assert sealed(content) == content
    array = np.load(io.BytesIO(npy_of(content)), allow_pickle=False)
    assert array.tobytes() == small().values.tobytes()


def test_version_1_stays_what_it_is(tmp_path: Path) -> None:
    # Files of version 1 are out there: this digest changes only together with the version.
    values = np.array([[4.0, -0.0, 1 / 3], [-0.0, 2.0, 5e-324], [1 / 3, 5e-324, 1e300]])
    schema = Schema({"a": (0, 1), "é": (Fraction(1, 3), 2)})
    save(MomentsRelease(schema, values, NOISE_MODELS[1], CERTIFICATE, 7), tmp_path / "release")
    digest = hashlib.sha256((tmp_path / "release").read_bytes()).hexdigest()
    assert digest == "281895ec7ce3dc0824bee50211a4cffa3b97027483923b61dd6c63eba8785ab9"


def test_values_may_lie_in_any_order_in_memory(tmp_path: Path) -> None:
    release = small()
    turned = MomentsRelease(
        release.schema, np.asfortranarray(release.values), release.noise_model, CERTIFICATE, 10**12
    )
    save(release, tmp_path / "one")
    save(turned, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# Damage


def test_every_single_bit_flip_is_refused(content: bytes) -> None:
    for position in range(len(content)):
        for bit in range(8):
            damaged = bytearray(content)
            damaged[position] ^= 1 << bit
            with pytest.raises(ReleaseError):
                container.read(bytes(damaged), "damaged")


def test_every_truncation_is_refused(content: bytes) -> None:
    for length in range(len(content)):
        with pytest.raises(ReleaseError):
            container.read(content[:length], "damaged")


def test_damaged_files_are_refused(content: bytes, tmp_path: Path) -> None:
    draws = simulation.generator(2)
    files_tried = 0
    for _ in range(150):
        damaged = bytearray(content)
        damaged[draws.integers(len(content))] ^= 1 << draws.integers(8)
        refused(tmp_path, bytes(damaged))
        files_tried += 1
    for length in draws.integers(len(content), size=60):
        refused(tmp_path, content[:length])
        files_tried += 1
    for _ in range(60):
        at, size = draws.integers(len(content) + 1), draws.integers(1, 20)
        refused(tmp_path, content[:at] + draws.bytes(int(size)) + content[at:])
        files_tried += 1
    for _ in range(60):
        start, end = sorted(draws.integers(len(content) + 1, size=2))
        refused(tmp_path, content[:start] + content[end + 1 :])
        files_tried += 1
    assert files_tried > 300


def test_white_space_and_tails_are_damage(content: bytes, tmp_path: Path) -> None:
    edges = [content + b"\n", content + b" ", b" " + content, b"\xef\xbb\xbf" + content]
    spaces = [content.replace(b"\n", b"\r\n"), content.replace(b"\n", b"")]
    for damaged in (*edges, *spaces, content.replace(b'"rows": ', b'"rows":'), content + content):
        refused(tmp_path, damaged)
        if b'"checksum": "sha256:' in damaged:
            refused(tmp_path, sealed(damaged))


@pytest.mark.long
def test_forged_flips_give_a_sound_release_or_a_release_error(
    content: bytes, tmp_path: Path
) -> None:
    draws = simulation.generator(3)
    sound = 0
    for _ in range(1500):
        damaged = bytearray(content)
        damaged[draws.integers(len(content))] ^= 1 << draws.integers(8)
        if not re.search(rb'"checksum": "sha256:(.{64})"', damaged, re.DOTALL):
            continue
        (tmp_path / "forged").write_bytes(sealed(bytes(damaged)))
        try:
            release = load(tmp_path / "forged")
        except ReleaseError:
            continue
        sound += 1  # another number or name, which is a release too
        save(release, tmp_path / "again", overwrite=True)
        assert (tmp_path / "again").read_bytes() == (tmp_path / "forged").read_bytes()
    assert sound < 500


# Hostility: every file here has a valid checksum


class Burglar:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.mark,)


def header(descr: str, shape: str, *, order: str = "False") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + text.encode().ljust(117) + b"\n"


def npy(array: Any, **options: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


VALUES = np.ascontiguousarray(small().values).tobytes()
D = small().schema.dimension
DESCR = "'<f8'"


def test_the_forger_can_forge(content: bytes) -> None:
    again = with_npy(content, header(DESCR, f"({D}, {D})") + VALUES)
    assert again == content


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (header(DESCR, "(100000, 100000)") + VALUES, "as many numbers"),
        (header(DESCR, "(999999999999, 999999999999)") + VALUES, "as many numbers"),
        (header(DESCR, "(9999999999999, 1)") + VALUES, ".npy arrays"),
        (header(DESCR, f"({2**61}, 8)") + VALUES, ".npy arrays"),
        (header(DESCR, f"({D}, {D + 1})") + VALUES, "as many numbers"),
        (header(DESCR, f"({D}, {D})") + VALUES[:-1], "as many numbers"),
        (header(DESCR, f"({D}, {D})") + VALUES + b"\0", "as many numbers"),
        (header(DESCR, f"(-{D}, -{D})") + VALUES, ".npy arrays"),
        (header(DESCR, f"(0{D}, {D})") + VALUES, ".npy arrays"),
        (header(DESCR, "(0, 0)"), ".npy arrays"),
        (header(DESCR, f"(0, {D})"), ".npy arrays"),
        (header(DESCR, f"({D * D},)") + VALUES, ".npy arrays"),
        (header(DESCR, f"({D}, {D}, 1)") + VALUES, ".npy arrays"),
        (header(DESCR, "()") + VALUES[:8], ".npy arrays"),
        (header(DESCR, f"({D}, {D})", order="True") + VALUES, ".npy arrays"),
        (header("'>f8'", f"({D}, {D})") + VALUES, ".npy arrays"),
        (header("'<i8'", f"({D}, {D})") + VALUES, ".npy arrays"),
        (header("'|O'", f"({D}, {D})") + VALUES, ".npy arrays"),
        (header("[('a', '<f8')]", f"({D}, {D})") + VALUES, ".npy arrays"),
        (header(DESCR, f"({D}, {D})").replace(b"\x01\x00", b"\x02\x00") + VALUES, ".npy arrays"),
        (header(DESCR, f"({D}, {D})").replace(b" \n", b"\t\n") + VALUES, ".npy arrays"),
        (b"\x93NUMPY\x01\x00\xff\xff" + b"{" * 65535, ".npy arrays"),
        (npy(small().values, allow_pickle=False)[:100], ".npy arrays"),
        (npy(np.full((D, D), np.nan)), ""),
        (header(DESCR, f"({D}, {D})") + np.full((D, D), np.nan).tobytes(), "finite"),
        (header(DESCR, f"({D}, {D})") + np.full((D, D), -np.inf).tobytes(), "finite"),
        (header(DESCR, f"({D}, {D})") + np.arange(D * D, dtype=float).tobytes(), "symmetric"),
        (header(DESCR, "(1, 1)") + VALUES[:8], "as its schema says"),
        (header(DESCR, f"({D - 1}, {D})") + VALUES[: -8 * D], "as its schema says"),
        (b"", ".npy arrays"),
        (b"\x80\x04.", ".npy arrays"),
    ],
)
def test_hostile_arrays_are_refused(
    array: bytes, words: str, content: bytes, tmp_path: Path
) -> None:
    assert words in refused(tmp_path, with_npy(content, array))


def test_a_pickle_in_a_file_is_never_opened(content: bytes, tmp_path: Path) -> None:
    mark = tmp_path / "burgled"
    objects = np.empty((D, D), dtype=object)
    objects[:] = Burglar(mark)
    payload = npy(objects, allow_pickle=True)
    shaped = header("'|O'", f"({D}, {D})") + payload[128:]
    for damaged in (with_npy(content, payload), with_npy(content, shaped), payload):
        refused(tmp_path, damaged)
    refused(tmp_path, pickle.dumps(Burglar(mark)))
    assert not mark.exists()
    np.load(io.BytesIO(payload), allow_pickle=True)
    assert mark.exists()  # the payload would have worked


def facts(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document.update(changes)


def inside(part: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda document: document[part].update(changes)


def explosion() -> dict[str, Any]:
    letters = "abcdefghij"
    columns = {name: {"type": "category", "levels": list(letters)} for name in letters}
    return {"columns": columns, "derived": ["*".join(letters)], "intercept": True}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (facts(version=2), "newer dplinear; upgrade"),
        (facts(version=999_999_999), "newer dplinear; upgrade"),
        (facts(version=10**9), "with a version"),
        (facts(version=0), "version 1"),
        (facts(version=-1), "with a version"),
        (facts(version=1.0), "with a version"),
        (facts(version="1"), "with a version"),
        (facts(format="dplinear-ledger"), "in the format dplinear-release"),
        (facts(format=None), "in the format dplinear-release"),
        (facts(kind="rumours"), "moments or rows or .* or sketch, and this is one of rumours"),
        (facts(kind=""), "kind and checksum"),
        (facts(kind=1), "kind and checksum"),
        (facts(kind="../../moments"), "kind and checksum"),
        (facts(rows=-1), "'rows'"),
        (facts(rows=1.0), "'rows'"),
        (facts(rows=True), "'rows'"),
        (facts(rows="1"), "'rows'"),
        (facts(rows=10**4000), "digits"),
        (facts(rows=float("nan")), "not JSON"),
        (facts(rows=float("-inf")), "not JSON"),
        (facts(law=None), "a law of a known kind"),
        (facts(law={"kind": "rumour"}), "a law of a known kind"),
        (facts(law={"kind": ["sketch"], "rows": 1, "ridge": 1}), "NoiseModel.from_dict"),
        (facts(law={"kind": "sketch", "rows": 1}), "the numbers of SketchNoise"),
        (facts(law={"kind": "sketch", "rows": "1", "ridge": 1}), "'rows'"),
        (inside("law", diagonal=0), "'diagonal'"),
        (inside("law", diagonal=True), "'diagonal'"),
        (inside("law", more=1), "the numbers of SymmetricGaussian"),
        (facts(certificate={}), "made of mechanism"),
        (facts(certificate=[]), "a mapping"),
        (inside("certificate", numerics="fuzzy"), "'numerics'"),
        (inside("certificate", parameters={"a": []}), "parameters.a"),
        (inside("certificate", curve=[[1, 2]]), "'curve'"),
        (inside("certificate", notes=["\x1b[2J"]), "printable"),
        (facts(schema=1), "table `columns`"),
        (facts(schema={"columns": {}}), "at least one column"),
        (inside("schema", more=1), "columns, derived, intercept, row_norm"),
        (inside("schema", intercept=1), "'intercept'"),
        (inside("schema", intercept=False), "as its schema says"),
        (inside("schema", columns={"a": [0, "1e999999999"]}), "pair of finite numbers"),
        (inside("schema", columns={"a": [0, "1e9_999_999_999"]}), "pair of finite numbers"),
        (inside("schema", columns={"a": [0, "1" * 701]}), "pair of finite numbers"),
        (inside("schema", derived=["a>=1e999999999"]), "finite number"),
        (inside("schema", row_norm="1e999999999"), "a number"),
        (inside("schema", columns={"a": [0, 2.0**490]}, derived=["a^16"]), "sound content"),
        (inside("schema", columns={"a": [str(i) for i in range(8193)]}), "8192 features"),
        (facts(schema=explosion()), "8192 features"),
        (facts(more=1), "in the format|ends with its arrays"),
        (lambda document: document.pop("rows"), "certificate, schema, law, rows"),
        (lambda document: document.pop("checksum"), "kind and checksum"),
        (lambda document: document.pop("arrays"), "arrays at its end"),
        (lambda document: document.pop("format"), "in the format"),
        (facts(arrays={}), ""),
        (facts(arrays=[]), "arrays at its end"),
        (inside("arrays", more=base64.b64encode(header(DESCR, "(1, 1)") + bytes(8)).decode()),
         "certificate, schema, law, rows, values"),
        (inside("arrays", values=1), "ends with its arrays"),
        (inside("arrays", values="AAAA AAAA"), "base64"),
        (inside("arrays", values="AAA"), "base64"),
        (inside("arrays", values="A" * 171 + "=B=="), "base64"),
        (inside("arrays", values="AB=="), "in the one way"),
        (inside("arrays", values="\\u0041AAA"), "base64"),
        (facts(arrays={str(i): "" for i in range(20)}), ""),
        (facts(arrays={f"a{i}": base64.b64encode(header(DESCR, "(1, 1)") + bytes(8)).decode()
                       for i in range(20)}), "ends with its arrays"),
    ],
)  # fmt: skip
def test_hostile_facts_are_refused(
    change: Callable[[dict[str, Any]], object], words: str, content: bytes, tmp_path: Path
) -> None:
    document = json.loads(content)
    change(document)
    text = json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"
    if b'"checksum": "sha256:' in text:
        text = sealed(text)
    assert re.search(words, refused(tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"rows": 1000000000000', b'"rows": 1,\n "rows": 1', "twice"),
        (b'"kind": "symmetric', b'"kind": "sketch",\n  "kind": "symmetric', "twice"),
        (b'"rows": 1000000000000', b'"rows": 1e999', "beyond float64"),
        (b'"rows": 1000000000000', b'"rows": 1' + b"0" * 400, "digits"),
        (b'"rows": 1000000000000', b'"rows": 0.' + b"0" * 400, "float64"),
        (b'"rows": 1000000000000', b'"rows": NaN', "not JSON"),
        (b'"rows": 1000000000000', b'"rows": ' + b"[" * 100_000, "nested"),
        (b'"rows": 1000000000000', b'"rows": ' + b'{"a":' * 100_000, "nested"),
        (b'"rows": 1000000000000', b'"rows": ' + b"[" * 13 + b"]" * 13, "nested"),
        (b'"rows": 1000000000000', b'"rows": -0', "to the byte"),
        (b'"rows": 1000000000000', b'"rows": 1e3', "to the byte"),
        (b'"rows": 1000000000000', b'"rows": 1.00', "to the byte"),
        (b'"rows": 1000000000000', b'"rows":  1', "to the byte"),
        (b'"request": "8f3a"', b'"request": "8f3\\u0061"', "to the byte"),
        (b'"request": "8f3a"', b'"request": "\\ud800"', "well-formed"),
        (b'"request": "8f3a"', b'"request": "\xff"', "well-formed"),
        (b'"request": "8f3a"', b'"request": "\xc0\x80"', "well-formed"),
        (b'"request": "8f3a"', b'"request": "a\nb"', "well-formed"),
        (b'"request": "8f3a"', b'"request": "[[[[[[[[[[[[[[[["', ""),
        (b'"rows": 1000000000000', b'"rows": "' + b"x" * 5_000_000 + b'"', "before its arrays"),
        (b'"arrays": {\n', b'"arrays": {\n\n', "ends with its arrays"),
        (b'"arrays": {', b'"arrays": { ', "ends with its arrays"),
        (b'"\n }\n}\n', b'"\n },\n "more": 1\n}\n', "ends with its arrays"),
        (b'"\n }\n}\n', b'",\n }\n}\n', "ends with its arrays"),
        (b'"\n }\n}\n', b'"\n }\n}', "ends with its arrays"),
        (b'"\n }\n}\n', b"\n }\n}\n", "whole arrays"),
        (b'"sha256:', b'"sha512:', "kind and checksum"),
    ],
)
def test_hostile_text_is_refused(
    old: bytes, new: bytes, words: str, content: bytes, tmp_path: Path
) -> None:
    assert content.count(old) == 1
    changed = content.replace(old, new)
    if b'"checksum": "sha256:' in changed:
        changed = sealed(changed)
    if not words:  # brackets in text are no nesting
        (tmp_path / "sound").write_bytes(changed)
        assert load(tmp_path / "sound").certificate.request == "[" * 16
        return
    assert words in refused(tmp_path, changed)


def test_an_array_is_there_once(content: bytes, tmp_path: Path) -> None:
    entry = re.search(rb'\n  "values": "[^"]*"', content)
    assert entry
    assert "each named once" in refused(
        tmp_path, sealed(content.replace(entry[0], entry[0] + b"," + entry[0]))
    )


def test_files_of_other_kinds_are_refused(content: bytes, tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("release", content)
    texts = (b"", b"{}", b"null", b"[]", b"[" * 10**6, json.dumps(json.loads(content)).encode())
    coded = (gzip.compress(content), archive.getvalue(), content.decode().encode("utf-16"))
    pickled = pickle.dumps({"format": "dplinear-release"})
    for other in (*texts, *coded, pickled, npy(np.eye(3)), bytes(100)):
        assert "in the format dplinear-release" in refused(tmp_path, other)


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero"), tmp_path / "missing",
                 tmp_path / "loop", tmp_path / "pipe" / "more", tmp_path / "a\0b",
                 tmp_path / ("x" * 300)):  # fmt: skip
        with pytest.raises(ReleaseError, match="\n\nHint: "):
            load(path)


def test_a_pipe_that_takes_the_files_place_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_bytes(b"{}")
    before = (tmp_path / "file").stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: before)
    with pytest.raises(ReleaseError, match="regular file"):
        load(tmp_path / "pipe")


def test_a_file_that_grows_while_it_is_read_is_refused(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "short").write_bytes(content[:-1])
    (tmp_path / "file").write_bytes(content)
    for other in ("short", "file"):
        before = (tmp_path / other).stat()
        monkeypatch.setattr(os, "fstat", lambda _, before=before: before)
        if other == "file":
            assert load(tmp_path / "file").rows == 10**12
        else:
            with pytest.raises(ReleaseError, match="stays as it is"):
                load(tmp_path / "file")


def test_wrong_arguments_are_named(tmp_path: Path) -> None:
    small().save(tmp_path / "release")
    for path in (3, None, b"release"):
        with refusals.refused("path", "load", kind=ArgumentTypeError):
            load(path)  # type: ignore[call-overload]
        with refusals.refused("path", "save", kind=ArgumentTypeError):
            small().save(path)  # type: ignore[arg-type]
    with refusals.refused("largest", "load"):
        load(tmp_path / "release", largest=0)
    with pytest.raises(ReleaseError, match="a release of sketch, and this is one of moments"):
        load(tmp_path / "release", kind="sketch")
    with pytest.raises(
        ValueError,
        match="parameter of load must be one of 'bounds', 'covariance', 'groups', 'levels', 'li",
    ):
        load(tmp_path / "release", kind="rumours")


# Memory


def peak(run: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_file_above_the_cap_is_not_read(tmp_path: Path) -> None:
    sparse = tmp_path / "sparse"
    sparse.touch()
    os.truncate(sparse, 10 * 2**30)

    def attempt() -> None:
        with pytest.raises(ReleaseError, match="at most 268435456 bytes, not 10737418240"):
            load(sparse)

    assert peak(attempt) < 2**20


def test_the_cap_is_the_size_of_the_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "release").write_bytes(content)
    assert load(tmp_path / "release", largest=len(content)).rows == 10**12
    assert "at most" in refused(tmp_path, content, largest=len(content) - 1)


def test_a_sound_file_takes_little_more_than_itself(tmp_path: Path) -> None:
    schema = Schema({f"x{i}": (0, 1) for i in range(699)})
    release = MomentsRelease(schema, symmetric(700), NOISE_MODELS[0], CERTIFICATE, None)
    release.save(tmp_path / "release")
    size = (tmp_path / "release").stat().st_size
    assert size > 5_000_000
    assert peak(lambda: load(tmp_path / "release")) < 3 * size
    assert peak(lambda: save(release, tmp_path / "again")) < 6 * size


def test_hostile_files_take_little_memory(content: bytes, tmp_path: Path) -> None:
    rows = b'"rows": 1000000000000'
    hostile = [
        with_npy(content, header(DESCR, "(999999999999, 999999999999)") + VALUES),
        with_npy(content, header(DESCR, "(11585, 11585)") + VALUES),
        with_facts(content, inside("schema", columns={"a": [0, "1e999999999"]})),
        with_facts(content, facts(schema=explosion())),
        with_facts(content, facts(rows=10**4000)),
        sealed(content.replace(rows, b'"rows": ' + b"[" * 10**6)),
        sealed(content.replace(rows, b'"rows": [' + b"[]," * 10**5 + b"[]]")),
        sealed(content.replace(rows, b'"rows": "' + b"\\" * 10**6 + b'"')),
        b"[" * 2**20,
        b"\x80" * 2**20,
    ]
    for damaged in hostile:
        assert peak(lambda damaged=damaged: refused(tmp_path, damaged)) < 16 * 2**20  # type: ignore[misc]


# Anything at all


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400))
def test_arbitrary_bytes_are_refused(noise: bytes) -> None:
    with pytest.raises(ReleaseError):
        container.read(noise, "noise")


TEXTS = st.text(max_size=8) | st.sampled_from(["a", "kind", "columns", "category", "1/3", "1e400"])
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
ANYTHING = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_arbitrary_facts_give_a_release_or_a_release_error(
    data: st.DataObject, content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    document = json.loads(content)
    place: Any = document
    key = data.draw(st.sampled_from(["certificate", "schema", "law", "rows"]))
    while isinstance(place[key], dict) and place[key] and data.draw(st.booleans()):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(ANYTHING)
    path = tmp_path_factory.getbasetemp() / "fuzz"
    try:
        path.write_bytes(
            sealed(json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")
        )
    except UnicodeEncodeError:
        return
    try:
        release = load(path, kind="moments")
    except ReleaseError:
        return
    assert release.values.shape == (D, D)


# Saving


def test_a_file_is_kept_unless_told_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "release"
    small().save(path)
    kept = path.read_bytes()
    other = moments(schema=small().schema, seed=2)
    with pytest.raises(ReleaseError, match="overwrite=True"):
        other.save(path)
    assert path.read_bytes() == kept
    other.save(path, overwrite=True)
    assert load(path, kind="moments").values.tobytes() == other.values.tobytes()
    assert names(tmp_path) == ["release"]


def test_a_link_that_leads_nowhere_is_kept(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ReleaseError, match="not there yet"):
        small().save(tmp_path / "link")
    assert names(tmp_path) == ["link"]


def test_without_hard_links_a_file_is_kept_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError(1, "no links here")

    monkeypatch.setattr(os, "link", no_links)
    small().save(tmp_path / "release")
    kept = (tmp_path / "release").read_bytes()
    with pytest.raises(ReleaseError, match="not there yet"):
        moments(schema=small().schema, seed=2).save(tmp_path / "release")
    assert (tmp_path / "release").read_bytes() == kept
    assert names(tmp_path) == ["release"]


def test_a_crash_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "release"
    small().save(path)
    kept = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for overwrite in (True, False):
        with pytest.raises(ReleaseError, match="No space left"):
            moments(schema=small().schema, seed=2).save(
                path if overwrite else tmp_path / "new", overwrite=overwrite
            )
    assert path.read_bytes() == kept
    assert names(tmp_path) == ["release"]


def test_saved_files_get_the_usual_rights(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    small().save(tmp_path / "release")
    assert (tmp_path / "release").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_unwritable_places_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    long = tmp_path / ("x" * 300)
    places = (tmp_path / "pipe", tmp_path / "no" / "release", tmp_path / "file" / "x", long)
    for path in (tmp_path, *places):
        with pytest.raises(ReleaseError, match="The 'path' parameter of save"):
            small().save(path, overwrite=True)
    assert names(tmp_path) == ["file", "pipe"]


@pytest.mark.parametrize(
    "values",
    [
        np.arange(float(D * D)).reshape(D, D),
        np.full((D, D), np.nan),
        np.eye(D + 1),
        np.eye(D, dtype=np.float32),
        np.eye(D, dtype=object),
        np.ones(D),
        np.empty((0, 0)),
    ],
    ids=str,
)
def test_what_could_not_be_loaded_is_not_saved(values: Any, tmp_path: Path) -> None:
    release = MomentsRelease(small().schema, values, NOISE_MODELS[0], CERTIFICATE, None)
    with pytest.raises(ValueError, match="must be"):
        release.save(tmp_path / "release")
    assert not names(tmp_path)
    with refusals.refused("release", "save", "a release of a known kind", kind=ArgumentTypeError):
        save(values, tmp_path / "release")


# Further kinds


@dataclass(frozen=True, eq=False)
class Tall:
    schema: Schema
    values: Floats
    noise_model: NoiseModel
    certificate: Certificate
    rows: int | None = None


def test_further_kinds_plug_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_KINDS", dict(files._KINDS))
    schema = small().schema
    values = simulation.generator(4).standard_normal((7, schema.dimension))
    tall = Tall(schema, values, SketchNoise(7, 0.5), CERTIFICATE)
    with refusals.refused("release", "save", "a release of a known kind", kind=ArgumentTypeError):
        save(tall, tmp_path / "tall")
    files.register(MatrixKind("tall", Tall, noise_models=(SketchNoise,)))
    save(tall, tmp_path / "tall")
    after: Any = load(tmp_path / "tall", kind="tall")
    assert type(after) is Tall
    assert after.values.tobytes() == values.tobytes()
    assert (after.noise_model, after.rows) == (tall.noise_model, None)
    with pytest.raises(ReleaseError, match="of kind sketch"):
        save(Tall(schema, values, NOISE_MODELS[0], CERTIFICATE), tmp_path / "other")
    with pytest.raises(ReleaseError, match="as its schema says"):
        save(Tall(schema, values[:, 1:], tall.noise_model, CERTIFICATE), tmp_path / "other")
    sketch = SketchRelease(schema, values, SketchNoise(7, 0.5), CERTIFICATE, 9)
    sketch.save(tmp_path / "sketch")
    loaded = load(tmp_path / "sketch")
    assert type(loaded) is SketchRelease
    assert loaded.values.tobytes() == values.tobytes()
    loaded.moments.save(tmp_path / "moments")
    del files._KINDS["tall"]
    with pytest.raises(ReleaseError, match="and this is one of tall"):
        load(tmp_path / "tall")


def test_a_kind_is_found_without_its_module(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "release").write_bytes(content)
    code = (
        "import sys; from dplinear.analyst.releases.files import load;"
        "assert 'dplinear.analyst.releases.moments' not in sys.modules;"
        "print(type(load(sys.argv[1])).__name__, 'dplinear.curator' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "release")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["MomentsRelease", "False"]
