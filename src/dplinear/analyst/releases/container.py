"""The release format: one JSON text whose arrays are .npy files in base64 (docs/release-format.md).

A release has one spelling. What `read` accepts is exactly what `write` writes, so a file that was
changed anywhere, even in its white space, is refused. Nothing in a file is evaluated, and nothing
is allocated that the bytes at hand do not fill.
"""

import binascii
import hashlib
import json
import math
import numbers
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dplinear.arguments import rejection
from dplinear.arrays import Floats
from dplinear.tracebacks import PlainError

FORMAT = "dplinear-release"
VERSION = 1
MOST_FACTS = 4 * 2**20  # bytes of everything but the arrays
MOST_ARRAYS = 16
DEEPEST = 12
LONGEST_NUMBER = 400  # digits; bounds of columns stay below 2^500

_ZEROS = "0" * 64
_OPENING = b'{\n "format": "dplinear-release",\n "version": '
_VERSION = re.compile(rb"(0|[1-9][0-9]{0,8}),\n")
_IDENTITY = re.compile(
    rb' "kind": "([a-z][a-z0-9_]{0,31})",\n "checksum": "sha256:([0-9a-f]{64})"(?=,\n)'
)
_ARRAYS = b',\n "arrays": {'
_ENTRY = re.compile(rb'\n  "([a-z][a-z0-9_]{0,31})": "')
_END = b"\n }\n}\n"
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)

_HEADER = 128
_MAGIC = b"\x93NUMPY\x01\x00" + (_HEADER - 10).to_bytes(2, "little")
_SHAPE = re.compile(rb".*'shape': \(([1-9][0-9]{0,11}), ([1-9][0-9]{0,11})\), \} *\n", re.DOTALL)

_DAMAGED = "ask for the file again, or save the release again where it was made."


class ReleaseError(PlainError, ValueError):
    """A file that is no sound release, or a release that cannot be saved as asked."""


def opener(path: str, flags: int) -> int:
    """Open a file without waiting: a pipe that has taken its place may have no writer."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def unsound(rule: str, name: str, hint: str = _DAMAGED) -> ReleaseError:
    """Return the error for a file that cannot be loaded."""
    return ReleaseError(str(rejection("path", "load", rule, name, hint)))


@dataclass(frozen=True, eq=False)
class Parts:
    """A release taken apart: its kind, its facts as plain JSON in a fixed order, its arrays."""

    kind: str
    facts: Mapping[str, Any]
    arrays: Mapping[str, Floats]


def write(parts: Parts) -> bytes:
    """Return the one file that holds these parts.

    Requires: facts of plain JSON; at least one array, all of float64 in two dimensions.
    Promises: `read` gives the same parts, numbers equal to the bit.
    """
    start = {"format": FORMAT, "version": VERSION}
    identity = {"kind": parts.kind, "checksum": f"sha256:{_ZEROS}"}
    facts = _facts_text(start | identity | dict(parts.facts))
    entries = [
        b'\n  "%b": "%b"' % (name.encode(), binascii.b2a_base64(_npy(array), newline=False))
        for name, array in parts.arrays.items()
    ]
    content = b"".join((facts, _ARRAYS, b",".join(entries), _END))
    return content.replace(_ZEROS.encode(), hashlib.sha256(content).hexdigest().encode(), 1)


def read(content: bytes, name: str) -> Parts:
    """Return the parts of a file, or raise ReleaseError; `name` is the file's, for the message.

    Requires: any bytes at all.
    Promises: `write` of the result is `content`; arrays are finite and read-only. Beside the
    content, its arrays are allocated once, and at most a fixed amount for the facts.
    """
    kind = _check_identity(content, name)
    middle = content.find(_ARRAYS)
    if middle < 0:
        raise unsound("a release with arrays at its end", name)
    if middle > MOST_FACTS:
        raise unsound(f"a release with at most {MOST_FACTS} bytes before its arrays", name)
    facts = _read_facts(content[:middle], name)
    for key in ("format", "version", "kind", "checksum"):
        del facts[key]
    return Parts(kind, facts, _read_arrays(content, middle + len(_ARRAYS), name))


def _check_identity(content: bytes, name: str) -> str:
    """Return the kind of an undamaged file of this format and version."""
    if not content.startswith(_OPENING):
        hint = "releases are written by their method save(), and start with their format's name."
        raise unsound("a file in the format dplinear-release", name, hint)
    version = _VERSION.match(content, len(_OPENING))
    if version is None:
        raise unsound("a release with a version", name)
    if int(version[1]) > VERSION:
        rule = f"a release of version {VERSION}, and this is version {int(version[1])}"
        hint = "the file was written by a newer dplinear; upgrade dplinear to read it."
        raise unsound(rule, name, hint)
    identity = _IDENTITY.match(content, version.end())
    if int(version[1]) != VERSION or identity is None:
        raise unsound(f"a release of version {VERSION} with its kind and checksum", name)
    digest = hashlib.sha256(content[: identity.start(2)])
    digest.update(_ZEROS.encode())
    digest.update(memoryview(content)[identity.end(2) :])
    if digest.hexdigest().encode() != identity[2]:
        raise unsound("an undamaged release: its checksum is not that of its content", name)
    return identity[1].decode()


# Facts: everything but the arrays


def facts_text(facts: Mapping[str, Any]) -> bytes:
    """Return the one spelling of facts that have no arrays beside them."""
    return _facts_text(facts) + b"\n}\n"


def read_facts(content: bytes, name: str) -> dict[str, Any]:
    """Return what `facts_text` wrote, or raise ReleaseError."""
    if len(content) > MOST_FACTS or not content.endswith(b"\n}\n"):
        raise unsound("a release with a whole certificate of a usual size", name)
    return _read_facts(content.removesuffix(b"\n}\n"), name)


def _facts_text(facts: Mapping[str, Any]) -> bytes:
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False, default=_whole)
    return text.removesuffix("\n}").encode()


def _whole(value: object) -> int:
    """Return a NumPy integer as a plain one; nothing else becomes JSON by itself."""
    if isinstance(value, numbers.Integral):
        return int(value)
    raise rejection("release", "save", "made of plain numbers and text", value)


def _read_facts(text: bytes, name: str) -> dict[str, Any]:
    try:
        written = text.decode()
        _check_depth(written)
        facts = json.loads(
            written + "\n}",
            object_pairs_hook=_unique,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
        canonical = _facts_text(facts)
    except ValueError as error:  # not UTF-8, not JSON, or a number that no release has
        raise unsound(f"a well-formed release ({error})", name) from None
    if canonical != text:
        raise unsound("a release as dplinear writes it, to the byte", name)
    return dict(facts)


def _check_depth(text: str) -> None:
    """Raise before a parser that calls itself meets deep nesting."""
    depth = 0
    for token in _TOKEN.finditer(text):
        first = token[0][0]
        depth += (first in "[{") - (first in "]}")
        if depth > DEEPEST:
            raise ValueError(f"nested deeper than {DEEPEST}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key is there twice")
    return content


def _integer(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number of more than {LONGEST_NUMBER} digits")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > LONGEST_NUMBER or not math.isfinite(float(digits)):
        raise ValueError("a number beyond float64")
    return float(digits)


def _constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


# Arrays


def _header(rows: int, columns: int) -> bytes:
    """Return the .npy header, of one length on every version of NumPy."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}"
    return _MAGIC + text.encode().ljust(_HEADER - len(_MAGIC) - 1) + b"\n"


def _npy(array: Floats) -> bytes:
    if array.ndim != 2 or array.dtype != np.float64 or not array.size:
        rule = "made of arrays of float64 in two dimensions"
        raise rejection("release", "save", rule, f"{array.dtype} of shape {array.shape}")
    rows, columns = array.shape
    return _header(rows, columns) + array.astype("<f8", order="C").tobytes()


def _read_arrays(content: bytes, start: int, name: str) -> dict[str, Floats]:
    arrays: dict[str, Floats] = {}
    view = memoryview(content)
    while len(arrays) < MOST_ARRAYS:
        entry = _ENTRY.match(content, start)
        if entry is None:
            break
        end = content.find(b'"', entry.end())
        label = entry[1].decode()
        if end < 0 or label in arrays:
            raise unsound("a release with whole arrays, each named once", name)
        arrays[label] = _read_array(_decode_base64(view[entry.end() : end], name), name)
        if content[end + 1 : end + 2] != b",":
            if view[end + 1 :] != _END:
                break
            return arrays
        start = end + 2
    raise unsound("a release that ends with its arrays", name)


def _decode_base64(text: memoryview, name: str) -> bytes:
    try:
        decoded = binascii.a2b_base64(text, strict_mode=True)
        last = binascii.b2a_base64(binascii.a2b_base64(text[-4:]), newline=False)
    except ValueError as error:
        raise unsound(f"a release with arrays in base64 ({error})", name) from None
    if last != text[-4:]:  # the last group may hold bits that decoding drops
        raise unsound("a release with arrays in base64, spelt in the one way", name)
    return decoded


def _read_array(file: bytes, name: str) -> Floats:
    """Return the array in a .npy file: float64, in rows, two dimensions; anything else raises."""
    shape = _SHAPE.fullmatch(file[:_HEADER])
    rows, columns = (int(shape[1]), int(shape[2])) if shape else (0, 0)
    if not shape or file[:_HEADER] != _header(rows, columns):
        rule = "a release with .npy arrays of little-endian float64, in rows, two dimensions"
        raise unsound(rule, name)
    if len(file) - _HEADER != 8 * rows * columns:
        rule = f"a release with arrays of as many numbers as their shape ({rows}, {columns}) says"
        raise unsound(rule, name)
    array = np.frombuffer(file, "<f8", offset=_HEADER).reshape(rows, columns)
    if not np.isfinite(array).all():
        raise unsound("a release with finite numbers", name)
    return array.astype(np.float64, copy=False)
