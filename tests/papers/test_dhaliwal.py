"""Table 1 and Figures 1 to 4 of Dhaliwal et al. 2019: what they claim, and what stands for what."""

import csv
import io
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

import dplinear as dpl
from dplinear.noise import simulation
from dplinear.papers import dhaliwal
from dplinear.papers.dhaliwal import __main__ as command
from dplinear.papers.dhaliwal import recovery, study
from dplinear.papers.dhaliwal.design import DELTA, EPSILON, SETTINGS, agreement, blobs, paper_delta
from dplinear.papers.dhaliwal.techniques import (
    AFTER,
    BEFORE,
    BEFORE_ORTHONORMAL,
    NORMAL_AFTER,
    NORMAL_BEFORE,
    PAPER_CELLS,
    PAPER_ROWS,
    PROJECTED,
    ROWS_L2,
    ROWS_L2_QUANTILE,
    Draws,
    Technique,
)
from services import library

pytestmark = pytest.mark.heavy  # arithmetic of our own, whatever the versions

FALSE_ALARM = 1e-6
REACH = 16.0  # bounds far beyond every row, so that nothing is clamped
DUEL = (PAPER_CELLS, PAPER_ROWS, AFTER, BEFORE)

# How the library is asked for what each replica stands for.
ASKED: list[tuple[Technique, dict[str, Any]]] = [
    (PAPER_CELLS, {"neighbours": "element"}),
    (PAPER_ROWS, {"neighbours": "row_l2"}),
    (AFTER, {"noise": "laplace", "neighbours": "element"}),
    (AFTER, {"noise": "laplace", "neighbours": "row_l1"}),
    (BEFORE, {"noise": "perturbed", "neighbours": "element"}),
    (BEFORE_ORTHONORMAL, {"noise": "perturbed", "projection": "orthonormal"}),
    (ROWS_L2, {"noise": "laplace", "neighbours": "row_l2"}),
    (ROWS_L2_QUANTILE, {"noise": "quantile", "neighbours": "row_l2", "delta": DELTA}),
    (NORMAL_AFTER, {"noise": "gaussian", "neighbours": "row_l1", "delta": DELTA}),
]


@pytest.mark.parametrize(("d", "k"), [(3, 2), (10, 3)])
@pytest.mark.parametrize(("technique", "asked"), ASKED, ids=[str(a) for _, a in ASKED])
def test_a_replica_has_the_law_of_the_mechanism(
    technique: Technique, asked: dict[str, Any], d: int, k: int
) -> None:
    rows = blobs(1000, d, simulation.generator(4)).rows
    schema = dpl.Schema({f"x{i}": (-REACH, REACH) for i in range(d)})
    options = {"epsilon": EPSILON, "change": 1 / REACH, "missing_public": True} | asked
    options["public_projection"] = True
    with simulation.door(k):
        if technique in {PAPER_CELLS, PAPER_ROWS}:
            release = dhaliwal.release_rows(rows, schema, k=k, **options)
        else:
            release = dpl.release_rows(rows, schema, mechanism="projection", k=k, **options)
    law: Any = release.noise_model
    P = law.projection_matrix
    # Cells are REACH times shorter than rows.
    scale = REACH * law.scale
    # A change of a cell counts for a few steps of the grid more than it is.
    assert technique.scale(P) * (1 - 1e-6) <= scale <= technique.scale(P) * 1.002
    residual = REACH * release.values - rows @ P
    if technique.noise.startswith("perturbed"):
        residual = np.linalg.lstsq(P.T @ P, residual.T, rcond=None)[0].T @ P.T
        spread = float(np.mean(np.sum(residual**2, axis=1))) / k
        assert spread == pytest.approx(2 * scale**2, rel=0.25)
    else:
        wanted = stats.norm if technique.noise == "gaussian" else stats.laplace
        alike = stats.kstest(residual.ravel(), wanted(scale=scale).cdf)
        assert alike.pvalue > FALSE_ALARM
    replica, own = _draws(P, technique).release(rows, technique)
    assert own.variance == pytest.approx(REACH**2 * law.variance, rel=0.005)
    assert replica.shape == release.values.shape


def _draws(P: Any, technique: Technique) -> Draws:
    draws = Draws.of(1000, P.shape[0], P.shape[1], simulation.generator(9))
    return Draws(draws.projections | {technique.projection: P}, draws.noise)


def test_normal_noise_before_a_projection_is_that_of_the_cells() -> None:
    schema = dpl.Schema({"a": (-REACH, REACH), "b": (-REACH, REACH)})
    release = dpl.release_rows(
        np.zeros((5, 2)),
        schema,
        mechanism="projection",
        k=2,
        epsilon=EPSILON,
        delta=DELTA,
        noise="perturbed",
        neighbours="row_l2",
        change=1 / REACH,
        missing_public=True,
    )
    law: Any = release.noise_model
    if law.noise == "perturbed gaussian":  # whichever is less
        assert REACH * law.scale == pytest.approx(NORMAL_BEFORE.scale(np.eye(2)), rel=0.002)
    else:
        assert law.noise == "perturbed"


def test_replicas_see_the_same_draws() -> None:
    draws = Draws.of(50, 6, 3, simulation.generator(0))
    rows = np.zeros((50, 6))
    one, two = (draws.release(rows, each)[0] for each in (PAPER_CELLS, AFTER))
    P = draws.projections["gaussian"]
    np.testing.assert_allclose(one / paper_scale(3), two / (np.abs(P).sum(1).max() / EPSILON))
    columns = draws.projections["orthonormal"]
    np.testing.assert_allclose(columns.T @ columns, 2 * np.eye(3), atol=1e-12)
    np.testing.assert_allclose(draws.release(rows, PROJECTED)[0], 0, atol=1e-8)


def paper_scale(k: int) -> float:
    return 2 * math.sqrt(k) / EPSILON


def test_the_papers_deltas_are_what_they_are() -> None:
    deltas = [paper_delta(d, k, whole_rows=False) for d, k in SETTINGS]
    assert deltas == pytest.approx([1.10, 2.23, 0.34, 0.0045], rel=0.02)
    assert {paper_delta(d, k, whole_rows=True) for d, k in SETTINGS} == {1.0}


def test_scales_of_many_projections_are_those_of_each() -> None:
    P = simulation.generator(1).standard_normal((2, 3, 5, 2))
    for technique in (PAPER_CELLS, AFTER, ROWS_L2, NORMAL_AFTER, BEFORE):
        wanted = [[technique.scale(each) for each in line] for line in P]
        np.testing.assert_allclose(technique.scales(P), wanted, rtol=1e-12)
    assert AFTER.scale(P[0, 0]) == pytest.approx(np.abs(P[0, 0]).sum(1).max() / 4)


def test_recovered_distances_have_the_law_they_are_said_to_have() -> None:
    found = recovery.recover(PAPER_CELLS, 3, 2, 1, pairs=200, releases=400)
    error = found.errors.std() / math.sqrt(found.errors.size)
    assert abs(found.errors.mean()) < 5.5 * error
    squares = found.errors**2
    for claim, right in (
        (found.error_model.variances, True),
        (recovery.paper_variances(2, found.error_model.variance), False),
    ):
        apart = squares - claim.at(found.squared)[:, None]
        score = apart.mean() / apart.std() * math.sqrt(apart.size)
        assert (bool(abs(score) < 4.9)) == right


def test_clusters_are_told_apart_whatever_they_are_called() -> None:
    table = blobs(4000, 3, simulation.generator(2))
    apart = table.rows[table.labels == 1].mean(0) - table.rows[table.labels == 0].mean(0)
    # Each mean is off by about √(2·3/2000); six times that at most.
    assert np.linalg.norm(apart) == pytest.approx(4.0, abs=0.35)
    assert agreement(table.labels, 1 - table.labels) == 1.0


def check_duel(found: study.Study) -> None:
    """Pure ε is at least as good as the paper's constants, in the mean of paired differences."""
    ours = [way.name for way in (AFTER, BEFORE) if way.name in found.accuracy]
    theirs = [way.name for way in (PAPER_CELLS, PAPER_ROWS) if way.name in found.accuracy]
    for one, other in itertools.product(ours, theirs):
        gain, _ = found.gain(one, other)
        assert (gain >= 0).all(), (one, other, gain)
    assert (found.means(study.NONE) > 0.95).all()


def test_less_noise_is_no_worse_for_clusters() -> None:
    duel = (PAPER_CELLS, AFTER)
    found = study.run(1, repetitions=24, rows=400, techniques=duel, noise_aware=())
    check_duel(found)


@pytest.mark.long
def test_table_1_over_200_repetitions() -> None:
    found = study.run(1, techniques=(PROJECTED, *DUEL), noise_aware=(AFTER,))
    check_duel(found)
    gain, error = found.gain(AFTER.name, PAPER_CELLS.name)
    assert (gain > 3 * error).all()
    gain, error = found.gain(study.aware(AFTER), AFTER.name)
    assert gain[0] > 3 * error[0]
    assert (gain > -0.002).all()


@pytest.mark.engine
def test_the_command_writes_what_it_says(tmp_path: Path) -> None:
    library("matplotlib")
    text = io.StringIO()
    command.main(["--output", str(tmp_path), "--small"], Console(file=text, width=160))
    assert "δ of: paper, one cell" in text.getvalue()
    for figure in ("1.1 ", "2.23", "0.337", "0.00454"):
        assert figure in text.getvalue()
    for name in ("rows", "noise"):
        assert (tmp_path / f"dhaliwal-{name}.png").read_bytes().startswith(b"\x89PNG")
    with (tmp_path / "dhaliwal-table1.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert {(line["d"], line["k"]) for line in lines} == {(str(d), str(k)) for d, k in SETTINGS}
    assert all(0.5 <= float(line["mean"]) <= 1 for line in lines)
