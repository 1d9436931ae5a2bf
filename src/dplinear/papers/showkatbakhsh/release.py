"""The paper's schemes with its noise, as releases."""

import os
from typing import Any, Unpack

from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.analyst.rows.release import RowsRelease
from dplinear.curator.gates.measured import measured_through
from dplinear.curator.gates.options import RowsOptions, SketchOptions, own_options
from dplinear.curator.gates.rows import rows_through
from dplinear.curator.passage import Passage
from dplinear.curator.sources.source import Reader
from dplinear.exact.grid import shape_of
from dplinear.exact.shape import Shape
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import read_guarantee
from dplinear.papers.showkatbakhsh.peaks import MomentsAndPeaks, PeakStatistic
from dplinear.papers.showkatbakhsh.published import PublishedAdditiveNoise, PublishedProjection
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema, SchemaLike

_ROWS, _SKETCH = "papers.showkatbakhsh.release_rows", "papers.showkatbakhsh.release_sketch"
_RELATIONS = (Neighbours.ELEMENT,)


def release_rows(
    data: Any,
    schema: SchemaLike,
    *,
    bits: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ELEMENT,
    output: str | os.PathLike[str] | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[RowsOptions],
) -> RowsRelease:
    """Release rows with the additive noise of Lemma 1; a `target` is published as it is.

    Requires: what `dplinear.release_rows` does for "additive_noise"; `bits`.
    Promises: what the certificate says that holds: more bits than were asked for, where a column
    has an indicator of missing numbers.
    """
    with Passage(_ROWS, locals()) as passage:
        relation = Neighbours.parse(neighbours, _ROWS, _RELATIONS)
        asked = read_guarantee(_ROWS, guarantee=guarantee, bits=bits, usual="bits")
        schema = passage.schema(schema)
        own = own_options(PublishedAdditiveNoise, options, _ROWS)
        built = PublishedAdditiveNoise(guarantee=asked, neighbours=relation, **own)
        return rows_through(passage, built, own, schema)


def release_sketch(
    data: Any,
    schema: SchemaLike,
    *,
    rows: int | str | None = None,
    bits: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ELEMENT,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[SketchOptions],
) -> SketchRelease:
    """Release a random projection of a table with the noise of equation (13).

    Requires: what `dplinear.release_sketch` does for "mi_projection"; the `target`, which is
    published without noise.
    Promises: nothing. The noise is computed from the table, and protects no cell; the certificate
    says so, and does not say how much noise there is.
    """
    with Passage(_SKETCH, locals()) as passage:
        relation = Neighbours.parse(neighbours, _SKETCH, _RELATIONS)
        asked = read_guarantee(_SKETCH, guarantee=guarantee, bits=bits, usual="bits")
        schema = passage.schema(schema)
        own = own_options(PublishedProjection, options, _SKETCH) | {"rows": rows}
        built = PublishedProjection(guarantee=asked, neighbours=relation, **own)
        prepared = built.prepare(schema, shape_of(schema))
        return measured_through(
            passage, built, prepared, own, schema, kind=SketchRelease, read=_read_peaks
        )


def _read_peaks(reader: Reader, schema: Schema, shape: Shape, _: Neighbours) -> PeakStatistic:
    """Return second moments and the largest square of each column; their rows are public."""
    read = reader.run(MomentsAndPeaks(schema))
    moments = read.moments
    return PeakStatistic(shape, moments.integers, moments.count, peaks=read.squares)
