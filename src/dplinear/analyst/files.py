"""Saving releases and loading them again, anywhere, without trusting the file.

The bytes are `container.py`'s; here are the kinds of release, and the files themselves. A further
kind is one object with a name, `to_parts` and `from_parts`, registered by the module of its class.
"""

import os
import stat
import uuid
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from dplinear.analyst import container
from dplinear.analyst.certificate import Certificate
from dplinear.analyst.container import Parts, ReleaseError, unsound
from dplinear.analyst.laws import LAWS, Law
from dplinear.arguments import choice, integer, mistyped, rejection
from dplinear.schema import Schema

__all__ = [
    "Kind",
    "MatrixKind",
    "Parts",
    "ReleaseError",
    "load",
    "packed",
    "register",
    "save",
    "unpacked",
]

LARGEST = 256 * 2**20
_UNSOUND = (ValueError, TypeError, ArithmeticError)  # what content of the wrong kind raises


class Kind(Protocol):
    """A kind of release: how its objects are taken apart and put together again.

    `from_parts` gets whatever a file held, in plain JSON and finite arrays, and raises ValueError
    or TypeError for what is not a release of its kind; `to_parts` undoes it exactly.
    """

    @property
    def name(self) -> str:
        """The kind as files name it."""

    @property
    def release(self) -> type[Any]:
        """The class of its releases."""

    def to_parts(self, release: Any) -> Parts:  # noqa: ANN401 - of the class `release`
        """Take a release apart."""

    def from_parts(self, parts: Parts) -> Any:  # noqa: ANN401 - of the class `release`
        """Put a release together, or raise."""


# Imported when a file asks for them; each registers its kind.
_HOMES = {
    "bounds": "dplinear.analyst.suggested",
    "covariance": "dplinear.analyst.location",
    "linear": "dplinear.analyst.linear_release",
    "mean": "dplinear.analyst.location",
    "model": "dplinear.analyst.model_release",
    "moments": "dplinear.analyst.moments",
    "rows": "dplinear.analyst.rows",
    "sketch": "dplinear.analyst.sketch",
}
_KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Let `save` and `load` know a kind of release."""
    _KINDS[kind.name] = kind


def _known() -> list[str]:
    return sorted({*_KINDS, *_HOMES})


@dataclass(frozen=True)
class MatrixKind:
    """Releases made of `schema`, `values` (columns: its features), `law`, `certificate`, `rows`.

    `laws` are the laws they may follow; `symmetric` demands a symmetric square matrix.
    """

    name: str
    release: type[Any]
    laws: tuple[type[Law], ...] = tuple(LAWS.values())
    symmetric: bool = False

    def to_parts(self, release: Any) -> Parts:  # noqa: ANN401 - of the class `release`
        """Take a release apart."""
        facts = {
            "certificate": release.certificate.to_dict(),
            "schema": release.schema.to_dict(),
            "law": release.law.to_dict(),
            "rows": release.rows,
        }
        return Parts(self.name, facts, {"values": release.values})

    def from_parts(self, parts: Parts) -> Any:  # noqa: ANN401 - of the class `release`
        """Put a release together, or raise."""
        where = f"a release of {self.name}"
        keys = ["certificate", "schema", "law", "rows"]
        if list(parts.facts) != keys or list(parts.arrays) != ["values"]:
            found = ", ".join([*parts.facts, *parts.arrays])
            raise rejection("keys", where, ", ".join([*keys, "values"]), found)
        values = parts.arrays["values"]
        rows = parts.facts["rows"]
        if rows is not None:
            rows = integer(rows, "rows", where, low=0)
        certificate = Certificate.from_dict(parts.facts["certificate"])
        law = Law.from_dict(parts.facts["law"])
        if not isinstance(law, self.laws):
            names = " or ".join(law.kind for law in self.laws)
            raise rejection("law", where, f"of kind {names}", law.kind)
        schema = Schema.from_release(parts.facts["schema"])
        if law.dimension not in {None, schema.dimension}:
            rule = f"of {schema.dimension} features, as its schema says"
            raise rejection("law", where, rule, f"of {law.dimension}")
        height = schema.dimension if self.symmetric else len(values)
        if values.shape != (height, schema.dimension):
            rule = f"of shape ({height}, {schema.dimension}), as its schema says"
            raise rejection("values", where, rule, values.shape)
        if self.symmetric and not np.array_equal(values, values.T):
            hint = "mechanisms release matrices that are symmetric to the bit."
            raise rejection("values", where, "a symmetric matrix", "an asymmetric one", hint)
        return self.release(schema, values, law, certificate, rows)


def load(  # the class of what it returns is the file's to say
    path: str | os.PathLike[str], *, kind: str | None = None, largest: int = LARGEST
) -> Any:  # noqa: ANN401
    """Read a release that was saved, on any machine.

    Requires: the path of a regular file of at most `largest` bytes; `kind`, if given, is the kind
    of release it must hold. The file itself need not be trusted. Released rows (Parquet, Arrow, or
    CSV with its certificate beside it) may be of any size: they are read when they are asked for.
    Promises: the release that was saved, equal to the bit, or ReleaseError. A file with any bit
    changed is refused; nothing in a file is executed, and memory stays below a small multiple of
    its size. The checksum shows damage; it does not show who wrote the file.
    """
    if not isinstance(path, str | os.PathLike):
        raise mistyped("path", "load", "the path of a saved release", path)
    limit = integer(largest, "largest", "load", low=1)
    if kind is not None:
        choice(kind, "kind", "load", _known())
    file = Path(path)
    if kind in {None, "rows"}:
        from dplinear.analyst import row_files, rows  # noqa: PLC0415 - they need this module

        if row_files.recognised(file):
            return rows.RowsRelease(*row_files.opened(file))
    return _parsed(_content(file, limit), file.name, kind)


def save(release: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:  # noqa: ANN401
    """Write a release to a file, whole or not at all.

    Requires: a release of a registered kind. An existing file is kept unless `overwrite`.
    Promises: the same release gives the same bytes, which `load` reads back equal to the bit; a
    crash at any moment leaves the old file or the new one, never a part.
    """
    if not isinstance(path, str | os.PathLike):
        raise mistyped("path", "save", "the path of a file to write", path)
    target = Path(path)
    content = packed(release, target.name)
    if content is None:
        raise mistyped("release", "save", "a release of a known kind", type(release).__name__)
    try:
        place(content, target, overwrite=overwrite)
    except FileExistsError:
        hint = "pass overwrite=True to replace the file."
        raise _unwritable("the path of a file that is not there yet", target, hint) from None
    except (NotADirectoryError, FileNotFoundError):
        raise _unwritable("in a folder that is there", target) from None


def packed(release: object, name: str = "a release") -> bytes | None:
    """Return the bytes of a release's file, or None for what is not of a registered kind."""
    kind = next((kind for kind in _KINDS.values() if type(release) is kind.release), None)
    if kind is None:
        return None
    content = container.write(kind.to_parts(release))
    _check_again(kind, content, name)
    return content


def unpacked(content: bytes, name: str = "a release") -> Any:  # noqa: ANN401 - as `load`
    """Return the release whose file has these bytes, or raise ReleaseError."""
    return _parsed(content, name, None)


def _check_again(kind: Kind, content: bytes, name: str) -> None:
    """Raise for what could not be loaded, before it is saved."""
    try:
        kind.from_parts(container.read(content, name))
    except _UNSOUND as error:
        rule = f"a release that can be loaded again ({_fact(error)})"
        hint = "the fault is with what made the release; no file was written."
        raise ReleaseError(str(rejection("release", "save", rule, kind.name, hint))) from None


def _unwritable(rule: str, target: Path, hint: str = "choose another path.") -> ReleaseError:
    return ReleaseError(str(rejection("path", "save", rule, target.name, hint)))


def _parsed(content: bytes, name: str, expected: str | None) -> Any:  # noqa: ANN401
    parts = container.read(content, name)
    if parts.kind not in _KINDS and parts.kind in _HOMES:
        import_module(_HOMES[parts.kind])
    kind = _KINDS.get(parts.kind)
    if kind is None or (expected is not None and expected != kind.name):
        known = _known() if expected is None else [expected]
        hint = "a later dplinear may know more kinds of release."
        rule = f"a release of {' or '.join(known)}, and this is one of {parts.kind}"
        raise unsound(rule, name, hint)
    try:
        return kind.from_parts(parts)
    except _UNSOUND as error:
        raise unsound(f"a release with sound content ({_fact(error)})", name) from None


def _fact(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _content(file: Path, largest: int) -> bytes:
    """Return the bytes of a regular file that is not too large, reading no more than its size."""
    try:
        _size(file.stat(), file.name, largest)
        with open(file, "rb", opener=container.opener) as opened:
            size = _size(os.fstat(opened.fileno()), file.name, largest)
            content = opened.read(size + 1)
    except OSError as error:
        raise unsound(f"a file that can be read ({error.strerror})", file.name) from None
    except ReleaseError:
        raise
    except ValueError:  # a path with a zero byte in it
        raise unsound("the path of a file", file.name) from None
    if len(content) != size:
        raise unsound("a file that stays as it is while it is read", file.name)
    return content


def _size(found: os.stat_result, name: str, largest: int) -> int:
    if not stat.S_ISREG(found.st_mode):
        hint = "folders, pipes and devices are not read."
        raise unsound("a regular file", name, hint)
    if found.st_size > largest:
        hint = "if you trust where the file comes from, pass a larger `largest`."
        raise unsound(f"a file of at most {largest} bytes, not {found.st_size}", name, hint)
    return found.st_size


def place(content: bytes, target: Path, *, overwrite: bool) -> None:
    """Write a file, whole or not at all, through one beside it that nobody else can name."""
    if target.exists() and not target.is_file():
        raise _unwritable("the path of a file", target)
    beside = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("xb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        if overwrite:
            beside.replace(target)
        else:
            claim(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    with suppress(OSError):  # where folders cannot be synced, the system does it in its own time
        sync_folder(target.parent)


def claim(beside: Path, target: Path) -> None:
    """Give the finished file its name, unless another has it by now."""
    try:
        os.link(beside, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links cannot do both at once
        if os.path.lexists(target):
            raise FileExistsError from None
        beside.replace(target)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
