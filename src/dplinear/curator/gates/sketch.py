"""The gate of sketches: rows in place of a table's, for whole rows in (ε, δ) or cells in bits."""

from functools import partial
from typing import Any, Unpack

from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.arguments import choice, rejection
from dplinear.curator.gates.measured import measured_through, read_moments
from dplinear.curator.gates.objects import unfold
from dplinear.curator.gates.options import SketchOptions, own_options
from dplinear.curator.passage import Passage
from dplinear.exact.grid import shape_of
from dplinear.ledger import AnyLedger
from dplinear.mechanisms import GaussianSketch, MIProjection
from dplinear.mechanisms.cells.held_cells import HeldCells
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.planner.auto import AUTO
from dplinear.privacy.guarantees import MIDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import SKETCHES
from dplinear.schema import Schema, SchemaLike

_WHERE = "release_sketch"


def release_sketch(
    data: Any,
    schema: SchemaLike,
    *,
    mechanism: str | GaussianSketch | MIProjection = "sketch",
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
    that counts as the guarantee does; an object has its own guarantee, neighbours and options.
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
        given, guarantee, neighbours, said = unfold(passage, (GaussianSketch, MIProjection))
        chosen = choice(given, "mechanism", _WHERE, (*SKETCHES, AUTO))
        if chosen == AUTO:
            counted = bits is not None or isinstance(guarantee, MIDP)
            chosen = MIProjection.name if counted else GaussianSketch.name
        schema = passage.schema(schema)
        if chosen == MIProjection.name:
            return _hide_cells(passage, schema)
        if bits is not None:
            hint = 'bits are counted for single cells: mechanism="mi_projection".'
            raise rejection("bits", _WHERE, "left out for this mechanism", bits, hint)
        relation = Neighbours.parse(
            "add_remove" if neighbours is None else neighbours, _WHERE, RELATIONS
        )
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
        rows = passage.given["rows"]
        own = {"rows": rows, **own_options(GaussianSketch, said, _WHERE), "release": "sketch"}
        built = GaussianSketch(guarantee=asked, neighbours=relation, **own)
        prepared = built.prepare(shape_of(schema))
        return measured_through(passage, built, prepared, own, schema, kind=SketchRelease)


def _hide_cells(passage: Passage, schema: Schema) -> SketchRelease:
    """Release a sketch for single cells, whose noise is made for cells within their sets."""
    given = passage.given
    relation = Neighbours.parse(
        "element" if given["neighbours"] is None else given["neighbours"],
        _WHERE,
        (Neighbours.ELEMENT,),
    )
    for name in ("epsilon", "delta"):
        if given[name] is not None:
            hint = "this mechanism counts bits: write bits=0.5."
            raise rejection(name, _WHERE, "left out for this mechanism", given[name], hint)
    asked = read_guarantee(_WHERE, guarantee=given["guarantee"], bits=given["bits"], usual="bits")
    own = {"rows": given["rows"], **own_options(MIProjection, given["options"], _WHERE)}
    built = MIProjection(guarantee=asked, neighbours=relation, **own)
    shape = shape_of(schema)
    prepared = built.prepare(schema, shape)
    read = partial(read_moments, held=HeldCells.of(schema, shape, _WHERE))
    return measured_through(passage, built, prepared, own, schema, kind=SketchRelease, read=read)
