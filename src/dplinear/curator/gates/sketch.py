"""The gate of sketches: rows in place of a table's, for whole rows in (ε, δ) or cells in bits."""

from collections.abc import Mapping
from typing import Any

from dplinear.analyst.noise_models.matrices import ProjectionLaw, SketchLaw
from dplinear.analyst.releases.certificate import CALIBRATIONS
from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.arguments import choice, rejection
from dplinear.curator.gates.moments import RELATIONS, Curve, Passing, own_options, reading_options
from dplinear.curator.passes import shape_of
from dplinear.curator.recorded import recorded
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.source import Reader
from dplinear.exact.gram import Moments, SecondMoments
from dplinear.exact.peaks import MomentsAndPeaks
from dplinear.exact.totals import Words
from dplinear.ledger import AnyLedger
from dplinear.mechanisms import GaussianSketch, MIProjection
from dplinear.mechanisms.cells.held_cells import HeldCells
from dplinear.mechanisms.checks import read_guarantee, within_reach
from dplinear.planner.auto import AUTO
from dplinear.privacy.guarantees import MIDP, ApproxDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_WHERE = "release_sketch"
_MECHANISMS = (GaussianSketch.name, MIProjection.name)


@recorded
def release_sketch(
    data: Any,
    schema: Schema,
    *,
    mechanism: str = "sketch",
    rows: int | str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    bits: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str | None = None,
    calibration: str = "exact",
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
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
    `calibration="paper"` reproduces the paper's noise, without a guarantee.
    """
    chosen = choice(mechanism, "mechanism", _WHERE, (*_MECHANISMS, AUTO))
    if chosen == AUTO:
        counted = bits is not None or isinstance(guarantee, MIDP)
        chosen = MIProjection.name if counted else GaussianSketch.name
    choice(calibration, "calibration", _WHERE, CALIBRATIONS)
    passing = Passing(_WHERE, schema, ledger, dataset, request)
    if chosen == MIProjection.name:
        relation = Neighbours.parse(
            "element" if neighbours is None else neighbours, _WHERE, (Neighbours.ELEMENT,)
        )
        promise = _promise(epsilon, delta, bits, guarantee)
        own = own_options(MIProjection, options, _WHERE) | {"rows": rows}
        built = MIProjection(guarantee=promise, neighbours=relation, calibration=calibration, **own)
        return _projected(built, passing, data, options, own)
    if bits is not None:
        hint = 'bits are counted for single cells: mechanism="mi_projection".'
        raise rejection("bits", _WHERE, "left out for this mechanism", bits, hint)
    relation = Neighbours.parse(
        "add_remove" if neighbours is None else neighbours, _WHERE, RELATIONS
    )
    asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
    own = own_options(GaussianSketch, options, _WHERE) | {"rows": rows, "release": "sketch"}
    sketch = GaussianSketch(guarantee=asked, neighbours=relation, calibration=calibration, **own)
    measured, certificate, count = passing.through(sketch, data, options, own)
    law = measured.law
    assert isinstance(law, SketchLaw)  # noqa: S101 - the sketch's own law
    return SketchRelease(schema, measured.values, law, certificate, count)


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


def _projected(
    method: MIProjection,
    passing: Passing,
    data: Any,
    options: Mapping[str, Any],
    own: Mapping[str, Any],
) -> SketchRelease:
    """Calibrate, check the table, spend, read, measure."""
    schema = passing.schema
    prepared = method.prepare(schema, shape_of(schema))
    curve = _implied(prepared.account.holds)
    reader = open_reader(data, schema, **reading_options(options))
    passing.spend(method, prepared.account, own)
    moments, peaks = _read(reader, schema, peaks=prepared.needs_peaks)
    measured, certificate, count = passing.measured(method, prepared, moments, curve, peaks)
    law = measured.law
    assert isinstance(law, ProjectionLaw)  # noqa: S101 - the projection's own law
    return SketchRelease(schema, measured.values, law, certificate, count)


def _read(reader: Reader, schema: Schema, *, peaks: bool) -> tuple[SecondMoments, Words | None]:
    if not peaks:
        # Noise that hides a cell is made for cells within their sets.
        held = HeldCells.of(schema, shape_of(schema), _WHERE)
        return reader.run(Moments(schema, held)), None
    both = reader.run(MomentsAndPeaks(schema))
    return both.moments, both.squares


def _implied(holds: Guarantee | None) -> Curve:
    """Return the (0, δ) that follows from fewer bits than one."""
    if not isinstance(holds, MIDP) or holds.bits >= 1:
        return ()
    return ((0.0, holds.to(ApproxDP).delta),)
