"""The gate for levels: a private way to categories that nobody can list."""

from collections.abc import Sequence
from typing import Any, Unpack

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.levels import SuggestedLevels
from dplinear.arguments import integer, rejection, wrong_type
from dplinear.curator.gates.options import ReadingOptions, own_options, reading_options
from dplinear.curator.level_table import CountedLevels
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader
from dplinear.curator.sources.arrays import is_sparse
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.mechanisms.levels import Found, Levels, LevelsOutcome
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema
from dplinear.schema.columns import MOST_FEATURES

_WHERE = "suggest_levels"
_ANY = {"type": "category", "levels": ["any"]}  # what columns are declared as while they are read
MOST_COLUMNS = 1000


def suggest_levels(
    data: Any,
    columns: Sequence[str],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    most_levels: int = 200,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[ReadingOptions],
) -> SuggestedLevels:
    """Release the levels of categories that nobody can list, and pay for them.

    Requires: the names of `columns` (of an array, all of them, in order, and the unit's last);
    `epsilon` and `delta`, or a `guarantee` of that kind; which tables are `neighbours`; the `unit`
    of privacy, a column of ids, if there is one: each then counts for its `rows_per_unit` most
    frequent levels of a column. At most `most_levels` of a column are kept, the most frequent ones
    by their noisy counts. Further options go to the reading (`threads`, `engine`, `progress`).
    Promises: the levels together satisfy what the certificate says, whatever the rows hold. A level
    is released only if its noisy count reaches a public threshold, so that one which a single unit
    holds is not, but for a part of δ. Arguments and columns are checked before anything is spent;
    nothing is read before it is spent; then the table is read once.
    """
    with Passage(_WHERE, locals()) as passage:
        relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
        own_options(Levels, options, _WHERE)
        names = _names(columns)
        most = _most(most_levels, len(names))
        column = passage.with_unit(Schema(dict.fromkeys(names, _ANY))).unit
        if column in names:
            rule = "free of the unit's own column, whose ids are nobody's levels"
            raise rejection("columns", _WHERE, rule, column)
        schema = Schema(dict.fromkeys(names if column is None else [*names, column], _ANY))
        method = Levels(guarantee=asked, neighbours=relation)
        prepared = method.prepare(len(names), passage.rows_per_unit)
        if is_sparse(data):
            raise wrong_type("data", _WHERE, "a table of columns", type(data))
        reader = open_reader(data, schema, **reading_options(options))
        table = CountedLevels(reader, schema, column, passage.rows_per_unit)

        def release(made: LevelsOutcome, certificate: Certificate) -> SuggestedLevels:
            levels, counts = _by_column(made.found, names, most)
            return SuggestedLevels(levels, counts, certificate)

        return passage.cross(method, prepared, lambda: table, release, {"columns": names})


def _names(columns: Any) -> list[str]:
    rule = f"a list of 1 to {MOST_COLUMNS} names of columns"
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise wrong_type("columns", _WHERE, rule, type(columns))
    names = list(columns)
    if not all(isinstance(name, str) for name in names):
        raise wrong_type("columns", _WHERE, rule, columns)
    if not 0 < len(names) <= MOST_COLUMNS:
        raise rejection("columns", _WHERE, rule, len(names))
    if len(set(names)) < len(names):
        raise rejection("columns", _WHERE, "free of names given twice", columns)
    # "a=x" is a feature of the column "a", if it has a level "x": which ones it has is private yet.
    odd = [name for name in names if any(name.startswith(f"{each}=") for each in names)]
    if odd:
        raise rejection("columns", _WHERE, "free of names like those of levels", odd)
    return names


def _most(most_levels: Any, columns: int) -> int:
    """Return how many levels of a column are kept; all of them together must fit a schema."""
    most = integer(most_levels, "most_levels", _WHERE, low=1)
    if columns * most >= MOST_FEATURES:
        rule = f"such that columns have fewer than {MOST_FEATURES:,} levels in all"
        raise rejection("most_levels", _WHERE, rule, most_levels)
    return most


def _by_column(
    found: list[Found], names: list[str], most: int
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[float, ...]]]:
    """Return the most frequent levels of each column, and their noisy counts: post-processing."""
    ordered = sorted(found, key=lambda each: (each[0], -each[2], each[1]))
    own = {
        name: [each for each in ordered if each[0] == index][:most]
        for index, name in enumerate(names)
    }
    levels = {name: tuple(level for _, level, _ in some) for name, some in own.items()}
    return levels, {name: tuple(count for *_, count in some) for name, some in own.items()}
