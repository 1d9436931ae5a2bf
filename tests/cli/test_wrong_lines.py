"""Wrong command lines: one sentence, a hint where there is one, the right code, no traceback."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.main import get_command

import dplinear as dpl
from dplinear.cli.app import app
from dplinear.cli.main import main
from dplinear.privacy import ZCDP

COLUMNS = ["--column", "age 0 100", "--column", "smoker no,yes", "--column", "charges 0 60000"]
PRIVATE = ["--epsilon", "1", "--delta", "1e-6"]
OUT = ["--output", "new.json"]
PLAN = ["plan", "--expected-rows", "900", "--columns", "3", *PRIVATE]
RELEASE = ["release", "moments", "visits.parquet", *COLUMNS, *PRIVATE, *OUT]
COUNTED = ["--ledger", "budget.db", "--dataset", "visits"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table, releases of it, a ledger that is nearly spent, and files that are none of these."""
    place = tmp_path_factory.mktemp("lines")
    rows = [{"age": float(i), "smoker": "no", "charges": 9.0} for i in range(50)]
    table = pa.Table.from_pylist(rows)
    parquet.write_table(table, place / "visits.parquet")
    schema = dpl.Schema({"age": (0, 100), "smoker": ["no", "yes"], "charges": (0, 60_000)})
    dpl.release_moments(table, schema, epsilon=1.0, delta=1e-6).save(place / "moments.json")
    plain = dpl.Schema({"age": (0, 100), "charges": (0, 60_000)})
    dpl.release_rows(table, plain, k=2, epsilon=1.0, output=place / "rows.parquet")
    dpl.release_rows(table, plain, bits=1.0, output=place / "noisy.parquet")
    dpl.open_ledger(place / "budget.db", create=True).declare("visits", ZCDP(1e-3))
    (place / "damaged.json").write_text('{"format": "dplinear-release"}')
    (place / "broken.toml").write_text("epsilon = \n")
    (place / "strange.toml").write_text("epsilom = 1.0\n")
    (place / "flat.toml").write_text("columns = 3\n")
    (place / "pairs.toml").write_text('ledger = "password=secret host=h"\n')
    (place / "uncounted.toml").write_text('dataset = "visits"\n')
    (place / "notes.txt").write_text("no table")
    return place


# What the line is, its words, the exit code, and what the sentence or the hint must say.
LINES: list[tuple[str, list[str], int, str]] = [
    ("unknown-command", ["relase"], 2, "did you mean release?"),
    ("strange-command", ["xyzzy"], 2, "known are"),
    ("address-as-command", ["ledger", "postgresql://me:it's secret@h/db"], 2, "'postgresql://…'"),
    ("address-as-first-word", ["postgresql://me:secret@h/db"], 2, "'postgresql://…'"),
    ("address-and-more", ["ledger", "show", "b.db", "postgresql://me:(a secret@h"], 2, "ql://…'"),
    ("address-mistyped", ["ledger", "postgres:me:secret@h"], 2, "'postgres://…'"),
    ("address-as-flag", ["--postgresql://me:secret@h/db"], 2, "no flag --postgresql://…"),
    ("address-as-flag-mistyped", ["--postgres:me:secret@h"], 2, "no flag --postgres://…"),
    ("address-in-a-flag", ["plan", "--config=postgres:me:secret@h"], 2, "'postgres://…'"),
    (
        "address-as-release",
        ["report", "postgresql://h/db?password=a/secret"],
        5,
        "'postgresql://…'",
    ),
    ("address-as-settings", ["plan", "--config", "postgres://me:a/secret"], 2, "'postgres://…'"),
    (
        "address-as-table",
        ["release", "moments", "postgresql:/me:secret@h", *COLUMNS, *PRIVATE, *OUT],
        5,
        "Got 'postgresql://…'",
    ),
    (
        "address-without-slash",
        ["ledger", "show", "postgresql:/me:secret@h"],
        4,
        "Got 'postgresql://…'",
    ),
    ("address-without-colon", ["ledger", "show", "postgresql//me:secret@h"], 4, "user@host/data"),
    ("pairs", ["ledger", "show", "host=h password=secret"], 4, "postgresql://user@host/database"),
    (
        "pairs-of-a-new-ledger",
        ["ledger", "create", "user=me password='a secret'", "v", "--rho", "1"],
        4,
        "Got '…'",
    ),
    (
        "pairs-for-a-release",
        [*RELEASE, "--ledger", "host=h password=secret", "--dataset", "v"],
        4,
        "postgresql://user@host/database",
    ),
    (
        "pairs-in-settings",
        [*RELEASE, "--config", "pairs.toml", "--dataset", "v"],
        4,
        "postgresql://user@host/database",
    ),
    (
        "pairs-for-a-page",
        ["report", "moments.json", "--ledger=host=h password=secret", "--dataset", "v"],
        4,
        "postgresql://user@host/database",
    ),
    ("pairs-as-release", ["report", "host=h password=a/secret"], 5, "no file '…'"),
    ("pairs-as-command", ["ledger", "host=h password=secret"], 2, "no command '…'"),
    ("pairs-unquoted", ["ledger", "show", "b.db", "password=secret"], 2, "what to do with '…'"),
    ("unknown-release", ["release", "moment"], 2, "did you mean moments?"),
    ("no-release", ["release"], 2, "one of bounds, covariance, levels, mean"),
    ("no-ledger-command", ["ledger"], 2, "one of create, history, show, verify"),
    ("unknown-flag", [*RELEASE, "--epsilom", "1"], 2, "did you mean --epsilon?"),
    ("strange-flag", ["pca", "moments.json", "--xyzzy"], 2, "has no flag --xyzzy"),
    ("flag-of-another", ["regress", "moments.json", "--epsilon", "1"], 2, "no flag --epsilon"),
    ("no-value", ["release", "moments", "--epsilon"], 2, "--epsilon"),
    ("not-a-number", [*RELEASE, "--row-norm", "much"], 2, "--row-norm must be a number"),
    ("not-whole", [*RELEASE, "--threads", "1.5"], 2, "--threads must be a whole number"),
    ("extra-word", ["ledger", "show", "budget.db", "visits"], 2, "what to do with 'visits'"),
    ("missing-argument", ["ledger", "create", "budget.db"], 2, "needs DATASET"),
    ("no-table", ["release", "moments", *COLUMNS, *PRIVATE, *OUT], 2, "names no table"),
    ("no-output", ["release", "moments", "visits.parquet", *COLUMNS, *PRIVATE], 2, "--output"),
    ("no-columns", ["release", "moments", "visits.parquet", *PRIVATE, *OUT], 2, "--column"),
    ("no-privacy", ["release", "moments", "visits.parquet", *COLUMNS, *OUT], 2, "--epsilon 1"),
    ("two-guarantees", [*RELEASE, "--rho", "1"], 2, "One guarantee is enough"),
    (
        "half-a-guarantee",
        ["release", "moments", "visits.parquet", *COLUMNS, "--delta", "1e-6", *OUT],
        2,
        "add --epsilon",
    ),
    ("negative-epsilon", [*RELEASE, "--epsilon", "-1"], 2, "--epsilon must be"),
    ("large-delta", [*RELEASE, "--delta", "2"], 2, "--delta must be"),
    ("bare-column", [*RELEASE, "--column", "bmi"], 2, "has no bounds and no levels"),
    ("bounds-reversed", [*RELEASE, "--column", "bmi 60 10"], 2, "low below high"),
    ("wrong-neighbours", [*RELEASE, "--neighbours", "replaced"], 2, "did you mean 'replace'?"),
    (
        "wrong-mechanism",
        [*RELEASE, "--mechanism", "analyse_gauss"],
        2,
        "did you mean 'analyze_gauss'?",
    ),
    ("calibration", [*RELEASE, "--calibration", "paper"], 2, "--calibration"),
    (
        "never-pure",
        ["release", "moments", "visits.parquet", *COLUMNS, "--epsilon", "1", *OUT],
        2,
        "add --delta 1e-6",
    ),
    (
        "bits-of-a-row",
        ["release", "sketch", *RELEASE[2:4], "age 0 1", "--bits", "1", *OUT],
        2,
        "--mechanism mi_projection",
    ),
    ("option-of-another", [*RELEASE, "--degrees", "5"], 2, "--degrees must be left out"),
    ("no-such-table", ["release", "moments", "no.parquet", *RELEASE[3:]], 5, "No such file"),
    ("not-a-table", ["release", "moments", "notes.txt", *RELEASE[3:]], 5, "known format"),
    (
        "table-lacks-column",
        [*RELEASE, "--column", "bmi 10 60"],
        5,
        "'visits.parquet', which lacks 'bmi'",
    ),
    ("output-there", [*RELEASE, "--output", "moments.json"], 5, "--overwrite"),
    ("output-nowhere", [*RELEASE, "--output", "no/new.json"], 5, "The folder 'no'"),
    ("no-settings", [*RELEASE, "--config", "no.toml"], 5, "No such file"),
    ("settings-not-toml", [*RELEASE, "--config", "moments.json"], 2, "takes a .toml file"),
    ("settings-malformed", [*RELEASE, "--config", "broken.toml"], 2, "not well-formed TOML"),
    ("settings-unknown", [*RELEASE, "--config", "strange.toml"], 2, "did you mean epsilon"),
    ("settings-flat", [*RELEASE, "--config", "flat.toml"], 2, "must be a table"),
    ("no-schema-file", [*RELEASE, "--schema", "no.json"], 5, "existing file"),
    ("ledger-without-dataset", [*RELEASE, "--ledger", "budget.db"], 2, "--dataset"),
    ("dataset-without-ledger", [*RELEASE, "--dataset", "visits"], 2, "--dataset is for a ledger"),
    ("request-without-ledger", [*RELEASE, "--request", "one"], 2, "--request is for a ledger"),
    (
        "price-without-ledger",
        [*RELEASE, "--dataset", "visits", "--dry-run"],
        2,
        "add --ledger budget.db, or leave --dataset out",
    ),
    (
        "dataset-in-settings",
        [*RELEASE, "--config", "uncounted.toml"],
        2,
        "--dataset is for a ledger",
    ),
    (
        "page-without-ledger",
        ["report", "moments.json", "--dataset", "visits"],
        2,
        "--dataset is for a ledger",
    ),
    ("no-such-ledger", [*RELEASE, "--ledger", "no.db", "--dataset", "v"], 4, "no ledger 'no.db'"),
    (
        "ledger-elsewhere",
        [*RELEASE, "--ledger", "mysql://me:secret@host/db", "--dataset", "v"],
        4,
        "Got 'mysql://…'",
    ),
    (
        "dataset-without-budget",
        [*RELEASE, "--ledger", "budget.db", "--dataset", "rows"],
        4,
        "has no budget",
    ),
    ("budget-too-small", [*RELEASE, *COUNTED], 3, "This release needs"),
    ("dry-run-too-small", [*RELEASE, *COUNTED, "--dry-run"], 3, "would be refused"),
    (
        "ledger-cannot-count",
        [*RELEASE, *COUNTED, "--mechanism", "sketch"],
        4,
        "no theorem counts",
    ),
    ("model-without-target", ["release", "model", *RELEASE[2:]], 2, "what the model explains"),
    ("target-misspelt", ["release", "model", *RELEASE[2:], "--target", "charge"], 2, "'charges'"),
    ("no-release-file", ["regress", "no.json", "--target", "age"], 5, "no file 'no.json'"),
    ("release-damaged", ["regress", "damaged.json", "--target", "age"], 5, "parameter of load"),
    ("table-as-release", ["regress", "visits.parquet", "--target", "age"], 5, "never a table"),
    ("rows-wanted", ["distances", "moments.json", "--i", "0"], 5, "holds moments"),
    (
        "regression-of-projected-rows",
        ["regress", "rows.parquet", "--target", "age"],
        5,
        "holds projected rows, and this command is for moments, sketch, noisy rows or groups.",
    ),
    ("components-of-projected-rows", ["pca", "rows.parquet"], 5, "are for `dplinear distances`"),
    (
        "page-of-projected-rows-and-more",
        ["report", "rows.parquet", "--html", "--target", "age"],
        2,
        "projected rows is no ground for regressions",
    ),
    (
        "distances-of-noisy-rows",
        ["distances", "noisy.parquet", "--i", "0", "--j", "1"],
        5,
        "holds noisy rows, and this command is for projected rows.",
    ),
    ("regress-without-target", ["regress", "moments.json"], 2, "--target charges"),
    (
        "feature-misspelt",
        ["regress", "moments.json", "--target", "charges", "--features", "smokr"],
        2,
        "did you mean 'smoker'",
    ),
    ("too-many-components", ["pca", "moments.json", "--k", "9"], 2, "--k must be"),
    ("no-rows-named", ["distances", "rows.parquet", "--j", "1"], 2, "--i 0 --j 1,2"),
    ("no-such-row", ["distances", "rows.parquet", "--i", "0", "--j", "99"], 2, "there are 50"),
    ("place-not-whole", ["distances", "rows.parquet", "--i", "a", "--j", "1"], 2, "whole numbers"),
    ("audit-of-nothing", ["audit", "laplacian"], 2, "did you mean 'laplace'"),
    ("audit-without-runs", ["audit", "laplace", "--trials", "0"], 2, "--trials must be"),
    ("plan-without-rows", ["plan", "--columns", "3", *PRIVATE], 2, "--expected-rows 10000"),
    ("plan-with-rows-of-a-sketch", [*PLAN, "--rows", "9"], 2, "--expected-rows 10000"),
    ("plan-without-columns", ["plan", "--expected-rows", "3", *PRIVATE], 2, "--columns 8"),
    (
        "plan-for-what",
        ["plan", "--expected-rows", "9", "--columns", "2", *PRIVATE, "--learn", "trees"],
        2,
        "--learn must be",
    ),
    ("page-not-html", ["report", "moments.json", "--html", "--output", "a.pdf"], 2, ".html file"),
    ("report-of-nothing", ["report"], 2, "names no release"),
    ("too-many-bits", ["plan", "--bits", "9"], 2, "--bits must be"),
    (
        "column-twice",
        [*RELEASE, "--column", "age 5 90"],
        2,
        "The column 'age' is described twice",
    ),
    ("output-empty", [*RELEASE, "--output", ""], 2, "where the release is to go"),
    ("output-a-folder", [*RELEASE, "--output", "."], 5, "is a folder"),
    (
        "output-a-folder-over",
        [*RELEASE, "--output", ".", "--overwrite"],
        5,
        "a file in it, such as visits.moments.json",
    ),
    (
        "level-as-target",
        ["regress", "moments.json", "--target", "smoker"],
        2,
        "choose among 'smoker=yes', 'smoker=other'",
    ),
    (
        "option-named-to-its-others",
        ["release", "model", *RELEASE[2:], "--target", "charges", "--steps", "3"],
        2,
        "--steps must be left out",
    ),
    ("error-below-nothing", [*PLAN, "--error", "-1"], 2, "--error must be"),
    ("error-not-a-number", [*PLAN, "--error", "nan"], 2, "--error must be"),
    ("plan-page-unasked", [*PLAN, "--output", "plan.html"], 2, "add --html"),
    ("report-page-unasked", ["report", "moments.json", "--output", "a.html"], 2, "add --html"),
    ("runs-unasked", ["report", "moments.json", "--trials", "300"], 2, "add --audit"),
    ("picture-of-no-kind", ["audit", "laplace", "--plot", "a.doc"], 2, ".png, .svg or .pdf file"),
    ("row-below-0", ["distances", "rows.parquet", "--i", "-1", "--j", "1"], 2, "numbers from 0"),
    (
        "report-of-another-dataset",
        ["report", "moments.json", "--ledger", "budget.db", "--dataset", "rows"],
        4,
        "The dataset 'rows' has no budget",
    ),
    (
        "report-of-no-dataset",
        ["report", "moments.json", "--ledger", "budget.db"],
        2,
        "--dataset says whose",
    ),
    (
        "ledger-over-a-table",
        ["ledger", "create", "visits.parquet", "v", "--rho", "1"],
        4,
        "is there already, and is no ledger",
    ),
    ("ledger-a-folder", ["ledger", "create", ".", "v", "--rho", "1"], 4, "such as budget.db"),
    (
        "schema-not-toml",
        ["release", "moments", "visits.parquet", "--schema", "notes.txt", *PRIVATE, *OUT],
        2,
        "--schema takes a .toml or .json file",
    ),
    ("history-of-nothing", ["ledger", "history", "budget.db", "--dataset", "x"], 4, "has no line"),
]


@pytest.mark.parametrize(
    ("words", "code", "told"), [line[1:] for line in LINES], ids=[line[0] for line in LINES]
)
def test_a_wrong_line_is_told_in_a_sentence(
    words: list[str],
    code: int,
    told: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "2000")  # one line a sentence
    before = sorted(folder.iterdir())
    assert main(words) == code
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert lines[0].startswith("Error: ")
    assert lines[0].rstrip().endswith((".", ")", "'"))
    assert [line.partition(":")[0] for line in lines[1:]] in ([], ["Hint"])
    assert told in said.err
    assert "Traceback" not in said.err + said.out
    assert "secret" not in said.err
    assert not said.out or "--dry-run" in words
    assert sorted(folder.iterdir()) == before


def commands(of: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command with the words that call it."""
    below = getattr(of, "commands", {})
    if not below:
        yield path, of
    for name, each in below.items():
        yield from commands(each, *path, name)


def test_a_flag_without_its_value_hints_at_its_own_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "2000")
    asked = 0
    for path, command in commands(get_command(app)):
        flags = [each for each in command.params if each.param_type_name == "option"]
        for flag in (each.opts[0] for each in flags if not each.is_flag):
            assert main([*path, flag]) == 2
            called = f"dplinear {' '.join(path)}"
            said = capsys.readouterr().err
            assert f"Error: {called} needs a value after {flag}." in said
            assert f"Hint: `{called} --help` lists what there is." in said
            asked += 1
    assert asked > 100


def test_there_are_forty_of_them() -> None:
    assert len(LINES) >= 40
    assert len({name for name, *_ in LINES}) == len(LINES)


def test_scripts_get_errors_as_json(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for words, code in (([*RELEASE, *COUNTED], 3), (["relase"], 2)):
        assert main([*words, "--json"]) == code
        told = json.loads(capsys.readouterr().out)["error"]
        assert told["code"] == code
        assert told["sentence"].endswith(".")
