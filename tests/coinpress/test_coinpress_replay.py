"""CoinPress replayed on neighbours, on exact integers; what it asks; planted bugs."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from descent.descents import shape_of, spelled
from dplinear.coinpress import covariance as steps
from dplinear.coinpress import methods
from dplinear.coinpress.methods import CoinPressCovariance, CoinPressMean
from dplinear.curator.windows import Windowed
from dplinear.exact.histograms import Histograms
from dplinear.exact.mapped_sums import MappedGram
from dplinear.privacy import ZCDP, Neighbours
from exact.oracles import square

from .coins import ADD_REMOVE, REPLACE, Transcript, apart, recorded

pytestmark = pytest.mark.heavy

KINDS: list[Any] = [CoinPressMean, CoinPressCovariance]
BOUND = 1e5


def table(seed: int, generator: Any, rows: int = 60) -> Any:
    return generator(seed).normal(size=(rows, 3)) * [1, 20, 0.5] + [4, -30, 0]


def odd_rows(middle: Any) -> list[Any]:
    """Rows far beyond every bound, without numbers, at the bounds, and where all others are."""
    far = [np.full(3, value) for value in (1e300, -1e300, np.inf, np.nan, BOUND, -BOUND)]
    mixed = [np.array([1e300, np.nan, -np.inf]), np.array([np.nan, -1e9, 3.0])]
    near = [middle + np.array(step) for step in ([0, 0, 0], [3, 0, 0], [-3, -60, -2], [0, 1e3, 9])]
    return far + mixed + near


def neighbours(rows: Any, relation: Neighbours) -> list[tuple[Any, Any]]:
    others = odd_rows(rows.mean(axis=0))
    if relation is ADD_REMOVE:
        more = [(rows, np.vstack((rows, row))) for row in others]
        return more + [(rows, np.delete(rows, place, axis=0)) for place in range(3)]
    swapped = [np.vstack((rows[:-1], row)) for row in others]
    pairs = [(one, other) for one in swapped[::3] for other in swapped]
    return pairs + [(rows, other) for other in swapped]


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
@pytest.mark.parametrize("scale", [None, (1.0, 20.0, 0.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_no_row_moves_it_by_more_than_is_paid_for(
    kind: Any, scale: Any, relation: Neighbours, generator: Callable[[int], Any]
) -> None:
    """What was asked of one table, asked of its neighbours: each sum, and all of them together."""
    rows = table(1, generator)
    method = kind(guarantee=ZCDP(5.0), neighbours=relation, scale=scale)
    farthest, spent = apart(recorded(method, rows, BOUND, 2), neighbours(rows, relation))
    assert farthest <= 1
    assert spent <= 1
    assert spent > Fraction(1, 2), float(spent)  # a row far out is at every clip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE])
def test_queries_depend_on_earlier_answers_alone(
    kind: Any, relation: Neighbours, generator: Callable[[int], Any]
) -> None:
    """Another table that gave the same answers is asked the same, through the same windows."""
    method = kind(guarantee=ZCDP(0.5), neighbours=relation)
    told = recorded(method, table(3, generator), BOUND, 4)
    rows = 60 if relation is REPLACE else 211
    assert not leaks(method, told, 7 * table(5, generator, rows) + 100)


def leaks(method: Any, told: Transcript, other: Any) -> list[int]:
    """The places of what differs for another table that gave the same answers."""
    again = recorded(method, other, BOUND, 6, script=told.told)

    def facts(of: Transcript) -> list[Any]:
        return [(schema, [spelled(query) for query in queries]) for queries, schema in of.asked]

    first, second = facts(told), facts(again)
    assert again.outcome.parameters == told.outcome.parameters
    return [place for place, (a, b) in enumerate(zip(first, second, strict=True)) if a != b]


def test_outliers_change_nothing_beyond_their_share(generator: Callable[[int], Any]) -> None:
    """Three rows in two thousand, however far: the estimates stay where they were."""
    clean = table(7, generator, 2000)
    spoilt = clean.copy()
    spoilt[:3] = [[1e300] * 3, [np.nan] * 3, [-1e300, np.inf, 7]]
    for kind in KINDS:
        ends = [
            recorded(kind(guarantee=ZCDP(2.0)), rows, 1e9, 8).outcome.estimate.values
            for rows in (clean, spoilt)
        ]
        reach = (
            np.array([1, 20, 0.5]) if ends[0].ndim == 1 else np.outer([1, 20, 0.5], [1, 20, 0.5])
        )
        assert np.abs((ends[0] - ends[1]) / reach).max() < 0.1


# Histograms


@pytest.mark.parametrize("bins", [2, 3, 32, 1024])
def test_histograms_count_each_cell_once(bins: int, generator: Callable[[int], Any]) -> None:
    shape = shape_of(4)
    rows = np.rint(generator(9).uniform(-1, 1, (4, 300)) * shape.steps_per_unit)
    rows[:, :4] = np.array([-1, 1, 0, 0.5]) * shape.steps_per_unit
    rows = np.rint(rows)
    statistic = Histograms(shape, (1, 3), bins)
    counts = np.zeros((2, bins), int)
    for place, column in enumerate((1, 3)):
        for cell in rows[column]:
            part = Fraction(int(cell) + shape.steps_per_unit, 2 * shape.steps_per_unit + 1)
            counts[place, int(part * bins)] += 1
    np.testing.assert_array_equal(statistic.sum(rows), counts.ravel())
    assert statistic.sensitivity_squared(ADD_REMOVE) == 2
    assert statistic.sensitivity_squared(REPLACE) == 4
    alone = [square(statistic.sum(rows[:, [place]]).astype(object)) for place in range(300)]
    assert set(alone) == {2}


@pytest.mark.parametrize(
    ("columns", "bins"), [((), 8), ((0, 0), 8), ((9,), 8), ("ab", 8), ((0,), 1), ((0,), 2**17)]
)
def test_histograms_that_cannot_be_are_refused(columns: Any, bins: int) -> None:
    with pytest.raises((TypeError, ValueError), match="parameter of Histograms"):
        Histograms(shape_of(4), columns, bins)


# Planted bugs


def caught(kind: Any, generator: Any, relation: Neighbours = ADD_REMOVE, scale: Any = None) -> bool:
    rows = table(1, generator)
    method = kind(guarantee=ZCDP(5.0), neighbours=relation, scale=scale)
    farthest, spent = apart(recorded(method, rows, BOUND, 2), neighbours(rows, relation))
    return farthest > 1 or spent > 1


def test_histograms_that_forget_their_columns_are_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    def forgetful(_: Any, neighbours: Neighbours) -> int:
        return 2 if neighbours is REPLACE else 1

    monkeypatch.setattr(Histograms, "sensitivity_squared", forgetful)
    assert caught(CoinPressMean, generator)


def test_a_gram_matrix_with_the_wrong_replacement_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    monkeypatch.setattr(MappedGram, "replaced", 1)
    assert caught(CoinPressCovariance, generator, REPLACE, (1.0, 20.0, 0.5))


def test_rows_that_are_not_clipped_are_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    def unclipped(self: MappedGram, rows: Any) -> Any:
        return np.rint(self.integers @ rows * self._step)

    monkeypatch.setattr(MappedGram, "_clip", unclipped)
    assert caught(CoinPressCovariance, generator)


def test_a_true_number_of_rows_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    """Used for radii: then what is asked depends on more than what was told."""
    method, tables = CoinPressCovariance(guarantee=ZCDP(0.5)), [table(3, generator)]
    honest = steps.covariance

    def careless(chain: Any, seen: Windowed, _: float, *others: Any) -> Any:
        return honest(chain, seen, float(len(tables[-1])), *others)

    monkeypatch.setattr(methods, "covariance", careless)
    told = recorded(method, tables[-1], BOUND, 4)
    tables.append(table(5, generator, 211))
    assert leaks(method, told, tables[-1])


def test_a_window_made_from_rows_is_caught(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    method, tables = CoinPressMean(guarantee=ZCDP(0.5)), [table(3, generator)]
    honest = Windowed.through

    def peeking(self: Windowed, low: Any, high: Any) -> Any:
        largest = tables[-1].max(axis=0)
        return honest(self, low, np.maximum(np.minimum(high, largest), low + 1))

    monkeypatch.setattr(Windowed, "through", peeking)
    told = recorded(method, tables[-1], BOUND, 4)
    tables.append(table(5, generator))
    assert leaks(method, told, tables[-1])


def test_absolute_eigenvalues_are_seen(
    monkeypatch: pytest.MonkeyPatch, generator: Callable[[int], Any]
) -> None:
    """Their known mistake adds what the noise took away: much too large where there is noise."""
    rows = table(10, generator, 60)
    method = CoinPressCovariance(guarantee=ZCDP(0.05), scale=(1.0, 20.0, 0.5), steps=1)

    def size() -> float:
        found = recorded(method, rows, 100.0, 11).outcome.estimate
        return float(np.trace(found.image))

    honest = size()

    def absolute(matrix: Any) -> Any:
        values, vectors = np.linalg.eigh(matrix)
        return (vectors * np.abs(values)) @ vectors.T

    monkeypatch.setattr(steps, "positive", absolute)
    assert size() > 1.2 * honest
