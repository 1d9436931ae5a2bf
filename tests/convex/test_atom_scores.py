"""Scores of atoms: exact against Python's integers, their range against adversarial neighbours."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.convex import atom_scores
from dplinear.convex.atom_scores import AtomScores
from dplinear.convex.sets.contract import Atoms
from dplinear.noise import simulation

BOUND = 2**40


def atoms(kind: str, size: int = 5, count: int = 60) -> Any:
    seeded = simulation.generator(3)
    if kind in {"signs", "corners"}:
        return Atoms(size, kind == "signs", 2.0)
    return Atoms(count, kind == "signed", 0.5, seeded.standard_normal((size, count)))


KINDS = ["signs", "corners", "signed", "listed"]


def exact(scores: AtomScores, total: Any) -> list[int]:
    matrix = np.eye(scores.atoms.count) if scores._integers is None else scores._integers
    return [
        sum(int(a) * int(g) for a, g in zip(column, total, strict=True)) >> scores._shift
        for column in matrix.T
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 100, 10**6, 10**9, 10**13, 10**30])
def test_scores_are_exact_integers(kind: str, length: int) -> None:
    scores, seeded = AtomScores(atoms(kind), BOUND), simulation.generator(length)
    for _ in range(5):
        total = np.array([int(x) * length for x in seeded.integers(-BOUND, BOUND, 5)], object)
        assert scores.of(total).tolist() == exact(scores, total)


@pytest.mark.parametrize("kind", ["signed", "listed"])
@pytest.mark.parametrize("size", [1, 2, 64, 65, 5000])
def test_products_of_limbs_stay_exact(kind: str, size: int) -> None:
    scores = AtomScores(atoms(kind, size, 7), BOUND)
    assert scores._integers is not None
    digit = 2**scores._limb - 1
    most = np.abs(scores._integers).sum(axis=0).max() * digit
    lengths = np.linalg.norm(scores._integers, axis=0)
    assert lengths.max() <= 2**16
    assert min(most, lengths.max() * digit * math.sqrt(size)) <= 2**53


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("times", [1, 2])
def test_no_neighbour_changes_scores_by_more_than_the_range(kind: str, times: int) -> None:
    scores, seeded = AtomScores(atoms(kind), BOUND), simulation.generator(9)
    most = scores.range if times == 1 else scores.replaced_range
    matrix = np.eye(5) if scores._integers is None else scores._integers
    pairs = [a - b for a, b in itertools.combinations(matrix.T, 2)]
    pairs = sorted(list(matrix.T) if scores.atoms.signed else pairs, key=np.linalg.norm)[-30:]
    largest = 0
    for pick in range(300):
        far = pairs[pick % len(pairs)]
        direction = far if pick % 2 else seeded.standard_normal(5)
        change = direction / (np.linalg.norm(direction) or 1.0) * times * (BOUND - 4)
        base = [int(x) for x in seeded.integers(-(2**55), 2**55, 5)]
        after = [b + int(c) for b, c in zip(base, change, strict=True)]
        moved = scores.of(np.array(after, object)) - scores.of(np.array(base, object))
        moved = np.concatenate((moved, -moved)) if scores.atoms.signed else moved
        largest = max(largest, int(moved.max() - moved.min()))
    assert largest <= most
    assert largest >= Fraction(999, 1000) * most  # the range is not loose


def test_rounded_atoms_are_close_to_the_atoms() -> None:
    for kind in ("signed", "listed"):
        scores = AtomScores(atoms(kind), BOUND)
        matrix = scores.atoms.matrix
        assert matrix is not None
        assert scores._integers is not None
        centred = matrix if kind == "signed" else matrix - matrix.mean(axis=1, keepdims=True)
        factor = float((scores._integers * centred).sum() / (centred**2).sum())
        assert np.abs(scores._integers / factor - centred).max() < 1e-4


def test_ranges_of_many_atoms_are_bounded_by_their_distance_from_the_middle(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    few = AtomScores(atoms("listed"), BOUND)
    monkeypatch.setattr(atom_scores, "_LISTED", 10)
    many = AtomScores(atoms("listed"), BOUND)
    assert few.range < many.range <= 2 * few.range


def test_atoms_that_are_all_one_leave_nothing_to_choose() -> None:
    scores = AtomScores(Atoms(3, False, 1.0, np.ones((2, 3))), BOUND)
    assert scores.of(np.array([5, 7], object)).tolist() == [0, 0, 0]
    assert scores.range >= 1


@pytest.mark.parametrize("kind", ["signed", "listed"])
@pytest.mark.parametrize("power", [-1000, -560, 560, 1000])
def test_atoms_of_any_size_are_the_same_integers(kind: str, power: int) -> None:
    """Their squares are 0 in float64, or infinite."""
    given = atoms(kind)
    same = Atoms(given.count, given.signed, given.size, np.ldexp(given.matrix, power))
    few, many = AtomScores(given, BOUND), AtomScores(same, BOUND)
    assert np.array_equal(np.asarray(few._integers), np.asarray(many._integers))
    assert few.range == many.range
