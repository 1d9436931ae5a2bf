"""The list of planted bugs is sound, and each of them is seen by the test that it names."""

import ast
from collections import Counter

import pytest

from planted.bugs import BUGS, Bug
from planted.runner import ROOT, caught, markdown, occurrences, run

pytestmark = pytest.mark.heavy

QUICK = ("root_of_two_lost", "delta_side_flipped")


def named(*names: str) -> list[Bug]:
    return [bug for bug in BUGS if bug.name in names]


def test_there_are_enough_of_them_and_none_is_there_twice() -> None:
    assert len(BUGS) >= 25
    for key in (lambda bug: bug.name, lambda bug: (bug.file, bug.good, bug.bad)):
        assert not [each for each, count in Counter(map(key, BUGS)).items() if count > 1]


def test_every_snippet_stands_once_and_leaves_python_behind() -> None:
    assert {bug.name: occurrences(bug) for bug in BUGS} == {bug.name: 1 for bug in BUGS}
    for bug in BUGS:
        assert bug.bad != bug.good
        text = (ROOT / "src" / "dplinear" / bug.file).read_text(encoding="utf-8")
        ast.parse(text.replace(bug.good, bug.bad))


def test_every_named_test_exists() -> None:
    for bug in BUGS:
        file, _, name = bug.test.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name.partition("[")[0] in functions, bug.test


def test_the_table_in_the_docs_is_that_of_the_list() -> None:
    page = (ROOT / "docs" / "planted-bugs.md").read_text(encoding="utf-8")
    assert "\n".join(markdown()) in page


@pytest.mark.parametrize("bug", named(*QUICK), ids=lambda bug: bug.name)
def test_a_few_bugs_are_seen(bug: Bug) -> None:
    assert caught(bug)


@pytest.mark.long
def test_without_a_bug_every_named_test_passes() -> None:
    done = run(None, sorted({bug.test for bug in BUGS}))
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.long
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_every_bug_is_seen(bug: Bug) -> None:
    assert caught(bug)
