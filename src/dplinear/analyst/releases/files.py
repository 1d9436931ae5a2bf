"""Saving releases and loading them again, anywhere, without trusting the file.

The bytes are `container.py`'s; here are the kinds of release, and the files themselves. A further
kind is one object with a name, `to_parts` and `from_parts`, registered by the module of its class.
"""

import os
import stat
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np

from dplinear.analyst.noise_models.matrices import NoiseModel
from dplinear.analyst.releases import container
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.container import Parts, ReleaseError, unsound
from dplinear.analyst.releases.outputs import Output, UnplacedError, claim, no_folder, sync_folder
from dplinear.arguments import choice, integer, rejection, wrong_type
from dplinear.schema import Schema

if TYPE_CHECKING:
    from dplinear.analyst.releases.bounds import SuggestedBounds
    from dplinear.analyst.releases.constrained import ConstrainedRelease
    from dplinear.analyst.releases.groups import Groups
    from dplinear.analyst.releases.levels import SuggestedLevels
    from dplinear.analyst.releases.location import CovarianceRelease, MeanRelease
    from dplinear.analyst.releases.model import ModelRelease
    from dplinear.analyst.releases.moments import MomentsRelease
    from dplinear.analyst.releases.release import Release
    from dplinear.analyst.releases.rows_per_unit import SuggestedRowsPerUnit
    from dplinear.analyst.releases.scores import ScoresRelease
    from dplinear.analyst.releases.sketch import SketchRelease
    from dplinear.analyst.rows.release import RowsRelease

__all__ = [
    "Kind",
    "MatrixKind",
    "Parts",
    "ReleaseError",
    "claim",
    "kind_of",
    "load",
    "pack",
    "register",
    "save",
    "sync_folder",
    "unpack",
]

LARGEST = 256 * 2**20
_MOST_SQUARED = 1e150
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

    def to_parts(self, release: Any) -> Parts:
        """Take a release apart."""

    def from_parts(self, parts: Parts) -> Any:
        """Put a release together, or raise."""


# Imported when a file asks for them; each registers its kind.
_HOMES = {
    "bounds": "dplinear.analyst.releases.bounds",
    "covariance": "dplinear.analyst.releases.location",
    "groups": "dplinear.analyst.releases.groups",
    "levels": "dplinear.analyst.releases.levels",
    "linear": "dplinear.analyst.releases.constrained",
    "mean": "dplinear.analyst.releases.location",
    "model": "dplinear.analyst.releases.model",
    "moments": "dplinear.analyst.releases.moments",
    "rows": "dplinear.analyst.rows.release",
    "rows_per_unit": "dplinear.analyst.releases.rows_per_unit",
    "scores": "dplinear.analyst.releases.scores",
    "sketch": "dplinear.analyst.releases.sketch",
}
_KINDS: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Let `save` and `load` know a kind of release."""
    _KINDS[kind.name] = kind


def kind_of(name: str) -> Kind:
    """Return a known kind, by its name."""
    if name not in _KINDS and name in _HOMES:
        import_module(_HOMES[name])
    return _KINDS[name]


def _kind_names() -> list[str]:
    return sorted({*_KINDS, *_HOMES})


@dataclass(frozen=True)
class MatrixKind:
    """Releases made of `schema`, `values` (of its features), `noise_model`, `certificate`, `rows`.

    `noise_models` are those they may have; `symmetric` demands a symmetric square matrix, and
    `squared` numbers whose squares are floats, as are sums of them.
    """

    name: str
    release: type[Any]
    noise_models: tuple[type[NoiseModel], ...] = (NoiseModel,)
    symmetric: bool = False
    squared: bool = False

    def to_parts(self, release: Any) -> Parts:
        """Take a release apart."""
        facts = {
            "certificate": release.certificate.to_dict(),
            "schema": release.schema.to_dict(),
            "law": release.noise_model.to_dict(),
            "rows": release.rows,
        }
        return Parts(self.name, facts, {"values": release.values})

    def from_parts(self, parts: Parts) -> Any:
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
        noise_model = NoiseModel.from_dict(parts.facts["law"])
        if not isinstance(noise_model, self.noise_models):
            names = " or ".join(noise_model.kind for noise_model in self.noise_models)
            raise rejection("law", where, f"of kind {names}", noise_model.kind)
        schema = Schema.from_release(parts.facts["schema"])
        if noise_model.dimension not in {None, schema.dimension}:
            rule = f"of {schema.dimension} features, as its schema says"
            raise rejection("law", where, rule, f"of {noise_model.dimension}")
        height = schema.dimension if self.symmetric else len(values)
        if values.shape != (height, schema.dimension):
            rule = f"of shape ({height}, {schema.dimension}), as its schema says"
            raise rejection("values", where, rule, values.shape)
        if self.symmetric and not np.array_equal(values, values.T):
            hint = "mechanisms release matrices that are symmetric to the bit."
            raise rejection("values", where, "a symmetric matrix", "an asymmetric one", hint)
        if self.squared and np.abs(values).max(initial=0.0) > _MOST_SQUARED:
            raise rejection("values", where, f"of numbers up to {_MOST_SQUARED:g}", "larger ones")
        return self.release(schema, values, noise_model, certificate, rows)


_Path = str | os.PathLike[str]


@overload
def load(path: _Path, *, kind: None = ..., largest: int | None = ...) -> "Release": ...
@overload
def load(
    path: _Path, *, kind: Literal["moments"], largest: int | None = ...
) -> "MomentsRelease": ...
@overload
def load(path: _Path, *, kind: Literal["sketch"], largest: int | None = ...) -> "SketchRelease": ...
@overload
def load(path: _Path, *, kind: Literal["model"], largest: int | None = ...) -> "ModelRelease": ...
@overload
def load(
    path: _Path, *, kind: Literal["linear"], largest: int | None = ...
) -> "ConstrainedRelease": ...
@overload
def load(path: _Path, *, kind: Literal["mean"], largest: int | None = ...) -> "MeanRelease": ...
@overload
def load(
    path: _Path, *, kind: Literal["covariance"], largest: int | None = ...
) -> "CovarianceRelease": ...
@overload
def load(path: _Path, *, kind: Literal["rows"], largest: int | None = ...) -> "RowsRelease": ...
@overload
def load(path: _Path, *, kind: Literal["groups"], largest: int | None = ...) -> "Groups[Any]": ...
@overload
def load(
    path: _Path, *, kind: Literal["bounds"], largest: int | None = ...
) -> "SuggestedBounds": ...
@overload
def load(
    path: _Path, *, kind: Literal["rows_per_unit"], largest: int | None = ...
) -> "SuggestedRowsPerUnit": ...
@overload
def load(
    path: _Path, *, kind: Literal["levels"], largest: int | None = ...
) -> "SuggestedLevels": ...
@overload
def load(path: _Path, *, kind: Literal["scores"], largest: int | None = ...) -> "ScoresRelease": ...
@overload
def load(path: _Path, *, kind: str | None, largest: int | None = ...) -> "Release": ...


def load(path: _Path, *, kind: str | None = None, largest: int | None = None) -> "Release":
    """Read a release that was saved, on any machine.

    Requires: the path of a regular file of at most `largest` bytes (256 MiB, unless it is given);
    `kind`, if given, is the kind of release it must hold, and says its class to type checkers.
    The file itself need not be trusted.
    Released rows (Parquet, Arrow, or CSV with its certificate beside it) may be of any size, and
    are read when they are asked for; decoded, they may take 64 MiB or 32 times the size of their
    file, whichever is more, unless `largest` says how many bytes they may take.
    Promises: the release that was saved, equal to the bit, or ReleaseError. A file with any bit
    changed is refused; nothing in a file is executed, and memory stays below a small multiple of
    its size. The checksum shows damage; it does not show who wrote the file.
    """
    if not isinstance(path, str | os.PathLike):
        raise wrong_type("path", "load", "the path of a saved release", path)
    limit = None if largest is None else integer(largest, "largest", "load", low=1)
    if kind is not None:
        choice(kind, "kind", "load", _kind_names())
    file = Path(path)
    if kind in {None, "rows"}:
        from dplinear.analyst.rows import release, row_reading

        if row_reading.is_rows_file(file):
            return release.RowsRelease(*row_reading.open_rows_file(file, limit))
    found: Release = _parse(_content(file, LARGEST if limit is None else limit), file.name, kind)
    return found


def save(release: Any, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a release to a file, whole or not at all.

    Requires: a release of a registered kind. An existing file is kept unless `overwrite`.
    Promises: the same release gives the same bytes, which `load` reads back equal to the bit; a
    crash at any moment leaves the old file or the new one, never a part.
    """
    if not isinstance(path, str | os.PathLike):
        raise wrong_type("path", "save", "the path of a file to write", path)
    target = Path(path)
    content = pack(release, target.name)
    if content is None:
        raise wrong_type("release", "save", "a release of a known kind", type(release).__name__)
    place(content, target, overwrite=overwrite)


def pack(release: object, name: str = "a release") -> bytes | None:
    """Return the bytes of a release's file, or None for what is not of a registered kind."""
    kind = next((kind for kind in _KINDS.values() if type(release) is kind.release), None)
    if kind is None:
        return None
    content = container.write(kind.to_parts(release))
    _check_again(kind, content, name)
    return content


def unpack(content: bytes, name: str = "a release") -> Any:
    """Return the release whose file has these bytes, or raise ReleaseError."""
    return _parse(content, name, None)


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


def _parse(content: bytes, name: str, expected: str | None) -> Any:
    parts = container.read(content, name)
    kind = kind_of(parts.kind) if parts.kind in _kind_names() else None
    if kind is None or (expected is not None and expected != kind.name):
        known = _kind_names() if expected is None else [expected]
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
    output = prepare(target, overwrite=overwrite)
    try:
        output.file.write(content)
        output.complete()
        output.place()
    except (UnplacedError, OSError) as error:  # the content is in memory: no file has to stay
        reason = error.reason if isinstance(error, UnplacedError) else error.strerror
        rule = f"the path of a file that can be written ({reason})"
        raise _unwritable(rule, target) from None
    finally:
        output.discard()


def prepare(target: Path, *, overwrite: bool) -> Output:
    """Open a file that is to be written, before anything is spent on what it will hold.

    Promises: `ReleaseError`, naming the rule, for whatever is known by now to stand in its way.
    """
    try:
        if target.exists() and not target.is_file():
            raise _unwritable("the path of a file", target)
        if os.path.lexists(target) and not overwrite:
            hint = "pass overwrite=True to replace the file."
            raise _unwritable("the path of a file that is not there yet", target, hint)
        return Output(target, overwrite=overwrite)
    except (NotADirectoryError, FileNotFoundError):
        raise ReleaseError(str(no_folder("path", "save", target))) from None
    except OSError as error:
        rule = f"the path of a file that can be written ({error.strerror})"
        raise _unwritable(rule, target) from None
