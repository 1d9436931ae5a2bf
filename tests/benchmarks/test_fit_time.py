"""The harness of fit times: turns, medians, and the verdict on given times."""

import time
from functools import partial

import pytest

from benchmarks import fit_time
from benchmarks.fit_time import ALONE, PASS, PLAIN, PRIVATE

pytestmark = pytest.mark.heavy


def test_calls_take_turns_and_medians_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    called = []
    lasting = {"one": iter([9.0, 1.0, 2.0]), "two": iter([3.0, 5.0, 90.0])}

    def call(name: str) -> None:
        called.append(name)
        clock[0] += next(lasting[name])

    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    times = fit_time.in_turns({name: partial(call, name) for name in lasting}, 3)
    assert called == ["one", "two"] * 3
    assert times == {"one": 2.0, "two": 5.0}


@pytest.mark.parametrize(("private", "code", "word"), [(5.9, 0, "met"), (6.1, 1, "MISSED")])
def test_three_times_scikit_learn_is_the_most(
    private: float, code: int, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {PRIVATE: private, PLAIN: 2.0, ALONE: 1.0, PASS: 0.5}
    assert fit_time.report(times) == code
    shown = capsys.readouterr().out
    assert f"{private / 2:.2f}, at most 3: {word}" in shown
    assert all(name in shown for name in times)


def test_a_tiny_run_prints_all_times(capsys: pytest.CaptureFixture[str]) -> None:
    fit_time.main(["--rows", "30000", "--columns", "3", "--repeats", "1"])
    shown = capsys.readouterr().out
    assert shown.startswith("30,000 x 3, median of 1")
    assert len(shown.splitlines()) == 6
