"""Small files that claim to be large: what they are held to, before room is made for it."""

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dplinear import ReleaseError, load, release_rows
from dplinear.analyst.releases.constrained import ConstrainedRelease
from dplinear.analyst.releases.sparse_vector import SparseVector
from dplinear.analyst.releases.units import UnitConversion
from dplinear.analyst.rows import row_reading
from dplinear.analyst.rows.arrow_messages import read_announcement
from dplinear.analyst.rows.row_files import sidecar
from dplinear.analyst.rows.row_reading import LEAST, TIMES, Meter, memory_limit
from dplinear.noise import simulation
from dplinear.schema import Schema

WIDE = Schema({f"x{number}": (0, 1) for number in range(16)})
LABELLED = Schema({"x": (0, 1), "town": ["a", "b"]})
ROWS = 2**21  # of 16 numbers: 256 MiB
MOST = 180 * 2**20  # bytes beyond what importing takes: the 64 MiB that are allowed, and their copy

# Prints what became of a file, and the peak of memory beyond what was there before.
READER = """
import resource, sys
import pyarrow.compute, pyarrow.csv, pyarrow.dataset
import dplinear
from dplinear.analyst.rows import row_reading
from dplinear.report import release_page

path, ask = sys.argv[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    release = dplinear.load(path)
    if ask == "page":
        said = str(len(release_page(release)) + len(repr(release)) + len(release._repr_html_()))
    else:
        said = str(sum(batch.num_rows for batch in release.batches()))
        said = str(len(getattr(release, ask)() if ask == "to_arrow" else release.values))
except dplinear.ReleaseError as error:
    said = "refused"
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(said, (after - before) * 1024)
"""


def peak(path: Path, ask: str = "to_arrow") -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path), ask], capture_output=True, text=True, check=True
    )
    said, grown = done.stdout.split()
    return said, int(grown)


def head_of(schema: Schema, folder: Path, **options: Any) -> bytes:
    """Return the head of an honest release."""
    rows = {name: np.zeros(3) for name in schema.columns}
    table = pa.table({**rows, "town": ["a", "b", "a"]} if "town" in schema.columns else rows)
    file = folder / "honest.parquet"
    release_rows(table, schema, epsilon=1.0, delta=1e-6, output=file, **options)
    return bytes(pq.read_schema(file).metadata[b"dplinear"])


def zeros(head: bytes, rows: int = ROWS) -> pa.Table:
    column = pa.array(np.zeros(rows))
    fields = [pa.field(name, pa.float64(), nullable=False) for name in WIDE.columns]
    return pa.table([column] * len(fields), schema=pa.schema(fields, {b"dplinear": head}))


def arrow(codec: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        table, file = zeros(head_of(WIDE, folder)), folder / "hostile.arrow"
        options = pa.ipc.IpcWriteOptions(compression=codec)
        with pa.ipc.new_file(file, table.schema, options=options) as writer:
            writer.write_table(table)
        return file

    return made


def parquet(**options: Any) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        file = folder / "hostile.parquet"
        pq.write_table(zeros(head_of(WIDE, folder)), file, row_group_size=ROWS, **options)
        return file

    return made


def texts(**options: Any) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        head = head_of(LABELLED, folder, label="town", k=1, mechanism="projection")
        columns = [
            pa.field("z1", pa.float64(), nullable=False),
            pa.field("town", pa.string(), nullable=False),
        ]
        schema, file = pa.schema(columns, {b"dplinear": head}), folder / "hostile.parquet"
        text, count = "a" * 60_000, 2_000
        with pq.ParquetWriter(file, schema, compression="none", **options) as writer:
            for _ in range(4):  # 480 MB in all
                rows = [pa.array(np.zeros(count)), pa.array([text] * count)]
                writer.write_table(pa.table(rows, schema=schema))
        return file

    return made


def beside(folder: Path) -> Path:
    schema = Schema(x=(0, 1))
    file = folder / "hostile.csv"
    release_rows(pa.table({"x": [0.5, 0.5]}), schema, bits=0.5, output=file)
    facts = sidecar(file).read_text(encoding="utf-8")
    sidecar(file).write_text(facts.replace('"rows": 2', f'"rows": {2**27}'), encoding="utf-8")
    return file


HOSTILE = {
    "arrow zstd": arrow("zstd"),
    "arrow lz4": arrow("lz4"),
    "parquet zstd": parquet(compression="zstd"),
    "parquet gzip": parquet(compression="gzip", use_dictionary=False),
    "parquet runs": parquet(compression="none"),
    "text dictionary": texts(),
    "text deltas": texts(use_dictionary=False, column_encoding={"town": "DELTA_BYTE_ARRAY"}),
    "csv rows": beside,
}


@pytest.mark.heavy
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_small_file_takes_little_memory(kind: str, tmp_path: Path) -> None:
    file = HOSTILE[kind](tmp_path)
    assert file.stat().st_size < 20 * 2**20
    ask = "values" if kind == "csv rows" else "to_arrow"
    said, grown = peak(file, ask)
    assert said == "refused"
    assert grown < MOST


@pytest.mark.heavy
def test_an_honest_file_of_that_size_is_read(tmp_path: Path) -> None:
    file = tmp_path / "honest.parquet"
    rows = 2**18
    table = pa.table({name: simulation.generator(1).uniform(0, 1, rows) for name in WIDE.columns})
    release_rows(table, WIDE, bits=0.5, output=file)
    said, _ = peak(file)
    assert int(said) == rows


@pytest.mark.parametrize("compression", ["zstd", "lz4", None])
def test_compressed_arrow_files_within_the_limit_are_read(
    compression: str | None, tmp_path: Path
) -> None:
    table, file = zeros(head_of(WIDE, tmp_path), 3_000), tmp_path / "small.arrow"
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=1_000)
    assert load(file, kind="rows").to_arrow().equals(table.replace_schema_metadata(None))
    with pytest.raises(ReleaseError, match="once they are decoded"):
        load(file, largest=1_000)


def test_snappy_is_read_and_makes_no_more_than_the_limit_of_a_file(tmp_path: Path) -> None:
    file = parquet(compression="snappy", use_dictionary=False)(tmp_path)
    assert memory_limit(file.stat().st_size) > 8 * 16 * ROWS
    assert load(file).rows == ROWS
    assert next(iter(load(file, kind="rows").batches())).num_columns == 16


def test_dictionaries_are_read_and_largest_may_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = texts(use_dictionary=True)(tmp_path)
    with pytest.raises(ReleaseError, match="once they are decoded"):
        list(load(file, kind="rows").batches())
    seen = sum(batch.num_rows for batch in load(file, kind="rows", largest=2**30).batches())
    assert seen == 8_000
    monkeypatch.setattr(row_reading, "LEAST", 2**30)
    assert sum(batch.num_rows for batch in load(file, kind="rows").batches()) == 8_000


def test_the_limit_is_the_one_that_is_said() -> None:
    assert memory_limit(0) == LEAST
    assert memory_limit(LEAST) == TIMES * LEAST
    meter = Meter(10, "x")
    meter.take(10)
    with pytest.raises(ReleaseError, match="at most 10 bytes"):
        meter.take(1)


def _messages(options: pa.ipc.IpcWriteOptions) -> list[pa.Message]:
    rows = pa.record_batch({"x": np.zeros(5_000), "y": ["a" * 30] * 5_000})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
        writer.write_batch(rows.slice(0, 7))
    found = list(pa.ipc.MessageReader.open_stream(sink.getvalue()))
    return [message for message in found if message.type == "record batch"]


def test_messages_say_what_they_unpack_to() -> None:
    plain = _messages(pa.ipc.IpcWriteOptions())
    assert [read_announcement(message) for message in plain] == [(5_000, 0), (7, 0)]
    for codec in ("zstd", "lz4"):
        first, second = map(read_announcement, _messages(pa.ipc.IpcWriteOptions(compression=codec)))
        assert (first.rows, second.rows) == (5_000, 7)
        assert first.unpacked == 8 * 5_000 + 4 * 5_001 + 30 * 5_000
        assert second.unpacked >= 8 * 7 + 4 * 8 + 30 * 7


@pytest.mark.parametrize("codec", [None, "zstd"])
def test_damaged_messages_raise_value_errors_alone(codec: str | None) -> None:
    message = _messages(pa.ipc.IpcWriteOptions(compression=codec))[0]
    content = message.metadata.to_pybytes()

    class Damaged:
        def __init__(self, metadata: bytes) -> None:
            self.metadata, self.body = pa.py_buffer(metadata), message.body

    generator = simulation.generator(4)
    for _ in range(3_000):
        changed = bytearray(content)
        place = int(generator.integers(len(content)))
        changed[place : place + 4] = struct.pack("<I", int(generator.integers(2**32)))
        try:
            found = read_announcement(Damaged(bytes(changed[: len(content)])))
        except ValueError:
            continue
        assert found.rows >= 0
        assert found.unpacked >= 0


# Models of very many features


@pytest.mark.heavy
def test_a_model_of_many_features_is_shown_by_those_that_count(tmp_path: Path) -> None:
    """2^28 coordinates are 2 GiB; three of them are not 0."""
    size, file = 2**28, tmp_path / "linear.json"
    places = np.array([3, size // 2, size - 1])
    model = ConstrainedRelease(
        source=SparseVector(size, places, np.array([0.5, -0.25, 0.1])),
        loss="squared",
        units=UnitConversion(row_norm=2.0, scale=0.5, constant=1.0, target_bounds=(10.0, 30.0)),
        certificate=release_rows(np.zeros((3, 16)), WIDE, bits=0.5).certificate,
        constraint={"set": "l1", "radius": 1.0},
    )
    model.save(file)
    assert file.stat().st_size < 10_000
    said, grown = peak(file, "page")
    assert int(said) > 0
    assert grown < MOST
