"""`--by`: a release for each group, for one price; `--group` of regressions on them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import dplinear as dpl
from dplinear.cli.main import main
from dplinear.report import release_page

PRIVATE = ["--epsilon", "1", "--delta", "1e-6"]
COLUMNS = ["--column", "age 0 100", "--column", "charges 0 60000", "--column", "ward a,b,c"]
RELEASES = {
    "moments": [*COLUMNS, *PRIVATE],
    "model": [*COLUMNS, *PRIVATE, "--target", "charges"],
    "mean": [*COLUMNS, *PRIVATE],
    "covariance": [*COLUMNS, *PRIVATE],
}
HEADS = {
    "moments": "Means by ward",
    "model": "Coefficients by ward",
    "mean": "Means by ward",
    "covariance": "Spreads by ward",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"age": i % 90, "charges": 20.0 * i, "ward": "abx"[i % 3]} for i in range(2_000)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "visits.parquet")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("name", RELEASES)
def test_every_group_is_released_and_shown(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", name, "visits.parquet", *RELEASES[name], "--by", "ward"]
    assert main([*words, "--dry-run"]) == 0
    assert "4 by ward, all for one price" in capsys.readouterr().out
    assert main([*words, "--output", "new.json"]) == 0
    shown = capsys.readouterr().out
    assert f"4 groups by ward, each with a release of {name}" in shown
    groups = dpl.load("new.json", kind="groups")
    assert groups.levels == ("a", "b", "c", "other")
    page = release_page(groups)
    assert HEADS[name] in page
    assert main(["report", "new.json"]) == 0
    assert "4 groups by ward" in capsys.readouterr().out


def test_groups_are_listed_in_words_or_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", "moments", "visits.parquet", *PRIVATE]
    named = [*words, *COLUMNS, "--by", "ward=other; ward = a"]
    assert main([*named, "--dry-run"]) == 0
    assert "2 of 4 by ward, all for one price" in capsys.readouterr().out
    assert main([*named, "--output", "new.json"]) == 0
    assert "2 of 4 groups by ward" in capsys.readouterr().out
    groups = dpl.load("new.json", kind="groups")
    assert groups.levels == ("a", "other")
    assert "chosen in public" in release_page(groups)
    columns = '[columns]\nage = [0, 100]\ncharges = [0, 60000]\nward = ["a", "b", "c"]\n'
    chosen = ('by = {ward = ["a", "other"]}\n', 'by = [{ward = "a"}, {ward = "other"}]\n')
    for text in chosen:
        Path("release.toml").write_text(text + columns, encoding="utf-8")
        assert main([*words, "--config", "release.toml", "--dry-run"]) == 0
        assert "2 of 4 by ward, all for one price" in capsys.readouterr().out
    for wrong in ("ward=a, b", "ward=a, ward=b", "ward=a; ward=a", "ward=nobody"):
        assert main([*words, *COLUMNS, "--by", wrong, "--dry-run"]) != 0
        assert "by" in capsys.readouterr().err


def test_groups_of_several_columns_are_listed_one_by_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    more = [*COLUMNS, "--column", "old boolean"]
    words = ["release", "moments", "visits.parquet", *PRIVATE, *more]
    assert main([*words, "--by", "ward=a, old=yes; old=false, ward=b", "--dry-run"]) == 0
    assert "2 of 8 by ward, old, all for one price" in capsys.readouterr().out


def test_regressions_of_one_group_or_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["release", "moments", "visits.parquet", *RELEASES["moments"], "--by", "ward"]
    assert main([*words, "--output", "new.json"]) == 0
    capsys.readouterr()
    asked = ["regress", "new.json", "--target", "charges"]
    assert main([*asked, "--group", "a", "--json"]) == 0
    found: Any = json.loads(capsys.readouterr().out)
    assert found["group"] == "a"
    assert main([*asked, "--group", "nobody"]) != 0
    assert "no group of that name" in capsys.readouterr().err
    assert main([*words[:3], *COLUMNS[:4], *PRIVATE, "--output", "plain.json"]) == 0
    capsys.readouterr()
    assert main(["regress", "plain.json", "--target", "charges", "--group", "a"]) != 0
    assert "holds none" in capsys.readouterr().err
