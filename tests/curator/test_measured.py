"""What gates of second moments hand to a mechanism, and what they say of the rows."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arrays import Floats
from dplinear.curator.gates.measured import measured_through, read_moments
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader, second_moments
from dplinear.exact.grid import shape_of
from dplinear.mechanisms import AnalyzeGauss
from dplinear.mechanisms.cells.held_cells import HeldCells
from dplinear.privacy import Neighbours

SCHEMA = dpl.Schema({"x": (-1, 1), "c": ["u", "v", "w"]})
TABLE = pa.table({"x": np.linspace(-1, 1, 30), "c": list("uvw") * 10})


@pytest.mark.parametrize("relation", list(Neighbours))
def test_a_mechanism_gets_the_number_of_rows_where_it_is_public(relation: Neighbours) -> None:
    shape = shape_of(SCHEMA)
    found = read_moments(open_reader(TABLE, SCHEMA), SCHEMA, shape, relation)
    assert found.rows == (None if relation is Neighbours.ADD_REMOVE else 30)
    assert found.shape == shape
    assert (found.integers == second_moments(TABLE, SCHEMA).integers).all()


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("gate", [dpl.release_moments, dpl.release_sketch])
def test_a_release_says_the_number_of_rows_where_it_is_public(gate: Any, relation: str) -> None:
    found = gate(TABLE, SCHEMA, epsilon=1.0, delta=1e-6, neighbours=relation)
    assert found.rows == (30 if relation == "replace" else None)


@pytest.mark.parametrize(("mechanism", "calls"), [("sketch", False), ("mi_projection", True)])
def test_rows_are_held_to_their_sets_where_single_cells_are_hidden(
    mechanism: str, calls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def noted(_: HeldCells, rows: Floats) -> Floats:
        seen.append(rows.shape[1])
        return rows

    monkeypatch.setattr(HeldCells, "hold", noted)
    asked: dict[str, Any] = {"bits": 0.5} if calls else {"epsilon": 1.0, "delta": 1e-6}
    dpl.release_sketch(TABLE, SCHEMA, mechanism=mechanism, **asked)
    assert sum(seen) == (30 if calls else 0)


class NoLedger:
    """A ledger that is never asked."""

    @staticmethod
    def spend(_: object) -> None:
        raise AssertionError("Something was spent.")


def test_noise_for_sums_in_other_units_is_an_error_before_the_spend() -> None:
    """Sums of weighted rows are in units 2^24 times as fine as those of plain ones."""
    given = {"data": TABLE, "options": {}, "ledger": NoLedger(), "dataset": "t", "request": None}
    passage = Passage("release_moments", given)
    schema = passage.schema(SCHEMA.with_unit("id"))
    built = AnalyzeGauss(guarantee=dpl.ZCDP(0.1))
    plain = built.prepare(shape_of(schema))
    with pytest.raises(ArithmeticError, match="units"):
        measured_through(passage, built, plain, {}, schema, kind=MomentsRelease)
