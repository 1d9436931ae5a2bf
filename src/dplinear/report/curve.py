"""The picture of a proved δ(ε) curve, and the table that says the same."""

from dataclasses import dataclass

import numpy as np
from scipy.interpolate import PchipInterpolator

from dplinear.analyst.releases.certificate import Certificate
from dplinear.privacy.guarantees import ApproxDP, PureDP
from dplinear.report.panels import Table
from dplinear.report.scales import Axis, Tick, plain_label

LEFT, RIGHT, TOP, BOTTOM = 58.0, 20.0, 34.0, 48.0
SIZES = ((680.0, 360.0, False), (340.0, 320.0, True))  # width, height, narrow
LOWEST = 1e-18  # less than this is not worth a place in a picture
_BETWEEN = 12


@dataclass(frozen=True)
class CurvePicture:
    """Places of everything that is drawn, in a box of `width` times `height`.

    `line` guides the eye between `dots`, which are proved. `mark` is the guarantee asked for, a
    point, or a vertical line where its δ is 0. `summary` says in words what is to be seen.
    """

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    line: str
    dots: tuple[tuple[float, float, str], ...]
    mark: tuple[float, float | None, str, str] | None
    summary: str
    narrow: bool


def curve_pictures(certificate: Certificate) -> tuple[CurvePicture, ...]:
    """Return the picture of a certificate's curve, wide and narrow; none where it has no curve."""
    shown = [
        (epsilon, delta) for epsilon, delta in certificate.curve if _is_visible(epsilon, delta)
    ]
    if len(shown) < 2:
        return ()
    return tuple(_picture(certificate, shown, *size) for size in SIZES)


def curve_table(certificate: Certificate) -> Table:
    """Return all points of a certificate's curve."""
    rows = tuple((plain_label(e), f"{d:.2e}") for e, d in certificate.curve)
    return Table("Points of the proved curve, δ rounded up", ("ε", "δ at most"), rows)


def _picture(
    certificate: Certificate,
    shown: list[tuple[float, float]],
    width: float,
    height: float,
    narrow: bool,  # noqa: FBT001 - as SIZES has them
) -> CurvePicture:
    asked = certificate.asked if certificate.holds == certificate.asked else certificate.holds
    point = _point(asked)
    epsilons = [epsilon for epsilon, _ in shown] + ([point[0]] if point else [])
    deltas = [delta for _, delta in shown] + ([point[1]] if point and point[1] > 0 else [])
    x = Axis(min(epsilons), max(epsilons), LEFT, width - RIGHT, logarithmic=True)
    lowest = 10.0 ** np.floor(np.log10(min(deltas)))
    y = Axis(float(lowest), 1.0, height - BOTTOM, TOP, logarithmic=True)
    dots = tuple(
        (x.position(epsilon), y.position(delta), f"δ({epsilon:g}) ≤ {delta:.2g}")
        for epsilon, delta in shown
    )
    return CurvePicture(
        width,
        height,
        LEFT,
        width - RIGHT,
        TOP,
        height - BOTTOM,
        x.ticks(4 if narrow else 7),
        y.ticks(7),
        guide([(across, down) for across, down, _ in dots]),
        dots,
        None if point is None else _mark(point, x, y),
        _summary(certificate),
        narrow,
    )


def _is_visible(epsilon: float, delta: float) -> bool:
    return epsilon > 0 and LOWEST <= delta <= 1


def _point(asked: object) -> tuple[float, float] | None:
    if isinstance(asked, PureDP):
        return asked.epsilon, 0.0
    if isinstance(asked, ApproxDP) and asked.epsilon > 0:
        return asked.epsilon, asked.delta
    return None


def _mark(point: tuple[float, float], x: Axis, y: Axis) -> tuple[float, float | None, str, str]:
    epsilon, delta = point
    across = x.position(epsilon)
    side = "end" if across > (x.start + x.stop) / 2 else "start"
    if delta < y.low:
        return across, None, f"ε = {plain_label(epsilon)}, δ = {plain_label(delta)}", side
    return across, y.position(delta), f"ε = {plain_label(epsilon)}, δ = {plain_label(delta)}", side


def guide(points: list[tuple[float, float]]) -> str:
    """Return the path of a smooth, monotone line through points in order."""
    across, down = (np.array(values) for values in zip(*points, strict=True))
    inner = np.linspace(0, 1, _BETWEEN, endpoint=False)
    steps = np.append((across[:-1, None] + np.diff(across)[:, None] * inner).ravel(), across[-1])
    curve = zip(steps, PchipInterpolator(across, down)(steps), strict=True)
    return "M" + "L".join(f"{round(float(a), 1)},{round(float(b), 1)}" for a, b in curve)


def _summary(certificate: Certificate) -> str:
    first, last = certificate.curve[0], certificate.curve[-1]
    return (
        f"The proved curve falls from δ = {first[1]:.2g} at ε = {first[0]:g} to δ = {last[1]:.2g} "
        f"at ε = {last[0]:g}; both axes are logarithmic. The table beneath has all points."
    )
