"""The gate of sketches: rows in place of a table's, for whole rows in (ε, δ) or cells in bits."""

from functools import partial
from typing import Any, Unpack

from dplinear.analyst.noise_models.matrices import ProjectionNoise, SketchNoise
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.arguments import choice, rejection
from dplinear.curator.gates.moments import Counted
from dplinear.curator.gates.options import SketchOptions, own_options, reading_options
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader
from dplinear.exact.gram import Moments
from dplinear.exact.grid import shape_of
from dplinear.ledger import AnyLedger
from dplinear.mechanisms import GaussianSketch, MIProjection
from dplinear.mechanisms.cells.held_cells import HeldCells
from dplinear.mechanisms.checks import RELATIONS, read_guarantee, within_reach
from dplinear.mechanisms.contract import Measurement, PreparedMoments
from dplinear.planner.auto import AUTO
from dplinear.privacy.guarantees import MIDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import SchemaLike

_WHERE = "release_sketch"
_MECHANISMS = (GaussianSketch.name, MIProjection.name)


def release_sketch(
    data: Any,
    schema: SchemaLike,
    *,
    mechanism: str = "sketch",
    rows: int | str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    bits: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[SketchOptions],
) -> SketchRelease:
    """Release a Gaussian sketch of a table: `rows` rows, by default twice the number of features.

    Requires and promises what `release_moments` does. `mechanism="sketch"` hides whole rows:
    `epsilon` and `delta`, with the options of the mechanism "sketch". "auto" is the one of the two
    that counts as the guarantee does.
    `mechanism="mi_projection"` hides single cells (`neighbours="element"`; the number of rows is
    public): at most `bits` are learnt of any one. Then `rows` may be one of the paper's rules,
    "logarithmic", "linear" or "full" (option `base`, 1000), and the options are
    `target="y", y_public=True`: the target has no noise, and no protection;
    `lower_bound`: a public number that is no more than the least residual sum of squares when a
    column is explained by all the others, with any one row left out, in units of half ranges
    squared (of a category, every combination of its levels with squares that add up to 1); it
    lowers the noise, and is taken on the caller's word;
    `least_eigenvalue_bits`: so many of the bits find such a number in the table.
    """
    with Passage(_WHERE, locals()) as passage:
        chosen = choice(mechanism, "mechanism", _WHERE, (*_MECHANISMS, AUTO))
        if chosen == AUTO:
            counted = bits is not None or isinstance(guarantee, MIDP)
            chosen = MIProjection.name if counted else GaussianSketch.name
        schema = passage.schema(schema)
        own: dict[str, Any] = {"rows": rows}
        built: MIProjection | GaussianSketch
        prepared: PreparedMoments
        if chosen == MIProjection.name:
            relation = Neighbours.parse(
                "element" if neighbours is None else neighbours, _WHERE, (Neighbours.ELEMENT,)
            )
            asked = _promise(epsilon, delta, bits, guarantee)
            own |= own_options(MIProjection, options, _WHERE)
            built = MIProjection(guarantee=asked, neighbours=relation, **own)
            prepared = built.prepare(schema, shape_of(schema))
            reader = open_reader(data, schema, **reading_options(options))
            # Noise that hides a cell is made for cells within their sets.
            held = HeldCells.of(schema, shape_of(schema), _WHERE)
            read = partial(reader.run, Moments(schema, held))
        else:
            if bits is not None:
                hint = 'bits are counted for single cells: mechanism="mi_projection".'
                raise rejection("bits", _WHERE, "left out for this mechanism", bits, hint)
            relation = Neighbours.parse(
                "add_remove" if neighbours is None else neighbours, _WHERE, RELATIONS
            )
            asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
            own |= own_options(GaussianSketch, options, _WHERE) | {"release": "sketch"}
            built = GaussianSketch(guarantee=asked, neighbours=relation, **own)
            prepared = built.prepare(shape_of(schema))
            reader = open_reader(data, schema, **reading_options(options))
            read = partial(reader.run, Moments(schema))
        table = Counted(read, prepared.shape, relation)

        def release(found: Measurement, certificate: Certificate) -> SketchRelease:
            law = found.law
            assert isinstance(law, SketchNoise | ProjectionNoise)  # noqa: S101 - of sketches alone
            return SketchRelease(schema, found.values, law, certificate, table.rows)

        return passage.cross(built, prepared, table, release, own)


def _promise(
    epsilon: float | None, delta: float | None, bits: float | None, guarantee: Guarantee | None
) -> Guarantee:
    if epsilon is not None or delta is not None:
        hint = "this mechanism counts bits: write bits=0.5."
        name, value = ("delta", delta) if epsilon is None else ("epsilon", epsilon)
        raise rejection(name, _WHERE, "left out for this mechanism", value, hint)
    if guarantee is None:
        if bits is None:
            hint = "write bits=0.5."
            raise rejection("bits", _WHERE, "given: there is no default privacy", bits, hint)
        return within_reach(MIDP(bits), _WHERE)
    if bits is not None:
        raise rejection("guarantee", _WHERE, "left out where bits are given", guarantee)
    return read_guarantee(_WHERE, None, None, guarantee)
