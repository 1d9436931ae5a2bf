"""Checks of public arguments, with one error sentence for the whole library.

Each check returns the value it accepts, as the plain Python type the callers compute with, and
otherwise raises an `ArgumentError`: the parameter, the rule, what came, and a hint where there is
one. The sentence is made of them where it is shown, with the hint on a line of its own. The values
quoted are arguments, which are public; nothing here sees a row.
"""

import difflib
import math
import numbers
import re
import unicodedata
from collections.abc import Collection, Iterable
from fractions import Fraction
from typing import Any, Self

from dplinear.tracebacks import PlainError

Real = int | float | Fraction
# Mistyped ones too, and those that lost a slash on their way through a path, as text or as a repr.
# Kinds are short: without an end, a long text would be read anew from each of its letters.
_URL = re.compile(
    r"(?P<kind>[a-z][a-z0-9+.-]{0,30}|)://"
    r"|^[\sb'\"\[(]*(?P<server>postgres(ql)?)(:|//|/[^/\s:]*:[^/\s]*@)",
    re.IGNORECASE,
)
# The other way to name a server, libpq's: host=… password=… One pair alone, without a password, may
# be a level of a column. A password may also stand after the ? or & of a URL that lost its start.
_PAIRS = re.compile(
    r"(^|[\s'\"\[(?&;,])(ssl)?password\s*="
    r"|^[\sb'\"\[(]*(host(addr)?|port|dbname|user|passfile|service)\s*=\s*\S+\s+\w+\s*=",
    re.IGNORECASE,
)


def is_url(text: str) -> bool:
    """Return whether a text is, or holds, what may be the address of a server."""
    return _URL.search(text) is not None or _PAIRS.search(text) is not None


def redact(text: str) -> str:
    """Return what may be shown of a text: of a URL, which may hold a password, only its kind."""
    found = _URL.match(text)
    if found is None and _PAIRS.search(text) is not None:
        return "…"
    found = found or _URL.search(text)
    return text if found is None else f"{found['kind'] or found['server'] or ''}://…"


def printable(text: str) -> str:
    """Return a text without characters that a terminal would obey or hide: they are spelled out.

    Control characters (all but the end of a line), marks that turn the direction of what follows,
    and halves of characters; those that join letters stay.
    """
    return "".join(each if _is_shown(each) else _escape(each) for each in text)


def _is_shown(character: str) -> bool:
    if character.isprintable() or character in "\n\u200c\u200d":
        return True
    return unicodedata.category(character) in {"Zs", "Co", "Cn"}


def _escape(character: str) -> str:
    return "    " if character == "\t" else ascii(character)[1:-1]


# How arrays and tables of any library are known. Rows or labels may stand where a public argument
# belongs, as in release_model(X, y): no error quotes them.
_ARRAYS = ("__array__", "__arrow_c_stream__", "__arrow_c_array__", "__dataframe__", "shape")
_HIDDEN = "values that are not shown"


def holds_cells(value: object) -> bool:
    """Return whether a value may be cells of a table: an array, a table, or a list of numbers.

    Lists of texts are names, and up to three numbers or pairs of them bounds and the like.
    """
    if isinstance(value, list | tuple):
        short = len(value) <= 3 and not any(map(holds_cells, value))
        return not (short or all(isinstance(each, str) for each in value))
    array = any(hasattr(type(value), name) for name in _ARRAYS)
    return array and getattr(value, "shape", None) != ()  # of NumPy's scalars


def describe(value: object) -> str:
    """Return a short, one-line picture of an argument for an error message."""
    try:
        if holds_cells(value):
            text = _HIDDEN
        elif isinstance(value, str):
            text = repr(redact(value))
        else:
            text = redact(repr(value) if isinstance(value, bytes) else str(value))
    except Exception:  # noqa: BLE001 - more digits than Python writes, or a class with its own ideas
        text = f"a {type(value).__name__} that cannot be shown"
    text = printable(" ".join(text.split()))
    return text if len(text) <= 60 else f"{text[:57]}..."


_SHORT, _NEAR, _NEAR_SHORT = 4, 0.75, 0.6  # letters; shares of letters in common


def nearest(word: str, known: Iterable[str], most: int = 2) -> list[str]:
    """Return the names that a mistyped one was probably meant for, the nearest first.

    Near are names that share most letters in order, whatever their case, and names that begin with
    the word or have it as one of their parts. Most words are near to none.
    """
    folded = word.casefold()
    found = {name: _closeness(folded, name.casefold()) for name in known}
    near = sorted((name for name in found if found[name] > 0), key=lambda name: -found[name])
    return near[:most]


def _closeness(word: str, name: str) -> float:
    """Return how near a name is, at most 1; 0 where it is not."""
    ratio = difflib.SequenceMatcher(None, word, name).ratio()
    least = _NEAR_SHORT if max(len(word), len(name)) <= _SHORT else _NEAR
    if ratio >= least:
        return ratio
    part = name.startswith(word) or word in re.split(r"[\W_]+", name)
    return ratio if part and len(word) >= 3 else 0.0


def meant(word: str, known: Iterable[str]) -> str:
    """Return the question which name was meant, or nothing where none is near."""
    near = nearest(word, known)
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def listed(names: Iterable[object], most: int = 8) -> str:
    """Return names with commas between them; of a long list the first, and how many more."""
    shown = [str(name) for name in names]
    more = len(shown) - most
    if more <= 1:
        return ", ".join(shown)
    return f"{', '.join(shown[:most])} and {more:,} more"


class ArgumentError(PlainError, ValueError):
    """An argument that breaks a rule: the `parameter` of the function `where` must be `rule`.

    `got` is a short picture of what came, without passwords, and never the value itself; `hint`
    says what to do instead, if that is known; `options` are the texts to choose from, if there is
    such a choice. Where the type is wrong, the error is a TypeError too.
    """

    def __init__(
        self,
        parameter: str,
        where: str,
        rule: str,
        got: str,
        hint: str = "",
        *,
        options: Collection[str] = (),
    ) -> None:
        # Copies and pickles are made of these, and of the attributes.
        super().__init__(parameter, where, rule, got, hint)
        self.parameter, self.where, self.rule = parameter, where, rule
        self.got, self.hint, self.options = got, hint, tuple(options)

    @property
    def sentence(self) -> str:
        """All but the hint."""
        subject = f"The '{self.parameter}' parameter of {self.where}"
        return f"{subject} must be {self.rule}. Got {self.got}."

    def __str__(self) -> str:
        return self.sentence + (f"\n\nHint: {self.hint}" if self.hint else "")

    def rename(self, where: str) -> Self:
        """Return the error, with its notes, as one about the same parameter of another function.

        Requires: that function takes a parameter of that name.
        """
        facts = (self.parameter, where, self.rule, self.got, self.hint)
        error = type(self)(*facts, options=self.options)
        for note in getattr(self, "__notes__", ()):
            error.add_note(note)
        return error


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument of the wrong type, which `got` names too."""


def rejection(
    parameter: str, where: str, rule: str, value: object, hint: str = ""
) -> ArgumentError:
    """Return the error for a value that breaks a rule."""
    return ArgumentError(parameter, where, rule, describe(value), hint)


def wrong_type(
    parameter: str, where: str, rule: str, value: object, hint: str = ""
) -> ArgumentTypeError:
    """Return the error for a value of the wrong type."""
    shown = f"{describe(value)} ({type(value).__name__})"
    return ArgumentTypeError(parameter, where, rule, shown, hint)


def _interval(low: float, high: float, *, open_low: bool, open_high: bool) -> str:
    if high == math.inf:
        if low == -math.inf:
            return "a finite number"
        return f"a finite number {'above' if open_low else 'of at least'} {low:g}"
    return f"in {'(' if open_low else '['}{low:g}, {high:g}{')' if open_high else ']'}"


def real(
    value: Any,
    parameter: str,
    where: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    open_low: bool = False,
    open_high: bool = False,
    hint: str = "",
) -> float:
    """Return `value` as a float if it is a finite real number in the interval."""
    rule = _interval(low, high, open_low=open_low, open_high=open_high)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong_type(parameter, where, rule, value, hint)
    try:
        number = float(value)
    except OverflowError:
        raise rejection(parameter, where, rule, value, hint) from None
    except Exception:  # noqa: BLE001 - a number of a class with its own ideas
        raise wrong_type(parameter, where, rule, value, hint) from None
    above = number > low if open_low else number >= low
    below = number < high if open_high else number <= high
    if not (math.isfinite(number) and above and below):
        raise rejection(parameter, where, rule, value, hint)
    return number


def positive(value: Any, parameter: str, where: str, *, hint: str = "") -> float:
    """Return `value` as a float if it is a finite number above zero."""
    return real(value, parameter, where, low=0, open_low=True, hint=hint)


def integer(
    value: Any,
    parameter: str,
    where: str,
    *,
    low: int,
    high: int | None = None,
    hint: str = "",
) -> int:
    """Return `value` as an int if it is a whole number in [low, high]."""
    rule = f"an integer of at least {low}" if high is None else f"an integer in [{low}, {high}]"
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise wrong_type(parameter, where, rule, value, hint)
    try:
        number = int(value)
    except Exception:  # noqa: BLE001 - as above; NumPy counts spans of time among the integers
        raise wrong_type(parameter, where, rule, value, hint) from None
    if number < low or (high is not None and number > high):
        raise rejection(parameter, where, rule, value, hint)
    return number


def flag(value: Any, parameter: str, where: str) -> bool:
    """Return `value` as a bool if it is a truth value."""
    if not isinstance(value, bool):
        raise wrong_type(parameter, where, "True or False", value)
    return value


def rational(value: Any, parameter: str, where: str) -> Fraction:
    """Return `value` as an exact fraction if it is a finite number above zero."""
    if not isinstance(value, bool) and isinstance(value, numbers.Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
        if exact <= 0:
            raise rejection(parameter, where, "a finite number above 0", value)
        return exact
    return Fraction(positive(value, parameter, where))


def choice(
    value: Any,
    parameter: str,
    where: str,
    options: Collection[str],
    *,
    hint: str = "",
) -> str:
    """Return `value` if it is one of the named options."""
    rule = "one of " + ", ".join(repr(str(option)) for option in options)
    if not isinstance(value, str):
        raise wrong_type(parameter, where, rule, value, hint)
    if value not in options:
        hint = hint or meant(value, map(str, options))
        raise ArgumentError(parameter, where, rule, describe(value), hint, options=options)
    return str(value)
