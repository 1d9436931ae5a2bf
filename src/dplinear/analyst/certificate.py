"""The certificate that every release carries: what was promised, and how it was kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dplinear import __version__
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours

GUARANTEES: dict[str, type[Guarantee]] = {
    kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, GDP, MIDP)
}
NUMERICS = ("exact", "idealised")
CALIBRATIONS = ("exact", "paper")


@dataclass(frozen=True)
class Certificate:
    """What a release guarantees. Everything on it is public.

    `asked` is the guarantee that was requested, `holds` the one that is proved (None: no formal
    guarantee); `curve` has points (ε, δ) of the proved profile, δ rounded up. `simulated` marks
    seeded noise, which protects nobody. `parameters` are the mechanism's public numbers.
    """

    mechanism: str
    parameters: Mapping[str, Any]
    neighbours: Neighbours
    asked: Guarantee
    holds: Guarantee | None
    curve: tuple[tuple[float, float], ...]
    numerics: str
    calibration: str
    simulated: bool
    request: str
    dataset: str | None = None
    notes: tuple[str, ...] = ()
    version: str = field(default=__version__)

    def __str__(self) -> str:
        promise = "no formal guarantee" if self.holds is None else str(self.holds)
        lines = [
            f"{self.mechanism}: {promise} ({self.neighbours} neighbours)",
            f"numerics: {self.numerics}; calibration: {self.calibration}",
        ]
        if self.holds != self.asked:
            lines.append(f"asked for: {self.asked}")
        if self.simulated:
            lines.append("SIMULATED: the noise was seeded, and protects nobody")
        return "\n".join([*lines, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        return {
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "neighbours": str(self.neighbours),
            "asked": _written(self.asked),
            "holds": None if self.holds is None else _written(self.holds),
            "curve": [list(point) for point in self.curve],
            "numerics": self.numerics,
            "calibration": self.calibration,
            "simulated": self.simulated,
            "request": self.request,
            "dataset": self.dataset,
            "notes": list(self.notes),
            "version": self.version,
        }


def _written(guarantee: Guarantee) -> dict[str, Any]:
    return {"kind": type(guarantee).__name__} | dict(vars(guarantee))
