"""Figures 1 to 3 of Showkatbakhsh, Karakus and Diggavi 2018: files, claims and verdicts."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from dplinear.arrays import Floats
from dplinear.papers import figures
from dplinear.papers.exhibits import (
    FAILS,
    HOLDS,
    IN_PART,
    OPEN,
    PAPERS_NOISE,
    Exhibit,
    Finding,
    Outcome,
    Run,
)
from dplinear.papers.output import write_csv
from dplinear.papers.showkatbakhsh import digits, picture, study
from dplinear.papers.showkatbakhsh.schemes import (
    ADDITIVE,
    CALIBRATIONS,
    FULL,
    LINEAR,
    LOGARITHMIC,
    PAPER,
    PROJECTIONS,
    PUBLIC,
    SOUND,
)
from dplinear.papers.showkatbakhsh.study import DIGITS, DigitsPlan, Plan, Score, Study
from dplinear.papers.showkatbakhsh.tables import NONE, SIGNAL

HEADER = (
    *("response", "calibration", "scheme", "place", "trials", "mean", "standard_error"),
    *("least", "largest", "reference"),
)
STRICT, LOOSE = 0.1, 2.0
CACHE = Path.home() / ".cache" / "dplinear" / "mnist"
SHORT = {PAPER: "the paper's noise", SOUND: "sound noise", PUBLIC: "sound noise, y public"}
_MOST = 0.75  # of the places at which a claim must be clearly so


class Contest(NamedTuple):
    """A claim in parts: a scheme that is said to beat another, and at which places."""

    better: str
    worse: str
    where: Callable[[float], bool]


def lines(found: Study) -> Iterator[tuple[object, ...]]:
    """Yield the lines of a CSV file: one for each point of each curve."""
    for (response, calibration, scheme), errors in found.errors.items():
        reference = found.reference[response].mean(axis=1)
        for position, own, beside in zip(found.positions, errors, reference, strict=True):
            count = len(own)
            error = own.std(ddof=1) / math.sqrt(count) if count > 1 else math.nan
            numbers = (own.mean(), error, own.min(), own.max(), beside)
            shown = [f"{value:.6g}" for value in numbers]
            yield (response, calibration, scheme, f"{position:.4g}", count, *shown)


def write(found: Study, number: int, unit: int, folder: Path) -> tuple[Path, ...]:
    """Write a figure as two pictures and a CSV file."""
    drawn = partial(picture.draw, found, logarithmic=number == 2)
    if number == 3:
        figure = drawn(
            position=f"k: n = {unit}k images", error="test error", reference="without privacy"
        )
    else:
        position = f"k: n = {unit}k rows" if number == 1 else "ε, bits a cell"
        figure = drawn(position=position, error="relative error η", reference="θ = 0, no release")
    paths = [folder / f"showkatbakhsh-figure{number}.{end}" for end in ("png", "svg", "csv")]
    for path in paths[:2]:
        figures.save(figure, path)
    write_csv(paths[2], HEADER, lines(found))
    return tuple(paths)


def beyond_one(k: float) -> bool:
    """Return if rules for n' differ: at k = 1 they do not."""
    return k > 1


def _strict(bits: float) -> bool:
    return bits <= STRICT


def _loose(bits: float) -> bool:
    return bits >= LOOSE


_BETTER = tuple(Contest(own, ADDITIVE, beyond_one) for own in PROJECTIONS)
_LOWER = (Contest(LOGARITHMIC, FULL, beyond_one),)
_BEST = (Contest(LOGARITHMIC, ADDITIVE, beyond_one), *_LOWER)
_STRICTER = (Contest(LOGARITHMIC, FULL, _strict),)
_LOOSER = (Contest(LINEAR, LOGARITHMIC, _loose), Contest(FULL, LINEAR, _loose))


def finding_of(claim: str, found: Study, response: str, contests: Sequence[Contest]) -> Finding:
    """Return at how many places a claim is so, under each kind of noise, and the verdict."""
    scores = {
        calibration: _total([found.score(response, calibration, *contest) for contest in contests])
        for calibration in CALIBRATIONS
    }
    shown = "; ".join(f"{SHORT[each]} {score}" for each, score in scores.items())
    return Finding(claim, f"Clearly so / open / clearly not so: {shown}.", verdict(scores))


def _total(scores: Sequence[Score]) -> Score:
    return Score(*(sum(parts) for parts in zip(*scores, strict=True)))


def verdict(scores: dict[str, Score]) -> str:
    """Return what scores under the three kinds of noise say of a claim."""
    so = {each: score.won >= _MOST * sum(score) for each, score in scores.items()}
    if all(so.values()):
        return HOLDS
    if so[PAPER] and so[PUBLIC]:
        return "holds under the paper's own noise, and where y is public"
    if so[PAPER] and not any(so[each] for each in (SOUND, PUBLIC)):
        return PAPERS_NOISE
    if not any(score.lost for score in scores.values()):
        return IN_PART if any(so.values()) else OPEN
    return IN_PART if any(score.won for score in scores.values()) else FAILS


def _growth(run: Run) -> Outcome:
    plan = study.SMALL if run.quick else Plan()
    found = study.figure1(plan, run.seed, watch=run.watch("Showkatbakhsh et al., Figure 1"))
    findings = (
        finding_of("Projections are uniformly better than additive noise.", found, SIGNAL, _BETTER),
        finding_of(
            "Lower projection dimensions are significantly better at half a bit.",
            found,
            SIGNAL,
            _LOWER,
        ),
        finding_of(
            "Projections are better than additive noise also where y has nothing to do with X.",
            found,
            NONE,
            _BETTER,
        ),
    )
    return Outcome(findings, write(found, 1, plan.unit, run.folder))


def _levels(run: Run) -> Outcome:
    plan = study.SMALL if run.quick else Plan()
    found = study.figure2(plan, run.seed, watch=run.watch("Showkatbakhsh et al., Figure 2"))
    findings = (
        finding_of(
            "Under strict privacy, lower projection dimensions have smaller errors.",
            found,
            SIGNAL,
            _STRICTER,
        ),
        finding_of(
            "Under loose privacy, higher projection dimensions are better.", found, SIGNAL, _LOOSER
        ),
    )
    return Outcome(findings, write(found, 2, plan.unit, run.folder))


def _digits(run: Run) -> Outcome:
    plan, (images, labels), source = _images(quick=run.quick)
    kept = study.largest_columns(images, plan.features)
    watch = run.watch("Showkatbakhsh et al., Figure 3")
    found = study.figure3(kept, labels, plan, run.seed, watch=watch)
    claim = "On digits, logarithmic projection dimensions perform best."
    finding = finding_of(claim, found, DIGITS, _BEST)
    finding = finding._replace(measured=f"{source}. {finding.measured}")
    return Outcome((finding,), write(found, 3, plan.unit, run.folder))


def _images(*, quick: bool) -> tuple[DigitsPlan, tuple[Floats, Floats], str]:
    """Return MNIST; where it is not wanted or cannot be had, the small digits of scikit-learn."""
    small = study.SMALL_DIGITS
    if quick:
        return small, digits.small(), "scikit-learn's 8 x 8 digits"
    try:
        return DigitsPlan(), digits.mnist(CACHE), "MNIST"
    except OSError:
        return small, digits.small(), "scikit-learn's 8 x 8 digits, as MNIST could not be fetched"


EXHIBITS: dict[str, Exhibit] = {
    "figure1": _growth,
    "figure2": _levels,
    "figure3": _digits,
}
