"""The paper's mechanisms with its constants, as releases."""

from typing import Any, Unpack

from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.arguments import choice
from dplinear.curator.gates.measured import measured_through
from dplinear.curator.gates.options import MomentsOptions, SketchOptions, own_options
from dplinear.curator.passage import Passage
from dplinear.curator.sources.source import Reader
from dplinear.curator.windows import check_counted
from dplinear.exact.gram import Moments
from dplinear.exact.grid import moments_shape
from dplinear.exact.shape import Shape, Statistic
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.papers.sheffet.published import MECHANISMS, PublishedSketch
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema, SchemaLike

_MOMENTS, _SKETCH = "papers.sheffet.release_moments", "papers.sheffet.release_sketch"


def _read_counted(reader: Reader, schema: Schema, shape: Shape, _: Neighbours) -> Statistic:
    """Return second moments with the number of rows, private or not, as the paper has them."""
    moments = reader.run(Moments(schema))
    return Statistic(shape, moments.integers, rows=moments.count)


def release_moments(
    data: Any,
    schema: SchemaLike,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    mechanism: str = "analyze_gauss",
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[MomentsOptions],
) -> MomentsRelease:
    """Release the second moments of a table with the noise that Sheffet 2015 prints.

    Requires: what `dplinear.release_moments` does; (ε, δ) with δ below 1/e.
    Promises: what the certificate says that holds, which may be less than was asked for. Of
    "inverse_wishart" without `degrees`, under add_remove, nothing: the private number of rows
    enters the noise, and can be read off the certificate.
    """
    with Passage(_MOMENTS, locals()) as passage:
        kind = MECHANISMS[choice(mechanism, "mechanism", _MOMENTS, MECHANISMS)]
        relation = Neighbours.parse(neighbours, _MOMENTS, RELATIONS)
        asked = read_guarantee(_MOMENTS, epsilon, delta, guarantee)
        schema = passage.schema(schema)
        check_counted(schema, relation, _MOMENTS)
        own = own_options(kind, options, _MOMENTS)
        built = kind(guarantee=asked, neighbours=relation, **own)
        passage.check_rows(built)
        prepared = built.prepare(moments_shape(schema))
        return measured_through(
            passage, built, prepared, own, schema, kind=MomentsRelease, read=_read_counted
        )


def release_sketch(
    data: Any,
    schema: SchemaLike,
    *,
    rows: int | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[SketchOptions],
) -> SketchRelease:
    """Release a Gaussian sketch of a table with the ridge of Theorem 3.1 of Sheffet 2015.

    Requires: what `dplinear.release_sketch` does for "sketch"; (ε, δ) with δ below 1/e.
    Promises: what the certificate says that holds, which may be less than was asked for.
    """
    with Passage(_SKETCH, locals()) as passage:
        relation = Neighbours.parse(neighbours, _SKETCH, RELATIONS)
        asked = read_guarantee(_SKETCH, epsilon, delta, guarantee)
        schema = passage.schema(schema)
        own = own_options(PublishedSketch, options, _SKETCH) | {"rows": rows, "release": "sketch"}
        built = PublishedSketch(guarantee=asked, neighbours=relation, **own)
        prepared = built.prepare(moments_shape(schema))
        return measured_through(passage, built, prepared, own, schema, kind=SketchRelease)
