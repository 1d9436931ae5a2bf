"""What a survey buys in two parts: when it asks a second time, and what the two answers make."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dplinear.adaptive.noisy_sums import NoisySums, Query
from dplinear.arrays import Floats
from dplinear.descent.settings import Settings
from dplinear.descent.survey import again
from dplinear.exact.design import Design
from dplinear.exact.mapped_sums import MappedGram
from dplinear.exact.row_sums import Count, RowSum
from dplinear.exact.score_sums import ScoreHistogram
from dplinear.noise import simulation
from dplinear.privacy import ZCDP, Guarantee

from .descents import (
    ADD_REMOVE,
    REPLACE,
    Rows,
    Transcript,
    design,
    integer_rows,
    normal_cells,
    normal_rows,
    prepared,
    recorded,
    replayed,
)

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

OF = design(4)
DEFAULT = Settings()
ONCE, TWICE = [DEFAULT.gram_first], [DEFAULT.gram_first, DEFAULT.gram - DEFAULT.gram_first]


def flat_rows(seed: int, of: Design, count: int) -> Floats:
    """Features that nearly lie in one direction."""
    features, target = normal_cells(simulation.generator(seed), count, 4)
    spread = np.array([1.0, 0.3, 0.3, 0.3])[:, None]
    return integer_rows(of, features * spread, target)


def shares(transcript: Transcript, kind: type[RowSum]) -> list[Fraction]:
    """What was spent on sums of a kind before the wide step, whose histograms come first."""
    asked = [query.statistic for query in transcript.asked]
    end = next((i for i, one in enumerate(asked) if isinstance(one, ScoreHistogram)), len(asked))
    return [query.share for query in transcript.asked[:end] if isinstance(query.statistic, kind)]


def run(rows: Floats, rho: float, relation: Any = ADD_REMOVE, of: Design = OF) -> Transcript:
    return recorded(prepared(of, ZCDP(rho), relation), rows, seed=1)


# In one direction as in any other: no more is asked. Not so: all of it, unless the first part shows
# each direction well. So little budget that there would be noise alone: nothing.
Case = tuple[Callable[[int, Design, int], Floats], float, list[Fraction]]
CASES: dict[str, Case] = {
    "round": (normal_rows, 0.004, ONCE),
    "flat": (flat_rows, 0.05, TWICE),
    "flat, next to no noise": (flat_rows, 1e4, ONCE),
    "hopeless": (flat_rows, 1e-5, []),
}


@pytest.mark.parametrize("case", CASES)
def test_the_rest_of_the_gram_matrix_is_bought_where_it_tells_more(case: str) -> None:
    """And what is not spent on it goes to the steps."""
    table, rho, expected = CASES[case]
    found = run(table(2, OF, 3000), rho)
    assert shares(found, MappedGram) == expected
    assert float(sum(query.share for query in found.asked)) == pytest.approx(1, abs=1e-9)
    assert found.chain.spent <= found.chain.budget.square


def test_a_level_that_may_have_no_rows_is_worth_the_rest() -> None:
    of = replace(OF, indicators=(False, False, False, False, True))
    features, target = normal_cells(simulation.generator(3), 3000, 4)
    features[3] = 0
    rows = integer_rows(of, features, target)
    assert shares(run(rows, 0.05, of=of), MappedGram) == TWICE


@pytest.mark.parametrize(("rows", "expected"), [(300, 2), (30_000, 1)])
def test_the_count_is_asked_for_again_where_it_is_uncertain(rows: int, expected: int) -> None:
    """Two answers are averaged by their precision."""
    of = design(1)
    found = run(normal_rows(4, of, rows), 0.05, of=of)
    told = [
        answer
        for query, answer in zip(found.asked, found.told, strict=True)
        if isinstance(query.statistic, Count)
    ]
    assert len(told) == expected
    precision = np.array([answer.sigma**-2 for answer in told])
    values = np.array([float(answer.values[0]) for answer in told])
    assert found.solution.count == pytest.approx(values @ precision / precision.sum(), rel=1e-9)


def test_a_public_count_is_asked_for_once() -> None:
    assert len(shares(run(normal_rows(5, OF, 30), 0.05, REPLACE), Count)) == 1


@pytest.mark.parametrize("guarantee", [ZCDP(0.1), ZCDP(10.0)])
def test_two_parts_are_as_good_as_the_whole(guarantee: Guarantee) -> None:
    """The noise that is stated is that of one release, and it is the noise there is."""
    budget = prepared(OF, guarantee).budget
    rows, whole = Rows(normal_rows(6, OF, 50)), Fraction(1, 2**10)
    (once,) = NoisySums(rows, budget, simulation.entropy(0)).ask([Query(Count(), whole)])
    errors = []
    for seed in range(300):
        chain = NoisySums(rows, budget, simulation.entropy(seed))
        (first,) = chain.ask([Query(Count(), whole / 4)])
        both = again(chain, Count(), first, whole / 4, whole)
        assert both.sigma == pytest.approx(once.sigma, rel=1e-6)
        errors.append((float(both.values[0]) - 50) / both.sigma)
    # 300·(mean square) is χ² with 300 degrees: outside these limits with chance 1e-6.
    assert 0.650 < float(np.mean(np.square(errors))) < 1.452


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("table", [normal_rows, flat_rows])
def test_no_row_moves_either_part_by_more_than_is_paid_for(table: Any, relation: Any) -> None:
    rows = table(7, OF, 400)
    found = run(rows, 0.5, relation)
    corner = OF.shape.steps_per_unit * np.array([1.0, 1, -1, 1, -1, 1])
    pairs = [(np.column_stack((rows, corner)), np.column_stack((rows, -corner)))]
    if relation is ADD_REMOVE:
        pairs = [(rows, np.column_stack((rows, corner)))]
    apart = replayed(found.asked, found.chain.budget, pairs)
    assert apart.kept
