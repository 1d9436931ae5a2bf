"""Released rows as a ledger keeps them: whole where they are few, and otherwise their digest.

One line of JSON, the head of the rows in its one spelling, then the rows as an Arrow stream, if
they are kept whole. Where a file holds the rows, its digest tells whether it is still that file;
its name and its folder are not kept, so that it may be moved.
"""

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from dplinear.analyst.releases.container import unsound
from dplinear.analyst.rows import row_files, row_reading
from dplinear.analyst.rows.release import RowsRelease
from dplinear.analyst.rows.row_head import Head, read_head

FORMAT = "dplinear-kept-rows"
WHOLE = 16 * 2**20  # bytes of rows that a ledger keeps
_START = f'{{"format": "{FORMAT}", '.encode()
_NAME = "kept rows"


@dataclass(frozen=True)
class KeptRows:
    """What a ledger kept of released rows.

    `digests` are those of the file and, beside CSV, of its certificate; none where memory held the
    rows. `stream` has the rows themselves, or is None.
    """

    head: Head
    rows: int
    digests: tuple[str, ...]
    stream: bytes | None

    def is_in(self, path: Path) -> bool:
        """Return whether a file is the one that was released; rows of memory are in none."""
        return not self.digests or _digests(path) == self.digests

    def release(self) -> RowsRelease:
        """Return the rows, or raise ReleaseError where they are not kept whole."""
        if self.stream is None:
            raise unsound("released rows that are kept whole", _NAME)
        try:
            batches = list(self._batches(self.stream))
        except (pa.ArrowException, OSError, ValueError):
            raise unsound("released rows that can be read", _NAME) from None
        table = pa.Table.from_batches(batches, self.head.columns)
        if table.num_rows != self.rows:
            raise unsound(f"{self.rows} released rows, as it says", _NAME)
        return RowsRelease(self.head, row_reading.HeldRows(table))

    def _batches(self, stream: bytes) -> Iterator[pa.RecordBatch]:
        columns = self.head.columns
        meter = row_reading.Meter(row_reading.memory_limit(len(stream)), _NAME)
        row_reading.check_columns(pa.ipc.open_stream(stream).schema, columns, _NAME)
        for message in pa.ipc.MessageReader.open_stream(stream):
            if message.type != "schema":
                batch = row_reading.unpack_rows(message, columns, meter)
                yield row_reading.check_batch(batch, columns, _NAME)


def pack(release: RowsRelease, *, whole: bool) -> bytes:
    """Return what a ledger is to keep; the rows themselves if `whole`, and if they are few."""
    stream = _stream(release) if whole else None
    head = release.head.to_bytes(release.rows)
    said = {
        "format": FORMAT,
        "version": 1,
        "head": len(head),
        "digests": [] if release.path is None else list(_digests(release.path)),
        "whole": stream is not None,
    }
    return b"".join((json.dumps(said).encode(), b"\n", head, stream or b""))


def is_kept_rows(content: bytes) -> bool:
    """Return whether these are kept rows."""
    return content.startswith(_START)


def read(content: bytes) -> KeptRows:
    """Return what was kept, or raise ReleaseError."""
    line, _, rest = content.partition(b"\n")
    try:
        said: dict[str, Any] = json.loads(line)
        if said["version"] != 1:
            raise unsound("rows kept by a version that is known here", _NAME)
        head, rows = read_head(rest[: said["head"]], _NAME)
        stream = rest[said["head"] :] if said["whole"] else None
        return KeptRows(head, int(rows or 0), tuple(said["digests"]), stream)
    except (KeyError, TypeError, json.JSONDecodeError):
        raise unsound("rows as they were kept", _NAME) from None


def _stream(release: RowsRelease) -> bytes | None:
    """Return the rows as an Arrow stream, or None as soon as they are too many."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, release.head.columns) as writer:
        for batch in release.batches():
            if out.tell() + batch.nbytes > WHOLE:
                return None
            writer.write_batch(batch)
    return out.getvalue()


def _digests(path: Path) -> tuple[str, ...]:
    beside = [row_files.sidecar(path)] if path.suffix.lower() == ".csv" else []
    return tuple(_digest(file) for file in [path, *beside])


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise unsound(f"a file that can be read ({error.strerror})", path.name) from None
