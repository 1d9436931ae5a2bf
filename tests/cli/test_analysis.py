"""Commands of the analyst: what they say is what Python says."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dplinear as dpl
from dplinear.cli.main import main
from dplinear.noise import simulation

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("releases")
    draw = simulation.generator(1)
    age, bmi = draw.uniform(0, 100, 2000), draw.uniform(10, 60, 2000)
    charges = 100 * age + 200 * bmi + draw.normal(0, 2000, 2000)
    table = pa.table({"age": age, "bmi": bmi, "charges": charges})
    schema = dpl.Schema({"age": (0, 100), "bmi": (10, 60), "charges": (0, 60_000)})
    dpl.release_moments(table, schema, epsilon=4.0, delta=1e-6).save(place / "moments.json")
    covariance = dpl.release_covariance(
        table, schema, epsilon=4.0, delta=1e-6, mechanism="centred_covariance"
    )
    covariance.save(place / "covariance.json")
    dpl.release_rows(table, schema, k=2, epsilon=8.0, output=place / "rows.parquet")
    dpl.release_rows(table, schema, bits=1.0, output=place / "noisy.parquet")
    return place


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    said = capsys.readouterr()
    assert not said.err
    return json.loads(said.out)


@pytest.mark.parametrize("name", ["moments.json", "noisy.parquet"])
def test_regress(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(folder / name)
    words = ["regress", path, "--target", "charges", "--features", "age,bmi", "--ridge", "2"]
    found = told(capsys, *words, "--level", "0.9")
    release: Any = dpl.load(path)
    fit = release.regress("charges", ["age", "bmi"], ridge=2.0)
    assert found["coefficients"] == fit.coefficients.to_dict()
    assert found["intervals"]["of"]["age"]["low"] == fit.intervals(0.9).low[1]
    assert main(words) == 0
    assert capsys.readouterr().out == f"{fit.summary()}\n"
    several = told(capsys, "regress", path, "--target", "charges,bmi", "--features", "age")
    assert [each["target"] for each in several] == ["charges", "bmi"]


@pytest.mark.engine
def test_regress_by_formula(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, text = str(folder / "moments.json"), "charges ~ bmi + I(age - 40)"
    found = told(capsys, "regress", path, "--formula", text)
    fit = dpl.load(path, kind="moments").regress(text)
    assert found["coefficients"] == fit.coefficients.to_dict()
    assert list(found["intervals"]["of"]) == ["Intercept", "bmi", "I(age - 40)"]
    for beside in (["--target", "charges"], ["--features", "age"], ["--no-intercept"]):
        assert main(["regress", path, "--formula", text, *beside]) == 2
        assert f"--{beside[0].removeprefix('--no-').strip('-')}" in capsys.readouterr().err
    for wrong, word in (("charges", "~"), ("charges ~ log(age)", "log1p(age)")):
        assert main(["regress", path, "--formula", wrong]) == 2
        err = capsys.readouterr().err
        assert word in err
        assert "--formula" in err or word == "~"
        assert "--target" not in err


def test_join(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = str(folder / "moments.json")
    first = dpl.load(one, kind="moments")
    table = pa.table({"age": [40.0] * 50, "bmi": [30.0] * 50, "charges": [9_000.0] * 50})
    second = dpl.release_moments(table, first.schema, epsilon=4.0, delta=1e-6)
    two, written = str(tmp_path / "two.json"), tmp_path / "joined.json"
    second.save(two)
    expected = dpl.join([first, second], disjoint=False)
    words = ["join", one, two, "--output", str(written)]
    found = told(capsys, *words, "--no-disjoint")
    assert found["certificate"]["holds"]["epsilon"] == expected.certificate.holds.epsilon  # type: ignore[union-attr]
    assert np.array_equal(dpl.load(written, kind="moments").values, expected.values)
    assert main([*words, "--disjoint", "--overwrite"]) == 0
    assert "ε = 4" in capsys.readouterr().out
    for line, told_of in (
        (["join", one, two, "--output", str(written)], "share anybody"),
        (["join", one, two, "--disjoint"], "no file to write"),
        (["join", "--disjoint"], "names no releases"),
        ([*words, "--disjoint"], "not there yet"),
        (["join", one, str(folder / "noisy.parquet"), "--disjoint"], "no file to write"),
        (["join", one, one, *words[3:], "--disjoint", "--overwrite"], "different requests"),
        (["join", one, str(folder / "noisy.parquet"), *words[3:], "--disjoint"], "is for moments"),
    ):
        assert main(line) != 0
        assert told_of in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("kind", ["moments", "covariance"])
def test_pca(kind: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(folder / f"{kind}.json")
    found = told(capsys, "pca", path, "--k", "1", "--features", "age,bmi", "--scaled")
    release: Any = dpl.load(path)
    expected = release.pca(1, ["age", "bmi"], scaled=True)
    assert found["components"] == expected.components.tolist()
    assert found["mean"] == expected.mean.to_dict()
    assert main(["pca", path]) == 0
    assert "component 2" in capsys.readouterr().out


def test_a_covariance_needs_no_repair(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pca", str(folder / "covariance.json"), "--repair", "clip"]) == 2
    assert "--repair must be left out" in capsys.readouterr().err


def test_distances(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(folder / "rows.parquet")
    rows = dpl.load(path, kind="rows")
    found = told(capsys, "distances", path, "--i", "0,5", "--j", "1,2")
    assert [(each["i"], each["j"]) for each in found] == [(0, 1), (0, 2), (5, 1), (5, 2)]
    expected = rows.distances([0, 0, 5, 5], [1, 2, 1, 2])
    assert [each["squared"] for each in found] == expected.squared.tolist()
    near = told(capsys, "distances", path, "--i", "7", "--count", "3")
    assert [each["j"] for each in near] == np.ravel(rows.nearest(7, 3).indices).tolist()
    assert main(["distances", path, "--i", "7", "--count", "3", "--method", "chebyshev"]) == 0
    shown = capsys.readouterr().out
    assert "squared" in shown
    assert "The nearest were picked for small estimates" in shown
    assert main(["distances", path, "--i", "7", "--j", "1"]) == 0
    assert "picked" not in capsys.readouterr().out


def test_an_interval_that_holds_no_distance_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 1,000 rows under much noise some seem nearer than equal ones; the law says so."""
    path = str(tmp_path / "rows.parquet")
    schema = dpl.Schema({"age": (0, 100), "bmi": (10, 60)})
    table = pa.table({"age": [50.0] * 1000, "bmi": [30.0] * 1000})
    with simulation.door(1):
        dpl.release_rows(table, schema, k=2, epsilon=1.0, output=path)
    assert told(capsys, "distances", path, "--i", "0", "--count", "1")[0]["high"] == 0
    assert main(["distances", path, "--i", "0", "--count", "1"]) == 0
    shown = capsys.readouterr().out
    assert "0 to 0" not in shown
    assert "none: even equal rows rarely seem so near" in shown
    assert main(["distances", path, "--i", "0", "--j", "0"]) == 0
    shown = capsys.readouterr().out
    assert "0 to 0" in shown  # which is known
    assert "none" not in shown
