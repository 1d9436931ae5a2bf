"""Real ε of tables that once broke a certificate: odd names, rounded cells, missing cells.

Every audit goes through the real gate, on seeded noise, so that it ends the same way each time; an
audit of a promise that holds would fail once in 10,000 seeds (`AuditResult.broken`).
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.arrays import Floats
from dplinear.audit.audit import AuditResult, audit_runs
from dplinear.audit.bounds import gaussian_epsilon
from dplinear.audit.subjects.contract import Claim
from dplinear.curator.gates.one_model import design_of
from dplinear.curator.sources.ordered import open_rows
from dplinear.mechanisms.adassp import AdaSSP
from dplinear.mechanisms.rows import row_maps
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, PureDP
from dplinear.schema import Schema

TRIALS = 20_000
CERTIFIED = PureDP(1.0)
ROOMS = {"type": "integer", "low": 0, "high": 10}
UNCHECKED = "dplinear.schema.assembly.check_labels"


class Gate:
    """Rows through `release_rows`: a block of equal ones is as many runs on a table of one row.

    The projection is the same in all of them, and known.
    """

    def __init__(self, schema: Schema, pair: tuple[Any, Any], column: str, **options: Any) -> None:
        self._schema, self._pair, self._column, self._options = schema, pair, column, options
        left_out = {options.get("label")}
        places = [f for f in schema.features if f.factors and f.term.label not in left_out]
        self._drawn = row_maps.draw("rademacher", len(places), 1, simulation.entropy(1))

    def audit(self) -> AuditResult:
        """Return what the releases of both tables prove of ε."""
        runs = (self._released(self._pair[0], seed=11), self._released(self._pair[1], seed=12))
        claim = Claim.of(CERTIFIED, normal=False)
        return audit_runs("projection", CERTIFIED, claim, runs, simulated=True)

    def _released(self, row: dict[str, Any], seed: int) -> Floats:
        block = pa.table({name: pa.array([row[name]] * TRIALS) for name in self._schema.columns})
        with simulation.door(seed):
            released = dpl.release_rows(
                block,
                self._schema,
                mechanism="projection",
                k=1,
                projection="rademacher",
                drawn=self._drawn,
                noise="laplace",
                guarantee=CERTIFIED,
                **self._options,
            )
        assert released.certificate.holds == CERTIFIED
        return np.asarray(released.to_arrow().column(self._column).to_numpy(), np.float64)[:, None]


def rows(name: str, one: Any, other: Any, **rest: Any) -> tuple[Any, Any]:
    return {name: one, **rest}, {name: other, **rest}


ROUNDED = {
    "a whole number": Gate(Schema({"x": ROOMS}), rows("x", 4.49, 4.51), "z1", change=0.004),
    "a whole number of a row": Gate(
        Schema({"x": ROOMS}), rows("x", 4.49, 4.51), "z1", change=0.004, neighbours="row_l1"
    ),
    "a boolean of a row": Gate(
        Schema({"x": "boolean"}), rows("x", 0.4999, 0.5001), "z1", change=0.004, neighbours="row_l2"
    ),
    "two whole numbers of a row": Gate(
        Schema({"x": ROOMS, "y": ROOMS}),
        ({"x": 4.49, "y": 4.49}, {"x": 4.51, "y": 4.51}),
        "z1",
        change=0.01,
        neighbours="row_l2",
    ),
    "a whole number as a label": Gate(
        Schema({"x": (0, 1), "y": ROOMS}),
        rows("y", 4.49, 4.51, x=0.5),
        "y",
        change=0.004,
        label="y",
    ),
    "a cell that goes missing": Gate(
        Schema({"x": (0, 10)}), rows("x", 0.0, None), "z1", change=0.1
    ),
    "a cell of a row that goes missing": Gate(
        Schema({"x": (0, 10)}), rows("x", 0.0, math.nan), "z1", change=0.1, neighbours="row_l1"
    ),
    "a label that goes missing": Gate(
        Schema({"x": (0, 1), "y": (0, 10)}),
        rows("y", 0.0, None, x=0.5),
        "y",
        change=0.1,
        label="y",
    ),
}


@pytest.mark.parametrize("name", ROUNDED)
def test_neighbours_of_a_bounded_change_are_not_told_apart(name: str) -> None:
    result = ROUNDED[name].audit()
    assert not result.broken, str(result)


def test_what_rounding_adds_is_paid_for_and_no_more() -> None:
    """Where no cell goes missing, the audit comes close to what is certified."""
    given: Any = {"change": 0.004, "missing_public": True}
    for column, pair, options in (
        ("z1", rows("x", 4.49, 4.51, y=0.5), {"neighbours": "element"}),
        ("z1", rows("x", 4.49, 4.51, y=0.5), {"neighbours": "row_l1"}),
        ("x", rows("x", 4.49, 4.51, y=0.5), {"label": "x"}),
    ):
        result = Gate(Schema({"x": ROOMS, "y": (0, 1)}), pair, column, **given, **options).audit()
        assert result.audited > 0.8, str(result)
        assert not result.broken, str(result)


def test_where_gaps_are_public_a_gap_is_seen_and_the_certificate_says_so() -> None:
    """The same pair is no pair of neighbours then: its real ε is ten times that of neighbours."""
    given: Any = {"change": 0.1, "missing_public": True}
    schema = Schema({"x": (0, 10)})
    seen = Gate(schema, rows("x", 0.0, None), "z1", **given)
    assert seen.audit().broken
    near = Gate(schema, rows("x", 4.0, 4.5), "z1", **given)
    assert not near.audit().broken
    released = dpl.release_rows(np.zeros((3, 1)), schema, k=1, epsilon=1.0, **given)
    assert any("neighbours agree on it" in note for note in released.certificate.notes)


# Names


def lookalike(monkeypatch: pytest.MonkeyPatch, **more: Any) -> Schema:
    """Return a schema that is refused, as if it had been let through."""
    monkeypatch.setattr(UNCHECKED, lambda *_: None, raising=False)
    columns = {"x": (0, 1), "c": ["a", "b"], "x*c": (0, 1), **more}
    return Schema(columns, derived=["x*c"])


TABLE = pa.table({"x": [0.25, 0.75], "c": ["b", "b"], "x*c": [0.5, 0.5]})


@pytest.mark.parametrize(
    "release",
    [
        lambda schema: dpl.release_rows(TABLE, schema, bits=0.5, target="x*c", y_public=True),
        lambda schema: dpl.release_rows(TABLE, schema, bits=0.5),
        lambda schema: dpl.release_sketch(
            TABLE, schema, bits=0.5, mechanism="mi_projection", target="x*c", y_public=True
        ),
        lambda schema: dpl.release_rows(TABLE, schema, k=1, epsilon=1.0),
        lambda schema: dpl.release_rows(
            TABLE, schema, k=1, epsilon=1.0, neighbours="row_l1", change=0.1
        ),
    ],
)
def test_no_gate_takes_a_derived_feature_for_a_column(
    release: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x·c was published as if it were the public column "x*c", and x with it."""
    with pytest.raises(ValueError, match="derived features"):
        release(lookalike(monkeypatch))


def test_whole_rows_of_lookalikes_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derived features are left in: rows are bounded by all terms, not by the columns' cells."""
    schema = lookalike(monkeypatch)
    one, other = {"x": 1.0, "c": "b", "x*c": 1.0}, {"x": 0.0, "c": "other", "x*c": 0.0}
    pair = Gate(schema, (one, other), "z1", neighbours="row_l2")
    assert not pair.audit().broken


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_adassp_pays_for_every_feature_of_a_lookalike(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One row more or less, at the ends of all columns: its real ε, of the integers that are added.

    The least eigenvalue is left out, so that this is a lower bound on the real one.
    """
    schema = lookalike(monkeypatch, y=(0, 1))
    names = ("x*c", "x*c=b", "x*c=other")
    features, target = tuple(schema.names.index(name) for name in names), schema.names.index("y")
    design = design_of(schema, features, target)
    prepared = AdaSSP(guarantee=ApproxDP(epsilon, 1e-6)).prepare(design)
    row = pa.table({"x": [1.0], "c": ["b"], "x*c": [1.0], "y": [1.0]})
    with open_rows(row, schema, "tests", threads=1).through(np.copy) as blocks:
        integers = np.concatenate(list(blocks), axis=1)[:, 0]
    added, goal = [Fraction(int(integers[i])) for i in features], Fraction(int(integers[target]))
    step = Fraction(1 << prepared.distance.step)
    gram = sum(((a * a / step) ** 2 for a in added), Fraction(0))
    gram += sum(
        prepared.distance.halved * (a * b / step) ** 2
        for i, a in enumerate(added)
        for b in added[:i]
    )
    cross = sum((a * goal / step) ** 2 for a in added)
    square = gram / prepared.variances.gram + cross / prepared.variances.cross
    assert sum(a * a for a in added) <= design.feature_square
    assert gaussian_epsilon(math.sqrt(square), 1e-6) <= epsilon
