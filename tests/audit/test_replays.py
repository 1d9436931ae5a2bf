"""Declared sensitivities against replayed neighbours, of every source."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dplinear.audit import replays
from dplinear.audit.holders import HOLDERS
from dplinear.audit.replays import ADAPTIVE, Replay, main, pairs, replay
from dplinear.audit.row_replays import sizes
from dplinear.exact import mapped_sums, residual_sums
from dplinear.privacy import Neighbours

pytestmark = pytest.mark.heavy

PLAIN = [holder.name for holder in HOLDERS if holder.needs is None]
FRAMES = [holder.name for holder in HOLDERS if holder.needs is not None and not holder.slow]


def _long(name: str) -> Any:
    """A source that another test replays too (tests/contracts/test_sources.py)."""
    return pytest.param(name, marks=pytest.mark.long)


def test_a_row_more_or_less_and_a_row_for_another() -> None:
    for relation, gap in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 0)):
        for one, other in pairs(relation, 5, 1):
            assert len(one) - len(other) == gap
            assert np.array_equal(one[:-1], other[: len(one) - 1], equal_nan=True)


def test_an_array_keeps_what_is_declared_and_reaches_it() -> None:
    found = list(replay(["array"], 3))
    assert [result.mechanism for result in found[: 1 + len(ADAPTIVE)]] == [
        replays.MOMENTS,
        *ADAPTIVE,
    ]
    assert {"learners by gradients", "projection", "additive_noise"} < {r.mechanism for r in found}
    assert not any(result.broken for result in found)
    assert min(result.ratio for result in found) > 0.7  # rows at the bounds move most sums fully


@pytest.mark.parametrize("source", [_long(name) for name in PLAIN[1:]])
def test_other_sources_are_as_far_apart(source: str) -> None:
    kept = {(one.mechanism, one.neighbours): one.seen for one in replay(["array"], 2)}
    for result in replay([source], 2):
        assert not result.broken
        assert result.seen == kept[result.mechanism, result.neighbours]


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("source", FRAMES)
def test_frames_are_as_far_apart(source: str) -> None:
    test_other_sources_are_as_far_apart(source)


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("source", [holder.name for holder in HOLDERS if holder.slow])
def test_engines_keep_what_is_declared(source: str, request: pytest.FixtureRequest) -> None:
    if source == "spark":
        request.getfixturevalue("spark")
    assert not any(result.broken for result in replay([source], 3))


@pytest.mark.parametrize("name", [replays.MOMENTS, *ADAPTIVE])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.floats(), min_size=3, max_size=3), st.integers(0, 1))
def test_no_row_at_all_breaks_a_promise(name: str, row: list[float], place: int) -> None:
    relation = replays.RELATIONS[place]
    table = np.zeros((4, 3))
    longer = np.vstack((table, row))
    other = table if relation is Neighbours.ADD_REMOVE else np.vstack((table, np.ones(3)))
    tables = [(longer, other)]
    if name == replays.MOMENTS:
        assert not replays._moments(HOLDERS[0], relation, tables, Path()).broken
    else:
        assert not _broken(relation, tables, name, _asked(name, relation))


@cache
def _asked(name: str, relation: Neighbours) -> Any:
    """What a run of a method asked for, which is long to find."""
    return replays._record_sums(ADAPTIVE[name], relation, 1)


def _broken(
    relation: Neighbours, tables: Any, name: str = "whitened_descent", asked: Any = None
) -> bool:
    asked = asked or replays._record_sums(ADAPTIVE[name], relation, 1)
    return replays._sums(name, asked, HOLDERS[0], relation, tables, Path()).broken


def test_a_missing_clip_and_a_lost_factor_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = pairs(Neighbours.REPLACE, 8, 1)
    assert not _broken(Neighbours.REPLACE, tables)
    with monkeypatch.context() as patch:
        patch.setattr(mapped_sums, "shorten", lambda rows, _: np.rint(rows))
        assert _broken(Neighbours.REPLACE, tables)
    with monkeypatch.context() as patch:
        patch.setattr(residual_sums.Gradient, "replaced", 1)
        assert _broken(Neighbours.REPLACE, tables)


def test_one_step_too_far_is_seen_where_floats_do_not_tell() -> None:
    declared, seen = sizes(10**40, 10**40 + 1, 1e-9)
    assert Replay("a", "b", "c", "d", declared, seen, 1).broken
    declared, seen = sizes(10**40, 10**40, 1e-9)
    assert not Replay("a", "b", "c", "d", declared, seen, 1).broken


def test_what_replays_nothing_is_refused() -> None:
    for line, word in ((["arry"], "sources"), (["array", "--pairs", "1"], "count")):
        with pytest.raises(ValueError, match=f"The '{word}' parameter of replay"):
            main(line)


def test_the_table_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(replays, "ADAPTIVE", {})
    assert main(["array", "--pairs", "2"]) == 0
    assert "| second moments | array | add_remove | XᵀX |" in capsys.readouterr().out
    assert main(["array", "sparse", "--pairs", "2", "--together"]) == 0
    assert "| second moments | array, sparse | replace | XᵀX |" in capsys.readouterr().out
    nothing = Replay("a", "b", "c", "d", 0.0, 0.0, 1)
    assert nothing.ratio == 0
    assert not nothing.broken
