"""Every block of our pages runs, and prints what its page shows."""

import re
from pathlib import Path
from typing import Any

import pytest

import dplinear as dpl
from dplinear.schema.columns import Numeric

from .blocks import BY_ITSELF, WITH_SERVICES, pages, read, steps
from .outputs import folded, same
from .runner import furnish, run
from .writing import differences


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the tables that all pages speak of."""
    furnish(tmp_path)
    return tmp_path


@pytest.mark.heavy
@pytest.mark.parametrize("page", sorted({*pages()} - {*BY_ITSELF} - WITH_SERVICES))
def test_a_page_runs_and_prints_what_it_shows(page: str, folder: Path) -> None:
    told = differences(page, run(page, folder))
    assert not told, f"{told}\n\nTo write the real output: python -m tests.pages --write {page}"


@pytest.mark.engine
@pytest.mark.long
@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.usefixtures("spark")
def test_the_page_on_spark_runs(folder: Path) -> None:
    assert not differences("docs/how-to/spark.md", run("docs/how-to/spark.md", folder))


@pytest.mark.engine
def test_the_page_on_a_ledger_on_a_server_runs(
    postgres: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPLINEAR_LEDGER", postgres.url("of_the_page"))
    page = "docs/how-to/postgres-ledger.md"
    assert not differences(page, run(page, folder))


@pytest.mark.heavy
def test_the_reports_that_a_page_speaks_of_have_its_sections(folder: Path) -> None:
    page = "docs/how-to/reports.md"
    run(page, folder)
    heads = re.findall(r"^\| ([A-Z][\w ]+) \|", read(page), re.MULTILINE)
    assert len(heads) == 7
    for name in ("visits.html", "full.html"):
        found = set(re.findall(r"<h2[^>]*>([^<:]+)", (folder / name).read_text(encoding="utf-8")))
        # A release that a ledger counts, with exact noise, has nothing to warn of.
        missing = [head for head in heads if not any(each.startswith(head) for each in found)]
        assert missing == ["Before you rely on it"], name
    for name in ("visits.moments.html", "plan.html", "sliders.html"):
        assert "<script>" in (folder / name).read_text(encoding="utf-8")


@pytest.mark.heavy
def test_the_methods_paragraph_of_the_tutorial_says_what_was_released(folder: Path) -> None:
    page = "docs/tutorial.md"
    run(page, folder)
    (said,) = re.findall(r"^> (.+)$", read(page), re.MULTILINE)
    moments = dpl.load(folder / "demo" / "january.json", kind="moments")
    certificate, columns = moments.certificate, moments.schema.declared
    spent, *_ = dpl.open_ledger(folder / "demo" / "stays.db").status()
    assert certificate.holds == dpl.ApproxDP(1.0, 1e-6)
    assert "(ε = 1, δ = 10⁻⁶)" in said
    assert certificate.rows_per_unit == 1
    assert "count as one row in total" in said
    assert certificate.mechanism == "analyze_gauss"
    assert f"dplinear {certificate.version}." in said
    assert "(12%;" in str(moments.regress("charges").summary())
    assert "about 12% " in said
    for name, words in (("age", "age"), ("bmi", "body-mass index"), ("charges", "charges")):
        column = columns[name]
        assert isinstance(column, Numeric)
        assert f"{words} {int(column.low):,} to {int(column.high):,}" in said
    assert spent.budget.guarantee == dpl.ZCDP(0.07)
    assert "a total privacy budget of ρ = 0.07 " in said


PAGE = """
1. A step, indented:

    ```sh
    dplinear plan   # exit code 2
    ```

    ```text
    Error
    ```

```toml title="release.toml"
epsilon = 1
```
Words between.
```text
no output
```
```python
print(1)
```
"""


def test_blocks_are_found_with_their_outputs() -> None:
    command, file, code = steps(PAGE)
    assert (command.code.language, command.code.line) == ("sh", 4)
    assert command.code.text == "dplinear plan   # exit code 2\n"
    assert command.shown is not None
    assert command.shown.text == "Error\n"
    assert (file.code.title, file.shown) == ("release.toml", None)
    assert (code.code.text, code.shown) == ("print(1)\n", None)


@pytest.mark.parametrize(
    ("shown", "real", "equal"),
    [
        ("slope 1,234 of 5", "slope  1,235 of 5", True),
        ("slope 1,234 of 5", "slope 1,244 of 5", False),
        ("slope 2.51e+10", "slope 2.52e+10", True),
        ("slope 0.15", "slope 0.16", False),
        ("exit code 3", "exit code 4", False),
        ("slope 1.5", "slope -1.5", False),
        ("slope 1.5", "slopes 1.5", False),
        ("δ = 1e-06", "δ = 1e-05", False),
        ("──── 3", "─────── 3", True),
        ("made 2026-01-02 03:04:05", "made 2027-11-12 13:14:15", True),
        ("one\n…\nfour", "one\ntwo\nthree\nfour", True),
        ("one\n…\nfour", "one\ntwo\nthree", False),
        ("…", "", True),
        ("one", "one\ntwo", False),
    ],
)
def test_outputs_are_compared(shown: str, real: str, equal: bool) -> None:
    assert same(shown.splitlines(), real.splitlines()) is equal


def test_a_fold_stays_where_it_was() -> None:
    real = ["1", "2", "3", "4", "5"]
    assert folded(real, ["a", "…", "b", "c"]) == ["1", "…", "4", "5"]
    assert folded(real, ["a", "…"]) == ["1", "…"]
    assert folded(real, ["a", "b"]) == real


@pytest.mark.parametrize("page", sorted(BY_ITSELF))
def test_pages_that_others_run_are_named_by_them(page: str) -> None:
    assert page.removeprefix("docs/") in read(BY_ITSELF[page])
