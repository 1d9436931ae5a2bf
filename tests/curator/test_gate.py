"""The gate: what is checked, in which order, and what is written on the certificate."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.analyst.noise_models.matrices import SketchNoise
from dplinear.arguments import ArgumentTypeError
from dplinear.curator import Schema, SourceError, release_moments, release_sketch
from dplinear.ledger import tally
from dplinear.noise import simulation
from dplinear.papers import sheffet
from dplinear.privacy import GDP, ZCDP, ApproxDP, Neighbours, PureDP
from dplinear.registry import MOMENTS
from refusals import refused
from services import library

from .witnesses import Book, Watched

SCHEMA = Schema(x=(-1, 1), y=(0, 10))
ROWS = np.column_stack([np.linspace(-1, 1, 500), np.linspace(0, 10, 500) ** 2 / 10])
TABLE = pa.table({"x": ROWS[:, 0], "y": ROWS[:, 1]})
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("mechanism", list(MOMENTS))
def test_every_mechanism_passes_and_says_what_it_promises(mechanism: str, neighbours: str) -> None:
    book = Book()
    release = release_moments(
        TABLE,
        SCHEMA,
        **BUDGET,
        mechanism=mechanism,
        neighbours=neighbours,
        ledger=book,
        dataset="lines",
        request="first",
    )
    certificate = release.certificate
    assert release.values.shape == (3, 3)
    assert (release.values == release.values.T).all()
    assert release.rows == (500 if neighbours == "replace" else None)
    assert certificate.mechanism == mechanism
    assert certificate.asked == certificate.holds == ApproxDP(1.0, 1e-6)
    assert certificate.neighbours is Neighbours(neighbours)
    assert certificate.numerics == "exact"
    assert not certificate.simulated
    assert (certificate.request, certificate.dataset) == ("first", "lines")
    assert dict(certificate.curve)[1.0] <= 1e-6
    assert not any("no ledger was given" in note for note in certificate.notes)
    (spent,) = book.requests
    assert spent.guarantee == certificate.holds
    assert (spent.request, spent.dataset, spent.mechanism) == ("first", "lines", mechanism)


def test_a_refused_spend_reads_nothing() -> None:
    watched = Watched(TABLE)
    with pytest.raises(PermissionError, match="the budget is spent"):
        release_moments(watched, SCHEMA, **BUDGET, ledger=Book(refuse=True))
    assert not watched.read
    release_moments(watched, SCHEMA, **BUDGET, ledger=Book())
    assert watched.read


@pytest.mark.parametrize(
    ("data", "arguments", "sentence"),
    [
        (TABLE, {}, "epsilon' parameter of release_moments must be given"),
        (TABLE, {"epsilon": 1.0}, "delta=1e-6"),
        (TABLE, {"guarantee": PureDP(1.0)}, "delta=1e-6"),
        (TABLE, {"guarantee": GDP(1.0)}, "not μ-GDP"),
        (TABLE, {"guarantee": 1.0}, "a guarantee such as ZCDP"),
        (TABLE, {"guarantee": ZCDP(1.0), "epsilon": 1.0}, "left out where epsilon or delta"),
        (TABLE, {"epsilon": -1.0, "delta": 1e-6}, "epsilon' parameter of release_moments"),
        (TABLE, {"epsilon": 1.0, "delta": 2}, "delta' parameter of release_moments"),
        (TABLE, BUDGET | {"neighbours": "element"}, "neighbours"),
        (TABLE, BUDGET | {"mechanism": "magic"}, "mechanism"),
        (TABLE, BUDGET | {"calibration": "paper"}, "calibration' parameter of release_moments"),
        (TABLE, BUDGET | {"rows": 5}, "rows' parameter of release_moments must be left out"),
        (TABLE, BUDGET | {"dataset": ""}, "dataset"),
        (TABLE, BUDGET | {"request": 7}, "request"),
        (TABLE, BUDGET | {"threads": 0}, "threads"),
        (TABLE.drop_columns(["y"]), BUDGET, "y"),
        (object(), BUDGET, "data"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    data: Any, arguments: dict[str, Any], sentence: str
) -> None:
    book = Book()
    with pytest.raises((TypeError, ValueError), match=sentence):
        release_moments(data, SCHEMA, ledger=book, **arguments)
    assert not book.requests


def test_schemas_and_ledgers_must_be_what_they_say() -> None:
    with refused("schema", "release_moments", "a Schema", kind=ArgumentTypeError):
        release_moments(TABLE, ["x"], **BUDGET)  # type: ignore[call-overload]
    with refused("ledger", "release_moments", "method `spend`", kind=ArgumentTypeError):
        release_moments(TABLE, SCHEMA, **BUDGET, ledger=3)  # type: ignore[call-overload]


def test_without_a_ledger_the_certificate_says_that_nobody_counts() -> None:
    with tally() as spent:
        release = release_moments(TABLE, SCHEMA, **BUDGET)
    assert any("no ledger was given" in note for note in release.certificate.notes)
    assert len(spent) == 1
    assert spent.total() == ApproxDP(1.0, 1e-6)


def test_seeded_noise_repeats_itself_and_taints_the_certificate() -> None:
    with simulation.door(3):
        first = release_moments(TABLE, SCHEMA, **BUDGET)
        second = release_moments(TABLE, SCHEMA, **BUDGET)
    assert (first.values == second.values).all()
    assert first.certificate == second.certificate
    assert first.certificate.simulated
    assert "SIMULATED" in str(first.certificate)
    fresh, other = (release_moments(TABLE, SCHEMA, **BUDGET) for _ in range(2))
    assert not fresh.certificate.simulated
    assert (fresh.values != first.values).any()
    assert (fresh.values != other.values).any()


@pytest.mark.parametrize("mechanism", list(MOMENTS))
def test_an_empty_table_is_a_table(mechanism: str) -> None:
    for rows in (TABLE.slice(0, 0), TABLE.slice(0, 1)):
        release = release_moments(rows, SCHEMA, **BUDGET, mechanism=mechanism)
        assert np.isfinite(release.values).all()
        assert release.regress("y").target == "y"


def test_a_sketch_is_least_squares_on_its_own_rows() -> None:
    release = release_sketch(TABLE, SCHEMA, epsilon=2.0, delta=1e-6, rows=50)
    assert release.values.shape == (50, 3)
    fit = release.regress("y", ["x"])
    solved = np.linalg.lstsq(release.values[:, :2], release.values[:, 2], rcond=None)[0]
    # The cells of y are (y − 5)/5.
    assert fit.intercept == pytest.approx(5 + 5 * solved[0])
    assert fit["x"] == pytest.approx(5 * solved[1])


def test_part_of_the_budget_may_go_to_the_least_eigenvalue() -> None:
    many = pa.concat_tables([TABLE] * 2000)
    plain = release_moments(many, SCHEMA, **BUDGET, mechanism="sketch")
    asked = release_moments(many, SCHEMA, **BUDGET, mechanism="sketch", least_eigenvalue_share=0.1)
    assert isinstance(asked.noise_model, SketchNoise)
    assert isinstance(plain.noise_model, SketchNoise)
    assert asked.noise_model.ridge < plain.noise_model.ridge
    assert asked.certificate.holds == ApproxDP(1.0, 1e-6)


def lazy_frame(cells: list[str]) -> Any:
    polars = library("polars")
    frame = polars.LazyFrame({"x": cells, "y": cells})
    return frame.with_columns(polars.all().cast(polars.Float64))


def relation(cells: list[str]) -> Any:
    rows = ", ".join(f"('{cell}')" for cell in cells)
    query = f"SELECT x::DOUBLE AS x, x::DOUBLE AS y FROM (VALUES {rows}) AS t(x)"
    return library("duckdb").connect().sql(query)


@pytest.mark.engine
@pytest.mark.parametrize("make", [lazy_frame, relation])
def test_a_table_that_computes_its_rows_does_so_once_they_are_paid_for(make: Any) -> None:
    refusing, book = Book(refuse=True), Book()
    with pytest.raises(PermissionError):
        release_moments(make(["1", "a secret"]), SCHEMA, **BUDGET, ledger=refusing)
    with pytest.raises(SourceError) as caught:
        release_moments(make(["1", "a secret"]), SCHEMA, **BUDGET, ledger=book)
    assert len(book.requests) == 1
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    with simulation.door(1):
        release = release_moments(make(["0.5", "1"]), SCHEMA, **BUDGET)
        want = release_moments(np.array([[0.5, 0.5], [1, 1]]), SCHEMA, **BUDGET)
    assert np.array_equal(release.values, want.values)


class Broken:
    """A producer that says too much when it is asked for its rows."""

    def __arrow_c_stream__(self, requested: object = None) -> object:
        raise RuntimeError("a secret")


def test_a_stream_that_cannot_be_opened_keeps_its_words_to_itself() -> None:
    with pytest.raises(SourceError) as caught:
        release_moments(Broken(), SCHEMA, **BUDGET)
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("mechanism", "guarantee", "options"),
    [
        ("analyze_gauss", ZCDP(1e-300), {}),
        ("published sketch", ApproxDP(1e-9, 1e-300), {"neighbours": "replace"}),
        (
            "sketch",
            ApproxDP(1.0, 1e-6),
            {"least_eigenvalue_share": 0.5, "adjust": "rows", "ridge": 1e300},
        ),
        (
            "sketch",
            ApproxDP(1.0, 1e-6),
            {"least_eigenvalue_share": 0.5, "adjust": "rows", "ridge": 1e30},
        ),
        (
            "published inverse_wishart",
            ApproxDP(1.0, 1e-6),
            {"least_eigenvalue_share": 0.5, "adjust": "rows", "ridge": 1e300, "degrees": 9},
        ),
    ],
)
def test_what_is_beyond_floats_fails_before_anything_is_spent(
    mechanism: str, guarantee: Any, options: dict[str, Any]
) -> None:
    book = Book()
    *published, mechanism = mechanism.split()
    gate: Any = sheffet.release_moments if published else release_moments
    try:
        gate(ROWS, SCHEMA, guarantee=guarantee, mechanism=mechanism, ledger=book, **options)
    except (ValueError, ArithmeticError):
        assert not book.requests
    else:
        assert len(book.requests) == 1


def test_summaries_say_what_their_intervals_do_not_know() -> None:
    plain = release_moments(ROWS, SCHEMA, epsilon=1e4, delta=1e-6)
    assert "clipped" not in str(plain.regress("y").summary())
    assert "shrinks" not in str(plain.regress("y").summary())
    assert "that the ridge shrinks" in str(plain.regress("y", ridge=9.0).summary())
    clipped = release_moments(
        ROWS, Schema(x=(-1, 1), y=(0, 10), row_norm=1.2), epsilon=1e4, delta=1e-6
    )
    assert "a model of the clipped rows" in str(clipped.regress("y").summary())


def test_what_a_sketch_releases_is_the_gates_to_say() -> None:
    release: Any = {"release": "sketch"}
    with refused("release", "release_moments"):
        release_moments(TABLE, SCHEMA, **BUDGET, mechanism="sketch", **release)
    with refused("release", "release_sketch"):
        release_sketch(TABLE, SCHEMA, **BUDGET, **release)
