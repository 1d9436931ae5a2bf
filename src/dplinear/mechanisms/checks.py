"""What every mechanism checks of its public arguments; fractions rounded once, upwards."""

from typing import Any, TypeVar

from dplinear import arguments
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms.contract import Account
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile

_Guarantee = TypeVar("_Guarantee", bound=PureDP | ApproxDP | ZCDP | MIDP)
RELATIONS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
# Why noise on a grid has no guarantee of these kinds, and which to ask for instead.
GRID_HINTS: dict[type[Guarantee], str] = {
    GDP: "noise on a grid is ρ-zCDP with ρ = μ²/2 but not μ-GDP: ask for ZCDP(μ²/2), or ApproxDP.",
    MIDP: "bits are counted for single cells, and a row has many: ask for ZCDP or ApproxDP.",
}
# The least and the largest amount, and the least δ above 0, which mechanisms may share out further.
_REACH = (1e-100, 1e20, 1e-290)
_EXAMPLES = {
    "epsilon": "write epsilon=1.0, delta=1e-6, or guarantee=ZCDP(0.1).",
    "bits": "write bits=0.5.",
}
_RULE = "an ApproxDP guarantee with ε and δ above 0"
ADD_DELTA = "add delta=1e-6"  # how a hint begins where only the δ is missing


def read_guarantee(
    where: str,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    *,
    bits: float | None = None,
    rho: float | None = None,
    usual: str = "epsilon",
) -> Guarantee:
    """Return the guarantee that was asked for: ε with or without δ, bits, ρ, or as such.

    Requires: one of these ways. `usual` is the one that an error asks for where there is none.
    """
    several = sum(each is not None for each in (bits, rho, guarantee, epsilon, delta)) > 1
    amounts: dict[str, tuple[float | None, type[MIDP | ZCDP]]]
    amounts = {"bits": (bits, MIDP), "rho": (rho, ZCDP)}
    for name, (amount, kind) in amounts.items():
        if amount is not None:
            if several:
                rule = "left out where another guarantee is given"
                raise arguments.rejection(name, where, rule, amount)
            return within_reach(_made(kind, where, amount), where)
    if guarantee is not None:
        if several:
            rule = "left out where epsilon or delta is given"
            raise arguments.rejection("guarantee", where, rule, guarantee)
        if not isinstance(guarantee, PureDP | ApproxDP | ZCDP | GDP | MIDP):
            raise arguments.wrong_type(
                "guarantee", where, "a guarantee such as ZCDP(rho)", guarantee
            )
        return within_reach(guarantee, where)
    if epsilon is None:
        rule = "given: there is no default privacy"
        raise arguments.wrong_type(usual, where, rule, None, _EXAMPLES[usual])
    asked: Guarantee
    if delta is None:
        asked = _made(PureDP, where, epsilon)
    else:
        asked = _made(ApproxDP, where, epsilon, delta)
    if isinstance(asked, ApproxDP) and asked.delta == 0:
        asked = PureDP(epsilon)
    return within_reach(asked, where)


def _made(kind: type[_Guarantee], where: str, *amounts: float) -> _Guarantee:
    """Return a guarantee of these amounts; what is wrong with one names who was given it."""
    try:
        return kind(*amounts)
    except arguments.ArgumentError as error:
        raise error.rename(where) from None


def within_reach(guarantee: Guarantee, where: str) -> Guarantee:
    """Return a guarantee that floats can be calibrated for; refuse what is far beyond any use."""
    amounts = dict(vars(guarantee))
    delta = amounts.pop("delta", 0.0)
    (amount,) = amounts.values()
    least, most, smallest = _REACH
    none = isinstance(guarantee, ApproxDP) and amount == 0
    if (none or least <= amount <= most) and (delta == 0 or delta >= smallest):
        return guarantee
    rule = f"of an amount from {least:g} to {most:g}, and a δ, if any, of at least {smallest:g}"
    raise arguments.rejection("guarantee", where, rule, guarantee)


def relation(value: Any, where: str) -> Neighbours:
    """Return the neighbour relation, if a row is what it hides."""
    return Neighbours.parse(value, where, RELATIONS)


def approximate(guarantee: Any, where: str, noise: str, rule: str = _RULE) -> ApproxDP:
    """Return the guarantee, if it is the (ε, δ) that such noise can be calibrated for."""
    if isinstance(guarantee, PureDP) or (isinstance(guarantee, ApproxDP) and guarantee.delta == 0):
        hint = f"{ADD_DELTA}: {noise} has an unbounded privacy loss, so pure ε-DP is out of reach."
        raise arguments.rejection("guarantee", where, rule, guarantee, hint)
    if not isinstance(guarantee, ApproxDP):
        hint = f"no theorem gives {noise} a guarantee of this kind: ask for ApproxDP(ε, δ)."
        raise arguments.wrong_type("guarantee", where, rule, guarantee, hint)
    if guarantee.epsilon == 0:
        hint = "with ε = 0 all is left to δ: give ε a part of the budget."
        raise arguments.rejection("guarantee", where, rule, guarantee, hint)
    return guarantee


def same_shape(statistic: Statistic, shape: Shape, where: str) -> None:
    """Raise if a mechanism was prepared for another shape. Shapes are public."""
    if statistic.shape != shape:
        rule = f"of the shape it was prepared for, {shape}"
        raise arguments.rejection("statistic", where, rule, statistic.shape)


def exact_account(asked: Guarantee, profile: Profile, notes: tuple[str, ...] = ()) -> Account:
    """Return the account of a mechanism: what was asked for holds."""
    return Account(asked, asked, profile, notes)
