"""What is said about released rows, in one spelling: in the file with them, or beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from dplinear.analyst.noise_models.rows import RowNoiseModel
from dplinear.analyst.releases import container
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.container import unsound
from dplinear.arguments import integer, rejection
from dplinear.schema import Schema

FORMAT = "dplinear-rows"
VERSION = 1
TYPES = {
    "float64": pa.float64(),
    "int64": pa.int64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
}
_MOST_COLUMNS = 2**14
_SHIELDED = "shielded"


@dataclass(frozen=True)
class Head:
    """All that is said about released rows: everything but the rows. Public.

    `options` are the caller's own options of the mechanism, in plain JSON.
    """

    schema: Schema
    certificate: Certificate
    noise_model: RowNoiseModel
    options: Mapping[str, Any]
    columns: pa.Schema

    def to_bytes(self, rows: int | None = None, *, shielded: bool = False) -> bytes:
        """Return the head in its one spelling; `rows` where the file itself does not say.

        `shielded` tells that texts beside it are written as `csv_cells.py` does.
        """
        names = {kind: name for name, kind in TYPES.items()}
        columns = [[field.name, names[field.type]] for field in self.columns]
        facts = {
            "format": FORMAT,
            "version": VERSION,
            "certificate": self.certificate.to_dict(),
            "schema": self.schema.to_dict(),
            "law": self.noise_model.to_dict(),
            "options": dict(self.options),
            "columns": columns,
        }
        if rows is not None:
            facts["rows"] = rows
        if shielded:
            facts["text"] = _SHIELDED
        return container.facts_text(facts)


def read_head(content: bytes, name: str) -> tuple[Head, int | None]:
    """Return the head in these bytes, and the number of rows if it says; or raise ReleaseError."""
    head, rows, _ = read_beside(content, name)
    return head, rows


def read_beside(content: bytes, name: str) -> tuple[Head, int | None, bool]:
    """Do as `read_head`, and return whether texts are shielded; files of long ago have none."""
    facts = container.read_facts(content, name)
    shielded = facts.pop("text", None)
    keys = ["format", "version", "certificate", "schema", "law", "options", "columns"]
    known = [key for key in facts if key != "rows"] == keys and shielded in (None, _SHIELDED)
    if not known or facts["format"] != FORMAT:
        raise unsound(f"a file of rows in the format {FORMAT}", name)
    if facts["version"] != VERSION:
        hint = "a later dplinear may read it."
        raise unsound(f"a file of rows of version {VERSION}", name, hint)
    try:
        head = Head(
            Schema.from_release(facts["schema"]),
            Certificate.from_dict(facts["certificate"]),
            RowNoiseModel.from_dict(facts["law"]),
            dict(facts["options"]),
            _columns(facts["columns"]),
        )
        head.noise_model.check(head.schema, tuple(head.columns.names))
        rows = facts.get("rows")
        if rows is not None:
            rows = integer(rows, "rows", "load", low=0, high=2**62)
    except (ValueError, TypeError, ArithmeticError) as error:
        fact = str(error).partition("\n")[0].rstrip(".")
        raise unsound(f"released rows with a sound certificate ({fact})", name) from None
    return head, rows, shielded is not None


def _columns(content: Any) -> pa.Schema:
    rule = "a list of distinct names with a type each"
    pairs = content if isinstance(content, list) and len(content) <= _MOST_COLUMNS else []
    sound = all(
        isinstance(pair, list)
        and len(pair) == 2
        and isinstance(pair[0], str)
        and pair[0].isprintable()
        and pair[1] in TYPES
        for pair in pairs
    )
    if not pairs or not sound or len({name for name, _ in pairs}) < len(pairs):
        raise rejection("columns", "load", rule, content)
    return pa.schema([pa.field(name, TYPES[kind], nullable=False) for name, kind in pairs])
