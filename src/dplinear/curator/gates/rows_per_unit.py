"""The gate for rows per unit: a private way to the k that a plan would choose."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.rows_per_unit import SuggestedRowsPerUnit
from dplinear.arguments import ArgumentError, integer, wrong_type
from dplinear.arrays import BigIntegers
from dplinear.curator.gates.options import ReadingOptions, own_options, reading_options
from dplinear.curator.passage import Passage
from dplinear.curator.sources import open_reader
from dplinear.exact.unit_sizes import MOST, UnitSizes
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import read_guarantee
from dplinear.mechanisms.unit_sizes import NoisyHistogram, UnitSizeHistogram
from dplinear.planner.facts import MOST_ROWS
from dplinear.planner.plan import Plan, plan
from dplinear.planner.units import CANDIDATES
from dplinear.privacy.guarantees import ApproxDP, Guarantee
from dplinear.schema import Schema, SchemaLike

_WHERE = "suggest_rows_per_unit"
COLUMNS = 5
PLANNED = ApproxDP(1.0, 1e-6)
_ANY = {"type": "category", "levels": ["id"]}  # any cell will do: none of them is used


def suggest_rows_per_unit(
    data: Any,
    columns: int | SchemaLike = COLUMNS,
    *,
    unit: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    rho: float | None = None,
    planned: Guarantee = PLANNED,
    learn: str = "regression",
    correlation: float | None = None,
    candidates: Sequence[int] = CANDIDATES,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[ReadingOptions],
) -> SuggestedRowsPerUnit:
    """Release how many rows units have, as a noisy histogram, and the `rows_per_unit` to take.

    Requires: the `unit` of privacy, a column of ids (an array has that column alone), or a schema
    that names it; the price: `epsilon` (with or without `delta`, which is not needed), a
    `guarantee`, or `rho`. What the choice is for: the number of `columns`, or the Schema, and the
    guarantee that is `planned` for the release that follows, which costs what it costs; what to
    `learn` and the `correlation`, as for `plan`. `candidates`, up to 1,000 rows, are both the
    numbers to choose from and the ends of the histogram's bins. Further options go to the reading
    (`threads`, `engine`, `progress`).
    Promises: the numbers satisfy what the certificate says, for all rows of a unit together,
    whatever they hold; a unit is one count in one bin. The choice is made of the noisy numbers.
    Arguments and columns are checked before anything is spent; nothing is read before it is spent;
    then the table is passed over once.
    """
    with Passage(_WHERE, locals()) as passage:
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee, rho=rho)
        own_options(UnitSizeHistogram, options, _WHERE)
        schema = passage.with_unit(_unit_schema(columns, unit))
        edges = passage.given["candidates"] = _edges(candidates)
        aim = _Aim(columns, planned, learn, correlation, edges)
        aim.check()
        method = UnitSizeHistogram(guarantee=asked)
        prepared = method.prepare(len(edges) + 1)
        reader = open_reader(data, schema, **reading_options(options))

        def read() -> BigIntegers:
            return reader.run(UnitSizes(schema, edges)).integers()

        def release(found: NoisyHistogram, certificate: Certificate) -> SuggestedRowsPerUnit:
            counts = tuple(found.counts.tolist())
            made = SuggestedRowsPerUnit(1, edges, counts, found.deviation, certificate)
            return aim.choose(made)

        return passage.cross(method, prepared, read, release, {"bins": len(edges) + 1})


class _Aim:
    """What the number is chosen for: a plan, of public facts and of noisy numbers."""

    def __init__(
        self, columns: Any, planned: Any, learn: Any, correlation: Any, edges: tuple[int, ...]
    ) -> None:
        self._columns, self._planned, self._learn = columns, planned, learn
        self._correlation, self._edges = correlation, edges

    def check(self) -> None:
        """Raise for what no plan can be made of, before anything is spent."""
        if not isinstance(self._planned, Guarantee):
            rule = "the guarantee of the release that follows, such as ApproxDP(1.0, 1e-6)"
            raise wrong_type("planned", _WHERE, rule, self._planned)
        try:
            self._plan(MOST, {1: 1.0})
        except ArgumentError as error:
            if error.parameter in {"guarantee", "delta"}:
                facts = (error.rule, error.got, error.hint)
                raise type(error)("planned", _WHERE, *facts) from None
            raise error.rename(_WHERE) from None

    def choose(self, found: SuggestedRowsPerUnit) -> SuggestedRowsPerUnit:
        """Return the same release with the number that the plan chooses."""
        rows = min(found.expected_rows, MOST_ROWS)
        chosen = self._plan(rows, found.rows_each).rows_per_unit
        return replace(found, rows_per_unit=chosen or 1)

    def _plan(self, rows: int, rows_each: Mapping[int, float]) -> Plan:
        return plan(
            rows,
            self._columns,
            guarantee=self._planned,
            learn=self._learn,
            rows_each=rows_each,
            correlation=self._correlation,
            rows_per_unit=self._edges,
        )


def _unit_schema(columns: Any, unit: Any) -> Schema:
    """Return the schema of a table of which nothing is read but whose its rows are."""
    named = columns.unit if isinstance(columns, Schema) else None
    if unit is None and named is None:
        rule = 'given: the column that says whom a row belongs to, such as "patient"'
        raise wrong_type("unit", _WHERE, rule, unit)
    name = unit if named is None else named
    if not isinstance(name, str):
        raise wrong_type("unit", _WHERE, "the name of a column", type(name))
    return Schema({name: _ANY}, unit=name)


def _edges(candidates: Any) -> tuple[int, ...]:
    """Return the candidates in rising order."""
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
        raise wrong_type("candidates", _WHERE, "a list of numbers of rows", candidates)
    found = {integer(each, "candidates", _WHERE, low=1, high=MOST) for each in candidates}
    return tuple(sorted(found))
