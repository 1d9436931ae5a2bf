"""Ctrl-C after the spend: it is never lost, ends the command, and is told with the budget."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import dplinear as dpl
from dplinear.analyst.releases import outputs
from dplinear.cli.errors import (
    Code,
    complaint_of,
    describe_interrupt,
    describe_unexpected,
    with_budget,
)
from dplinear.cli.main import main
from dplinear.curator import SourceError
from dplinear.ledger import BudgetExceededError, LedgerError, Request
from dplinear.ledger.spent import note_spent, spent_note
from dplinear.noise import simulation
from dplinear.privacy import ZCDP
from dplinear.schema import Schema

SCHEMA = Schema(a=(0, 1), b=(0, 1))


def table(rows: int) -> pa.Table:
    values = simulation.generator(5).uniform(0, 1, (2, rows))
    return pa.table({"a": values[0], "b": values[1]})


# Nothing is imported after the spend

RELEASER = """
import json, sys
import dplinear as dpl
from dplinear.ledger.sqlite import ledger as sqlite
from dplinear.privacy import ZCDP

gate, data, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
seen, spent = [], []

class Finder:
    def find_spec(self, name, path=None, target=None):
        if spent:
            seen.append(name)

def spend(self, request):
    spend.own(self, request)
    spent.append(request)

sys.meta_path.insert(0, Finder())
spend.own, sqlite.SqliteLedger.spend = sqlite.SqliteLedger.spend, spend
schema = dpl.Schema(a=(0, 1), b=(0, 1))
if data.endswith(".npy"):
    import numpy
    data = numpy.load(data)
given = [data] if gate == "suggest_bounds" else [data, schema]
if gate == "release_model":
    given.append("b")
promise = {"rho": 0.1} if gate == "suggest_bounds" else {"guarantee": ZCDP(0.1)}
getattr(dpl, gate)(*given, **promise, **options, ledger="budget.db", dataset="t")
assert spent
print(json.dumps(seen))
"""

GATES = {
    "release_moments": {},
    "release_model": {},
    "release_mean": {},
    "release_covariance": {},
    "suggest_bounds": {"columns": ["a", "b"]},
    "release_rows": {"mechanism": "projection", "k": 1, "output": "out.csv"},
}
KINDS = {
    "parquet": pq.write_table,
    "csv": pyarrow.csv.write_csv,
    "feather": pyarrow.feather.write_feather,
    "npy": lambda rows, path: np.save(path, np.column_stack([rows["a"], rows["b"]])),
}


@pytest.mark.heavy
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_imported_after_the_spend(gate: str, kind: str, tmp_path: Path) -> None:
    import json

    data = tmp_path / f"t.{kind}"
    KINDS[kind](table(200), str(data))
    relation = "element" if gate == "release_rows" else "add_remove"
    dpl.open_ledger(tmp_path / "budget.db", create=True).declare(
        "t", ZCDP(1.0), neighbours=relation
    )
    done = subprocess.run(
        [sys.executable, "-c", RELEASER, gate, data.name, json.dumps(GATES[gate])],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


# Real signals

COMMAND = """
import sys
from dplinear.cli.main import main
from dplinear.ledger.sqlite import ledger as sqlite

def spend(self, request):
    found = spend.own(self, request)
    print("spent", flush=True)
    return found

spend.own, sqlite.SqliteLedger.spend = sqlite.SqliteLedger.spend, spend
sys.exit(main(sys.argv[1:]))
"""


def interrupted_run(folder: Path, words: list[str], moment: float) -> tuple[int, str]:
    """Return how a command ends that gets a SIGINT some seconds after its spend."""
    child = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "spent\n"
    threading.Event().wait(moment)
    child.send_signal(signal.SIGINT)
    try:
        _, told = child.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        pytest.fail("the command hangs")
    return child.returncode, told


def check_moments(name: str, folder: Path, moments: list[float]) -> None:
    pq.write_table(table(500_000), folder / "t.parquet")
    relation = "element" if name == "rows" else "add_remove"
    ledger = dpl.open_ledger(folder / "budget.db", create=True)
    ledger.declare("t", ZCDP(100.0), neighbours=relation)
    own = ["--mechanism", "projection", "--k", "2"] if name == "rows" else []
    ends = []
    for number, moment in enumerate(moments):
        output = f"out{number}.{'parquet' if name == 'rows' else 'json'}"
        words = ["release", name, "t.parquet", "--column", "a 0 1", "--column", "b 0 1", *own]
        words += ["--rho", "0.1", "--ledger", "budget.db", "--dataset", "t", "--output", output]
        code, told = interrupted_run(folder, words, moment)
        ends.append(code)
        # The last moments of the interpreter, when all is done, know nothing but the signal.
        assert code in {0, 130, -signal.SIGINT}, told
        if code == 130:
            assert "spent" in told
        else:
            assert dpl.load(folder / output).certificate.request
    assert 130 in ends
    assert not [file for file in folder.iterdir() if file.name.endswith(".tmp")]


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["moments", "rows"])
def test_a_signal_after_the_spend_ends_the_command(name: str, tmp_path: Path) -> None:
    """Signals that come when the release is made may find a command that ends well."""
    check_moments(name, tmp_path, [0.0, 0.05, 0.2])


@pytest.mark.long
@pytest.mark.parametrize("name", ["moments", "rows"])
def test_a_signal_at_any_moment_after_the_spend_ends_the_command(name: str, tmp_path: Path) -> None:
    check_moments(name, tmp_path, [0.01 * number for number in range(40)])


RELEASES = {
    "out.json": ["moments"],
    "out.parquet": ["rows", "--mechanism", "projection", "--k", "1"],
    "out.csv": ["rows", "--mechanism", "projection", "--k", "1"],
}


@pytest.mark.parametrize("output", RELEASES)
@pytest.mark.parametrize("step", ["complete", "place", "claim", "settle"])
def test_a_signal_between_the_last_byte_and_the_name_loses_nothing(
    step: str, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that is whole gets its name, and nothing is left beside it."""
    pq.write_table(table(100), tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    gate, *own_words = RELEASES[output]
    ledger = dpl.open_ledger("budget.db", create=True)
    ledger.declare("t", ZCDP(100.0), neighbours="element" if gate == "rows" else "add_remove")
    own = getattr(outputs.Output, step)
    signals: list[int] = []

    def interrupted(self: outputs.Output) -> None:
        if step == "complete":  # a signal comes to it when all is written
            own(self)
        if not signals:
            signals.append(1)
            raise KeyboardInterrupt
        if step != "complete":
            own(self)

    monkeypatch.setattr(outputs.Output, step, interrupted)
    words = ["release", gate, "t.parquet", "--column", "a 0 1", "--column", "b 0 1", *own_words]
    words += ["--rho", "0.1", "--ledger", "budget.db", "--dataset", "t", "--output", output]
    code = main(words)
    if not signals:  # rows of CSV have two files, which are named one by one
        assert (step, output) == ("place", "out.csv")
        assert code == Code.DONE
    else:
        assert code == Code.INTERRUPTED
    assert dpl.load(output).certificate.dataset == "t"
    assert not [file for file in tmp_path.iterdir() if ".tmp" in file.name]


# One place says that it is spent


class Raising:
    def __init__(self, error: BaseException, *, spent: bool) -> None:
        self.error, self.spent = error, spent

    def spend(self, _: Request) -> None:
        if not self.spent:
            raise self.error


class Broken:
    """A table that raises once it is read."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        def batches() -> Any:
            yield table(3).to_batches()[0]
            raise self.error

        reader = pa.RecordBatchReader.from_batches(table(1).schema, batches())
        return reader.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("gate", [dpl.release_moments, dpl.release_rows])
def test_an_error_after_the_spend_says_that_it_is_spent(gate: Any) -> None:
    options = {"bits": 0.5} if gate is dpl.release_rows else {"guarantee": ZCDP(0.1)}
    books = Raising(ValueError(), spent=True)
    broken = Broken(ValueError("Alice is 42"))
    with pytest.raises(SourceError) as caught:
        gate(broken, SCHEMA, ledger=books, dataset="t", request="mine", **options)
    assert "'mine' is spent" in str(spent_note(caught.value))
    told = complaint_of(caught.value)
    assert told is not None
    told = with_budget(told, caught.value)
    assert "'mine' is spent" in told.sentence
    assert "Alice" not in told.sentence + told.hint


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), OSError(5, "x")])
def test_whatever_is_raised_after_the_spend_says_so(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raising(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("dplinear.curator.gates.measured.Moments", raising)
    with pytest.raises(type(error)) as caught:
        dpl.release_moments(
            table(5), SCHEMA, guarantee=ZCDP(0.1), ledger=Raising(error, spent=True), request="mine"
        )
    assert "'mine' is spent" in str(spent_note(caught.value))
    sentence = (
        describe_interrupt(error)
        if isinstance(error, KeyboardInterrupt)
        else describe_unexpected(error)
    ).sentence
    assert "spent" in with_budget(describe_interrupt(error), error).sentence + sentence


@pytest.mark.parametrize(
    ("error", "word"),
    [
        (LedgerError("No."), None),
        (BudgetExceededError("No."), None),
        (KeyboardInterrupt(), "may be spent"),
        (OSError(5, "x"), "may be spent"),
    ],
)
def test_an_error_of_the_ledger_says_what_is_known(error: BaseException, word: str | None) -> None:
    with pytest.raises(type(error)) as caught:
        dpl.release_moments(
            table(5), SCHEMA, guarantee=ZCDP(0.1), ledger=Raising(error, spent=False), request="me"
        )
    note = spent_note(caught.value)
    assert note is None if word is None else word in str(note)


def test_notes_of_others_are_not_shown() -> None:
    error = ValueError("x")
    error.add_note("Alice is 42")
    assert spent_note(error) is None
    note_spent(error, "mine")
    note_spent(error, "another")
    assert "Alice" not in with_budget(describe_unexpected(error), error).sentence
    assert "another" not in str(spent_note(error))
    outer = RuntimeError()
    outer.__cause__ = error
    assert spent_note(outer) == spent_note(error)
