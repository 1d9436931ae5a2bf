"""Wrong words on a command line, in sentences that are the same for all releases of typer.

Its releases keep the classes of these errors in different places, so they are known by name.
"""

import re
from typing import Any

import typer

from dplinear.arguments import nearest
from dplinear.cli.errors import Code, Complaint, like

# Which may hold a password, and any mark in it.
_URL = re.compile(r"(://|(?<=['( ]postgres)(:|//)|(?<=['( ]postgresql)(:|//)).*", re.IGNORECASE)
_PAIRS = re.compile(r"(?<=['\"(])[^'\"(]*password\s*=.*", re.IGNORECASE)


def _kinds(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def is_usage(error: BaseException) -> bool:
    """Return whether the words of the command line were at fault."""
    return "ClickException" in _kinds(error)


def is_abort(error: BaseException) -> bool:
    """Return whether somebody pressed Ctrl-C."""
    return isinstance(error, KeyboardInterrupt | typer.Abort)


def complaint_of(error: Any, called: str) -> Complaint:
    """Return what to tell of it; `called` is the command, which not every error knows."""
    words = _PAIRS.sub("…", _URL.sub("://…", " ".join(str(error.format_message()).split())))
    context = getattr(error, "ctx", None)
    path = called if context is None else context.command_path
    more = f"`{path} --help` lists what there is."
    known = sorted(getattr(getattr(context, "command", None), "commands", {}))
    sentence, hint = f"{words.rstrip('.')}.", more
    if hasattr(error, "option_name") and hasattr(error, "possibilities"):
        close = nearest(error.option_name, sorted(error.possibilities or ()))
        sentence = f"{path} has no flag {error.option_name}."
        hint = f"did you mean {' or '.join(close)}?" if close else more
    elif words.startswith("No such command"):
        quoted = words.removeprefix("No such command ")  # in either kind of quotes
        name = quoted[1:].partition(quoted[:1])[0]
        sentence, hint = f"{path} has no command '{name}'.", like(name, known)
    elif words.startswith("Missing command"):
        sentence, hint = f"{path} needs a command.", f"one of {', '.join(known)}."
    elif words.startswith("Missing"):
        sentence = f"{path} needs {_parameter_name(error)}."
    elif words.endswith("requires an argument."):
        sentence = f"{path} needs a value after {error.option_name}."
    elif words.startswith("Got unexpected extra"):
        extra = words.rpartition("(")[2].rstrip(")")
        sentence = f"{path} does not know what to do with '{extra}'."
    elif words.startswith("Invalid value for") and _number(words):
        sentence = f"The value of {_parameter_name(error)} must be {_number(words)}."
    return Complaint(Code.USAGE, sentence, hint)


def _parameter_name(error: Any) -> str:
    """Return the flag or the argument that an error is about."""
    parameter = error.param
    return str(parameter.metavar or parameter.name) if _positional(parameter) else parameter.opts[0]


def _positional(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _number(words: str) -> str:
    if "integer" in words:
        return "a whole number"
    return "a number" if "float" in words or "number" in words else ""
