"""Every case of a large suite has its turn, and none is lost between `test` and `test-long`."""

from pathlib import Path
from typing import Any

from rotation import DAYS, rotate


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid, self.marks = nodeid, 0

    def add_marker(self, _: Any) -> None:
        self.marks += 1


def test_every_case_has_its_turn_once_in_so_many_days() -> None:
    for file, days in DAYS.items():
        for case in ("test_a", "test_b[1]", "test_b[two words]"):
            items: list[Any] = [Item(f"tests/{file}::{case}") for _ in range(days)]
            for day, item in enumerate(items):
                rotate([item], today=740_000 + day)
            assert sum(not item.marks for item in items) == 1


def test_other_files_run_every_day() -> None:
    item: Any = Item("tests/privacy/test_profiles.py::test_a")
    rotate([item])
    assert not item.marks


def test_the_suites_are_there() -> None:
    assert all((Path(__file__).parent / file).is_file() for file in DAYS)
