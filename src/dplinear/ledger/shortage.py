"""What to say where a budget does not suffice: what is needed, what is left, what still fits."""

import math

from dplinear.ledger.budget import UNIT, Budget, Units
from dplinear.ledger.request import Request
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, PureDP
from dplinear.privacy.profiles.gaussian import Gaussian, GridGaussian

_DIGITS = 3
_FIXED = "A budget cannot be raised."
_FREE = "Questions to releases that were made are post-processing, and cost nothing."


def shortage(budget: Budget, dataset: str, cost: Units, left: Units, request: Request) -> str:
    """Return the sentence for a request that a budget refuses, with a hint on what it admits."""
    return (
        f"This release needs {budget.text(cost)}, but {dataset!r} has only "
        f"{budget.text(left)} left of its budget of {budget}.\n\n"
        f"Hint: {what_fits(budget, left, request)}"
    )


def what_fits(budget: Budget, left: Units, request: Request) -> str:
    """Return what a caller may ask for instead, in the terms of the request where that is known."""
    if left.main <= 0:
        return f"nothing of this budget is left. {_FIXED} {_FREE}"
    found = None
    if budget.steps(request.neighbours, request.parameters) == 1:
        found = _most_rho(left, request) if isinstance(budget.guarantee, ZCDP) else None
        found = _most(budget, left, request) if found is None else found
    if found is None:
        return f"ask for a smaller ε, or for whatever the release is asked for in. {_FIXED}"
    return f"{found} still fits. {_FIXED}"


def _most_rho(left: Units, request: Request) -> str | None:
    """Return the largest guarantee of the request's kind that so much ρ pays for.

    Of normal noise that is exact: ρ = μ²/2. ε-DP is ε²/2-zCDP (Bun and Steinke 2016).
    """
    rho = left.main / UNIT
    match request.guarantee:
        case ZCDP():
            return f"ρ up to {_down(rho)}"
        case GDP():
            return f"μ up to {_down(math.sqrt(2 * rho))}"
        case PureDP():
            return f"ε up to {_down(math.sqrt(2 * rho))}"
        case ApproxDP(delta=delta) if isinstance(request.profile, Gaussian | GridGaussian):
            epsilon = Gaussian(math.sqrt(2 * rho)).epsilon(delta) if delta > 0 else 0.0
            return f"at δ = {delta:g}, ε up to {_down(epsilon)}" if epsilon > 0 else None
    return None


def _most(budget: Budget, left: Units, request: Request) -> str | None:
    """Return the largest guarantee of the budget's own kind that is left, if that was asked for."""
    main = left.main / UNIT
    match budget.guarantee, request.guarantee:
        case GDP(), GDP():
            return f"μ up to {_down(math.sqrt(main))}"
        case MIDP(), MIDP():
            return f"{_down(main)} bits"
        case PureDP() | ApproxDP(), PureDP():
            return f"ε up to {_down(main)}"
        case ApproxDP(), ApproxDP():
            return f"{budget.text(left)} or less"
    return None


def _down(value: float) -> str:
    """Return a number rounded down, a little more where it was itself rounded."""
    value *= 1 - 1e-6
    step = 10.0 ** (math.floor(math.log10(value)) - _DIGITS + 1)
    return f"{math.floor(value / step) * step:.{_DIGITS}g}"
