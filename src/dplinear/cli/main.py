"""Running a command line: an exit code, and never a traceback that was not asked for."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, TextIO

from dplinear.arguments import printable
from dplinear.cli.errors import (
    Code,
    complaint_of,
    describe_interrupt,
    describe_unexpected,
    veil,
    with_budget,
)


def main(words: Sequence[str] | None = None) -> int:
    """Run the words of a command line, by default the process's own; return its exit code."""
    given = list(sys.argv[1:] if words is None else words)
    debug = "--debug" in given
    given = [word for word in given if word != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # not a stream of our own
            stream.reconfigure(errors="replace")  # type: ignore[union-attr] # a terminal without ε
    try:
        code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        return _let_go(sys.stdout)
    except SystemExit as stop:  # as completion scripts end, and rich when its reader leaves
        if isinstance(stop.__context__, BrokenPipeError):
            return _let_go(sys.stdout)
        return stop.code if isinstance(stop.code, int) else Code.DONE
    except BaseException as error:
        if debug:
            raise
        return _complain(error, given, json="--json" in given)
    return _complain(KeyboardInterrupt(), given, json=False) if code == Code.INTERRUPTED else code


def _run(given: list[str]) -> int:
    words = given or ["--help"]
    code = _command()(words, prog_name="dplinear", standalone_mode=False)
    return code if isinstance(code, int) else Code.DONE


@cache
def _command() -> Callable[..., object]:
    from typer.main import get_command

    from dplinear.cli.app import app

    made: Callable[..., object] = get_command(app)
    _without_types(made)
    return made


def _without_types(command: Any) -> None:
    """Take `<bool>` off the help of flags that have no value, which some releases of typer show."""
    from typer import Context

    for parameter in (*command.params, command.get_help_option(Context(command))):
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    for below in getattr(command, "commands", {}).values():
        _without_types(below)


def _called(given: Sequence[str]) -> tuple[str, Any]:
    """Return the command that the words of a line call, as far as they name one, and its words."""
    command: Any = _command()
    path = ["dplinear"]
    for word in given:
        below = getattr(command, "commands", {}).get(word)
        if below is None:
            break
        command = below
        path.append(word)
    return " ".join(path), command


def _named(given: Sequence[str]) -> dict[str, str]:
    """Return the names that a command has for its arguments: --flag, or a word such as DATA."""
    return {
        parameter.name: str(parameter.metavar or parameter.name).rstrip(".")
        if parameter.param_type_name == "argument"
        else parameter.opts[0]
        for parameter in _called(given)[1].params
    }


def _complain(error: BaseException, given: Sequence[str], *, json: bool) -> int:
    from dplinear.cli import usage

    if usage.is_abort(error):
        told = describe_interrupt(error)
    elif usage.is_usage(error):
        told = usage.complaint_of(error, _called(given)[0])
    else:
        told = complaint_of(error, _named(given)) or describe_unexpected(error)
        told = with_budget(told, error)
    told = veil(told, given)
    from rich.text import Text

    from dplinear.cli import output

    shown = output.console(stderr=True)
    with suppress(BrokenPipeError):
        shown.print(Text.assemble(("Error: ", "bold red"), printable(told.sentence)))
        if told.hint:
            shown.print(Text.assemble(("Hint: ", "bold"), printable(told.hint)))
    if json:
        content = {"code": int(told.code), "sentence": told.sentence, "hint": told.hint}
        with suppress(BrokenPipeError):
            output.tell({"error": content})
            sys.stdout.flush()
    return told.code


def _let_go(stream: TextIO) -> int:
    """Send what is left in a stream's buffer nowhere, so that the interpreter ends in silence."""
    with suppress(OSError, ValueError):  # a stream without a file, in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return Code.PIPE
