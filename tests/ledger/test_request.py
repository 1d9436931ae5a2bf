"""One spend, as it is asked for."""

from dataclasses import replace

from dplinear.ledger import Request
from dplinear.privacy import ZCDP, Neighbours
from dplinear.privacy.profiles.laplace import Pure


def test_a_request_is_the_same_whatever_else_is_known_of_it() -> None:
    plain = Request("first", "table", ZCDP(0.25), Neighbours.ADD_REMOVE, "test", {})
    assert plain == replace(plain, arguments="digest")
    assert plain == replace(plain, profile=Pure(0.125))
    assert "0.125" not in repr(replace(plain, profile=Pure(0.125)))
    assert plain != replace(plain, request="second")
    assert plain != replace(plain, concentrated=ZCDP(0.125))
