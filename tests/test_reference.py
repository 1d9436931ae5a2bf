"""The reference of the docs: every argument has words, every mechanism has a page."""

import dataclasses
import inspect
import tomllib
from typing import Any

import pytest

import dplinear
from docs_hooks import DOCS, hook
from dplinear.registry import catalogue, find, is_own

pytestmark = pytest.mark.heavy


def words() -> dict[str, Any]:
    return tomllib.loads((DOCS / "arguments.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(hook("argument_tables").documented()))
def test_every_argument_of_a_public_name_has_a_type_a_default_values_and_a_meaning(
    name: str,
) -> None:
    found = hook("argument_tables").arguments_of(name)
    taken = set(inspect.signature(getattr(dplinear, name)).parameters) - {"options"}
    assert taken <= {each.name for each in found}
    for each in found:
        assert all(dataclasses.astuple(each)), each
        assert "." not in each.type, each  # the name of a type, without its module
        assert each.meaning.endswith("."), each


def test_words_are_of_arguments_that_exist() -> None:
    tables = hook("argument_tables")
    told = words()
    mechanisms = told.pop("mechanisms")
    shared = set(told.pop("shared"))
    used: set[str] = set()
    for name in tables.documented():
        names = {each for each, _, _ in tables.parameters(tables.documented()[name])}
        assert set(told.pop(name, {})) <= names, name
        used |= names
    for kind in {find(each.name) for each in catalogue()}:
        assert kind is not None
        names = {field.name for field in dataclasses.fields(kind)}
        assert set(mechanisms.pop(kind.__name__, {})) <= names
        used |= names
    assert not told
    assert not mechanisms
    assert shared <= used


@pytest.mark.parametrize("name", sorted({each.name for each in catalogue()}))
def test_every_mechanism_has_a_page(name: str) -> None:
    pages = hook("mechanism_pages")
    kind = find(name)
    assert kind is not None
    uses = [each for each in catalogue() if each.name == name]
    page = pages.page(kind, uses)
    for part in ("released by", "guarantees and neighbours", "noise", "use it", "proof"):
        assert f"| {part} | " in page, part
    assert f"::: {uses[0].path}\n" in page
    (proof,) = {line for line in page.splitlines() if line.startswith("| proof")}
    assert (DOCS / "theory" / proof.partition("theory/")[2].partition(")")[0]).is_file()
    for option in pages.options(kind):
        assert all(dataclasses.astuple(option)), option
    assert is_own(kind)


def test_a_mechanism_nobody_wrote_about_has_a_page_too() -> None:
    pages = hook("mechanism_pages")

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Peculiar(find("analyze_gauss")):  # type: ignore[misc]  # a class from the registry
        """Noise of a peculiar kind."""

        name = "peculiar"
        amount: float = 2.5

    facts = dataclasses.replace(catalogue()[0], name="peculiar", summary="Noise of a kind.")
    page = pages.page(Peculiar, [facts])
    assert "| `amount` | float | `2.5` |" in page
    assert '`ZCDP`: "add_remove", "replace"' in page
    assert "`PureDP`" not in page
    assert "| proof |" not in page


def test_what_has_no_words_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = hook("argument_tables")

    def peculiar(amount: float) -> float:
        return amount

    monkeypatch.setattr(tables, "documented", lambda: {"peculiar": peculiar})
    with pytest.raises(KeyError, match="amount of peculiar"):
        tables.arguments_of("peculiar")


def test_the_table_of_a_class_stands_before_its_members() -> None:
    table = "<table>\n<thead>\n<tr>\n<th>argument</th></tr></table>"
    made = hook("argument_tables").on_page_content(
        '<h3 id="dplinear.schema.schema.Schema">Schema</h3><div class="doc doc-children">'
        f"members</div>{table}<h3 id='dplinear.other'>other</h3>"
    )
    assert made.index(table) < made.index("members")
    assert made.count(table) == 1
