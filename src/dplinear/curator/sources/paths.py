"""Paths, folders and globs: which files they name, each once, checked before any is opened.

Promises: every file is a regular one, so that opening it cannot wait; none is named twice, so that
no row is counted twice; none belongs to a table whose log says which rows count.
"""

import glob
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dplinear.arguments import rejection, wrong_type
from dplinear.curator.sources.source import WHERE

PARQUET = (".parquet", ".pq", ".parq")
DELIMITED = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
IPC = (".arrow", ".feather", ".ipc", ".arrows")
_FORMATS = (*PARQUET, *DELIMITED, *IPC)
_READABLE = "the path of a readable file"
_LOGS = (  # folders that stand in a table's own folder, and whose they are
    (("_delta_log",), "Delta Lake"),
    ((".hoodie",), "Hudi"),
    (("_spark_metadata",), "a Spark stream"),
    (("snapshot", "manifest", "schema"), "Paimon"),
)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def is_paths(data: object) -> bool:
    """Return whether an argument names files: a path, a glob, or a list of them."""
    if isinstance(data, list | tuple):
        return bool(data) and all(isinstance(entry, str | os.PathLike) for entry in data)
    return isinstance(data, str | os.PathLike)


def expand(data: Any) -> list[Path]:
    """Return the files that paths, folders and globs name, in a fixed order."""
    several = isinstance(data, list | tuple)
    entries = list(data) if several else [data]
    found: list[Path] = []
    for number, entry in enumerate(entries, 1):
        if isinstance(entry, bytes):
            raise wrong_type("data", WHERE, "a path as text", type(entry))
        path = os.fspath(entry)
        found.extend(
            _expand_one(path, f"entry {number} of a list" if several else _printable_name(path))
        )
    for file in found:
        _check_format(file)
    _check_tables(found)
    _check_files(found)
    return found


def _printable_name(path: str) -> str:
    """Return a path as an error shows it: what has line ends is the content of a file."""
    return "text of several lines" if len(path.splitlines()) > 1 else path


def _expand_one(entry: str, shown: str) -> list[Path]:
    """Return the files of one path; errors have `shown` for it: it may be no path, but rows."""
    if not entry:
        raise rejection("data", WHERE, _READABLE, repr(entry))
    path = Path(entry)
    try:
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if _is_data(file, path))
            folders, rule = [], f"a folder with files of a known format ({', '.join(_FORMATS)})"
        elif path.exists():
            return [path]
        else:
            # Where exists() is False for lack of rights or a loop of links, stat says which.
            if not glob.has_magic(entry):
                path.stat()
            matches = sorted(map(Path, glob.glob(entry, recursive=True)))  # noqa: PTH207
            found = [match for match in matches if not match.is_dir()]
            folders = [match for match in matches if match.is_dir()]
            rule = "a glob that matches at least one file"
    except (OSError, ValueError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise rejection("data", WHERE, f"{_READABLE} ({reason})", shown) from None
    _check_tables([path / "any"])  # also where all of its files are hidden
    _check_folders(folders, found)
    if not found:
        raise rejection("data", WHERE, rule, shown)
    return found


def _is_data(file: Path, folder: Path) -> bool:
    hidden = any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    return not hidden and _has_format(file) and not file.is_dir()


def _has_format(file: Path) -> bool:
    return file.name.lower().endswith(_FORMATS)


def _check_format(file: Path) -> None:
    if not _has_format(file):
        rule = f"a file of a known format ({', '.join(_FORMATS)})"
        raise rejection("data", WHERE, rule, file.name)


def _check_folders(folders: Iterable[Path], files: list[Path]) -> None:
    """Raise if a glob names a folder that is a table, but none of its files: they would be lost."""
    inside = {parent for file in files for parent in file.parents}
    for folder in folders:
        if _has_format(folder) and folder not in inside:
            hint = "name the folder itself, or the files in it."
            raise rejection("data", WHERE, "a glob that matches files", "a folder", hint)


def _check_files(files: Iterable[Path]) -> None:
    """Raise unless each is a regular file, and another one than those before it."""
    seen: set[tuple[int, int]] = set()
    for file in files:
        try:
            found = file.stat()
        except OSError as error:
            rule = f"{_READABLE} ({error.strerror})"
            raise rejection("data", WHERE, rule, file.name) from None
        if not stat.S_ISREG(found.st_mode):
            kind = next((name for test, name in _KINDS if test(found.st_mode)), "something else")
            hint = "write what it delivers to a file first, or read it into a table."
            rule = f"a regular file ('{file.name}' is none)"
            raise rejection("data", WHERE, rule, kind, hint)
        if (found.st_dev, found.st_ino) in seen:
            hint = "every row would count twice, and be hidden half as well."
            raise rejection("data", WHERE, "a list of files, none of them twice", file.name, hint)
        seen.add((found.st_dev, found.st_ino))


def _check_tables(files: Iterable[Path]) -> None:
    """Raise if a file belongs to a table with a log of its own: it may hold rows long deleted."""
    nearest = {Path(within).parent for file in files for within in _names(file)}
    folders = nearest.union(*(folder.parents for folder in nearest))
    for folder in sorted(folders):
        keeper = _keeper(str(folder))
        if keeper is not None:
            rule = f"files that are a table by themselves ('{folder.name}' has a log of its own)"
            hint = (
                "its files may hold rows that were deleted or replaced: read it with its own "
                "library, and pass the Arrow table, Polars frame or DuckDB relation."
            )
            raise rejection("data", WHERE, rule, f"a part of a table of {keeper}", hint)


def _names(file: Path) -> tuple[str, str]:
    return os.path.abspath(file), os.path.realpath(file)  # noqa: PTH100 - links as they are, too


def _keeper(folder: str) -> str | None:
    """Return what keeps a folder's table, or None."""
    for names, keeper in _LOGS:
        if all(os.path.isdir(os.path.join(folder, name)) for name in names):  # noqa: PTH112, PTH118 - no errors
            return keeper
    try:
        entries = os.listdir(os.path.join(folder, "metadata"))  # noqa: PTH118, PTH208
    except OSError:
        return None
    logs = (name.endswith(".metadata.json") or name == "version-hint.text" for name in entries)
    return "Iceberg" if any(logs) else None
