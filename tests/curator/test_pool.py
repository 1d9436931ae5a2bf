"""Threads, progress and the way out: Ctrl-C, failures, BLAS given back as it was."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from threadpoolctl import threadpool_info

from dplinear.curator import Schema, SourceError, second_moments
from dplinear.curator.sources.pool import run
from dplinear.curator.sources.source import Source
from dplinear.exact.blocks import Blocks
from dplinear.exact.gram import Moments

pytestmark = pytest.mark.heavy  # our own rules, whatever the versions

SCHEMA = Schema({"a": (-1, 1), "b": (0, 10)})


def blas_threads() -> list[int]:
    """Return the threads of NumPy's own BLAS, which multiplies the blocks."""
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    own = [pool["num_threads"] for pool in pools if "numpy" in pool["filepath"]]
    return own or [pool["num_threads"] for pool in pools]


def test_blas_has_one_thread_inside_and_its_own_again_outside() -> None:
    before = blas_threads()
    seen: list[list[int]] = []

    def task(_: Blocks[Any]) -> Iterator[int]:
        seen.append(blas_threads())
        second_moments(np.zeros((3, 2)), SCHEMA)  # a pass within a pass
        seen.append(blas_threads())
        yield 0

    run(Source([task, task]), Moments(SCHEMA), threads=2, progress=False)
    assert len(seen) == 4
    assert all(set(threads) == {1} for threads in seen)
    assert blas_threads() == before


def test_one_failing_task_stops_the_others_and_leaves_no_thread() -> None:
    started = threading.Event()

    def endless(_: Blocks[Any]) -> Iterator[int]:
        started.set()
        while True:
            time.sleep(0.001)
            yield 1

    def failing(_: Blocks[Any]) -> Iterator[int]:
        started.wait()
        yield 1
        raise SourceError("cut short")

    before = threading.active_count()
    with pytest.raises(SourceError, match="cut short"):
        run(Source([endless, failing]), Moments(SCHEMA), threads=2, progress=False)
    assert threading.active_count() == before


@pytest.mark.parametrize("room", [0, 1])
def test_a_system_without_threads_to_spare_ends_no_pass(
    room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def limited(self: threading.Thread) -> None:
        if len(started) == room:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    rows = np.linspace(-1, 1, 200_000).reshape(-1, 2)
    want = second_moments(rows, SCHEMA, threads=1, progress=False)
    monkeypatch.setattr(threading.Thread, "start", limited)
    assert second_moments(rows, SCHEMA, threads=3, progress=False) == want
    assert len(started) == room


@pytest.mark.parametrize("rows", [None, 200_000])
def test_progress_is_shown_when_asked_for(
    rows: int | None, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    table = pa.table({"a": np.zeros(200_000), "b": np.ones(200_000)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=10_000)
    data = table.to_reader() if rows is None else tmp_path / "t.parquet"
    moments = second_moments(data, SCHEMA, progress=True)
    assert moments.count == 200_000
    out, err = capfd.readouterr()
    assert not out
    assert "Reading rows" in err


SLOW = """
import time, pyarrow as pa
from dplinear.curator import Schema, second_moments
batch = pa.record_batch({"a": [0.0], "b": [1.0]})
def slow():
    for _ in range(200):
        time.sleep(0.01)
        yield batch
reader = pa.RecordBatchReader.from_batches(batch.schema, slow())
print(second_moments(reader, Schema({"a": (-1, 1), "b": (0, 10)})).count)
"""


def test_a_terminal_sees_a_bar_when_work_is_long() -> None:
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(slave)
    out, _ = process.communicate(timeout=60)
    shown = os.read(master, 65536)
    os.close(master)
    assert out == b"200\n"
    assert b"Reading rows" in shown


def test_nothing_is_shown_unasked(capfd: pytest.CaptureFixture[str]) -> None:
    second_moments(np.zeros((100_000, 2)), SCHEMA)
    assert capfd.readouterr() == ("", "")


# A job in the background inherits that Ctrl-C is ignored; this child listens to it again.
INTERRUPTED = """
import signal, sys, time, pyarrow as pa
signal.signal(signal.SIGINT, signal.default_int_handler)
from dplinear.curator import Schema, second_moments
batch = pa.record_batch({"a": [0.0], "b": [1.0]})
def slow():
    print("reading", flush=True)
    while True:
        time.sleep(0.01)
        yield batch
reader = pa.RecordBatchReader.from_batches(batch.schema, slow())
second_moments(reader, Schema({"a": (-1, 1), "b": (0, 10)}), threads=int(sys.argv[1]))
"""


@pytest.mark.parametrize("threads", [1, 2])
def test_ctrl_c_ends_at_once_and_writes_nothing(threads: int, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(threads)],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode != 0
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert list(tmp_path.iterdir()) == []
