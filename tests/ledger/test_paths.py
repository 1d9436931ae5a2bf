"""Odd paths and odd arguments: a sentence, or a fingerprint."""

import hashlib
import sys
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dplinear.convex.sets import L2Ball
from dplinear.ledger import LedgerError, open_ledger
from dplinear.ledger.fingerprint import fingerprint, plain
from dplinear.schema import Schema
from refusals import refused


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("path", ["", ".", "a\0b", "\ud800.db", "long" * 100 + ".db"], ids=ascii)
def test_what_cannot_be_a_file_is_refused_in_a_sentence(
    path: str, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, LedgerError), match=r"path of a file|cannot be used"):
        open_ledger(path, create=create)
    assert not list(tmp_path.iterdir())


def test_a_path_of_bytes_is_no_path() -> None:
    class Odd:
        def __fspath__(self) -> bytes:
            return b"budget.db"

    with refused("path", "open_ledger", "the path of a file"):
        open_ledger(Odd())  # type: ignore[arg-type]


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    "path",
    [
        Path("postgresql://me:hush@host/base"),  # which has lost a slash
        Path("postgresql://host/base?password=hush"),
        b"postgresql://me:hush@host/base",
        "postgresql:me:hush@host",
        ["postgresql://me:hush@host/base"],
        "postgresql//me:hush@host/base",
        Path("postgresql//me:hush@host/base"),
        "host/base?password=hush",
        "base?sslmode=require&password=hush",
        "base?sslmode=require&sslpassword = hush",
        Path("host/base?sslmode=require&PASSWORD=hush"),
        b"base?x=y&password=hush",
        "base;password=hush",
        "host=host password=hush",
        "password = 'hush' host=host",
        "host='a host' password='a hush'",
        "HOST=host user=hush",
        "dbname=hush",
        Path("host=host password=a/hush"),
        b"host=host password=hush",
        ["host=host password=hush"],
    ],
    ids=ascii,
)
def test_what_is_nearly_a_url_is_not_quoted(
    path: Any, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match="'path' parameter of open_ledger") as told:
        open_ledger(path, create=create)
    assert "hush" not in str(told.value)
    assert not list(tmp_path.iterdir())


def test_numbers_of_many_bits_have_a_fingerprint() -> None:
    third = np.longdouble(1) / 3
    assert fingerprint(third) == fingerprint(np.longdouble(1) / 3)
    assert fingerprint(third) != fingerprint(np.clongdouble(third))


def test_arrays_are_told_apart_by_their_bytes() -> None:
    """However long they are, and in the last digit."""
    first, second = np.zeros(5000), np.zeros(5000)
    second[2500] = 1e-15
    assert fingerprint(first) == fingerprint(first.copy()) != fingerprint(second)
    assert fingerprint(first) != fingerprint(first.reshape(50, 100))
    assert fingerprint(np.array([1, "a"], object)) != fingerprint(np.array([1, "b"], object))


class Wrapped:
    """An array of another library, whose text leaves out its middle."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __repr__(self) -> str:
        return "[1, ..., 1]"

    def __array__(self, *_: object, **__: object) -> Any:
        return np.asarray(self.values)


class Shade(Enum):
    LIGHT = 1
    DARK = 2


class Stretched(L2Ball):
    """A set made of another one, with something of its own beside the fields."""

    def __init__(self, dimension: int, factor: float) -> None:
        super().__init__(dimension)
        object.__setattr__(self, "factor", factor)


@dataclass(frozen=True)
class Scaled:
    """A function with a number, by which it is known."""

    factor: float

    def __call__(self, width: float) -> float:
        return self.factor * width


def made(width: int) -> int:
    return width


def pairs() -> dict[str, tuple[Any, Any]]:
    """Return arguments that differ, and whose texts do not, or that are easily mistaken."""
    dense = np.diag([1.0, 2.0, 3.0])
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    return {
        "sparse": (sparse.csr_matrix(dense), sparse.csr_matrix(2 * dense)),
        "sparse-places": (sparse.coo_array(dense), sparse.coo_array(dense[::-1])),
        "sparse-shape": (sparse.csr_array((2, 3)), sparse.csr_array((3, 2))),
        "long": (Wrapped([1, 2, 1]), Wrapped([1, 3, 1])),
        "masked": (masked, np.ma.masked_array([1.0, 2.0], [True, False])),
        "objects": (np.array([1, None], object), np.array([None, 1], object)),
        "names": ({1: "a"}, {"1": "a"}),
        "sets": ({1, 2}, {1, 3}),
        "bytes": (b"a", b"b"),
        "fraction": (Fraction(1, 3), "1/3"),
        "complex": (1j, "1j"),
        "words": (Shade.LIGHT, Shade.DARK),
        "class": (L2Ball, f"{L2Ball.__module__}.Other"),
        "partial": (partial(L2Ball, radius=1.0), partial(L2Ball, radius=2.0)),
        "columns": (Schema(a=(0, 1), b=(0, 1)), Schema(b=(0, 1), a=(0, 1))),
        "inherited": (Stretched(2, 1.0), Stretched(2, 2.0)),
        "called": (Scaled(1.0), Scaled(2.0)),
        "method": (Wrapped.__repr__, Wrapped.__array__),
        "mixed": ({1, "a"}, {1, "b"}),
        "mixed-names": ({1: "a", "b": None}, {1: "a", "c": None}),
    }


@pytest.mark.parametrize("name", list(pairs()))
def test_arguments_are_told_apart_by_what_they_hold(name: str) -> None:
    first, second = pairs()[name]
    again, _ = pairs()[name]
    assert fingerprint(first) == fingerprint(again)
    assert fingerprint(first) != fingerprint(second)


def test_a_sparse_matrix_is_what_it_holds_however_it_is_stored() -> None:
    twice = sparse.coo_array(([1.0, 1.0, 0.0], ([0, 0, 1], [2, 2, 1])), (2, 3))
    once = sparse.csc_array(([2.0], ([0], [2])), (2, 3))
    assert fingerprint(twice) == fingerprint(once)
    assert twice.nnz == 3  # it was left as it is
    rows = sparse.csr_array(([1.0, 1.0, 0.0], [2, 2, 1], [0, 2, 3]), (2, 3))
    assert fingerprint(rows) == fingerprint(once)
    assert rows.nnz == 3


def test_a_fingerprint_is_the_same_in_later_versions() -> None:
    """If not, a request that is made again would be refused, as one with other arguments."""

    def digest(content: bytes) -> str:
        return hashlib.sha256(content).hexdigest()

    numbers = np.array([1, 2], "<i8")
    told = "sha256:" + digest(b"('<i8', (2,))" + numbers.tobytes())
    assert plain(numbers) == told
    assert plain({"é", 1}) == ["set", ["é", 1]]
    assert plain(b"a") == ["bytes", digest(b"a")]
    assert plain({"1": "b", 1: "a", 0: None}) == ["mapping", [["1", "b"], [0, None], [1, "a"]]]
    hidden = np.ma.masked_array(numbers, [False, True])
    assert plain(hidden) == ["masked", told, plain(np.array([False, True]))]
    assert plain(np.array([1, None], object)) == ["array", [2], [1, None]]
    kind, shape, _, _, values = plain(sparse.csr_array(numbers.reshape(1, 2)))
    assert (kind, shape, values) == ("sparse", [1, 2], told)
    where = f"{made.__module__}.made"
    assert plain(partial(made, 1)) == ["partial", where, [1], {}]
    assert plain(partial(made, width=2)) == ["partial", where, [], {"width": 2}]
    assert plain(L2Ball(2)) == ["L2Ball", {"dimension": 2, "radius": 1.0}]
    assert fingerprint("é") == digest('"é"'.encode())


@pytest.mark.parametrize(
    ("one", "same"),
    [
        (1, 1.0),
        (1, np.float64(1)),
        (1.0, np.int8(1)),
        (1, Fraction(1)),
        (0.5, Fraction(1, 2)),
        (0.5, Decimal("0.50")),
        (0, -0.0),
        (2**60, 2.0**60),
        ({"epsilon": [1, 2]}, {"epsilon": (1.0, 2.0)}),
        (L2Ball(2, 1), L2Ball(2, 1.0)),
        (Fraction(10**400), Fraction(10**400)),
        (Decimal("NaN"), Decimal("NaN")),
    ],
    ids=ascii,
)
def test_equal_numbers_are_one_argument(one: Any, same: Any) -> None:
    assert fingerprint(one) == fingerprint(same)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, True),
        (0.0, False),
        (1, "1"),
        (0.1, Fraction(1, 10)),
        (0.1, Decimal("0.1")),
        (0.1, np.float32(0.1)),
        (1, 1 + 2**-52),
        (["Fraction", "1/2", 3], ["Fraction", 0.5, 3]),
        (["Fraction", "a half"], ["Fraction", "another half"]),
        (float("inf"), float("nan")),
    ],
    ids=ascii,
)
def test_what_is_not_equal_is_another_argument(one: Any, other: Any) -> None:
    """A truth value is no number: which of two arguments is meant might depend on it."""
    assert fingerprint(one) != fingerprint(other)


def _twins() -> list[tuple[Any, Any]]:
    """Arguments beside lists and texts that look like what stands for them."""
    numbers = np.array([1, 2])
    held: list[Any] = [
        *(Fraction(1), Fraction(1, 3), Decimal("0.1"), 1j, Path("a"), range(3), {1: 1}, {2, 3}),
        *(b"a", numbers, np.array([1, None], object), np.longdouble(1) / 3, np.median, L2Ball(2)),
        *(np.ma.masked_array(numbers, [False, True]), sparse.csr_array(numbers.reshape(1, 2))),
        partial(np.median, 1),
    ]
    return [(each, plain(each)) for each in held]


@pytest.mark.parametrize("at", range(len(_twins())))
def test_what_looks_like_another_argument_is_not_it(at: int) -> None:
    one, other = _twins()[at]
    assert fingerprint(one) != fingerprint(other)
    assert fingerprint([one]) != fingerprint([other])
    assert fingerprint({"a": one}) != fingerprint({"a": other})


def test_lists_are_lists_whatever_they_hold() -> None:
    lists: list[Any] = [
        ["Fraction", "1"],
        ["Decimal", "1.0"],
        ["set", [1]],
        ["mapping", [[1, 1]]],
        [0, "Fraction", "1"],
        [1, "a"],
        [[]],
        [],
        "a",
        [0],
        [1],
    ]
    assert len({fingerprint(each) for each in lists}) == len(lists)


def test_what_our_own_classes_remember_is_no_argument() -> None:
    ball = L2Ball(2)
    object.__setattr__(ball, "computed", 3.0)
    assert fingerprint(ball) == fingerprint(L2Ball(2))


def test_what_a_session_defines_is_like_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session may define it otherwise, by the same name."""
    assert fingerprint(made) == fingerprint(made)
    monkeypatch.setattr(sys.modules["__main__"], "made", made, raising=False)
    monkeypatch.setattr(made, "__module__", "__main__")
    assert fingerprint(made) != fingerprint(made)


def test_what_cannot_be_compared_is_like_nothing_else() -> None:
    """A lambda's text holds an address, at which another one may lie in a moment."""

    class Local:
        pass

    for value in (lambda width: width, Local(), Local, object(), Wrapped([1]).__repr__):
        assert fingerprint(value) != fingerprint(value)
    assert fingerprint(made) == fingerprint(made)
    assert fingerprint(partial(lambda width: width)) != fingerprint(partial(made))
