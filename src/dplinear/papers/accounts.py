"""What every published variant checks, and its account: what holds, not what was claimed."""

import math

from dplinear import arguments
from dplinear.mechanisms.contract import Account
from dplinear.privacy.guarantees import ApproxDP
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.roots import smallest_private

NOT_KEPT = "The published constant does not keep what was asked for."


def check_delta(guarantee: ApproxDP, where: str) -> ApproxDP:
    """Return the guarantee, if the papers' theorems speak of it."""
    if guarantee.delta < 1 / math.e:
        return guarantee
    rule = "one with δ below 1/e, where the paper's constants are used"
    hint = "the mechanism of the library has no such limit."
    raise arguments.rejection("guarantee", where, rule, guarantee, hint)


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
        notes = (*notes, NOT_KEPT)
    return Account(asked, ApproxDP(epsilon, asked.delta), profile, notes)
