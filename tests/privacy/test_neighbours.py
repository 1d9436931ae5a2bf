"""The names of neighbour relations, which certificates and ledgers write down for good."""

from dplinear.privacy import Neighbours
from refusals import refused

NAMES = ["add_remove", "replace", "element", "row_l1", "row_l2"]


def test_names_are_what_they_always_were() -> None:
    assert [str(each) for each in Neighbours] == NAMES
    assert [Neighbours.parse(name, "here") for name in NAMES] == list(Neighbours)
    with refused("neighbours", "here"):
        Neighbours.parse("row_l3", "here")
    with refused("neighbours", "here"):
        Neighbours.parse("row_l2", "here", (Neighbours.ADD_REMOVE, Neighbours.REPLACE))
