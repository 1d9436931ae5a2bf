"""The gate of sketches for single cells: what is checked, spent, read and printed."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dplinear.curator import Schema, release_sketch
from dplinear.curator.sources import second_moments
from dplinear.ledger import tally
from dplinear.noise import simulation
from dplinear.privacy import MIDP, ApproxDP, Neighbours
from refusals import refused

from .witnesses import Book, Watched

SCHEMA = Schema({"x": (-1, 1), "c": ["u", "v", "w"], "y": (0, 10)})
RANDOM = simulation.generator(4)
X = RANDOM.uniform(-1, 1, 700)
TABLE = pa.table(
    {"x": X, "c": pa.array(list("uvw") * 233 + ["u"]), "y": 5 + 3 * X + RANDOM.uniform(-1, 1, 700)}
)
BITS: dict[str, Any] = {"mechanism": "mi_projection", "bits": 0.5}


def test_a_release_says_what_it_promises() -> None:
    book = Book()
    with tally() as spent:
        release = release_sketch(TABLE, SCHEMA, **BITS, rows=40, ledger=book, dataset="lines")
    certificate = release.certificate
    assert release.values.shape == (40, 6)
    assert release.rows == 700
    assert certificate.holds == certificate.asked == MIDP(0.5)
    assert certificate.neighbours is Neighbours.ELEMENT
    assert (certificate.mechanism, certificate.numerics) == ("mi_projection", "exact")
    assert certificate.curve == ((0.0, MIDP(0.5).to(ApproxDP).delta),)
    assert "0.5 bits (element neighbours)" in str(certificate)
    assert certificate.parameters["rows"] == 40
    (request,) = book.requests
    assert request.guarantee == MIDP(0.5)
    assert request.neighbours is Neighbours.ELEMENT
    assert request.parameters["rows"] == 40
    assert str(spent) == "1 release: 0.5 bits together (element neighbours)"
    assert release.noise_model.ridges[0] < 1e-8 * release.noise_model.ridges.max()
    solved = np.linalg.lstsq(release.values[:, :2], release.values[:, 5], rcond=None)[0]
    assert release.regress("y", ["x"])["x"] == pytest.approx(5 * solved[1])


def test_more_than_a_bit_implies_no_delta() -> None:
    assert release_sketch(TABLE, SCHEMA, mechanism="mi_projection", bits=2).certificate.curve == ()


def test_the_guarantee_may_be_given_as_such() -> None:
    release = release_sketch(
        TABLE, SCHEMA, mechanism="mi_projection", guarantee=MIDP(0.25), neighbours="element"
    )
    assert release.certificate.holds == MIDP(0.25)
    assert len(release.values) == 2 * SCHEMA.dimension


def test_the_papers_numbers_of_rows_take_the_public_count() -> None:
    counts = [
        len(release_sketch(TABLE, SCHEMA, **BITS, rows=rule, base=100).values)
        for rule in ("logarithmic", "linear", "full")
    ]
    assert counts == [round(100 * (np.log(7) + 1)), 400, 700]


def test_a_refused_spend_reads_nothing() -> None:
    watched = Watched(TABLE)
    with pytest.raises(PermissionError):
        release_sketch(watched, SCHEMA, **BITS, ledger=Book(refuse=True))
    assert not watched.read


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"bits": None}, "bits' parameter of release_sketch must be given"),
        ({"bits": 0}, "bits' parameter of release_sketch"),
        ({"epsilon": 1.0}, "epsilon' parameter of release_sketch must be left out"),
        ({"bits": None, "delta": 1e-6}, "delta' parameter"),
        ({"guarantee": MIDP(1.0)}, "left out where another guarantee is given"),
        ({"bits": None, "guarantee": ApproxDP(1.0, 1e-6)}, "must be MIDP"),
        ({"mechanism": "sketch"}, "bits are counted for single cells"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"neighbours": "replace"}, "neighbours"),
        ({"calibration": "paper"}, "options"),
        ({"rows": "few"}, "rows"),
        ({"target": "z"}, "target"),
        ({"y_public": True}, "target"),
        ({"lower_bound": -1}, "lower_bound"),
        ({"least_eigenvalue_bits": 0.6}, "least_eigenvalue_bits"),
        ({"release": "matrix"}, "options"),
        ({"degrees": 3}, "options"),
        ({"threads": 0}, "threads"),
        ({"dataset": ""}, "dataset"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_spent(
    arguments: dict[str, Any], sentence: str
) -> None:
    book, watched = Book(), Watched(TABLE)
    with pytest.raises((TypeError, ValueError), match=sentence):
        release_sketch(watched, SCHEMA, ledger=book, **(BITS | arguments))
    assert not book.requests
    assert not watched.read


def test_tables_and_schemas_are_checked_before_anything_is_spent() -> None:
    book = Book()
    with refused("schema", "release_sketch", "without derived features"):
        release_sketch(TABLE, Schema({"x": (-1, 1)}, derived=["x^2"]), ledger=book, **BITS)
    with refused("schema", "release_sketch", "without row_norm"):
        release_sketch(TABLE, Schema({"x": (-1, 1)}, row_norm=1.0), ledger=book, **BITS)
    with refused("data", "release_sketch", "y"):
        release_sketch(TABLE.drop_columns(["y"]), SCHEMA, ledger=book, **BITS)
    assert not book.requests


def test_a_public_target_is_said_to_be_unprotected() -> None:
    release = release_sketch(TABLE, SCHEMA, **BITS, target="y", y_public=True)
    assert release.noise_model.ridges[5] < 1e-8 * release.noise_model.ridges.max()
    assert (release.noise_model.ridges[1:5] > 0).all()
    assert any("its cells are not protected" in note for note in release.certificate.notes)
    whole = release_sketch(TABLE, SCHEMA, **BITS, target="y")
    assert (whole.noise_model.ridges[1:] > 0).all()
    assert not any("protected" in note for note in whole.certificate.notes)


def test_a_lower_bound_is_taken_on_the_callers_word() -> None:
    release = release_sketch(TABLE, SCHEMA, **BITS, rows=40, lower_bound=15.0)
    assert release.noise_model.ridges[1] == pytest.approx(25)
    assert any("on the caller's word" in note for note in release.certificate.notes)
    assert release.certificate.parameters["lower_bound"] == 15.0


def test_a_query_is_part_of_the_bits_and_its_answer_is_printed() -> None:
    schema, many = Schema({"x": (-1, 1), "y": (0, 10)}), pa.concat_tables([TABLE] * 10)
    with tally() as spent:
        release = release_sketch(many, schema, **BITS, rows=50, least_eigenvalue_bits=0.2)
    assert spent.total() == MIDP(0.5)
    lower = release.certificate.parameters["lambda_lower"]
    assert isinstance(lower, float)
    assert 0 < lower < np.linalg.eigvalsh(second_moments(many, schema).cells())[0]
    needed = 50 / (2 ** (2 * 0.3) - 1)
    assert release.noise_model.ridges[1:] == pytest.approx(max(needed - lower, 0.0), abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"least_eigenvalue_bits": 0.1}])
def test_an_empty_table_is_a_table(options: dict[str, Any]) -> None:
    for rows in (TABLE.slice(0, 0), TABLE.slice(0, 1)):
        for rule in (3, "logarithmic", "full"):
            release = release_sketch(rows, SCHEMA, **BITS, rows=rule, **options)
            assert np.isfinite(release.values).all()
            assert release.regress("y").target == "y"


def test_seeded_noise_repeats_itself_and_taints_the_certificate() -> None:
    with simulation.door(3):
        first, second = (release_sketch(TABLE, SCHEMA, **BITS) for _ in range(2))
    assert np.array_equal(first.values, second.values)
    assert first.certificate.simulated
