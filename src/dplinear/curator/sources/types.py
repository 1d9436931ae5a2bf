"""What types a table says its columns have, where its owner says that they are public.

A type is public if somebody declared it, as in a database. A type that a library chose by looking
at cells tells of cells: that is why no source refuses any by itself (`check_names`).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dplinear.curator.sources.paths import DELIMITED, PARQUET, expand, is_paths
from dplinear.curator.sources.source import failure, withheld
from dplinear.schema.libraries import library_of, unwrap
from dplinear.schema.storage import is_text

TEXT, DATES, NOTHING = "text", "dates", "lists, structs or the like"
_KINDS = {"U": TEXT, "S": TEXT, "T": TEXT, "M": DATES, "m": NOTHING}  # NumPy's


def types_without_numbers(data: Any, names: Iterable[str]) -> Mapping[str, str] | None:
    """Return what columns hold by their types, of those whose type holds no numbers.

    Requires: a table that has been checked to have these columns, and public types.
    Promises: no row is read or computed. None where a table has no types: a file of text, or an
    array, whose columns have one type together. pandas' columns of objects have none either, and
    are not among them.
    """
    data = unwrap(data)
    found: dict[str, str] = {}
    for each in _tables(data):
        kinds = _kinds(each)
        if kinds is None:
            return None
        found |= {name: kinds[name] for name in names if kinds.get(name)}
    return found


def _tables(data: Any) -> list[Any]:
    return list(expand(data)) if is_paths(data) else [data]


def _kinds(data: Any) -> Mapping[str, str] | None:
    """Return what each column of a table holds, if it is no numbers."""
    library = library_of(data)
    if isinstance(data, np.ndarray):
        return None
    if library == "dask":
        data, library = getattr(data, "_meta", None), "pandas"
    if library == "pandas":
        dtypes = getattr(data, "dtypes", None)
        return None if dtypes is None else {name: _of_dtype(kind) for name, kind in dtypes.items()}
    schema = _schema(data, library)
    if schema is None:
        return None
    return {field.name: _of_type(field.type) for field in schema}


def _schema(data: Any, library: str) -> pa.Schema | None:
    """Return a table's types in Arrow's terms, without a row."""
    if isinstance(data, Path):
        return _schema_of_file(data)
    if isinstance(data, pa.Table | pa.RecordBatch):
        return data.schema
    with withheld("the table's types"):
        if library == "pyspark":
            from pyspark.sql.pandas.types import to_arrow_schema

            return to_arrow_schema(data.schema)
        if library == "duckdb":
            reader = data.limit(0)
            return (getattr(reader, "to_arrow_table", None) or reader.arrow)().schema
        if library == "polars":
            return data.collect_schema().to_frame().to_arrow().schema
    return None


def _schema_of_file(file: Path) -> pa.Schema | None:
    name = file.name.lower()
    if name.endswith(DELIMITED):
        return None
    try:
        if name.endswith(PARQUET):
            return pq.read_schema(file)
        with pa.OSFile(str(file)) as opened:
            stream = opened.read(6) != b"ARROW1"
            opened.seek(0)
            return (pa.ipc.open_stream if stream else pa.ipc.open_file)(opened).schema
    except (pa.ArrowException, OSError):
        raise failure(f"the metadata of '{file.name}'") from None


def _of_type(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _of_type(kind.value_type)
    if is_text(kind):
        return TEXT
    if pa.types.is_temporal(kind):
        return DATES
    numbers = pa.types.is_boolean(kind) or pa.types.is_null(kind) or pa.types.is_decimal(kind)
    plain = numbers or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    extension = isinstance(kind, pa.BaseExtensionType)  # of which some hold numbers
    return "" if plain or extension else NOTHING


def _of_dtype(dtype: Any) -> str:
    if hasattr(dtype, "categories"):
        return _of_dtype(dtype.categories.dtype)
    if hasattr(dtype, "pyarrow_dtype"):
        return _of_type(dtype.pyarrow_dtype)
    if getattr(dtype, "name", "") in {"string", "str"}:
        return TEXT
    kind = getattr(dtype, "kind", "O")
    return _KINDS.get(kind, "")
