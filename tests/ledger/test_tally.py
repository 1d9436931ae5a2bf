import threading

import pytest

from dplinear.ledger import Request, Tally, tally
from dplinear.ledger.tally import count
from dplinear.privacy import ZCDP, ApproxDP, Guarantee, Neighbours


def spend(guarantee: Guarantee | None, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Request:
    return Request("r", None, guarantee, neighbours, "analyze_gauss", {})


def test_a_tally_counts_what_is_spent_within_its_block() -> None:
    with tally() as outer:
        count(spend(ApproxDP(1.0, 1e-6)))
        with tally() as inner:
            count(spend(ApproxDP(0.5, 1e-7)))
        assert len(inner) == 1
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


@pytest.mark.parametrize(
    "parts", [[ZCDP(0.5), ApproxDP(1.0, 1e-6)], [ApproxDP(1.0, 0.5), ApproxDP(1.0, 0.5)]]
)
def test_what_does_not_add_up_is_said_in_words(parts: list[Guarantee]) -> None:
    counted = Tally([spend(part) for part in parts])
    assert counted.total() is None
    assert str(counted) == "2 releases: no guarantee"
