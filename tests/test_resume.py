"""A long run that was interrupted goes on, and one of other files starts anew."""

from pathlib import Path

import pytest

from resume import digest, passed

pytest_plugins = ["pytester"]
_CASES = """
import pytest

@pytest.mark.parametrize("k", range(4))
def test_a(k):
    assert k != 2

def test_b():
    pytest.skip("not here")
"""
_CONFTEST = """
import pathlib, sys
sys.path.insert(0, {tests!r})
import resume
resume.FOLDER = pathlib.Path({folder!r})

def pytest_addoption(parser):
    parser.addoption("--resume", action="store_true")

def pytest_configure(config):
    resume.install(config)
"""


@pytest.mark.heavy
@pytest.mark.parametrize("workers", ["0", "2"])
def test_only_what_has_not_passed_runs_again(pytester: pytest.Pytester, workers: str) -> None:
    folder = pytester.path / "passed"
    tests = str(Path(__file__).parent)
    pytester.makeconftest(_CONFTEST.format(tests=tests, folder=str(folder)))
    pytester.makepyfile(_CASES)
    arguments = ("--resume", "-n", workers, "-p", "no:cacheprovider")
    first = pytester.runpytest_subprocess(*arguments)
    first.assert_outcomes(passed=3, failed=1, skipped=1)
    (record,) = folder.iterdir()
    assert len(passed(record)) == 3
    again = pytester.runpytest_subprocess(*arguments)
    again.assert_outcomes(failed=1, skipped=1, deselected=0 if workers == "2" else 3)
    pytester.runpytest_subprocess("-n", workers).assert_outcomes(passed=3, failed=1, skipped=1)


def test_other_files_have_another_record(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "a.py"
    file.write_text("1", encoding="utf-8")
    first = digest(tmp_path)
    (tmp_path / "src" / "__pycache__").mkdir()
    (tmp_path / "src" / "__pycache__" / "a.pyc").write_text("2", encoding="utf-8")
    assert digest(tmp_path) == first
    file.rename(tmp_path / "src" / "b.py")
    assert digest(tmp_path) != first
    file.write_text("2", encoding="utf-8")
    assert digest(tmp_path) != first


def test_a_record_that_broke_off_counts_whole_lines_alone(tmp_path: Path) -> None:
    record = tmp_path / "record.txt"
    assert passed(record) == set()
    record.write_text("1.0\ttests/a.py::test_b[1 2]\n12", encoding="utf-8")
    assert passed(record) == {"tests/a.py::test_b[1 2]"}
