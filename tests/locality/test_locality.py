"""Locality, as a contract of every source: one odd row changes no other row, and no word.

For a base table and a neighbour of it (one row changed, added or removed in any odd way), the
encoded integers of all other rows are the same, bit for bit, and so are errors, warnings, log
records, what is printed, shapes and files. `python -m tests.locality` prints what comes of more
pairs; each finding comes with the command that repeats it.

In `make test` the pairs are those of the day, so that every day tries others; `LOCALITY_RUN` names
a day's once more. `make test-long` tries a hundred thousand.
"""

import datetime as dt
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from fuzz.dice import Dice
from fuzz.judge import Outcome
from services import lacking, library

from .canonical import meaning
from .columns import PLAIN
from .exceptions import ARRAY, EXEMPTIONS, excused
from .judge import Seen, apart
from .odd_cells import BROKEN, COUNT, LINES, NUMBERS, OBJECTS, TEXTS
from .pairs import Demands, Pair, Table, group_of
from .runs import HEADER, Counts, counted
from .sources import sources

FEW, MANY = 40, 100_000
RUN = int(os.environ.get("LOCALITY_RUN", dt.datetime.now(dt.UTC).date().toordinal()))
_SHARES = sum(source.share for source in sources().values())


def _marked(name: str) -> object:
    needs = sources()[name].needs
    marks = [pytest.mark.engine] if needs else []
    if needs in {"dask", "pyspark"}:
        marks.append(pytest.mark.heavy)
    return pytest.param(name, marks=marks)


def _tried(name: str, pairs: int, run: int) -> Counts:
    source = sources()[name]
    if source.needs is not None:
        library(source.needs)
    if source.needs == "pyspark" and shutil.which("java") is None:
        lacking("Java, which Spark runs on", "Run make services.")
    return counted(source, max(1, round(pairs * source.share)), run)


@pytest.mark.parametrize("name", [_marked(name) for name in sources()])
def test_one_odd_row_changes_no_other_row(name: str) -> None:
    counts = _tried(name, FEW, RUN)
    assert not counts.wrong, f"\npairs of LOCALITY_RUN={RUN}\n{HEADER}\n{counts}"


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("name", list(sources()))
def test_a_hundred_thousand_odd_rows_change_no_other_row(name: str) -> None:
    source, pairs = sources()[name], MANY / _SHARES + 1
    counts = _tried(name, round(pairs), RUN)
    print(f"\n{HEADER}\n{counts}")  # noqa: T201 - what was refused and excused is to be seen
    assert not counts.wrong, f"\npairs of LOCALITY_RUN={RUN}\n{HEADER}\n{counts}"
    if counts.pairs >= 400:  # of fewer, one base table's fate is a large share
        assert counts.refused <= source.refused * (counts.pairs + counts.refused)
        assert counts.left_out <= source.excused * counts.pairs


def test_all_sources_together_are_a_hundred_thousand_pairs() -> None:
    pairs = round(MANY / _SHARES + 1)
    assert sum(max(1, round(pairs * source.share)) for source in sources().values()) >= MANY


def test_there_are_more_than_a_hundred_odd_cells() -> None:
    assert len(TEXTS) + len(BROKEN) >= 100
    assert COUNT == len(TEXTS) + len(BROKEN) + len(NUMBERS) + len(OBJECTS) >= 200
    assert all(line.count('"') % 2 == 0 for line in LINES.values())


def test_a_seed_is_a_pair() -> None:
    one, again = (group_of(7, Demands(kinds=("text",)), 25) for _ in range(2))
    assert repr((one.base, one.pairs)) == repr((again.base, again.pairs))
    assert {pair.how for pair in one.pairs} == {"change", "add", "remove"}


def _pair(how: str) -> Pair:
    columns = (PLAIN["a"],)
    base = Table(columns, ((0.1,), (0.2,), (0.3,)), 0)
    rows = {"change": base.rows, "add": (*base.rows, (0.4,)), "remove": base.rows[:2]}
    return Pair(base, Table(columns, rows[how], 0), 3 if how == "add" else 2, how, "")


def _seen(rows: list[int], **said: object) -> Seen:
    return Seen(Outcome(np.array(rows, np.int64)[:, None], **said), ())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("how", "rows", "alike"),
    [
        ("change", [1, 2, 9], True),
        ("change", [1, 9, 3], False),
        ("change", [2, 1, 9], False),
        ("change", [1, 2], False),
        ("add", [1, 2, 3, 9], True),
        ("add", [1, 2, 4, 9], False),
        ("add", [1, 2, 3], False),
        ("add", [1, 2, 3, 9, 9], False),
        ("remove", [1, 2], True),
        ("remove", [1, 3], False),
    ],
)
def test_the_judge_compares_all_rows_but_one(how: str, rows: list[int], alike: bool) -> None:
    assert (apart(_seen([1, 2, 3]), _seen(rows), _pair(how)) is None) == alike


def test_the_judge_compares_words_and_files() -> None:
    pair, base = _pair("change"), _seen([1, 2, 3])
    assert apart(base, _seen([1, 2, 3], warned=(("UserWarning", "x"),)), pair)
    assert apart(base, _seen([1, 2, 3], logged=("root INFO x",)), pair)
    assert apart(base, _seen([1, 2, 3], logged=("fsspec DEBUG x",)), pair) is None
    assert apart(base, _seen([1, 2, 3], logged=("dplinear DEBUG x",)), pair)
    reconnected = ("root INFO Exception while sending command.",)
    assert apart(base, _seen([1, 2, 3], logged=reconnected), pair) is None
    assert apart(base, _seen([1, 2, 3], printed="x"), pair)
    assert apart(base, _seen([1, 2, 3], error=("ValueError", "x")), pair)
    assert apart(base, Seen(base.outcome, ("left behind",)), pair)


def test_the_judge_compares_rows_without_an_order() -> None:
    base = _seen([1, 2, 3])
    for rows, alike in (([3, 2, 1], True), ([3, 1, 9], True), ([9, 9, 1], False)):
        found = apart(base, _seen(rows), _pair("change"), ordered=False)
        assert (found is None) == alike


@pytest.mark.parametrize(
    "cells",
    [
        ("02139", 2139, 2139.0, b"2139", "2139.0", np.int64(2139)),
        ("true", True, "True", np.bool_(True), 1, "yes"),
        ("2020-01-01", dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        (None, float("nan"), np.datetime64("NaT"), np.ma.masked),
        ("08:30:00", dt.time(8, 30)),
    ],
)
def test_the_oracle_knows_what_cells_stand_for(cells: tuple[object, ...]) -> None:
    assert len({meaning(cell) for cell in cells}) == 1


@pytest.mark.parametrize(
    ("source", "cell", "name"),
    [
        ("fit_numpy_inferred", 1 + 0j, ARRAY.name),
        ("fit_numpy_inferred", np.datetime64("2020-01-01"), ARRAY.name),
        ("fit_numpy_inferred", 0.5, None),
        ("fit_numpy_inferred", "text", None),
        ("fit_numpy_objects", 1 + 0j, None),  # whose dtype follows no cell
    ],
)
def test_only_a_dtype_that_is_refused_excuses_an_array(
    source: str, cell: object, name: str | None
) -> None:
    columns = (PLAIN["a"],)
    base, other = Table(columns, ((0.1,),), 0), Table(columns, ((cell,),), 0)
    pair, chosen = Pair(base, other, 0, "change", ""), sources()[source]
    found = excused(chosen, pair, lambda table: chosen.hold(table, Dice(1), Path()))
    assert found == name


def test_the_exemptions_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "locality.md").read_text(encoding="utf-8")
    for exemption in EXEMPTIONS:
        assert f"**{exemption.name}**" in page
