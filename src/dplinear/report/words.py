"""Numbers and guarantees as they are set in print."""

import math

from dplinear.privacy.guarantees import ApproxDP, Guarantee
from dplinear.report.scales import plain_label


def guarantee_label(guarantee: Guarantee | None) -> str:
    """Return a guarantee as it is set in print, on one line: ε = 1, δ = 10⁻⁶."""
    match guarantee:
        case None:
            return "none that is proved"
        case ApproxDP():
            epsilon, delta = plain_label(guarantee.epsilon), plain_label(guarantee.delta)
            return f"ε = {epsilon}, δ = {delta}"
    return str(guarantee)


def minus(text: str) -> str:
    """Return a number with a minus sign that is as wide as a plus."""
    return text.replace("-", "−")


def format_value(value: object) -> str:
    """Return a public number, truth value or text as it is read."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.6g}"
        case int():
            return f"{value:,}"
    return str(value)


def significant(value: float, digits: int = 4) -> str:
    """Return a number to so many significant digits, in full where that is short."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if not 1e-4 <= abs(value) < 1e9:
        return plain_label(float(f"{value:.{digits}g}"))
    decimals = digits - 1 - math.floor(math.log10(abs(value)))
    return minus(f"{round(value, decimals):,.{max(decimals, 0)}f}")
