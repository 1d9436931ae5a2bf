import threading

import numpy as np
import pytest

from dplinear.curator import release_rows
from dplinear.ledger import Request, Tally, tally
from dplinear.ledger.tally import count
from dplinear.privacy import MIDP, ZCDP, ApproxDP, Guarantee, Neighbours, PureDP
from dplinear.schema import Schema


def spend(guarantee: Guarantee | None, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Request:
    return Request("r", None, guarantee, neighbours, "analyze_gauss", {})


def test_a_tally_counts_what_is_spent_within_its_block() -> None:
    with tally() as outer:
        count(spend(ApproxDP(1.0, 1e-6)))
        with tally() as inner:
            count(spend(ApproxDP(0.5, 1e-7)))
        assert len(inner) == 1
        assert str(inner).startswith("1 release: ε = 0.5")
        count(spend(ApproxDP(0.5, 1e-7)))
    count(spend(ApproxDP(3.0, 1e-7)))
    assert len(outer) == 3
    total = outer.total()
    assert isinstance(total, ApproxDP)
    assert 2.0 <= total.epsilon < 2.0 + 1e-12
    assert str(outer).startswith("3 releases: ε = 2, δ = 1.2e-06")


def test_another_thread_keeps_its_own_count() -> None:
    with tally() as mine:
        other = threading.Thread(target=count, args=(spend(ZCDP(1.0)),))
        other.start()
        other.join()
    assert len(mine) == 0
    assert mine.total() is None


def test_a_spend_without_a_proof_leaves_no_total() -> None:
    unproved = Tally([spend(ZCDP(0.5)), spend(None)])
    assert unproved.total() is None
    assert str(unproved) == "2 releases: no guarantee"


def test_guarantees_between_different_neighbours_have_no_total() -> None:
    # The second release publishes the number of rows, which the first one hides.
    mixed = Tally([spend(ZCDP(0.5)), spend(ZCDP(0.5), Neighbours.REPLACE)])
    assert mixed.total() is None
    assert Tally(mixed.requests[1:]).total() == ZCDP(0.5)


def test_changes_of_different_sizes_have_no_total() -> None:
    # What is ε for a small change of a cell is many times that for a large one.
    def release(change: float | None) -> Request:
        options = {} if change is None else {"change": change}
        return Request("r", None, ZCDP(0.5), Neighbours.ELEMENT, "projection", options)

    assert Tally([release(0.01), release(None)]).total() is None
    assert Tally([release(0.01), release(0.02)]).total() is None
    assert Tally([release(0.01), release(0.01)]).total() == ZCDP(1.0)


def test_equal_changes_of_different_ranges_have_no_total() -> None:
    # A tenth of the half-range of (0, 100) is a hundred times that of (0, 1).
    with tally() as spent:
        for high in (1, 100, 100):
            schema = Schema({"x": (0, high)})
            release_rows(
                np.array([[0.2]]), schema, mechanism="projection", k=1, epsilon=1.0, change=0.1
            )
    assert spent.total() is None
    assert Tally(spent.requests[1:]).total() == PureDP(2.0)


def test_bits_of_a_cell_add_up_and_are_no_part_of_what_a_row_loses() -> None:
    cells = [spend(MIDP(bits), Neighbours.ELEMENT) for bits in (0.5, 0.25)]
    assert Tally(cells).total() == MIDP(0.75)
    assert str(Tally(cells)) == "2 releases: 0.75 bits together (element neighbours)"
    for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
        assert Tally([*cells, spend(ZCDP(0.5), relation)]).total() is None
        assert Tally([*cells, spend(MIDP(0.5), relation)]).total() is None
    assert Tally([*cells, spend(None, Neighbours.ELEMENT)]).total() is None


@pytest.mark.parametrize(
    "parts", [[ZCDP(0.5), ApproxDP(1.0, 1e-6)], [ApproxDP(1.0, 0.5), ApproxDP(1.0, 0.5)]]
)
def test_what_does_not_add_up_is_said_in_words(parts: list[Guarantee]) -> None:
    counted = Tally([spend(part) for part in parts])
    assert counted.total() is None
    assert str(counted) == "2 releases: no guarantee"


def test_a_total_of_folds_is_said_to_hold_for_one_table_alone() -> None:
    moved, kept = (
        str(Tally([spend(ZCDP(0.5), relation)] * 2))
        for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
    )
    assert "if all read the same table" in moved
    assert "neighbours='replace'" in moved
    assert "same table" not in kept
    assert "same table" not in str(Tally([spend(ZCDP(0.5), Neighbours.ADD_REMOVE)]))
    assert "the folds" in Tally([spend(ZCDP(0.5), Neighbours.ADD_REMOVE)] * 2)._repr_html_()
