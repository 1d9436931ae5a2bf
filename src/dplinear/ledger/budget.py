"""What a dataset's budget is counted in, and what a spend costs it.

Costs are whole units: 10⁻¹² of ρ, μ², ε or bits, and 10⁻¹⁸ of δ. Numbers count as they are written,
by the shortest decimal that reads back as them, and costs are rounded up from there, so that ten
spends of 0.1 are 1. A float is above its decimal by a relative 2⁻⁵³ at the most: what is admitted
keeps the budget times 1 + 10⁻¹⁵.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from dplinear.analyst.releases.certificate import GUARANTEES
from dplinear.arguments import positive, rejection, wrong_type
from dplinear.ledger.request import WORD, LedgerError, Request, is_word, refusal
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours

UNIT = 10**12
DELTA_UNIT = 10**18
_MOST = 2**62  # units that a database can hold
_PROTECT_ROWS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)


class Units(NamedTuple):
    """Whole units of ρ, μ², ε or bits; and of δ."""

    main: int
    delta: int = 0

    def plus(self, other: "Units") -> "Units":
        """Return the sum."""
        return Units(self.main + other.main, self.delta + other.delta)

    def minus(self, other: "Units") -> "Units":
        """Return the difference."""
        return Units(self.main - other.main, self.delta - other.delta)

    def within(self, limit: "Units") -> bool:
        """Return whether both are."""
        return self.main <= limit.main and self.delta <= limit.delta


@dataclass(frozen=True)
class Budget:
    """The budget of one dataset: a guarantee for all releases together, between `neighbours`.

    Requires: it is declared before the first spend. `change`, for neighbours of single cells or of
    rows that change by so much, is the public amount; `missing_public`, with a `change`, that
    neighbours agree on which cells hold no number; `unit`, the column of whose ids each stands for
    one unit of privacy: neighbours then differ by all rows of one.
    Promises: spends whose costs add up to no more than `limit`, chosen in whatever way, satisfy the
    guarantee (but for the rounding above) as a whole. That is a theorem for each kind: ρ-zCDP
    (Feldman and Zrnic 2021, arXiv 2008.11193v4; Whitehouse et al. 2023, arXiv 2203.05481v3), μ-GDP
    (Smith and Thakurta 2022, arXiv 2210.17520v1), (ε, δ) by plain addition (Rogers et al. 2016,
    arXiv 1605.08294v1), and bits by the chain rule, given what earlier releases told.
    """

    guarantee: Guarantee
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    change: float | None = None
    missing_public: bool = False
    unit: str | None = None

    def __post_init__(self) -> None:
        if type(self.guarantee) not in GUARANTEES.values():
            rule = "a guarantee: one of " + ", ".join(GUARANTEES)
            raise wrong_type("guarantee", "Budget", rule, self.guarantee)
        relation = Neighbours.parse(self.neighbours, "Budget")
        object.__setattr__(self, "neighbours", relation)
        if self.change is not None:
            object.__setattr__(self, "change", positive(self.change, "change", "Budget"))
            if relation in _PROTECT_ROWS:
                rule = "left out for neighbours that are whole rows"
                raise rejection("change", "Budget", rule, self.change)
        if not isinstance(self.missing_public, bool):
            raise wrong_type("missing_public", "Budget", "True or False", self.missing_public)
        if self.missing_public and self.change is None:
            rule = "left out where no `change` is given"
            raise rejection("missing_public", "Budget", rule, self.missing_public)
        if self.unit is not None:
            if not is_word(self.unit):
                raise wrong_type("unit", "Budget", f"the name of a column, {WORD}", self.unit)
            if relation is not Neighbours.ADD_REMOVE:
                rule = "add_remove where a unit of privacy is named"
                raise rejection("neighbours", "Budget", rule, relation)
        if not self.limit.within(Units(_MOST, _MOST)):
            raise rejection("guarantee", "Budget", f"at most {_MOST // UNIT}", self.guarantee)

    @property
    def limit(self) -> Units:
        """The budget in units, rounded down."""
        main, delta = _amounts(self.guarantee)
        return Units(math.floor(main * UNIT), math.floor(delta * DELTA_UNIT))

    def cost(self, request: Request) -> Units:
        """Return what a request costs, rounded up; raise where no theorem gives its cost."""
        if request.guarantee is None:
            hint = "only releases with a guarantee can be counted."
            raise refusal("Nothing is proved of this release, so it has no price.", hint)
        steps = self.steps(request.neighbours, request.parameters)
        spend = _group_spend(request.guarantee, steps)
        concentrated = request.concentrated
        if concentrated is not None:
            concentrated = concentrated.group(steps)
        main, delta = self._price(spend, concentrated)
        return Units(math.ceil(main * UNIT), math.ceil(delta * DELTA_UNIT))

    def steps(self, neighbours: Neighbours, parameters: Mapping[str, Any]) -> int:
        """Return how many steps between a release's neighbours lead to one of the budget's.

        A row is replaced by taking one away and adding one; a change of a cell, or of a row by so
        much, is a replacement. No number of replacements adds a row. A release for which missing
        cells are public says nothing of neighbours that differ in them. One for rows says nothing
        of units, which may have any number of them, and one for units nothing of a single row,
        which changes the weights of the others.
        """
        unit = parameters.get("unit")
        if unit != self.unit:
            raise refusal(
                f"The budget protects {_protected(self.unit)}, and says nothing of a release that "
                f"protects {_protected(unit)}.",
                "ask for a release with the budget's unit, or count it as another dataset.",
            )
        change, public = parameters.get("change"), bool(parameters.get("missing_public"))
        if (neighbours, change) == (self.neighbours, self.change) and public <= self.missing_public:
            return 1
        if self.neighbours is not Neighbours.ADD_REMOVE and neighbours in _PROTECT_ROWS:
            return 1 if neighbours is Neighbours.REPLACE else 2
        raise refusal(
            f"The budget is for {self._relation}, and says "
            f"nothing of a release for {_relation(neighbours, change, public=public)} neighbours.",
            "ask for a release with the budget's neighbours, or count it as another dataset.",
        )

    def _price(self, spend: Guarantee, concentrated: ZCDP | None) -> tuple[Fraction, Fraction]:
        """Return the spend in what the budget counts."""
        pure = _pure(spend)
        match self.guarantee:
            case ZCDP() if isinstance(spend, GDP):
                return shortest_decimal(spend.mu) ** 2 / 2, Fraction(0)
            case ZCDP() if isinstance(spend, ZCDP):
                return _amounts(spend)
            case ZCDP() if pure is not None or (
                concentrated and isinstance(spend, ApproxDP | MIDP)
            ):
                known = [concentrated] if concentrated else []
                known += [pure.to(ZCDP)] if pure else []
                return _amounts(min(known, key=lambda each: each.rho))
            case GDP() if pure is not None or isinstance(spend, GDP):
                return _amounts((pure or spend).to(GDP))
            case PureDP() | ApproxDP() if isinstance(spend, PureDP | ApproxDP):
                return _amounts(spend)
            case MIDP() if pure is not None or isinstance(spend, ZCDP | GDP | MIDP):
                return _amounts((pure or spend).to(MIDP))
        raise refusal(
            f"The budget is counted as {self.guarantee}, and no theorem counts {spend} so.",
            _HINTS[type(self.guarantee)],
        )

    def facts(self) -> dict[str, Any]:
        """Return the budget as plain JSON."""
        kind = {"kind": type(self.guarantee).__name__}
        facts = {
            "guarantee": kind | dict(vars(self.guarantee)),
            "neighbours": str(self.neighbours),
            "change": self.change,
        }
        facts |= {"missing_public": True} if self.missing_public else {}
        return facts | ({} if self.unit is None else {"unit": self.unit})

    @staticmethod
    def from_facts(facts: Mapping[str, Any]) -> "Budget":
        """Return the budget that `facts` tell of."""
        guarantee = dict(facts["guarantee"])
        kind = GUARANTEES[guarantee.pop("kind")]
        public = facts.get("missing_public", False)
        unit = facts.get("unit")
        return Budget(kind(**guarantee), facts["neighbours"], facts["change"], public, unit)

    def text(self, units: Units) -> str:
        """Return units as a reader says them: "ρ = 0.25"."""
        main, delta = units.main / UNIT, units.delta / DELTA_UNIT
        match self.guarantee:
            case ZCDP():
                return f"ρ = {main:g}"
            case GDP():
                return f"μ² = {main:g}"
            case MIDP():
                return f"{main:g} bits"
        return f"ε = {main:g}, δ = {delta:g}"

    def __str__(self) -> str:
        return f"{self.guarantee} ({self._relation})"

    @property
    def _relation(self) -> str:
        relation = _relation(self.neighbours, self.change, public=self.missing_public)
        whose = "" if self.unit is None else f" of {_protected(self.unit)}"
        return f"{relation} neighbours{whose}"


_HINTS: dict[type[Guarantee], str] = {
    ZCDP: "ask for ZCDP(ρ) or PureDP(ε), or for a mechanism of Gaussian noise.",
    GDP: "ask for GDP(μ) or PureDP(ε).",
    PureDP: "ask for PureDP(ε).",
    ApproxDP: "ask for ApproxDP(ε, δ) or PureDP(ε).",
    MIDP: "ask for MIDP(bits), ZCDP(ρ), GDP(μ) or PureDP(ε).",
}


def shortest_decimal(value: float) -> Fraction:
    """Return the shortest decimal that reads back as a float."""
    return Fraction(repr(float(value)))


def _amounts(guarantee: Guarantee) -> tuple[Fraction, Fraction]:
    """Return what adds up, and what adds up beside it."""
    match guarantee:
        case ZCDP():
            return shortest_decimal(guarantee.rho), Fraction(0)
        case GDP():
            return shortest_decimal(guarantee.mu) ** 2, Fraction(0)
        case MIDP():
            return shortest_decimal(guarantee.bits), Fraction(0)
        case PureDP():
            return shortest_decimal(guarantee.epsilon), Fraction(0)
    return shortest_decimal(guarantee.epsilon), shortest_decimal(guarantee.delta)


def _pure(spend: Guarantee) -> PureDP | None:
    if isinstance(spend, ApproxDP) and spend.delta == 0 and spend.epsilon > 0:
        return PureDP(spend.epsilon)
    return spend if isinstance(spend, PureDP) else None


def _group_spend(spend: Guarantee, steps: int) -> Guarantee:
    if steps == 1:
        return spend
    if isinstance(spend, MIDP):
        raise refusal("No theorem counts bits for two steps between neighbours.")
    try:
        return spend.group(steps)
    except ValueError as error:
        raise LedgerError(str(error)) from None


def _protected(unit: object) -> str:
    return "single rows" if unit is None else f"all rows with one {unit!r}"


def _relation(neighbours: Neighbours, change: object, *, public: bool) -> str:
    if change is None:
        return str(neighbours)
    return f"{neighbours} (by {change}{', missing cells public' if public else ''})"
