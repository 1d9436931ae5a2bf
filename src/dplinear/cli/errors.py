"""What went wrong, as one sentence, a hint and an exit code.

Sentences of the library quote public arguments only, so they are shown as they are. Anything else
that is raised may quote a row: of that only the kind is told, unless a traceback is asked for.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import Any

from dplinear.arguments import ArgumentError, is_url, listed, nearest, redact


class Code(IntEnum):
    """Exit codes: what a script can tell without reading a word."""

    DONE = 0
    UNEXPECTED = 1
    USAGE = 2
    BUDGET = 3
    LEDGER = 4
    FILE = 5
    BROKEN = 6
    INTERRUPTED = 130
    PIPE = 141


MEANINGS = {
    Code.DONE: "done",
    Code.UNEXPECTED: "an unexpected error, which is a fault of dplinear",
    Code.USAGE: "a wrong command, flag, value, schema or settings file",
    Code.BUDGET: "not enough privacy budget; nothing was read or spent",
    Code.LEDGER: "the ledger is missing, damaged, or cannot account for this release",
    Code.FILE: "a table, a release or an output cannot be read or written",
    Code.BROKEN: "an audit refuted a guarantee",
    Code.INTERRUPTED: "interrupted",
    Code.PIPE: "the reader of the output closed it",
}


@dataclass(frozen=True)
class Complaint:
    """What the user is told."""

    code: Code
    sentence: str
    hint: str = ""


class CommandError(Exception):
    """A command line that says too little or too much."""

    def __init__(self, sentence: str, hint: str = "", code: Code = Code.USAGE) -> None:
        super().__init__(sentence)
        self.complaint = Complaint(code, sentence, hint)


def veil(told: Complaint, words: Sequence[str]) -> Complaint:
    """Return what to tell without URLs of the command line, which may hold passwords.

    They may stand where a file was meant, of which errors name the last part.
    """
    sentence = told.sentence
    given = [part for word in words for part in (word.lstrip("-"), word.partition("=")[2])]
    for word in filter(is_url, given):
        sentence = sentence.replace(word, redact(word))
        for part in (str(Path(word)), Path(word).name):
            sentence = sentence.replace(f"'{part}'", f"'{redact(word)}'")
    return replace(told, sentence=sentence)


def like(word: str, known: Any) -> str:
    """Return a hint that names what was probably meant, or all there is."""
    options = [str(each) for each in known]
    close = nearest(word, options)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"known are {listed(options, 15)}." if options else ""


_NOTHING: Mapping[str, str] = {}
_FILES = {"data", "path", "output"}


def complaint_of(error: BaseException, named: Mapping[str, str] = _NOTHING) -> Complaint | None:
    """Return what to tell of an error that has words of ours; None for any other.

    `named` says what the command calls its arguments: by a flag, or as a word such as DATA.
    """
    if isinstance(error, CommandError):
        return error.complaint
    if isinstance(error, ArgumentError):
        sentence = _in_words_of(error, named)
        return Complaint(_argument_code(error), sentence, as_flags(_line(error.hint)))
    code = _code(error)
    if code is None:
        return None
    fact, _, hint = str(error).partition("\n\nHint: ")
    return Complaint(code, _line(fact), as_flags(_line(hint)))


def _in_words_of(error: ArgumentError, named: Mapping[str, str]) -> str:
    """Return the sentence of an error, about what the command line calls the argument."""
    if error.parameter not in named:
        return _line(error.sentence)
    nothing = error.got.partition(" ")[0] == "None"  # it was left out
    got = "" if nothing else f" Got {_line(error.got)}."
    return f"{named[error.parameter]} must be {_line(error.rule)}.{got}"


def _argument_code(error: ArgumentError) -> Code:
    if error.where == "open_ledger":
        return Code.LEDGER
    return Code.FILE if error.parameter in _FILES else Code.USAGE


def _code(error: BaseException) -> Code | None:
    """Return the code of an error of any other kind whose words are the library's own, or None."""
    from dplinear.analyst.releases.container import ReleaseError
    from dplinear.ledger.request import LedgerError
    from dplinear.privacy.compose import BudgetExceededError

    kinds: dict[type[BaseException], Code] = {
        BudgetExceededError: Code.BUDGET,
        LedgerError: Code.LEDGER,
        ReleaseError: Code.FILE,
    }
    found = next((code for kind, code in kinds.items() if isinstance(error, kind)), None)
    if found is not None:
        return found
    if type(error).__name__ == "SourceError":  # of the curator, which need not be loaded
        return Code.FILE
    if isinstance(error, ImportError):  # an extra, if it is in our words
        fact = str(error).partition("\n\nHint: ")[0]
        return Code.USAGE if fact.endswith(".") else None
    return None


def describe_unexpected(error: BaseException) -> Complaint:
    """Return what to tell of an error whose words may not be shown."""
    kind = type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        name = "" if error.filename is None else f" '{error.filename}'"
        return Complaint(Code.FILE, f"The file{name} cannot be used ({error.strerror}).")
    return Complaint(
        Code.UNEXPECTED,
        f"Something unexpected happened ({kind}); its words are withheld, as they may quote rows.",
        "run it again with --debug for the traceback, and look before you share it.",
    )


def describe_interrupt(error: BaseException) -> Complaint:
    """Return what to tell of a Ctrl-C."""
    told = with_budget(Complaint(Code.INTERRUPTED, "Interrupted."), error)
    if told.sentence == "Interrupted.":
        told = replace(told, sentence="Interrupted; what a ledger has recorded stays spent.")
    return told


def with_budget(told: Complaint, error: BaseException) -> Complaint:
    """Return what to tell with what the error says of the budget."""
    from dplinear.ledger.spent import spent_note

    note = spent_note(error)
    if note is None or note in told.sentence:
        return told
    return replace(told, sentence=f"{told.sentence} {note}")


def _line(text: str) -> str:
    return " ".join(text.split())


_GUARANTEES = {
    "ApproxDP": "--epsilon and --delta",
    "PureDP": "--epsilon",
    "ZCDP": "--rho",
    "GDP": "--mu",
    "MIDP": "--bits",
}
_KIND = re.compile(rf"\b({'|'.join(_GUARANTEES)})\b(\([^()]*\))?")
_ARGUMENT = re.compile(r"\b(?P<name>[a-z][a-z0-9_]*)=(\"(?P<text>[^\"]*)\"|(?P<word>[\w.-]*\w))")


def as_flags(hint: str) -> str:
    """Return a hint about Python arguments as one about flags of the same names.

    Calls of Python, between backquotes, stay as they are, and so do names between quotes: a level
    is a feature such as 'smoker=yes'.
    """
    words, *rest = re.split(r"(`[^`]*`|(?<!\w)'[^']*')", hint, maxsplit=1)
    said = _ARGUMENT.sub(_flag, _KIND.sub(lambda found: _GUARANTEES[found[1]], words))
    return f"{said}{rest[0]}{as_flags(rest[1])}" if rest else said


def _flag(found: re.Match[str]) -> str:
    name, value = found["name"].replace("_", "-"), found["text"] or found["word"]
    return {"True": f"--{name}", "False": f"--no-{name}"}.get(value, f"--{name} {value}")
