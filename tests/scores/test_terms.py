"""Sums of bounded terms: what an oracle in Python's numbers makes of them, row by row."""

import logging
import math
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dplinear.arrays import Floats
from dplinear.exact.grid import Grid, shape_of
from dplinear.noise import simulation
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.scores.histograms import LabelledScores, ResidualSizes
from dplinear.scores.predictions import CalledPredictor, LinearPredictor, Predictor
from dplinear.scores.terms import MOST_LOSS, STEPS, LabelTerms, ResidualTerms, Terms

SCHEMA = Schema({"a": (-1, 1), "b": (-1, 1), "y": (-1, 1)})
SHAPE = shape_of(SCHEMA)
UNIT = Grid.of(SCHEMA).steps_per_unit
WEIGHTS = np.array([1.0, 5.0, -12.5, 0.0])
TARGET = 3


def rows(count: int, seed: int) -> Floats:
    """Rounded rows: at the bounds, and anywhere between."""
    random = simulation.generator(seed)
    cells = random.uniform(-1, 1, (4, count))
    corners = random.uniform(size=(4, count)) < 0.3
    cells[corners] = random.choice([-1.0, 0.0, 1.0], int(corners.sum()))
    cells[0] = 1.0
    return np.rint(cells * UNIT)


def _called(cells: Floats) -> float:
    return float(np.tanh(cells[1]) * 30 + cells[2] / 7)


PREDICTORS: dict[str, Predictor] = {
    "linear": LinearPredictor(SHAPE, WEIGHTS),
    "called": CalledPredictor(_called, UNIT),
}


def statistics(predictor: Predictor) -> list[Terms | ResidualSizes | LabelledScores]:
    place = SHAPE, predictor, TARGET
    return [
        ResidualTerms(*place, tuple(ResidualTerms.known), 0.5, 0.25, 0.75),
        ResidualTerms(*place, ("e", "e²"), 0.125),
        LabelTerms(*place, tuple(LabelTerms.known)),
        ResidualSizes(*place, (0.25, 0.5, 2.0)),
        LabelledScores(*place, (-1.0, 0.0, 1.0)),
    ]


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_row_adds_the_same_whatever_stands_beside_it(name: str) -> None:
    block = rows(501, 3)
    for statistic in statistics(PREDICTORS[name]):
        alone = [statistic.sum(block[:, [index]].copy()) for index in range(block.shape[1])]
        assert np.array_equal(statistic.sum(block), np.sum(alone, axis=0))
        shifted = sum(statistic.sum(block[:, part].copy()) for part in (slice(7), slice(7, None)))
        assert np.array_equal(statistic.sum(block), shifted)


@pytest.mark.parametrize("name", PREDICTORS)
@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_no_row_moves_a_sum_farther_than_is_declared(name: str, relation: Neighbours) -> None:
    block = rows(400, 4)
    for statistic in statistics(PREDICTORS[name]):
        each = np.array([statistic.sum(block[:, [index]].copy()) for index in range(400)])
        if relation is Neighbours.REPLACE:
            each = (each[:, None] - each[None]).reshape(-1, each.shape[1])
        worst = int((each**2).sum(axis=1).max())
        limit = statistic.sensitivity_squared(relation)
        assert worst <= limit
        assert worst > (0.3 if relation is Neighbours.REPLACE else 0.9) * limit


def test_linear_predictions_are_the_products() -> None:
    block = rows(200, 5)
    wanted = WEIGHTS @ (block / UNIT)
    assert np.allclose(PREDICTORS["linear"].of_rows(block), wanted, rtol=0, atol=1e-9)


def test_terms_of_values_are_what_they_say() -> None:
    block = rows(1, 6)
    predicted = math.fsum((WEIGHTS * block[:, 0] / UNIT).tolist())
    value = float(block[TARGET, 0]) / UNIT
    e = min(max((value - predicted) / 0.5, -1), 1)
    t = min(max((value - 0.25) / 0.75, -1), 1)
    wanted = {
        "e": e, "|e|": abs(e), "e²": e**2, "t": t, "t²": t**2,
        "e⁴": e**4, "t⁴": t**4, "e²t²": e**2 * t**2,
    }  # fmt: skip
    for name, term in wanted.items():
        statistic = ResidualTerms(SHAPE, PREDICTORS["linear"], TARGET, (name,), 0.5, 0.25, 0.75)
        got = int(statistic.sum(block)[0]) / STEPS / float(ResidualTerms.known[name][1])
        assert got == pytest.approx(term, abs=2 / STEPS / 0.375)


def test_terms_of_labels_are_what_they_say() -> None:
    for seed in range(30):
        block = rows(1, seed)
        odds = math.fsum((WEIGHTS * block[:, 0] / UNIT).tolist())
        label = bool(block[TARGET, 0] > 0)
        p = 1 / (1 + math.exp(-odds))
        loss = min(-math.log(p if label else 1 - p), MOST_LOSS) / MOST_LOSS
        wanted = {
            "right": float((odds > 0) == label), "y": float(label), "p": p,
            "brier": (label - p) ** 2, "brier²": (label - p) ** 4, "loss": loss, "loss²": loss**2,
        }  # fmt: skip
        for name, term in wanted.items():
            statistic = LabelTerms(SHAPE, PREDICTORS["linear"], TARGET, (name,))
            got = int(statistic.sum(block)[0]) / STEPS / float(LabelTerms.known[name][1])
            assert got == pytest.approx(term, abs=4e-3), (name, seed)


def test_a_row_counts_in_one_bin() -> None:
    block = rows(500, 8)
    sizes = ResidualSizes(SHAPE, PREDICTORS["linear"], TARGET, (0.25, 0.5, 2.0)).sum(block)
    labelled = LabelledScores(SHAPE, PREDICTORS["linear"], TARGET, (-0.5, 0.0, 0.5)).sum(block)
    assert sizes.sum() == labelled.sum() == 500
    residuals = np.abs(block[TARGET] / UNIT - WEIGHTS @ (block / UNIT))
    assert sizes.tolist() == np.histogram(residuals, [0, 0.25, 0.5, 2, 99])[0].tolist()
    odds, ones = WEIGHTS @ (block / UNIT), block[TARGET] > 0
    ends = [-99, -0.5, 0, 0.5, 99]
    wanted = [*np.histogram(odds[~ones], ends)[0], *np.histogram(odds[ones], ends)[0]]
    assert labelled.tolist() == wanted


@pytest.mark.parametrize("answer", [math.nan, math.inf, -math.inf, 1e300, "text", None])
def test_no_answer_of_a_model_reaches_beyond_the_bounds(answer: object) -> None:
    predictor = CalledPredictor(lambda _: answer, UNIT)  # type: ignore[arg-type, return-value]
    block = rows(9, 9)
    assert np.abs(predictor.of_rows(block)).max() <= 64
    for statistic in statistics(predictor):
        each = np.array([statistic.sum(block[:, [index]].copy()) for index in range(9)])
        limit = statistic.sensitivity_squared(Neighbours.ADD_REMOVE)
        assert (each**2).sum(axis=1).max() <= limit


def test_a_model_that_raises_prints_or_warns_tells_nothing(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    standard = sys.stdout, sys.stderr

    def loud(cells: Floats) -> float:
        print("a private cell", cells)  # noqa: T201 - what a model may do
        warnings.warn(f"a private cell {cells}", stacklevel=1)
        logging.getLogger("loud").critical("a private cell %s", cells)
        if cells[1] > 0:
            raise (SystemExit if cells[2] > 0 else ValueError)(cells)
        return 1.0

    predictor = CalledPredictor(loud, UNIT)
    with ThreadPoolExecutor(4) as pool:
        blocks = [rows(50, seed) for seed in range(40)]
        predicted = np.concatenate(list(pool.map(predictor.of_rows, blocks)))
    alone = np.concatenate([predictor.of_rows(block) for block in blocks])
    assert predicted.tobytes() == alone.tobytes()
    assert set(predicted.tolist()) == {0.0, 1.0}
    assert sys.stdout is standard[0]
    assert sys.stderr is standard[1]
    out = capfd.readouterr()
    assert (out.out, out.err, len(recwarn)) == ("", "", 0)
