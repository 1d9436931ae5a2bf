"""What reaches a terminal: no byte that it would obey, whoever named the file or the column."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.main import get_command

from dplinear.arguments import describe, printable, rejection
from dplinear.cli import output, settings
from dplinear.cli.app import app
from dplinear.cli.errors import Code
from dplinear.cli.main import main

ODD = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\u202egnp.",
    "\u2066x\u2069",
    "a\x08\x08b",
    "\x7f",
]
OBEYED = {chr(code) for code in (*range(32), *range(0x7F, 0xA0))} - {"\n"} | set(
    "\u202e\u2066\u2069"
)


def assert_harmless(text: str) -> None:
    assert not OBEYED & set(text), ascii(text)


@pytest.mark.parametrize("odd", ODD)
def test_texts_are_spelled_out(odd: str) -> None:
    assert_harmless(printable(odd))
    assert_harmless(describe(odd))
    assert_harmless(describe([odd]))
    assert_harmless(str(rejection("x", "f", "short", Path(odd))))


def test_letters_of_the_world_stay() -> None:
    for text in ("ε ≤ δ", "naïve", "日本語", "نیم‌فاصله", "👩‍🔬", "a\nb", "x = 1"):
        assert printable(text) == text
    assert printable("a\tb") == "a    b"
    assert printable("\ud800") == "\\ud800"


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("terminal", [False, True])
def test_every_door_is_harmless(
    odd: str, terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("NO_COLOR", "1")  # whose own marks are not to be mistaken
    from rich.text import Text

    output.say(odd, Text(odd), output.table((odd,), [(odd,)], title=odd))
    output.say(output.facts([(odd, odd)], title=odd))
    output.caution(odd, odd)
    output.tell({odd: [odd]})
    seen = capsys.readouterr()
    for text in (seen.out, seen.err):
        for mark in ("\x1b[1m", "\x1b[0m", "\x1b[1;33m", "\x1b[33m", "\x1b[2m", "\x1b[3m"):
            text = text.replace(mark, "")  # noqa: PLW2901 - rich's own
        assert_harmless(text)
    assert json.loads(seen.out[seen.out.rindex("{") :]) == {odd: [odd]}


@pytest.mark.parametrize("odd", [each for each in ODD if "/" not in each])
def test_names_in_command_lines_are_harmless(
    odd: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({odd: [0.5]}), f"{odd}.parquet")
    (tmp_path / f"{odd}.toml").write_text(f"{odd} = 1\n", encoding="utf-8")
    (tmp_path / f"{odd}.json").write_text("{}", encoding="utf-8")
    private = ["--epsilon", "1", "--delta", "1e-6"]
    for words in (
        [odd],
        ["report", f"{odd}.json"],
        ["report", odd],
        ["regress", f"{odd}.parquet", "--target", odd],
        ["release", "moments", f"{odd}.parquet", "--column", "a 0 1", *private, "--output", "o"],
        ["release", "moments", f"{odd}.parquet", "--column", f"{odd} 0 1", *private],
        ["release", "moments", f"{odd}.csv", "--column", "a 0 1", *private, "--output", f"{odd}/o"],
        ["release", "moments", "--config", f"{odd}.toml"],
        ["ledger", "show", odd],
        ["plan", f"--{odd}"],
    ):
        for more in ([], ["--json"]):
            assert main([*words, *more]) != Code.DONE
            seen = capsys.readouterr()
            assert_harmless(seen.out)
            assert_harmless(seen.err)


# Yes and no in files of settings


def _flags(command: Any) -> set[str]:
    found = {each.name for each in command.params if getattr(each, "is_flag", False)}
    for below in getattr(command, "commands", {}).values():
        found |= _flags(below)
    return found


def test_the_booleans_of_files_are_the_flags_there_are() -> None:
    never = {"json_", "dry_run", "markdown", "quick", "install_completion", "show_completion"}
    command: Any = get_command(app)
    assert _flags(command) - never - {"help", "version", "debug", "list_"} == settings.BOOLEANS


@pytest.mark.parametrize("value", ['"no"', '"false"', '"yes"', "0", "1", "[]", '""'])
def test_text_is_no_truth_value(
    value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"a": [0.5]}), "t.parquet")
    Path("o.json").write_bytes(b"precious")
    lines = 'data = "t.parquet"\nepsilon = 1\ndelta = 1e-6\noutput = "o.json"\n'
    Path("r.toml").write_text(
        f"{lines}overwrite = {value}\n[columns]\na = [0, 1]\n", encoding="utf-8"
    )
    assert main(["release", "moments", "--config", "r.toml"]) == Code.USAGE
    assert "'overwrite'" in capsys.readouterr().err
    assert Path("o.json").read_bytes() == b"precious"


@pytest.mark.parametrize("name", sorted(settings.BOOLEANS))
def test_every_boolean_is_held_to_it(name: str, tmp_path: Path) -> None:
    file = tmp_path / "r.toml"
    given = {"config": str(file), name: None}
    file.write_text(f'{name} = "no"\n', encoding="utf-8")
    with pytest.raises(Exception, match=f"'{name}'.* must be true or false"):
        settings.merge_settings(given)
    for value in (True, False):
        file.write_text(f"{name} = {str(value).lower()}\n", encoding="utf-8")
        assert settings.merge_settings(given) == {name: value}
