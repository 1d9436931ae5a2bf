"""What may tell neighbours apart although it should not: a short list, each with its reason.

All of them are of one kind: the tables that dplinear was given were no neighbours. Their library,
asked by its own means (`views.py`), shows more than one row of another meaning (`canonical.py`),
another number of rows, other columns, or fails. What the library still shows is dplinear's to read.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .canonical import meaning
from .holders import Source
from .pairs import Pair, Table
from .views import CannotShowError, shown


@dataclass(frozen=True)
class Exemption:
    """Why dplinear cannot undo what happened before it saw a table."""

    name: str
    reason: str


FAILS = Exemption(
    "its library fails",
    "A lazy table (a DuckDB relation, a Polars plan, a Dask or Spark collection) is carried out "
    "within our pass; its library fails there over the odd cell, as it does by its own means.",
)
COLUMNS = Exemption(
    "other columns",
    "A reader that sniffs (DuckDB's read_csv) or infers found other columns because of the odd "
    "row: a header taken for data, another delimiter, a structure in place of a cell.",
)
COUNT = Exemption(
    "another number of rows",
    "A writer or reader made no row or several rows of the odd one: an unquoted carriage return, "
    "a comment, an empty line.",
)
VALUES = Exemption(
    "other rows of another meaning",
    "A reader gave the column another type, and other rows' cells lost or changed their meaning: "
    "made null by a lenient cast, made a number of a date, hexadecimal digits or thousands read.",
)
DTYPE = Exemption(
    "labels of another dtype",
    "The dtype of a NumPy array is its holder's word: text where the public classes are numbers is "
    "refused, as are numbers where they are words. np.array chose it by looking at every label.",
)
ARRAY = Exemption(
    "an array of a refused dtype",
    "`fit` refuses a NumPy array of complex numbers, dates or spans by its dtype, which is its "
    "holder's word, as scikit-learn asks. np.array chose it by looking at every cell.",
)
EXEMPTIONS = (FAILS, COLUMNS, COUNT, VALUES, DTYPE, ARRAY)
_REFUSED = frozenset("cmM")  # kinds of dtypes that estimators do not take (docs/estimators.md)


def excused(source: Source, pair: Pair, held: Callable[[Table], Any]) -> str | None:
    """Return the name of the exemption that a pair falls under, or None.

    `held` makes a table of the pair anew, as the source does.
    """
    if source.name == "labels_numpy_inferred":
        kinds = {held(table)[1].dtype.kind for table in (pair.base, pair.other)}
        return DTYPE.name if len(kinds) > 1 else None
    if source.name == "fit_numpy_inferred":
        refused = [held(table)[0].dtype.kind in _REFUSED for table in (pair.base, pair.other)]
        if refused[0] != refused[1]:
            return ARRAY.name
    return _excused_by_view(source, pair, held) if source.infers else None


def _excused_by_view(source: Source, pair: Pair, held: Callable[[Table], Any]) -> str | None:
    """Return the exemption that what the library itself shows of both tables gives."""
    try:
        tables = [shown(held(table), table.names) for table in (pair.base, pair.other)]
    except CannotShowError:
        return FAILS.name
    (names, base), (other_names, other) = tables
    declared = [c.name for c in pair.base.columns if c.declared is not None]
    if names != other_names or not set(declared) <= set(names):
        return COLUMNS.name
    if (len(base), len(other)) != (len(pair.base.rows), len(pair.other.rows)):
        return COUNT.name
    meant = [[_row(row, names, declared) for row in rows] for rows in (base, other)]
    return None if _neighbours(meant[0], meant[1], pair, ordered=source.ordered) else VALUES.name


def _row(row: tuple[Any, ...], names: tuple[str, ...], declared: list[str]) -> tuple[Any, ...]:
    pairs = zip(names, row, strict=True)
    return tuple(meaning(cell) for name, cell in pairs if name in declared)


def _neighbours(base: list[Any], other: list[Any], pair: Pair, *, ordered: bool) -> bool:
    """Return whether all other rows mean the same in both tables."""
    if not ordered:
        before, after = Counter(base), Counter(other)
        gone, fresh = (before - after).total(), (after - before).total()
        return gone <= (pair.how != "add") and fresh <= (pair.how != "remove")
    first = base[: pair.at] + base[pair.at + (pair.how != "add") :]
    second = other[: pair.at] + other[pair.at + (pair.how != "remove") :]
    return first == second
