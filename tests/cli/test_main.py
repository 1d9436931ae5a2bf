"""How a command line ends, whatever happens; and how little `--help` loads."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command

import dplinear
from dplinear.cli import app
from dplinear.cli.errors import MEANINGS, as_flags
from dplinear.cli.main import main
from pages.blocks import all_blocks, all_pages, read

ROOT = Path(__file__).parents[2]
PRIVATE_CELL = "patient-4711"


def test_help_loads_no_room_that_computes() -> None:
    code = (
        "import sys; from dplinear.__main__ import main; code = main(['--help']);"
        "heavy = [name for name in ('numpy', 'scipy', 'pyarrow', 'sklearn', 'matplotlib', 'jinja2',"
        " 'dplinear.schema', 'dplinear.curator', 'dplinear.ledger') if name in sys.modules];"
        "print(); print(code, heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
    assert not done.stderr


def test_help_tells_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for code, meaning in MEANINGS.items():
        assert f"{code:d} {meaning}" in shown
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"dplinear {dplinear.__version__}\n"


@pytest.mark.parametrize("width", ["60", "80"])
def test_help_fits_its_terminal(
    width: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.setenv("TERMINAL_WIDTH", width)
    for words in ([], ["release", "sketch"], ["ledger", "create"], ["regress"]):
        assert main([*words, "--help"]) == 0
        shown = capsys.readouterr().out
        assert max(map(len, shown.splitlines())) <= int(width)
        assert "\x1b" not in shown
        assert "bool>" not in shown  # --json takes no value


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("dplinear.planner.bits.compare_guarantees", fail)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError(PRIVATE_CELL), 1),
        (ValueError(f"could not convert {PRIVATE_CELL}"), 1),
        (KeyError(PRIVATE_CELL), 1),
        (KeyboardInterrupt(), 130),
        (typer.Abort(), 130),
        (OSError(13, "Permission denied", "page.html"), 5),
    ],
    ids=["runtime", "value", "key", "interrupt", "abort", "file"],
)
def test_no_traceback_and_no_value_escapes(
    error: BaseException,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    failing(monkeypatch, error)
    assert main(["plan", "--bits", "1"]) == code
    said = capsys.readouterr()
    assert said.err.startswith("Error: ")
    assert PRIVATE_CELL not in said.err + said.out
    assert "Traceback" not in said.err


def test_a_traceback_is_there_for_the_asking(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, RuntimeError(PRIVATE_CELL))
    with pytest.raises(RuntimeError, match=PRIVATE_CELL):
        main(["plan", "--bits", "1", "--debug"])


def test_a_reader_who_leaves_hears_no_complaint() -> None:
    code = "import sys; from dplinear.__main__ import main; sys.exit(main(['--help']))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 141
    assert not said


def test_a_terminal_without_greek_gets_what_it_can_show() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(sys, "stdout", out)
        assert main(["plan", "--bits", "0.5"]) == 0
    out.seek(0)
    assert "? = 2" in out.read()


def test_shells_can_complete(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_DPLINEAR_COMPLETE", "complete_bash")
    for words, expected in (
        ("dplinear rel", "release"),
        ("dplinear release moments --mechanism anal", "analyze_gauss"),
        ("dplinear release moments --eps", "--epsilon"),
        ("dplinear audit lap", "laplace"),
        ("dplinear reproduce edi", "ediger"),
    ):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        main([])
        assert capsys.readouterr().out.split() == [expected]


def test_hints_about_arguments_become_hints_about_flags() -> None:
    found = as_flags('write epsilon=1.0, delta=1e-6, or mechanism="sketch"; y_public=True.')
    assert found == "write --epsilon 1.0, --delta 1e-6, or --mechanism sketch; --y-public."
    assert as_flags("ask for ZCDP(ρ) or ApproxDP(ε, δ).") == (
        "ask for --rho or --epsilon and --delta."
    )
    assert as_flags("pass intercept=False.") == "pass --no-intercept."
    levels = "choose among 'smoker=yes', 'smoker=no'; it's epsilon=1."
    assert as_flags(levels) == "choose among 'smoker=yes', 'smoker=no'; it's --epsilon 1."
    call = "`dpl.plan(9, 1, guarantee=PureDP(1), explained=0.5)`"  # of Python stays Python
    assert as_flags(f"{call} or epsilon=1, {call}.") == f"{call} or --epsilon 1, {call}."


def written_lines() -> list[str]:
    """Return every command line in the blocks of our pages."""
    blocks = [block.text for page in all_pages() for block in all_blocks(read(page))]
    text = "".join(blocks).replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith("dplinear ")]


def test_every_line_on_our_pages_can_be_read() -> None:
    lines = written_lines()
    assert len(lines) >= 10
    for line in lines:
        words = shlex.split(line, comments=True)[1:]
        command: Any = get_command(app.app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        command.make_context(line, words)  # raises where a flag is none


def test_every_command_is_on_its_page() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    names = [info.callback.__name__ for info in app.app.registered_commands if info.callback]
    names += [str(group.name) for group in app.app.registered_groups]
    assert names
    for name in names:
        assert re.search(rf"`dplinear {name}\b", page), name
    for code, meaning in MEANINGS.items():
        assert f"| {code:d} | {meaning} |" in page
