"""The public facts that a plan is made from, and the one number that budgets of all kinds become.

Nothing here is read from a table: `rows` is the caller's own figure or guess.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from dplinear.arguments import choice, integer, real, rejection, wrong_type
from dplinear.mechanisms.checks import read_guarantee
from dplinear.planner.populations import TAILS, WIDTH
from dplinear.planner.real_like import TARGETS
from dplinear.planner.units import UnitRows
from dplinear.privacy import calibrate
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

WHERE = "plan"
MOST_ROWS = 10**12
MOST_COLUMNS = 4_000
EXPLAINED = 0.5  # of simulated tables with normal or heavy tails, where nobody says
MANY_LEVELS = 30  # of one category: more of them than of anything else make a table of levels
# What is tried where the caller does not say: the plan then covers all of them.
CONDITIONS = (1.0, 100.0, 1e4)


@dataclass(frozen=True)
class Facts:
    """What is public, or assumed, about a table and its release.

    `columns` are features beside the constant and a target, `dimension` the side of the matrix of
    second moments, `square` the squared norm that no row of cells exceeds. What is None was not
    told: `condition`, `tails`, `explained`, the share of 0/1 columns (`zero_one`), the shape of the
    target and its width. `levels` says that most columns are levels of categories with very many.
    `rows` are all rows; those of `units`, if there are any, have weights.
    """

    rows: int
    columns: int
    dimension: int
    square: float
    guarantee: Guarantee
    neighbours: Neighbours
    condition: float | None = None
    tails: str | None = None
    explained: float | None = None
    width: float = WIDTH
    zero_one: float | None = None
    target_shape: str | None = None
    target_width: float | None = None
    levels: bool = False
    components: int = 1
    units: UnitRows | None = None
    unit_named: bool = False  # by the schema, so that a call need not

    @property
    def counted(self) -> float:
        """The rows whose noise a release has: of units with several rows, the sum of weights."""
        return self.rows if self.units is None else self.units.counted(self.rows)

    @property
    def sample(self) -> float:
        """The independent rows that have the same sampling error."""
        return self.rows if self.units is None else self.units.sample(self.rows)

    @property
    def mu(self) -> float:
        """The μ of the Gaussian mechanism that keeps the guarantee."""
        return effective_mu(self.guarantee)

    def resize(self, rows: int) -> "Facts":
        """Return the same facts of another number of rows."""
        return replace(self, rows=rows)

    def per_unit(self, rows: int) -> "Facts":
        """Return the same facts of units of which so many rows count."""
        return self if self.units is None else replace(self, units=self.units.at(rows))

    def under(self, amount: float) -> "Facts":
        """Return the same facts under a guarantee of the same kind, with this ε, ρ, μ or bits."""
        return replace(self, guarantee=with_amount(self.guarantee, amount))


@lru_cache(maxsize=256)
def effective_mu(guarantee: Guarantee) -> float:
    """Return the largest μ whose Gaussian profile keeps the guarantee; for pure ε, one as strict.

    Promises: exact for (ε, δ), ρ (μ = √(2ρ)) and μ. Noise of pure guarantees is not Gaussian; the
    μ of the same standard deviation, ε/√2, stands for it.
    """
    if isinstance(guarantee, PureDP):
        return guarantee.epsilon / math.sqrt(2)
    return 1 / calibrate.gaussian(guarantee, 1.0)


def amount_of(guarantee: Guarantee) -> float:
    """Return ε, ρ, μ or bits: the number that says how much."""
    match guarantee:
        case ApproxDP() | PureDP():
            return guarantee.epsilon
        case ZCDP():
            return guarantee.rho
        case GDP():
            return guarantee.mu
        case MIDP():
            return guarantee.bits


def with_amount(guarantee: Guarantee, amount: float) -> Guarantee:
    """Return the guarantee of the same kind, and δ, with another ε, ρ, μ or bits."""
    if isinstance(guarantee, ApproxDP):
        return ApproxDP(amount, guarantee.delta)
    return type(guarantee)(amount)


def write_arguments(guarantee: Guarantee) -> str:
    """Return the guarantee as the arguments of a call."""
    match guarantee:
        case ApproxDP():
            return f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}"
        case PureDP():
            return f"epsilon={guarantee.epsilon:g}"
        case MIDP():
            return f"bits={guarantee.bits:g}"
        case _:
            return f"guarantee={type(guarantee).__name__}({amount_of(guarantee):g})"


def read_rows(value: Any) -> int:
    """Return the number of rows; 1e5 is as good as 100000, as it is a guess."""
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    hint = "a public figure or guess, such as 100_000: its order of magnitude is enough."
    return integer(value, "expected_rows", WHERE, low=1, high=MOST_ROWS, hint=hint)


def read_size(value: Any, *, target: bool) -> tuple[int, int, float]:
    """Return features, dimension and squared norm of a number of columns, or of a schema.

    With a `target` a number of columns does not count it; a schema has it among its columns.
    """
    if isinstance(value, Schema | Mapping):
        value = Schema.of(value, WHERE, "columns")
        own = value.dimension - value.has_intercept
        if target and own < 2:
            rule = "a schema of a target and at least one feature"
            raise rejection("columns", WHERE, rule, value)
        return own - target, value.dimension, value.bound**2
    rule = "a number of columns, or a Schema, or a mapping of column names to declarations"
    hint = "a number counts the features; a Schema has bounds and categories, and the target too."
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type("columns", WHERE, rule, value, hint)
    columns = integer(value, "columns", WHERE, low=1, high=MOST_COLUMNS, hint=hint)
    dimension = columns + 1 + target
    return columns, dimension, float(dimension)


def read_indicators(value: Any, *, target: bool) -> tuple[float | None, bool]:
    """Return the share of 0/1 columns among a schema's, and whether most are levels of many.

    Of a number of columns neither is known, nor of a schema without categories, whose numbers may
    all be 0 and 1. A target is a number, so it is none of the 0/1 ones.
    """
    if not isinstance(value, Schema | Mapping):
        return None, False
    schema = Schema.of(value, WHERE, "columns")
    groups = Counter(each.term for each in schema.features if each.is_indicator)
    own = max(schema.dimension - schema.has_intercept - target, 1)
    many = sum(count for count in groups.values() if count + 1 >= MANY_LEVELS)
    share = min(sum(groups.values()) / own, 1.0) if groups else None
    return share, 2 * many > own


def read_facts(
    expected_rows: Any,
    columns: Any,
    *,
    epsilon: Any = None,
    delta: Any = None,
    bits: Any = None,
    guarantee: Any = None,
    neighbours: Any = Neighbours.ADD_REMOVE,
    allowed: tuple[Neighbours, ...],
    target: bool,
    condition: Any = None,
    tails: Any = None,
    explained: Any = None,
    width: Any = None,
    zero_one: Any = None,
    target_shape: Any = None,
    target_width: Any = None,
    components: Any = None,
    units: UnitRows | None = None,
) -> Facts:
    """Check the arguments of a plan."""
    if bits is not None:
        if epsilon is not None or delta is not None or guarantee is not None:
            rule = "left out where epsilon, delta or a guarantee is given"
            raise rejection("bits", WHERE, rule, bits)
        guarantee = MIDP(bits)
    features, dimension, square = read_size(columns, target=target)
    indicators, levels = read_indicators(columns, target=target)
    parts = min(3, features) if components is None else components
    return Facts(
        rows=read_rows(expected_rows),
        columns=features,
        dimension=dimension,
        square=square,
        guarantee=read_guarantee(WHERE, epsilon, delta, guarantee),
        neighbours=Neighbours.parse(neighbours, WHERE, allowed),
        condition=None if condition is None else real(condition, "condition", WHERE, low=1),
        tails=None if tails is None else choice(tails, "tails", WHERE, TAILS),
        explained=_share(explained, "explained", open_ends=True),
        width=WIDTH if width is None else real(width, "width", WHERE, low=1),
        zero_one=indicators if zero_one is None else _share(zero_one, "zero_one"),
        target_shape=(
            None if target_shape is None else choice(target_shape, "target_shape", WHERE, TARGETS)
        ),
        target_width=(
            None if target_width is None else real(target_width, "target_width", WHERE, low=1)
        ),
        levels=levels,
        components=integer(parts, "components", WHERE, low=1, high=features),
        units=units,
        unit_named=isinstance(columns, Schema) and columns.unit is not None,
    )


def _share(value: Any, name: str, *, open_ends: bool = False) -> float | None:
    """Return a share, or None where nobody told it."""
    if value is None:
        return None
    return real(value, name, WHERE, low=0, high=1, open_low=open_ends, open_high=open_ends)
