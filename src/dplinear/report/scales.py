"""Axes: where a number stands in a picture, and which numbers are written beside it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_STEPS = (1, 2, 2.5, 5, 10)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Tick:
    """A place on an axis, and what is written there."""

    position: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A map from [low, high] to [start, stop], straight or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def position(self, value: float) -> float:
        """Return where a value stands, to a tenth of a pixel."""
        low, high, here = self.low, self.high, value
        if self.logarithmic:
            low, high, here = math.log10(low), math.log10(high), math.log10(value)
        share = (here - low) / (high - low)
        return round(self.start + share * (self.stop - self.start), 1)

    def ticks(self, most: int = 6) -> tuple[Tick, ...]:
        """Return at most so many ticks at round numbers."""
        values = powers(self.low, self.high, most) if self.logarithmic else rounds(self, most)
        label = power_label if self.logarithmic else plain_label
        return tuple(Tick(self.position(value), label(value)) for value in values)


def rounds(axis: Axis, most: int) -> list[float]:
    """Return round numbers between the ends of a straight axis."""
    raw = (axis.high - axis.low) / max(most - 1, 1)
    size = 10.0 ** math.floor(math.log10(raw))
    step = next(size * each for each in _STEPS if size * each >= raw * (1 - 1e-12))
    first = math.ceil(axis.low / step - 1e-9)
    last = math.floor(axis.high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def powers(low: float, high: float, most: int) -> list[float]:
    """Return powers of ten between the ends of a logarithmic axis, or 1, 2, 5 of them if few."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    if last - first >= 2:
        stride = math.ceil((last - first + 1) / most)
        return [10.0**exponent for exponent in range(last, first - 1, -stride)][::-1]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    many = [factor * 10.0**exponent for exponent in decades for factor in (1, 2, 5)]
    kept = [value for value in many if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    return kept[:: math.ceil(len(kept) / most)] if kept else [low, high]


def plain_label(value: float) -> str:
    """Return a round number as it is read: 12,000; 0.25; −3."""
    if value == 0:
        return "0"
    text = f"{value:,.10g}" if 1e-4 <= abs(value) < 1e7 else _scientific(value)
    return text.replace("-", "−")


def _scientific(value: float) -> str:
    mantissa, exponent = f"{value:.3e}".split("e")
    shown = f"{float(mantissa):g}"
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if shown == "1" else f"{shown}·{power}"


def power_label(value: float) -> str:
    """Return 0.01 to 10,000 as they are, and other powers of ten as powers."""
    if 0.009 < value < 10_001:
        return plain_label(value)
    return _scientific(value)


def spread(values: Sequence[float], *, zero: bool = False) -> tuple[float, float]:
    """Return the ends of an axis with room around all these values, and around 0 if asked."""
    found = [value for value in values if math.isfinite(value)] + ([0.0] if zero else [])
    low, high = min(found, default=0.0), max(found, default=0.0)
    if low == high == 0:
        return -1.0, 1.0
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return low - (room if low else 0.0), high + (room if high else 0.0)


def decades(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of a logarithmic axis with a little room around all these values."""
    return min(values) / 1.3, max(values) * 1.3
