"""One spend, as it is asked for."""

from dataclasses import replace

from dplinear.ledger import LedgerError, Request
from dplinear.ledger.request import not_kept_warning
from dplinear.privacy import ZCDP, Neighbours
from dplinear.privacy.profiles.laplace import Pure


def test_a_request_is_the_same_whatever_else_is_known_of_it() -> None:
    plain = Request("first", "table", ZCDP(0.25), Neighbours.ADD_REMOVE, "test", {})
    assert plain == replace(plain, arguments="digest")
    assert plain == replace(plain, profile=Pure(0.125))
    assert "0.125" not in repr(replace(plain, profile=Pure(0.125)))
    assert plain != replace(plain, request="second")
    assert plain != replace(plain, concentrated=ZCDP(0.125))


def test_a_release_that_was_not_kept_is_told_and_held() -> None:
    release = object()
    full = LedgerError("The disk is full.\n\nHint: make room.")
    told = not_kept_warning("first", release, full)
    assert told.release is release
    fact = "The request 'first' is spent, and its ledger did not keep the release "
    assert str(told).startswith(f"{fact}(The disk is full).\n\nHint: save the release now.")
    other = not_kept_warning("first", release, OSError("a text that may tell of rows"))
    assert str(other).startswith(f"{fact}(OSError).\n\n")
