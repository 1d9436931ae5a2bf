"""Simulated tables of many features: as many words as asked for, and the least risk in a set."""

from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

from dplinear.convex.compression.projections import Projection
from dplinear.convex.losses import HingeLoss, Loss, SquaredLoss
from dplinear.convex.sets import ConvexSet, L1Ball, L2Ball, Simplex
from dplinear.curator.examples import Rules, read_examples
from dplinear.noise import simulation
from dplinear.planner.texts import Assumed, SimulatedTable, draw_texts, least_risk, words_for

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions


@pytest.mark.parametrize("nonzeros", [0.5, 5.0, 20.0])
def test_rows_have_about_so_many_words(nonzeros: float) -> None:
    """Words are there or not independently, so that their number varies by less than its mean.

    The mean of 4,000 rows is 5 deviations off at a rate of 6e-7. A row has one word at least.
    """
    rows = draw_texts(simulation.generator(1), 4_000, 300, words_for(nonzeros, 300))
    counts = np.diff(rows.indptr)
    assert np.asarray(rows.multiply(rows).sum(axis=1)).ravel() == pytest.approx(np.ones(4_000))
    empty = np.exp(-words_for(nonzeros, 300))  # texts that were given a word
    assert abs(counts.mean() - nonzeros - empty) < 5 * np.sqrt(nonzeros / 4_000)


@pytest.mark.parametrize("base", [L1Ball(30, 4.0), L2Ball(30, 2.0), Simplex(30)], ids=repr)
def test_the_truth_is_in_the_set_and_on_few_features(base: ConvexSet) -> None:
    truth = Assumed(base, SquaredLoss(), relevant=6).truth
    assert base.project(truth) == pytest.approx(truth)
    assert np.flatnonzero(truth).max() < 6
    if isinstance(base, L1Ball):
        assert truth[:6] == pytest.approx([4 / 6, -4 / 6] * 3)


def least_by_program(rows: Any, labels: Any, radius: float, loss: Loss) -> float:
    """Return the least mean loss in an L1 ball, by general solvers: θ = u − v with u, v ≥ 0."""
    count, features = rows.shape
    if isinstance(loss, HingeLoss):  # and the mean of ξ ≥ 0, ξ ≥ 1 − y·η
        signed = rows * labels[:, None]
        short = np.hstack((-signed, signed, -np.eye(count)))
        limit = np.concatenate((np.ones(2 * features), np.zeros(count)))
        costs = np.concatenate((np.zeros(2 * features), np.full(count, 1 / count)))
        bounds = np.concatenate((np.full(count, -1.0), [radius]))
        program: Any = optimize.linprog
        return float(program(costs, np.vstack((short, limit)), bounds).fun)
    both = np.hstack((rows, -rows))
    minimise: Any = optimize.minimize
    found = minimise(
        lambda parts: ((both @ parts - labels) ** 2).mean(),
        np.full(2 * features, radius / features / 4),
        jac=lambda parts: 2 * both.T @ (both @ parts - labels) / count,
        bounds=[(0, None)] * (2 * features),
        constraints={"type": "ineq", "fun": lambda parts: radius - parts.sum()},
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return float(found.fun)


@pytest.mark.parametrize("loss", [SquaredLoss(), HingeLoss()], ids=repr)
@pytest.mark.parametrize("nonzeros", [4.0, None])
def test_the_least_risk_is_that_of_a_general_solver(loss: Loss, nonzeros: float | None) -> None:
    table = SimulatedTable.draw(Assumed(L1Ball(12, 3.0), loss, nonzeros, relevant=4), 200, 3)
    cells = table.rows if nonzeros is None else table.rows.toarray()
    oracle = least_by_program(cells, table.labels, 3.0, loss)
    assert table.least == pytest.approx(oracle, rel=1e-3)
    assert table.least >= oracle - 1e-7
    assert table.excess(table.assumed.usual) > 0.02
    again = least_risk(cells, table.labels, loss, table.assumed.base)
    assert again == pytest.approx(table.least, rel=1e-6)


@pytest.mark.parametrize("target", [None, 6])
@pytest.mark.parametrize("nonzeros", [4.0, None])
def test_learners_see_what_they_would_see_of_the_table(
    nonzeros: float | None, target: int | None
) -> None:
    table = SimulatedTable.draw(Assumed(L1Ball(40, 9.0), SquaredLoss(), nonzeros), 5_000, 3)
    drawn = None if target is None else Projection("gaussian", target, 40, 1)
    rules = Rules(features=40, row_norm=1.0, target_bounds=(-1.0, 1.0), projection=drawn, clip=1.2)
    read = read_examples(table.rows, table.labels, rules, progress=False)
    made = table.examples(drawn, 1.2)
    assert made.frame == rules.frame
    for ours, theirs in zip(made.blocks(), read.blocks(), strict=True):
        assert sparse.issparse(ours.features) == sparse.issparse(theirs.features)
        apart = abs(ours.features - theirs.features).max()
        assert apart <= (1 if target is None else 12)  # a rounded cell, or 40 of them through Φ
        assert (ours.labels == theirs.labels).all()
        assert np.asarray((ours.features**2).sum(axis=0)).max() <= made.frame.norm**2
