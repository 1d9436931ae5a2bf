"""Whether a shown output is the real one: words exactly, numbers nearly, folded lines not at all.

A number may differ by half a hundredth of itself: that is one in the last of three digits, which
depends on the machine once in a while, where numbers of one or two digits, such as counts and exit
codes, must be equal. Lengths of rules and gaps follow from the numbers and may differ too; so may
dates, hashes and everything that a line `…` folds.
"""

import re
from itertools import pairwise

FOLD = "…"
TOLERANCE = 0.005

_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|\+00:00| UTC)?)?|\b[0-9a-f]{12,}\b"
)
_RULE = re.compile(r"([─━═-])\1+")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def same(shown: list[str], real: list[str]) -> bool:
    """Compare lines; a line `…` of the shown ones stands for any number of real ones."""
    if not shown:
        return not real
    if shown[0].strip() == FOLD:
        return any(same(shown[1:], real[start:]) for start in range(len(real) + 1))
    return bool(real) and _same_line(shown[0], real[0]) and same(shown[1:], real[1:])


def _same_line(shown: str, real: str) -> bool:
    (words, numbers), (other_words, other_numbers) = _split(shown), _split(real)
    return words == other_words and all(map(_near, numbers, other_numbers))


def _split(line: str) -> tuple[str, list[str]]:
    text = _RULE.sub(r"\1", _CHANGING.sub("*", " ".join(line.split())))
    return _NUMBER.sub("#", text), _NUMBER.findall(text)


def _near(shown: str, real: str) -> bool:
    one, other = (float(text.replace(",", "")) for text in (shown, real))
    return abs(one - other) <= TOLERANCE * abs(other)


def folded(real: list[str], shown: list[str]) -> list[str]:
    """Return the real lines, with one fold where the shown ones have one."""
    folds = [-1, *(i for i, line in enumerate(shown) if line.strip() == FOLD), len(shown)]
    sizes = [after - before - 1 for before, after in pairwise(folds)]
    if len(sizes) != 2 or sum(sizes) >= len(real):
        return real
    head, tail = sizes
    return [*real[:head], FOLD, *(real[-tail:] if tail else [])]
