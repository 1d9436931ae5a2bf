"""The tool that plants mistakes: each kind is planted, one at a time, and taken out again."""

import ast
import types

import pytest

from mutation import live, outcomes, rooms, table
from mutation.operators import OPERATORS, mutants

SOURCE = '''"""A module."""

LIMIT = 3


def scaled(values: list[float], by: float = 2.0) -> list[float]:
    """Return them."""
    if not values or by < 0:
        raise ValueError("must be something")
    found = []
    for value in values:
        if value == LIMIT:
            continue
        found.append(min(value, 9.5) * by)
    return sorted(found, reverse=True)


def kind(value: int) -> str:
    return "even" if value % 2 == 0 else pair(value, 1)


def pair(first: int, second: int) -> str:
    return f"{first} of {second}"
'''


def test_every_kind_of_change_is_made_once_at_a_time_and_undone() -> None:
    tree = ast.parse(SOURCE)
    whole = ast.dump(tree)
    seen = []
    for mutant in mutants("src/toy.py", tree):
        assert ast.dump(tree) != whole
        compile(tree, "toy", "exec")
        seen.append(mutant)
    assert ast.dump(tree) == whole
    assert {mutant.operator for mutant in seen} == set(OPERATORS)
    assert len({mutant.key for mutant in seen}) == len(seen)
    assert {mutant.unit for mutant in seen} == {"", "scaled", "kind", "pair"}
    changes = [mutant.change for mutant in seen]
    assert "min → max" in changes
    assert "value == LIMIT → value != LIMIT" in changes
    assert not any("must be" in change and "pass" not in change for change in changes)
    assert [mutant.default for mutant in seen if mutant.change == "2.0 → 4.0"] == [True]
    (loop,) = (mutant for mutant in seen if mutant.operator == "jump")
    assert SOURCE.splitlines()[loop.first - 1].strip() == "continue"


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("min → max", [19.0, 19.0]),
        ("2.0 → 4.0", [8.0, 4.0]),
        ("continue → break", [4.0, 2.0]),
        ("not values → values", None),
    ],
)
def test_a_living_function_is_changed(
    change: str, wanted: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = types.ModuleType("toy")
    exec(SOURCE, vars(toy))
    monkeypatch.setattr(live.importlib, "import_module", lambda _: toy)  # type: ignore[attr-defined]
    called_elsewhere = toy.scaled
    assert called_elsewhere([1.0, 2.0]) == [4.0, 2.0]
    tree = ast.parse(SOURCE)
    for mutant in mutants("src/toy.py", tree):
        if mutant.change == change:
            live.swap(mutant, tree)
    if wanted is None:
        with pytest.raises(ValueError, match="something"):
            called_elsewhere([1.0, 2.0])
    else:
        assert called_elsewhere([1.0, 2.0]) == wanted


def test_shares_have_exact_intervals() -> None:
    # The ends of 0 of n and n of n have closed forms; those of 9 of 10 are in every table.
    assert table.share(20, 20) == f"100.0% ({0.025 ** (1 / 20):.1%} to 100.0%)"
    assert table.share(0, 20) == f"0.0% (0.0% to {1 - 0.025 ** (1 / 20):.1%})"
    assert table.share(9, 10) == "90.0% (55.5% to 99.7%)"


def test_what_is_held_out_is_not_among_what_was_looked_at() -> None:
    for room, parts in rooms.HELD_OUT.items():
        assert set(parts) <= set(range(1, rooms.PARTS + 1)) - set(rooms.TRIED[room])


def test_the_page_is_made_of_what_is_kept() -> None:
    """If not, sources have changed, or it was written by hand: run python -m mutation table."""
    text, _ = table.page(outcomes.kept())
    assert text == table.PAGE.read_text()
