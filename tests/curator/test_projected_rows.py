"""Projected rows through the gate: certificates, files, and what a second run returns."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dplinear
from dplinear.analyst.noise_models.rows import ProjectedRows
from dplinear.ledger import LedgerError, NotKeptWarning, Request, tally
from dplinear.mechanisms import EncryptedFile
from dplinear.mechanisms.rows.kept_projection import new_key
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, PureDP
from dplinear.schema import Schema
from refusals import refused

SCHEMA = Schema(x=(0, 10), y=(-1, 1), town=["a", "b", "c"])


def table(count: int = 300) -> dict[str, Any]:
    generator = simulation.generator(1)
    return {
        "x": generator.uniform(0, 10, count),
        "y": generator.uniform(-1, 1, count),
        "town": generator.choice(["a", "b", "c"], count).tolist(),
    }


def release(**options: Any) -> Any:
    import pyarrow as pa

    given: dict[str, Any] = {"mechanism": "projection", "k": 2, "epsilon": 1.0} | options
    return dplinear.release_rows(pa.table(table()), SCHEMA, **given)


def test_a_release_says_what_it_promises() -> None:
    released = release(neighbours="row_l2", delta=1e-6)
    assert released.certificate.holds == ApproxDP(1.0, 1e-6)
    assert released.certificate.numerics == "exact"
    assert released.names == ("z1", "z2")
    assert released.values.shape == (300, 2)
    assert isinstance(released.noise_model, ProjectedRows)
    assert released.noise_model.dimension == 5
    assert not released.certificate.simulated
    assert "attack_error_least_squares" in str(released.certificate)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_files_hold_rows_label_and_matrix(tmp_path: Path, suffix: str) -> None:
    output = tmp_path / f"rows{suffix}"
    released = release(label="town", public_projection=True, output=output)
    again = dplinear.load(output, kind="rows")
    assert again.certificate == released.certificate
    assert again.certificate.holds == PureDP(1.0)
    assert again.noise_model == released.noise_model
    assert isinstance(again.noise_model, ProjectedRows)
    assert again.noise_model.projection_matrix is not None
    assert again.noise_model.projection_matrix.shape == (2, 2)
    assert again.to_arrow().equals(released.to_arrow())
    assert set(again.to_arrow().column("town").to_pylist()) <= {"a", "b", "c", "other"}


def test_the_same_request_returns_the_same_rows_and_leaves_the_matrix(tmp_path: Path) -> None:
    kept = EncryptedFile(tmp_path / "kept.bin", new_key())
    options = {"output": tmp_path / "rows.parquet", "request": "one", "keep_projection": kept}
    first = release(**options)
    matrix = kept.read().integers
    second = release(**options)
    assert second.to_arrow().equals(first.to_arrow())
    assert (kept.read().integers == matrix).all()
    for file in tmp_path.iterdir():
        assert kept.key not in file.read_bytes()
        assert repr(kept.key).encode() not in file.read_bytes()
        assert hashlib.sha256(kept.key).hexdigest().encode() not in file.read_bytes()
    # Nor is it told where the curator keeps it.
    assert b"kept.bin" not in (tmp_path / "rows.parquet").read_bytes()


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_secret_matrix_that_is_used_again_shows_in_no_file(tmp_path: Path, suffix: str) -> None:
    """With two features and one number, ±1 leaves four matrices to guess."""
    kept, ledger = EncryptedFile(tmp_path / "kept.bin", new_key()), tmp_path / "budget.db"
    dplinear.open_ledger(ledger, create=True).declare("t", PureDP(9.0), neighbours="element")
    schema, rows = Schema(x=(0, 10), y=(-1, 1)), np.array([[1.0, 0.5], [2.0, -0.5]])

    def again(**options: Any) -> Any:
        return dplinear.release_rows(
            rows, schema, k=1, epsilon=1.0, projection="rademacher", ledger=ledger, dataset="t",
            **options,
        )  # fmt: skip

    first = again(keep_projection=kept)
    output = tmp_path / f"rows{suffix}"
    second = again(drawn=kept.read(), output=output, request="two")
    matrix = kept.read().integers
    digests = [
        hashlib.sha256(start + matrix.astype(kind).tobytes()).hexdigest().encode()
        for kind in ("<f8", "<i8", "<i4", "i1")
        for start in (b"", repr((np.dtype(kind).str, matrix.shape)).encode())
    ]
    for file in tmp_path.iterdir():
        assert not any(digest in file.read_bytes() for digest in digests), file.name
    assert second.head.options["drawn"][1].keys() == {"digits", "kind", "name"}
    assert "drawn" not in first.head.options
    replayed = again(drawn=kept.read(), request="two", output=output)
    assert replayed.to_arrow().equals(second.to_arrow())


@pytest.mark.parametrize("place", ["long", "nowhere"])
def test_a_matrix_that_could_not_be_kept_is_found_before_the_spend(
    tmp_path: Path, place: str
) -> None:
    path = tmp_path / ("k" * 240) if place == "long" else Path("/proc/kept.bin")
    with tally() as spent, refused("keep_projection", "release_rows"):
        release(keep_projection=EncryptedFile(path, new_key()))
    assert not spent
    assert not list(tmp_path.iterdir())


def test_rows_are_not_lost_with_a_matrix_that_gets_no_name(tmp_path: Path) -> None:
    file = tmp_path / "kept.bin"

    class Taken:
        def spend(self, _: Request) -> None:
            file.mkdir()

    kept = EncryptedFile(file, new_key())
    with pytest.warns(NotKeptWarning, match="kept.bin") as caught:
        released = release(keep_projection=kept, ledger=Taken(), output=tmp_path / "rows.parquet")
    assert len(released.to_arrow()) == 300
    (name,) = [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]
    assert name in str(caught[0].message)
    assert EncryptedFile(tmp_path / name, kept.key).read().k == 2


def test_a_release_that_fails_leaves_the_matrix_that_was_kept(tmp_path: Path) -> None:
    kept = EncryptedFile(tmp_path / "kept.bin", new_key())
    release(keep_projection=kept)
    before = Path(kept.path).read_bytes()

    class Closed:
        def spend(self, _: Request) -> None:
            raise LedgerError("No.")

    with pytest.raises(LedgerError, match="No"):
        release(keep_projection=kept, ledger=Closed())
    assert Path(kept.path).read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["kept.bin"]


def test_neither_matrix_nor_noise_is_drawn_twice() -> None:
    first, second = release(k=1), release(k=1)
    assert first.noise_model.variance != second.noise_model.variance  # of the matrix drawn
    assert not (first.values == second.values).any()


def test_seeded_releases_are_equal_and_say_so() -> None:
    with simulation.door(3):
        first = release()
    with simulation.door(3):
        second = release()
    assert (first.values == second.values).all()
    assert first.certificate.simulated


def test_distances_are_right_on_average() -> None:
    """The mean over 60 releases, within 5.5 standard errors: false-alarm rate 1e-6."""
    cells = np.array([table()["x"] / 5 - 1, table()["y"]])
    wanted = float(((cells[:, 0] - cells[:, 1]) ** 2).sum())
    schema, found = Schema(x=(0, 10), y=(-1, 1)), []
    rows = np.array([table()["x"][:2], table()["y"][:2]]).T
    for seed in range(60):
        with simulation.door(seed):
            released = dplinear.release_rows(
                rows, schema, mechanism="projection", k=3, epsilon=20.0, noise="laplace"
            )
        values = released.values
        gap = float(((values[0] - values[1]) ** 2).sum())
        assert isinstance(released.noise_model, ProjectedRows)
        found.append(gap - 2 * 3 * released.noise_model.variance)
    assert abs(np.mean(found) - wanted) < 5.5 * np.std(found) / math.sqrt(60)


@pytest.mark.parametrize("bad", [{"k": None}, {"bits": 1.0, "epsilon": None}, {"colour": 1}])
def test_arguments_are_refused_before_anything_is_read(bad: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        dplinear.release_rows(
            object(), SCHEMA, mechanism="projection", **({"k": 2, "epsilon": 1.0} | bad)
        )
