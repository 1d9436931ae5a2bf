"""What an audit found, as a page shows it."""

from dataclasses import dataclass
from typing import Any

from dplinear.report.panels import Table
from dplinear.report.words import guarantee_label


@dataclass(frozen=True)
class Audited:
    """An audit's result: `share` is what was proved as a part of the claim, at most 1."""

    sentence: str
    verdict: str
    broken: bool
    claimed: str
    found: str
    share: float
    table: Table


def audit_panel(result: Any) -> Audited:
    """Return an audit's result in words and numbers."""
    unit = result.unit
    rows = [
        ("mechanism", result.mechanism),
        ("neighbours", str(result.neighbours)),
        ("guarantee claimed", guarantee_label(result.guarantee)),
        (f"{unit} claimed", f"{result.claimed:.4g}"),
        (f"{unit} that the runs prove (95% confidence)", f"{result.audited:.4g}"),
        ("runs on each of two tables", f"{result.trials:,}"),
    ]
    if result.claimed_epsilon is not None:
        rows.append((f"ε claimed at δ = {result.delta:g}", f"{result.claimed_epsilon:.4g}"))
        rows.append((f"ε proved at δ = {result.delta:g}", f"{result.audited_epsilon:.4g}"))
    rows.append(("verdict", result.verdict))
    return Audited(
        _sentence(result),
        result.verdict,
        result.broken,
        f"{unit} = {result.claimed:.3g}",
        f"{unit} ≥ {result.audited:.3g}",
        min(result.ratio, 1.0),
        Table("The audit in numbers", ("what", "value"), tuple(rows), left=(1,)),
    )


def _sentence(result: Any) -> str:
    if result.broken:
        return _BROKEN
    return f"{_RUNS} {_HOLDS if result.audited <= result.claimed else _UNLUCKY}"


_RUNS = (
    "The mechanism was run many times on two tables that differ in one place, chosen to be the "
    "hardest to keep apart."
)
_HOLDS = (
    "What the runs prove stays below what is claimed. An audit can refute a promise, never prove "
    "one: the proof is the theorem behind the certificate."
)
_UNLUCKY = (
    "At 95% confidence the runs point above the claim, which happens in one of twenty audits even "
    "if the promise is kept. At the confidence that it takes to refute one, 1 in 10,000, they do "
    "not. Another audit, of more runs, would tell."
)
_BROKEN = (
    "The mechanism was run many times on two tables that differ in one place. The runs prove more "
    "leakage than is claimed: the promise is broken, and the release should not be published."
)
