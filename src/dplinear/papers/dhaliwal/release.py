"""Projected rows with the paper's noise, as a release."""

import os
from typing import Any, Unpack

from dplinear.analyst.rows.release import RowsRelease
from dplinear.curator.gates.options import ReadingOptions, own_options
from dplinear.curator.gates.rows import RELATIONS, rows_through
from dplinear.curator.passage import Passage
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import read_guarantee
from dplinear.mechanisms.rows.kept_projection import EncryptedFile
from dplinear.mechanisms.rows.row_maps import RowMap
from dplinear.papers.dhaliwal.published import PublishedProjectedRows
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import SchemaLike

_WHERE = "papers.dhaliwal.release_rows"


class PublishedOptions(ReadingOptions, total=False):
    """Of published projections of rows, beside `k`."""

    projection: str
    noise: str
    change: float | None
    missing_public: bool
    label: str | None
    label_share: float
    public_projection: bool
    keep_projection: EncryptedFile | None
    drawn: RowMap | None


def release_rows(
    data: Any,
    schema: SchemaLike,
    *,
    k: int,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ELEMENT,
    output: str | os.PathLike[str] | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[PublishedOptions],
) -> RowsRelease:
    """Release rows projected to `k` numbers, with the noise of Theorem 3 or 5.

    Requires: what `dplinear.release_rows` does for "projection"; an ε.
    Promises: what the certificate says is left of the theorem, often nothing.
    """
    with Passage(_WHERE, locals()) as passage:
        relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
        schema = passage.schema(schema)
        own = own_options(PublishedProjectedRows, options | {"k": k}, _WHERE)
        built = PublishedProjectedRows(guarantee=asked, neighbours=relation, **own)
        return rows_through(passage, built, own, schema)
