"""Releases of published variants: the passage of any release, and honest certificates."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from curator.witnesses import Book, Watched
from dplinear import load, registry
from dplinear.analyst.noise_models.matrices import ProjectionNoise, SketchNoise
from dplinear.curator import Schema
from dplinear.curator.gates.options import READING
from dplinear.curator.sources import open_reader, second_moments
from dplinear.ledger import LedgerError, open_ledger, tally
from dplinear.mechanisms import MIProjection
from dplinear.mechanisms.contract import option_names
from dplinear.noise import simulation
from dplinear.papers import dhaliwal, ediger, sheffet, showkatbakhsh, wang
from dplinear.papers.dhaliwal.published import PublishedProjectedRows
from dplinear.papers.dhaliwal.release import PublishedOptions as RowsOptions
from dplinear.papers.ediger.published import PublishedCoinPress
from dplinear.papers.ediger.release import PublishedOptions as ModelOptions
from dplinear.papers.showkatbakhsh.peaks import MomentsAndPeaks
from dplinear.privacy import MIDP, ZCDP, ApproxDP
from dplinear.registry import CONSTRAINED, MODELS, MOMENTS
from refusals import refused

SCHEMA = Schema(x=(-1, 1), y=(0, 10))
ROWS = np.column_stack([np.linspace(-1, 1, 500), np.linspace(0, 10, 500) ** 2 / 10])
TABLE = pa.table({"x": ROWS[:, 0], "y": ROWS[:, 1]})
MIXED = Schema({"x": (-1, 1), "c": ["u", "v", "w"], "y": (0, 10)})
CELLS = pa.table({"x": ROWS[:, 0], "c": list("uvwuv") * 100, "y": ROWS[:, 1]})
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
X = simulation.generator(4).uniform(-1, 1, 700)
# Every release of a paper, on two columns x and y.
RELEASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "sheffet moments": (sheffet.release_moments, BUDGET),
    "sheffet sketch": (sheffet.release_sketch, BUDGET),
    "showkatbakhsh rows": (showkatbakhsh.release_rows, {"bits": 0.5, "target": "y"}),
    "showkatbakhsh sketch": (showkatbakhsh.release_sketch, {"bits": 0.5, "target": "y"}),
    "dhaliwal rows": (dhaliwal.release_rows, {"epsilon": 4.0, "k": 20}),
    "wang model": (wang.release_model, BUDGET | {"target": "y"}),
    "ediger model": (
        ediger.release_model,
        {"guarantee": ZCDP(0.5), "structure": "mean", "target": "y"},
    ),
}
every_release = pytest.mark.parametrize("name", RELEASES)


def released(name: str, data: Any = TABLE, schema: Schema = SCHEMA, **more: Any) -> Any:
    gate, options = RELEASES[name]
    return gate(data, schema, **(options | more))


@every_release
def test_a_release_says_that_its_noise_is_the_papers(name: str, tmp_path: Path) -> None:
    book = Book()
    release = released(name, ledger=book, dataset="lines", request="first")
    certificate = release.certificate
    assert certificate.calibration == "paper"
    assert (certificate.request, certificate.dataset) == ("first", "lines")
    (spent,) = book.requests
    assert spent.guarantee == certificate.holds
    assert spent.parameters["calibration"] == "paper"
    if not name.endswith("rows"):
        release.save(tmp_path / "release.json")
        assert load(tmp_path / "release.json").certificate == certificate


@pytest.mark.parametrize("name", [name for name in RELEASES if name != "ediger model"])
def test_a_refused_spend_reads_nothing(name: str) -> None:  # a stream has no second pass
    watched = Watched(TABLE)
    with pytest.raises(PermissionError):
        released(name, watched, ledger=Book(refuse=True))
    assert not watched.read


@every_release
def test_what_is_wrong_is_said_under_the_name_of_the_release(name: str) -> None:
    paper, kind = name.split()
    own = rf"papers\.{paper}\.release_{kind}"
    for wrong in ({"neighbours": "others"}, {"colour": "red"}, {"request": 7}, {"schema": None}):
        book: Any = Book()
        schema: Any = wrong.get("schema", SCHEMA)
        more = {key: value for key, value in wrong.items() if key != "schema"}
        with pytest.raises((TypeError, ValueError), match=f"parameter of {own} must be"):
            released(name, schema=schema, ledger=book, **more)
        assert not book.requests


@every_release
def test_empty_tables_are_tables(name: str) -> None:
    for rows in (TABLE.slice(0, 0), TABLE.slice(0, 1)):
        certificate = released(name, rows).certificate
        assert certificate.calibration == "paper"


def test_a_ledger_takes_no_release_for_another(tmp_path: Path) -> None:
    ledger = tmp_path / "budget.db"
    open_ledger(ledger, create=True).declare("lines", ZCDP(1.0), "add_remove")
    told: dict[str, Any] = BUDGET | {"ledger": ledger, "dataset": "lines", "request": "first"}
    first = dpl.release_moments(TABLE, SCHEMA, **told)
    assert np.array_equal(dpl.release_moments(TABLE, SCHEMA, **told).values, first.values)
    with pytest.raises(LedgerError, match="with other arguments"):
        sheffet.release_moments(TABLE, SCHEMA, **told)
    told["request"] = "second"
    own = sheffet.release_moments(TABLE, SCHEMA, **told)
    assert np.array_equal(sheffet.release_moments(TABLE, SCHEMA, **told).values, own.values)


def test_rows_in_a_file_are_taken_for_no_other(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    told: dict[str, Any] = {"bits": 0.5, "target": "y", "output": path, "request": "first"}
    dpl.release_rows(TABLE, SCHEMA, **told, y_public=True)
    with refused("output", "papers.showkatbakhsh.release_rows", "not there yet"):
        showkatbakhsh.release_rows(TABLE, SCHEMA, **told)


def test_what_keeps_no_promise_is_behind_no_gate_of_the_library() -> None:
    solvers = [kind for kinds in MODELS.values() for kind in kinds.values()]
    kinds: list[Any] = [*MOMENTS.values(), *registry.ROWS.values(), *solvers, MIProjection]
    assert {kind.calibration for kind in [*kinds, *CONSTRAINED.values()]} == {"exact"}
    code = "import sys, dplinear; print([n for n in sys.modules if 'dplinear.papers' in n])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert said.stdout.strip() == "[]"


def test_typed_options_are_those_of_the_published_mechanisms() -> None:
    """Of a gate for several, those of all of them; `k` and `rows` are arguments of their gates."""
    model = {"settings", "errors", "shares", "steps", "radius", "structure"}
    for options, kind, beside in (
        (RowsOptions, PublishedProjectedRows, {"k"}),
        (ModelOptions, PublishedCoinPress, set()),
    ):
        typed = set(options.__annotations__) - READING
        assert set(option_names(kind)) - beside <= typed
        assert typed - set(option_names(kind)) <= model


@pytest.mark.parametrize("mechanism", ["additive_wishart", "sketch", "inverse_wishart"])
def test_published_options_are_those_of_the_mechanism(mechanism: str) -> None:
    with refused("change", "papers.sheffet.release_moments"):
        sheffet.release_moments(TABLE, SCHEMA, **BUDGET, mechanism=mechanism, change=1.0)  # type: ignore[call-arg]


def test_the_published_sketch_has_the_ridge_of_its_theorem() -> None:
    release = sheffet.release_sketch(TABLE, SCHEMA, **BUDGET, rows=50)
    exact = dpl.release_sketch(TABLE, SCHEMA, **BUDGET, rows=50)
    assert release.values.shape == (50, 3)
    assert isinstance(release.noise_model, SketchNoise)
    assert isinstance(exact.noise_model, SketchNoise)
    assert release.noise_model.ridge > 5 * exact.noise_model.ridge
    held = release.certificate.holds
    assert isinstance(held, ApproxDP)
    assert held.epsilon < 1


def test_published_noise_on_rows_says_what_holds() -> None:
    release = showkatbakhsh.release_rows(CELLS, MIXED, bits=0.5, target="y")
    held = release.certificate.holds
    assert isinstance(held, MIDP)
    assert held.bits == pytest.approx(0.5, rel=1e-9)
    assert np.allclose(release.values[:, -1], ROWS[:, 1], atol=1e-5)
    assert any("nothing protects it" in note for note in release.certificate.notes)
    few = dhaliwal.release_rows(TABLE, SCHEMA, epsilon=4.0, k=1)
    assert few.certificate.holds is None
    assert "no formal guarantee" in str(few.certificate)
    assert few.certificate.parameters["published_delta"] == pytest.approx(2 * np.exp(-0.5))


def test_published_models_say_what_holds() -> None:
    line = ediger.release_model(TABLE, SCHEMA, "y", guarantee=ZCDP(0.5), structure="mean")
    held = line.certificate.holds
    assert isinstance(held, ZCDP)
    assert held.rho == pytest.approx(0.35)
    assert line.rows == 500
    split = wang.release_model(TABLE, SCHEMA, "y", **BUDGET)
    kept = split.certificate.holds
    assert isinstance(kept, ApproxDP)
    assert kept.epsilon < 0.9


@pytest.mark.parametrize("mechanism", list(MOMENTS))
def test_published_constants_come_with_what_they_really_promise(mechanism: str) -> None:
    budget: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-6}
    release = sheffet.release_moments(
        TABLE, SCHEMA, **budget, mechanism=mechanism, neighbours="replace"
    )
    held = release.certificate.holds
    assert isinstance(held, ApproxDP)
    assert held.delta == 1e-6
    assert held.epsilon != 0.5
    assert release.certificate.asked == ApproxDP(0.5, 1e-6)
    assert release.certificate.calibration == "paper"


def test_the_paper_lets_the_private_number_of_rows_into_the_noise() -> None:
    with tally() as spent:
        release = sheffet.release_moments(TABLE, SCHEMA, **BUDGET, mechanism="inverse_wishart")
    assert release.certificate.holds is None
    assert release.rows is None
    assert release.certificate.parameters["degrees"] == 503
    assert "no formal guarantee" in str(release.certificate)
    assert spent.requests[0].guarantee is None


def test_the_papers_noise_is_reproduced_and_never_told(tmp_path: Path) -> None:
    options: dict[str, Any] = {"bits": 0.5, "target": "y", "rows": 2000}
    schema = Schema({"x": (-1, 1), "z": (-1, 1), "y": (0, 10)}, intercept=False)
    small = {"x": X, "z": 0.1 * X[::-1], "y": 5 + 4 * X}
    with tally() as spent:
        release = showkatbakhsh.release_sketch(pa.table(small), schema, **options)
    assert spent.requests[0].guarantee is None
    certificate = release.certificate
    assert certificate.holds is None
    assert certificate.asked == MIDP(0.5)
    assert certificate.curve == ()
    assert "no formal guarantee: reproduction only" in certificate.notes
    assert dict(certificate.parameters) == {"rows": 2000}
    assert release.noise_model == ProjectionNoise(2000, None)
    # f² is that of z: the noise is nearly all of n'/(2^{2ε} − 1), on x and z alike.
    cells = np.column_stack([small["x"], small["z"], small["y"] / 10])
    squares = cells**2
    left = (squares.sum(0) - squares.max(0))[:2].min()
    noise = 2000 - left
    assert 0 < left < 10
    spread = (release.values**2).sum(0) / (squares.sum(0) + np.array([noise, noise, 0.0]))
    # χ² with 2000 degrees over 2000 of them is within 5.6 deviations but for 1e-6 or less.
    assert (np.abs(spread / 2000 - 1) < 5.6 * np.sqrt(2 / 2000)).all()
    release.save(tmp_path / "paper.json")
    text = (tmp_path / "paper.json").read_text()
    assert f"{left:.5f}"[:6] not in text
    assert f"{noise:.4f}"[:7] not in text
    loaded = load(tmp_path / "paper.json", kind="sketch")
    assert loaded.noise_model == release.noise_model
    assert loaded.certificate == certificate


@pytest.mark.parametrize("count", [0, 1, 700, 9000])
def test_the_largest_squares_are_those_of_the_rounded_rows(count: int) -> None:
    cells = simulation.generator(1).uniform(-1, 1, (count, 2)) * [1.0, 0.3]
    schema = Schema({"x": (-1, 1), "z": (-1, 1)})
    reduction = MomentsAndPeaks(schema)
    found = open_reader(cells, schema, threads=2).run(reduction)
    assert found.moments == second_moments(cells, schema)
    units = found.moments.grid.steps_per_unit
    want = [units**2 * (count > 0), *(np.rint(np.abs(cells) * units).max(0, initial=0) ** 2)]
    assert found.squares.tolist() == want
    again = reduction.merge([reduction.read(found.to_bytes()), reduction.accumulator().result()])
    assert again.moments == found.moments
    assert np.array_equal(again.squares, found.squares)
    assert "private" in repr(found)


@pytest.mark.parametrize(
    ("release", "options", "sentence"),
    [
        (
            dhaliwal.release_rows,
            {"epsilon": 4.0, "k": 2, "output": "nowhere/rows.parquet"},
            r"'output' parameter of papers\.dhaliwal\.release_rows must be in a folder",
        ),
        (
            showkatbakhsh.release_rows,
            {"bits": 0.5, "target": "y", "threads": 0},
            r"'threads' parameter of papers\.showkatbakhsh\.release_rows",
        ),
        (
            wang.release_model,
            {**BUDGET, "target": "z"},
            r"'target' parameter of papers\.wang\.release_model",
        ),
        (
            ediger.release_model,
            {"guarantee": ZCDP(1.0), "target": 3},
            r"'target' parameter of papers\.ediger\.release_model",
        ),
    ],
)
def test_an_error_names_the_release_that_was_called(
    release: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        release(TABLE, SCHEMA, **options)
