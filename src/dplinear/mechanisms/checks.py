"""What every mechanism checks of its public arguments; fractions rounded once, upwards."""

import math
from typing import Any

from dplinear import arguments
from dplinear.exact.shape import Shape, Statistic
from dplinear.mechanisms.contract import Account
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.roots import smallest_private

CALIBRATIONS = ("exact", "paper")
RELATIONS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
# Why noise on a grid has no guarantee of these kinds, and which to ask for instead.
GRID_HINTS: dict[type[Guarantee], str] = {
    GDP: "noise on a grid is ρ-zCDP with ρ = μ²/2 but not μ-GDP: ask for ZCDP(μ²/2), or ApproxDP.",
    MIDP: "bits are counted for single cells, and a row has many: ask for ZCDP or ApproxDP.",
}
_REACH = (1e-100, 1e20, 1e-300)  # the least and the largest amount, and the least δ above 0
_RULE = "an ApproxDP guarantee with ε and δ above 0"


def read_guarantee(
    where: str, epsilon: float | None, delta: float | None, guarantee: Guarantee | None
) -> Guarantee:
    """Return the guarantee that was asked for, in whichever way."""
    if guarantee is not None:
        if epsilon is not None or delta is not None:
            rule = "left out where epsilon or delta is given"
            raise arguments.rejection("guarantee", where, rule, guarantee)
        if not isinstance(guarantee, PureDP | ApproxDP | ZCDP | GDP | MIDP):
            raise arguments.mistyped("guarantee", where, "a guarantee such as ZCDP(rho)", guarantee)
        return within_reach(guarantee, where)
    if epsilon is None:
        hint = "write epsilon=1.0, delta=1e-6, or guarantee=ZCDP(0.1)."
        raise arguments.mistyped(
            "epsilon", where, "given: there is no default privacy", epsilon, hint
        )
    asked: Guarantee = PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    if isinstance(asked, ApproxDP) and asked.delta == 0:
        asked = PureDP(epsilon)
    return within_reach(asked, where)


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


def calibration(value: Any, where: str) -> str:
    """Return the kind of calibration."""
    return arguments.choice(value, "calibration", where, CALIBRATIONS)


def approximate(guarantee: Any, where: str, noise: str, rule: str = _RULE) -> ApproxDP:
    """Return the guarantee, if it is the (ε, δ) that such noise can be calibrated for."""
    if isinstance(guarantee, PureDP) or (isinstance(guarantee, ApproxDP) and guarantee.delta == 0):
        hint = f"{noise} has unbounded loss and is never pure: ask for ApproxDP(ε, δ) with a δ."
        raise arguments.rejection("guarantee", where, rule, guarantee, hint)
    if not isinstance(guarantee, ApproxDP):
        hint = f"no theorem gives {noise} a guarantee of this kind: ask for ApproxDP(ε, δ)."
        raise arguments.mistyped("guarantee", where, rule, guarantee, hint)
    if guarantee.epsilon == 0:
        hint = "with ε = 0 all is left to δ: give ε a part of the budget."
        raise arguments.rejection("guarantee", where, rule, guarantee, hint)
    return guarantee


def published(guarantee: ApproxDP, where: str) -> ApproxDP:
    """Return the guarantee, if the paper's theorems speak of it."""
    if guarantee.delta < 1 / math.e:
        return guarantee
    rule = "one with δ below 1/e, where the paper's constants are used"
    hint = 'calibration="exact" has no such limit.'
    raise arguments.rejection("guarantee", where, rule, guarantee, hint)


def same_shape(statistic: Statistic, shape: Shape, where: str) -> None:
    """Raise if a mechanism was prepared for another shape. Shapes are public."""
    if statistic.shape != shape:
        rule = f"of the shape it was prepared for, {shape}"
        raise arguments.rejection("statistic", where, rule, statistic.shape)


def least_epsilon(asked: ApproxDP, profile: Profile) -> float:
    """Return the least ε that a profile keeps at the δ that was asked for."""
    if profile.delta(0.0) <= asked.delta:
        return 0.0
    # The search starts from what was asked for: far beyond it δ may be no float at all.
    return smallest_private(profile.delta, asked.delta, asked.epsilon)


def what_holds(asked: ApproxDP, profile: Profile, notes: tuple[str, ...] = ()) -> Account:
    """Return the account of a published constant: the ε that is proved for it, at the same δ."""
    epsilon = least_epsilon(asked, profile)
    if epsilon > asked.epsilon:
        notes = (*notes, "The published constant does not keep what was asked for.")
    return Account(asked, ApproxDP(epsilon, asked.delta), profile, notes)


def kept(asked: Guarantee, profile: Profile, notes: tuple[str, ...] = ()) -> Account:
    """Return the account of an exact calibration: what was asked for holds."""
    return Account(asked, asked, profile, notes)
