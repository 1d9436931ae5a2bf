"""Text in CSV files that no spreadsheet runs.

A spreadsheet takes a cell for a formula if it starts with =, +, - or @, whatever quotes stand
around it; some skip white space before, and take full-width signs. Such a text gets an apostrophe
before it, and so does one that starts with one: taking one away then gives every text back.
"""

import pyarrow as pa
import pyarrow.compute as pc

SHIELD = "'"
_STARTS = "=+-@＝＋－＠\t\r\n '"
_PATTERN = r"^[=+\-@＝＋－＠\t\r\n ']"


def shielded_name(text: str) -> str:
    """Return the name of a column as it is written."""
    return SHIELD + text if text.startswith(tuple(_STARTS)) else text


def shield_rows(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Return rows as they are written: `columns` has the names that `shielded_name` gives."""
    return pa.RecordBatch.from_arrays([_shield(each) for each in batch.columns], schema=columns)


def unshield_rows(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Return rows as they were before `shield_rows`, if those have the columns of these."""
    names = [shielded_name(name) for name in columns.names]
    if batch.schema.names != names or batch.schema.types != columns.types:
        return batch  # whoever checks it will say so
    return pa.RecordBatch.from_arrays([_unshield(each) for each in batch.columns], schema=columns)


def _shield(column: pa.Array) -> pa.Array:
    if column.type != pa.string():
        return column
    # Scalars with a type: to find one out, PyArrow would look for pandas each time.
    shield, nothing = pa.scalar(SHIELD, pa.string()), pa.scalar("", pa.string())
    with_shield = pc.binary_join_element_wise(shield, column, nothing)
    return pc.if_else(pc.match_substring_regex(column, _PATTERN), with_shield, column)


def _unshield(column: pa.Array) -> pa.Array:
    if column.type != pa.string():
        return column
    cut = pc.utf8_slice_codeunits(column, start=len(SHIELD))
    return pc.if_else(pc.starts_with(column, SHIELD), cut, column)
