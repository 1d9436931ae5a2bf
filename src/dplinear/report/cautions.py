"""What a reader should know before relying on a release."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dplinear.analyst.releases.certificate import Certificate
from dplinear.privacy.guarantees import ApproxDP, Guarantee
from dplinear.report.promise import percent, promise, protects_rows
from dplinear.report.words import guarantee_label

NO_LEDGER = "no ledger was given"  # how the note of such a release begins
_WEAK = 0.9


@dataclass(frozen=True)
class Caution:
    """A warning: `grave` ones mean that the release does not protect as its reader may think."""

    title: str
    text: str
    grave: bool = False


def cautions(
    certificate: Certificate,
    *,
    rows: float | None = None,
    swamped: Iterable[str] = (),
    columns: Iterable[str] = (),
    audit: Any = None,
    counted: bool | None = None,
) -> tuple[Caution, ...]:
    """Return all warnings, grave ones first.

    `rows` is what is known of their number, `swamped` the sentences of fits without intervals,
    `columns` those on declarations that do not fit what was released, `counted` whether a ledger
    that was looked into has the release (None: none was).
    """
    found = [
        *_of_promise(certificate),
        *_of_noise(certificate),
        *_of_audit(audit),
        *_of_count(certificate, counted),
        *_of_size(certificate, rows),
        *(Caution("Estimates without intervals", sentence) for sentence in dict.fromkeys(swamped)),
        *(Caution("A column to look at", sentence) for sentence in columns),
        *_of_notes(certificate),
    ]
    return tuple(sorted(found, key=lambda caution: not caution.grave))


def _of_promise(certificate: Certificate) -> Iterable[Caution]:
    if certificate.simulated:
        yield Caution(
            "Simulated: it protects nobody",
            "The noise came from a fixed seed, so that anybody can take it away again. Do not "
            "publish it.",
            grave=True,
        )
    if certificate.holds is None:
        yield Caution(
            "No guarantee is proved",
            f"{guarantee_label(certificate.asked)} was asked for, and nothing is proved of it.",
            grave=True,
        )
    elif not _keeps(certificate.holds, certificate.asked):
        yield Caution(
            "Not what was asked for",
            f"{guarantee_label(certificate.asked)} was asked for; what is proved is "
            f"{guarantee_label(certificate.holds)}.",
            grave=True,
        )
    told = promise(certificate)
    right = told.accuracy
    if right is not None and right > _WEAK:
        yield Caution(
            "A weak promise",
            f"An attacker who knows the rest of the table may tell {told.about.pair} "
            f"apart with a chance of up to {percent(right)}.",
        )
    if not protects_rows(certificate):
        yield Caution(
            "Less than a whole row is protected",
            "The guarantee is about single cells or small changes, not about all that a row says.",
        )


def _keeps(holds: Guarantee, asked: Guarantee) -> bool:
    if isinstance(holds, ApproxDP) and isinstance(asked, ApproxDP):
        return holds.epsilon <= asked.epsilon and holds.delta <= asked.delta
    return holds == asked


def _of_noise(certificate: Certificate) -> Iterable[Caution]:
    if certificate.calibration == "paper":
        yield Caution(
            "Calibrated as in a paper",
            "The amount of noise is a published constant, kept for comparison. The certificate "
            "says what it really gives.",
        )
    if certificate.numerics == "idealised":
        yield Caution(
            "The guarantee is not one of this program",
            "It is proved for noise that is real numbers. This program drew floating-point ones: "
            "which of them can arise at all depends on the data, and an attacker who knows all "
            "other rows can use that to tell neighbouring tables apart.",
            grave=True,
        )


def _of_audit(audit: Any) -> Iterable[Caution]:
    if audit is not None and audit.broken:
        yield Caution(
            "An audit refutes the promise",
            f"{audit.trials:,} runs of {audit.mechanism} prove more leakage than was claimed.",
            grave=True,
        )


def _of_count(certificate: Certificate, counted: bool | None) -> Iterable[Caution]:  # noqa: FBT001
    if counted is False:
        yield Caution(
            "Not in this ledger",
            f"The ledger has no line for the request {certificate.request}: it was not counted "
            "there.",
        )
    if any(note.startswith(NO_LEDGER) for note in certificate.notes):
        yield Caution(
            "Not charged to a privacy budget",
            "This release was made without a ledger, so no privacy budget is charged. Privacy "
            "losses add up: several releases together protect less than each does alone.",
        )


def _of_size(certificate: Certificate, rows: float | None) -> Iterable[Caution]:
    holds, unit = certificate.holds, certificate.unit
    if rows and isinstance(holds, ApproxDP) and math.isfinite(rows) and holds.delta * rows > 1:
        yield Caution(
            "δ is large for this table",
            f"δ exceeds one in the number of {'rows' if unit is None else 'units'}. A mechanism "
            f"that published {'one row' if unit is None else 'all rows of one unit'} at random "
            "could keep such a promise.",
        )


def _of_notes(certificate: Certificate) -> Iterable[Caution]:
    for note in certificate.notes:
        if not note.startswith(NO_LEDGER):
            yield Caution("A note on the certificate", note[:1].upper() + note[1:])
