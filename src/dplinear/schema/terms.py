"""What a feature belongs to: the constant, a declared column, or a derived term.

A declared column may be named like a derived term ("x*c"), or like the constant. So nothing about
a feature is decided by its name: what it is made of, and how much it can add to a row's norm, is
told by its term. Names are labels, for people.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from dplinear.arguments import rejection

INTERCEPT = "intercept"
_WHERE = "Schema"


@dataclass(frozen=True)
class Constant:
    """The term of the feature that is 1 in every row."""

    square: ClassVar[int] = 1
    label: ClassVar[str] = INTERCEPT


@dataclass(frozen=True)
class OwnTerm:
    """A declared column, as the features that are made of it alone by its declaration.

    `square` is the most that all its features together add to a row's squared norm.
    """

    column: str
    square: int

    @property
    def label(self) -> str:
        """The name that stands for all its features."""
        return self.column


@dataclass(frozen=True)
class DerivedTerm:
    """The term at `index` of the schema's list of derived ones, which reads `text` there.

    `square` is as above: of the levels' combinations a row holds one, and there is one set of
    powers.
    """

    index: int
    text: str
    square: ClassVar[int] = 1

    @property
    def label(self) -> str:
        """The name that stands for all its features."""
        return self.text


Term = Constant | OwnTerm | DerivedTerm


class Named(Protocol):
    """What has a name and belongs to a term: a feature."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def term(self) -> Term:
        """What it belongs to."""


def check_names(features: Sequence[Named]) -> None:
    """Raise unless every feature has a name of its own."""
    names = Counter(feature.name for feature in features)
    twice = sorted(name for name, times in names.items() if times > 1)
    if twice:
        hint = "rename a column, or leave out a derived feature that is declared twice."
        raise rejection("mapping", _WHERE, "free of features of the same name", twice, hint)


def check_labels(labels: Iterable[str], features: Sequence[Named]) -> None:
    """Raise unless each name, of a column, a derived term or a feature, means one thing.

    A name as `target` or among `features` could otherwise mean a column or a term that is not it.
    """
    times = Counter(labels)
    shared = {label for label, count in times.items() if count > 1}
    shared |= {one.name for one in features if one.name in times and one.name != one.term.label}
    if shared:
        rule = "free of columns that are named like a derived term, a feature or the intercept"
        hint = "rename the column: the name would mean two things."
        raise rejection("mapping", _WHERE, rule, sorted(shared), hint)
