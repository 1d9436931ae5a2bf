"""The paper's schemes with its noise, as releases."""

import os
from typing import Any

from dplinear.analyst.noise_models.matrices import ProjectionNoise
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.analyst.rows.release import RowsRelease
from dplinear.arguments import rejection
from dplinear.curator.gates.options import own_options, reading_options
from dplinear.curator.gates.rows import rows_through
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader
from dplinear.exact.grid import shape_of
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import read_guarantee, within_reach
from dplinear.mechanisms.contract import Measurement
from dplinear.papers.showkatbakhsh.peaks import MomentsAndPeaks, Peaks, PeakStatistic
from dplinear.papers.showkatbakhsh.published import PublishedAdditiveNoise, PublishedProjection
from dplinear.privacy.guarantees import MIDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_ROWS, _SKETCH = "papers.showkatbakhsh.release_rows", "papers.showkatbakhsh.release_sketch"
_RELATIONS = (Neighbours.ELEMENT,)


def release_rows(
    data: Any,
    schema: Schema,
    *,
    bits: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ELEMENT,
    output: str | os.PathLike[str] | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> RowsRelease:
    """Release rows with the additive noise of Lemma 1; a `target` is published as it is.

    Requires: what `dplinear.release_rows` does for "additive_noise"; `bits`.
    Promises: what the certificate says that holds: more bits than were asked for, where a column
    has an indicator of missing numbers.
    """
    with Passage(_ROWS, locals()) as passage:
        relation = Neighbours.parse(neighbours, _ROWS, _RELATIONS)
        asked = _bits(_ROWS, bits, guarantee)
        schema = passage.schema(schema)
        own = own_options(PublishedAdditiveNoise, options, _ROWS)
        built = PublishedAdditiveNoise(guarantee=asked, neighbours=relation, **own)
        return rows_through(passage, built, own, schema)


def release_sketch(
    data: Any,
    schema: Schema,
    *,
    rows: int | str | None = None,
    bits: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ELEMENT,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> SketchRelease:
    """Release a random projection of a table with the noise of equation (13).

    Requires: what `dplinear.release_sketch` does for "mi_projection"; the `target`, which is
    published without noise.
    Promises: nothing. The noise is computed from the table, and protects no cell; the certificate
    says so, and does not say how much noise there is.
    """
    with Passage(_SKETCH, locals()) as passage:
        relation = Neighbours.parse(neighbours, _SKETCH, _RELATIONS)
        asked = _bits(_SKETCH, bits, guarantee)
        schema = passage.schema(schema)
        own = own_options(PublishedProjection, options, _SKETCH) | {"rows": rows}
        built = PublishedProjection(guarantee=asked, neighbours=relation, **own)
        shape = shape_of(schema)
        prepared = built.prepare(schema, shape)
        reader = open_reader(data, schema, **reading_options(options))
        read: list[Peaks] = []

        def table() -> PeakStatistic:
            read.append(reader.run(MomentsAndPeaks(schema)))
            moments, squares = read[0].moments, read[0].squares
            return PeakStatistic(shape, moments.integers, moments.count, peaks=squares)

        def release(found: Measurement, certificate: Certificate) -> SketchRelease:
            law, count = found.law, read[0].moments.count
            assert isinstance(law, ProjectionNoise)  # noqa: S101 - the projection's own law
            return SketchRelease(schema, found.values, law, certificate, count)

        return passage.cross(built, prepared, table, release, own)


def _bits(where: str, bits: float | None, guarantee: Guarantee | None) -> Guarantee:
    """Return the guarantee that was asked for, in bits or as such."""
    if bits is None:
        return read_guarantee(where, None, None, guarantee)
    if guarantee is not None:
        raise rejection("guarantee", where, "left out where bits are given", guarantee)
    return within_reach(MIDP(bits), where)
