"""What profiles take: every argument at its ends, and relations given by their names."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb

from dplinear.privacy import Neighbours
from dplinear.privacy.profiles import (
    AdditiveWishart,
    BesidePure,
    Concentrated,
    Gaussian,
    GridGaussian,
    Laplace,
    Profile,
    Pure,
    Selections,
    Sketch,
    WithFailure,
)

from . import oracles

MADE: dict[str, Callable[[Any], Profile]] = {
    "AdditiveWishart": lambda relation: AdditiveWishart(60, 5, 1.0, relation),
    "Concentrated": lambda relation: Concentrated(0.1, None, relation),
    "Gaussian": lambda relation: Gaussian(0.3, relation),
    "GridGaussian": lambda relation: GridGaussian(0.3, 1e-12, relation),
    "Laplace": lambda relation: Laplace(0.7, relation),
    "Pure": lambda relation: Pure(0.7, relation),
    "Selections": lambda relation: Selections(Fraction(1, 5), 3, relation),
    "Sketch": lambda relation: Sketch(80, 0.03, relation),
}


@pytest.mark.parametrize("name", MADE)
def test_a_relation_by_its_name_is_that_relation(name: str) -> None:
    make = MADE[name]
    for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE):
        named, meant = make(str(relation)), make(relation)
        assert named.neighbours is relation
        assert named == meant
        assert named.slow is meant.slow
        for epsilon in (0.0, 0.1, 0.5):
            assert named.delta(epsilon) == meant.delta(epsilon)
    with pytest.raises(ValueError, match="'neighbours' parameter of"):
        make("swap")


@pytest.mark.parametrize("name", ["Sketch", "AdditiveWishart"])
def test_a_replaced_row_by_name_is_further_than_one_more(name: str) -> None:
    assert MADE[name]("replace").delta(0.5) > 2 * MADE[name]("add_remove").delta(0.5)
    assert not MADE[name]("add_remove").slow
    assert MADE[name]("replace").slow
    with pytest.raises(ValueError, match="'neighbours' parameter of"):
        MADE[name]("row_l2")


@pytest.mark.parametrize(
    ("make", "good", "bad"),
    [
        (lambda x: WithFailure(Pure(1.0), x), (0.0, 1e-9, 1), (-1e-9, 1.0001, 2)),
        (lambda x: BesidePure(Pure(1.0), x), (1e-9, 4), (0.0, -1.0)),
        (lambda x: Sketch(x, 0.1), (1, 1.5, 40), (0.99, 0, -3)),
        (lambda x: Sketch(3, x), (1e-9, 5.0), (0.0, -1.0)),
        (lambda x: AdditiveWishart(7, x, 1.0), (1, 5), (0, 6)),
        (lambda x: AdditiveWishart(x, 1, 1.0), (3, 900), (2, 0)),
        (lambda x: AdditiveWishart(9, 2, x), (1e-9, 5.0), (0.0, -1.0)),
        (lambda x: Selections(x, 3), (Fraction(1, 9), 2), (0, -1)),
        (lambda x: Selections(Fraction(1, 9), x), (1, 400), (0, -2)),
        (lambda x: Selections(Fraction(1, 9), 3, anchor=x), (0, 0.5), (-0.1,)),
        (Concentrated, (1e-9, 3), (0.0, -1.0)),
        (lambda x: Concentrated(0.1, x), (1e-9, 3), (0.0, -1.0)),
        (Gaussian, (1e-9, 3), (0.0, -1.0)),
        (lambda x: GridGaussian(x, 1e-9), (1e-9, 3), (0.0, -1.0)),
        (lambda x: GridGaussian(0.3, x), (1e-9,), (0.0, -1.0)),
        (Laplace, (1e-9, 3), (0.0, -1.0)),
        (Pure, (1e-9, 3), (0.0, -1.0)),
    ],
)
def test_arguments_at_their_ends(make: Any, good: tuple[Any, ...], bad: tuple[Any, ...]) -> None:
    for value in good:
        assert 0 <= make(value).delta(0.3) <= 1
    for value in (*bad, float("nan")):
        with pytest.raises((ValueError, TypeError), match=r"parameter of profiles\.\w+ must be"):
            make(value)


def test_what_is_taken_if_nothing_is_said() -> None:
    assert Selections(Fraction(1, 5), 12).anchor == 1.0
    for make in (Gaussian, Laplace, Pure, Concentrated):
        assert make(0.5).neighbours is Neighbours.ADD_REMOVE
    assert Sketch(3, 0.1).neighbours is AdditiveWishart(3, 1, 0.1).neighbours
    assert not Sketch(3, 0.1).inverse


@pytest.mark.parametrize("degrees", [1, 2, 3, 7])
@pytest.mark.parametrize("ratio", [0.1, 1.0, 10.0, 1000.0])
def test_sketches_near_the_largest_loss_there_is(degrees: int, ratio: float) -> None:
    """There the threshold is a difference of two numbers that nearly cancel, and is doubted."""
    most = degrees / 2 * float(np.log1p(ratio))
    gaps = [10.0**-power * factor for power in (2, 4, 6, 8) for factor in (1.0, 2.3, 4.1, 7.7)]
    epsilons = np.array([most * (1 - gap) for gap in gaps])
    _, adding = Sketch(degrees, ratio).directions(epsilons)
    for epsilon, gap, found in zip(epsilons, gaps, adding, strict=True):
        exact = oracles.sketch_adding(float(epsilon), degrees, ratio)
        if exact > 1e-250:
            assert exact <= arb(float(found))
            assert arb(float(found)) <= exact * (1 + 1e-11 + 1e-14 * (degrees + 40 / ratio) / gap)
