"""Things that are no tables, or tables of the wrong columns, shapes and types."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse

from services import library

from .dice import Dice
from .values import odd

_SOUND = {"a": [1.0, 2.0], "b": [0.5, 1.5], "c": [1.0, 0.0], "d": [0.0, 1.0]}


def _array(dice: Dice, _: Path) -> Any:
    shape = dice.pick(
        ((), (0,), (3,), (2, 1), (2, 2), (2, 3), (2, 4), (2, 9), (2, 2, 2), (0, 0), (2, 0))
    )
    kind = dice.pick(
        ("f8", "i4", "c16", "O", "U3", "S3", "M8[s]", "m8[s]", "?", "V4", "f2", "u8", "M8[Y]")
    )
    return np.zeros(shape, kind)


def _structured(dice: Dice, _: Path) -> Any:
    kinds = dice.pick(
        (
            [("a", "f8"), ("b", "f8"), ("c", "f8")],
            [("a", "f8", (2,)), ("b", "f8"), ("c", "f8")],
            [("a", "c16"), ("b", "V3"), ("c", "m8[s]")],
            [("a", [("x", "f8")]), ("b", "O"), ("c", "U2")],
            [("x", "f8")],
        )
    )
    return np.zeros(dice.pick((3, (2, 2))), kinds)


def _arrow(dice: Dice, _: Path) -> Any:
    kinds = (
        pa.list_(pa.float64()),
        pa.struct([("x", pa.int8())]),
        pa.map_(pa.string(), pa.int8()),
        pa.null(),
        pa.duration("s"),
        pa.time32("s"),
        pa.float16(),
        pa.decimal256(60, 2),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())),
        pa.month_day_nano_interval(),
        pa.list_(pa.float64(), 2),
        pa.binary(3),
        pa.uint64(),
        pa.dictionary(pa.int8(), pa.float64()),
        pa.run_end_encoded(pa.int16(), pa.float64()),
    )
    fields = [(name, dice.pick(kinds)) for name in dice.pick(("abcd", "aab", "xyz", "", "abc"))]
    rows = dice.pick((0, 2))
    return pa.Table.from_arrays(
        [pa.nulls(rows, kind) for _, kind in fields], schema=pa.schema(fields)
    )


def _pandas(dice: Dice, _: Path) -> Any:
    pandas = library("pandas")
    frame = pandas.DataFrame(_SOUND)
    series = pandas.Series
    match dice.below(9):
        case 0:
            frame.columns = ["a", "a", "b", "c"]
        case 1:
            frame.columns = pandas.MultiIndex.from_tuples([("a", 1), ("b", 2), ("c", 3), ("d", 4)])
        case 2:
            frame.columns = [0, 1, 2, 3]
        case 3:
            frame["a"] = pandas.period_range("2020", periods=2)
        case 4:
            frame["a"] = pandas.interval_range(0, 2)
        case 5:
            frame["a"] = series(pandas.arrays.SparseArray([0.0, 1.0]))
        case 6:
            frame["a"] = series(pandas.Categorical([{1}.__len__, "x"]))
        case 7:
            frame["a"] = series([1, None], dtype="Int64")
        case _:
            frame = dice.pick(
                (frame["a"], frame.iloc[:0], frame[[]], frame.style, frame.T, frame.index)
            )
    return frame


def _polars(dice: Dice, _: Path) -> Any:
    polars = library("polars")
    frame = polars.DataFrame(_SOUND)
    match dice.below(5):
        case 0:
            return frame.with_columns(a=polars.Series([[1.0], [2.0]]))
        case 1:
            return frame.with_columns(a=polars.Series([{1}, object()], dtype=polars.Object))
        case 2:
            return frame["a"]
        case 3:
            return frame.lazy().with_columns(a=polars.col("none"))
    return frame.with_columns(a=polars.Series(["x", "y"], dtype=polars.Categorical))


def _sparse(dice: Dice, _: Path) -> Any:
    kind = dice.pick(("csr", "csc", "coo", "lil", "dok", "bsr", "dia"))
    dtype = dice.pick(("f8", "i4", "?", "c16", "f4", "u1"))
    make: Any = dice.pick((scipy.sparse.csr_array, scipy.sparse.csr_matrix))
    whole = make(np.ones(dice.pick(((4, 1), (4, 2), (4, 3), (0, 2), (4, 0), (4, 9)))))
    return whole.astype(dtype).asformat(kind)


def _path(dice: Dice, folder: Path) -> Any:
    names = (
        "none.parquet",
        "none.csv",
        "*.csv",
        "x.txt",
        "",
        ".",
        "[",
        "a\x00.csv",
        "~",
        "none*",
        "/dev/null",
        "/dev/null/x.csv",
        "x.parquet/y",
        "a" * 300 + ".csv",
        "**",
        "\ud800.csv",
    )
    name = dice.pick(names)
    whole = f"{folder}/{name}" if name and not name.startswith("/") else name
    encoded = whole.encode("utf-8", "replace")
    return dice.pick((whole, Path(whole), [whole], (whole, whole), encoded, [encoded]))


def _damaged(dice: Dice, folder: Path) -> Any:
    """Return the path of a file that was written well and then was not."""
    kind = dice.pick((".parquet", ".arrow", ".arrows", ".csv", ".csv.gz", ".tsv"))
    file = folder / f"table{kind}"
    table = pa.table({name: list(cells) * 4 for name, cells in _SOUND.items()})
    if kind == ".parquet":
        pq.write_table(table, file, compression=dice.pick(("none", "snappy", "zstd")))
    elif kind in {".arrow", ".arrows"}:
        make = pa.ipc.new_file if kind == ".arrow" else pa.ipc.new_stream
        with pa.OSFile(str(file), "wb") as out, make(out, table.schema) as writer:
            writer.write_table(table)
    else:
        text = b"a,b,c,d\n" + b"1,2,3,4\n" * 8
        text = text.replace(b",", b"\t") if kind == ".tsv" else text
        file.write_bytes(gzip.compress(text) if kind.endswith(".gz") else text)
    content = damaged(dice, file.read_bytes())
    file.write_bytes(content)
    if dice.chance(0.1):
        file = file.rename(folder / f"table{dice.pick(('.parquet', '.arrow', '.csv', '.csv.gz'))}")
    return file


def _broken_csv(dice: Dice, folder: Path) -> Any:
    lines = (
        b"a,b,c,d",
        b"1,2,3,4",
        b"1,2,3",
        b"1,2,3,4,5",
        b"",
        b'"1,2,3,4',
        b'1,"2""3",x"y,4',
        b"\xff\xfe,1,2,3",
        b"\x00,,,",
        b",,,",
        b"\xef\xbb\xbfa,b,c,d",
        b"a;b;c;d",
        b"a,a,b,c",
        b'"a\nb",b,c,d',
        b"1" * 5000,
        b'""""""',
        b"\r",
        b"# comment",
        b"a\tb\tc\td",
        b'"a","b","c","d"',
        b"\xed\xa0\x80,1,1,1",
    )
    first = dice.pick(lines) if dice.chance(0.3) else lines[0]
    chosen = [first, *(dice.pick(lines) for _ in range(dice.below(6)))]
    file = folder / dice.pick(("t.csv", "t.tsv"))
    file.write_bytes(dice.pick((b"\n", b"\r\n", b"\r")).join(chosen) + dice.pick((b"", b"\n")))
    return file


def damaged(dice: Dice, content: bytes) -> bytes:
    """Return bytes of which some were lost, changed, moved or doubled."""
    if not content:
        return dice.bytes(8)
    changed = bytearray(content)
    for _ in range(dice.pick((1, 1, 1, 2, 5))):
        place = dice.below(len(changed)) if changed else 0
        match dice.below(7):
            case 0:
                del changed[place:]
            case 1 | 2 if changed:
                changed[place] ^= 1 << dice.below(8)
            case 3:
                del changed[place : place + 1 + dice.below(16)]
            case 4:
                changed[place:place] = dice.bytes(1 + dice.below(16))
            case 5:
                changed[place : place + 8] = dice.pick((b"\xff" * 8, b"\x00" * 8))
            case _:
                stop = place + dice.below(64)
                changed[place:place] = changed[place:stop]
    return bytes(changed)


def _anything(dice: Dice, _: Path) -> Any:
    return odd(dice)


_MAKERS: tuple[Callable[[Dice, Path], Any], ...] = (
    _array,
    _array,
    _structured,
    _arrow,
    _pandas,
    _polars,
    _sparse,
    _path,
    _damaged,
    _damaged,
    _broken_csv,
    _anything,
)


def strange(dice: Dice, folder: Path) -> Any:
    """Return something that is no table, or a strange one."""
    return dice.pick(_MAKERS)(dice, folder)
