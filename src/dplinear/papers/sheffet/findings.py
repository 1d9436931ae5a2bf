"""Figure 1 of Sheffet 2015 and its remark on components: files, claims and verdicts."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from dplinear.papers import figures
from dplinear.papers.exhibits import (
    FAILS,
    HOLDS,
    OPEN,
    Exhibit,
    Finding,
    Outcome,
    Run,
    by_share,
    span,
)
from dplinear.papers.output import write_csv
from dplinear.papers.sheffet import picture, study
from dplinear.papers.sheffet.components import component_error
from dplinear.papers.sheffet.design import COLUMNS, REDUNDANT, Design
from dplinear.papers.sheffet.study import GAINS, RIVALS, Study
from dplinear.papers.sheffet.techniques import (
    ANALYZE_GAUSS,
    CALIBRATIONS,
    INVERSE,
    SKETCH,
    TECHNIQUES,
    Bench,
)

HEADER = (
    *("calibration", "technique", "redundant", "rows", "repetitions"),
    *("mean", "lower_quartile", "median", "upper_quartile"),
)
PAPERS_START, PAPERS_END = 16, 22  # exponents that the paper names
MODERATE, GAINS_AT = 16, 20
_QUICK = (8, (12, 14, 16, 18, 20, 22, 24, 27))  # fewer than 8 could not satisfy the rank test
_FULL = (20, tuple(range(12, 28)))
_NAMES = {"exact": "exact", "paper": "the paper's constants"}


def lines(found: Study) -> Iterator[tuple[object, ...]]:
    """Yield the lines of the CSV file: one for each point of each curve."""
    for calibration, technique in found.errors:
        for redundant in REDUNDANT:
            curve = found.of(calibration, technique, redundant)
            quartiles = np.quantile(curve, [0.25, 0.5, 0.75], axis=-1).T
            for exponent, errors, three in zip(found.exponents, curve, quartiles, strict=True):
                summary = [f"{value:.6g}" for value in (errors.mean(), *three)]
                key = (calibration, technique.name, redundant, 2**exponent, len(errors))
                yield (*key, *summary)


def write(found: Study, folder: Path) -> tuple[Path, ...]:
    """Write Figure 1 as a picture and a CSV file."""
    table, drawn = folder / "sheffet-figure1.csv", folder / "sheffet-figure1.png"
    write_csv(table, HEADER, lines(found))
    figures.save(picture.draw(found), drawn)
    return drawn, table


def _figure1(run: Run) -> Outcome:
    repetitions, exponents = _QUICK if run.quick else _FULL
    found = study.run(
        Bench.of(Design.draw(run.seed)),
        run.seed,
        repetitions=repetitions,
        exponents=exponents,
        watch=run.watch("Sheffet, Figure 1"),
    )
    findings = (
        _best(found),
        _unusable(found),
        _scaling_finding(found),
        _inverse(found),
        _growing(found),
    )
    return Outcome((*findings, _gains(found)), write(found, run.folder))


def _best(found: Study) -> Finding:
    starts = {each: study.best_from(found, each) for each in CALIBRATIONS}
    shown = ", ".join(
        f"{'nowhere' if start is None else f'from 2^{start}'} ({_NAMES[each]})"
        for each, start in starts.items()
    )
    known = [start for start in starts.values() if start is not None]
    verdict = HOLDS if known and min(known) <= PAPERS_START else "holds, from more rows on"
    return Finding(
        "With no redundant feature Analyze Gauss is the best of six techniques from 2^16 rows on.",
        f"No other is better (rank test): {shown}.",
        verdict if len(known) == len(starts) else FAILS,
    )


def _unusable(found: Study) -> Finding:
    where = found.exponents.index(MODERATE)
    own: list[float] = []
    others: list[float] = []
    for redundant in REDUNDANT[1:]:
        for technique in TECHNIQUES:
            error = float(found.median("exact", technique, redundant)[where])
            (own if technique == ANALYZE_GAUSS else others).append(error)
    share = float(np.mean([error > max(1.0, *others) for error in own]))
    return Finding(
        "One redundant feature is enough for Analyze Gauss to answer far outside the sensible.",
        f"At 2^{MODERATE} rows, m ≥ 1, exact calibration: its median relative errors are "
        f"{span(own)}, those of all others {span(others)}.",
        by_share(share),
    )


def _scaling_finding(found: Study) -> Finding:
    below = [each for each in found.exponents if each < PAPERS_END]
    worse = {
        calibration: sum(
            len(set(study.scaled_beaten(found, calibration, rival, redundant)) & set(below))
            for rival in RIVALS
            for redundant in REDUNDANT[1:]
        )
        for calibration in CALIBRATIONS
    }
    total = len(below) * len(RIVALS) * (len(REDUNDANT) - 1)
    shown = ", ".join(f"{count} ({_NAMES[each]})" for each, count in worse.items())
    return Finding(
        "With redundant features and below 2^22 rows, scaled Analyze Gauss is consistently worse "
        "than the sketch, inverse-Wishart and scaled Wishart noise.",
        f"Clearly worse in so many of {total} comparisons: {shown}.",
        by_share(max(worse.values()) / total, few=0.5),
    )


def _inverse(found: Study) -> Finding:
    total = len(REDUNDANT) * len(found.exponents)
    better, worse = 0, 0
    for redundant in REDUNDANT:
        better += len(found.beaten("exact", SKETCH, [INVERSE], redundant))
        worse += len(found.beaten("exact", INVERSE, [SKETCH], redundant))
    share = (better - worse) / total
    verdict = OPEN if max(better, worse) < 0.1 * total else by_share(share)
    return Finding(
        "Inverse-Wishart is consistently better than the sketch.",
        f"Exact calibration: clearly better at {better} of {total} points, worse at {worse}.",
        verdict,
    )


def _growing(found: Study) -> Finding:
    pairs = [
        found.median(calibration, technique, redundant)
        for redundant in (REDUNDANT[0], REDUNDANT[-1])
        for calibration, technique in found.errors
    ]
    half = len(pairs) // 2
    more = [bool(many[-1] > few[-1]) for few, many in zip(pairs[:half], pairs[half:], strict=True)]
    return Finding(
        "As the number of redundant features grows, the errors of all techniques do.",
        f"At 2^{found.exponents[-1]} rows the error is larger at m = {REDUNDANT[-1]} than at m = 0 "
        f"for {sum(more)} of {len(more)} curves.",
        by_share(sum(more) / len(more)),
    )


def _gains(found: Study) -> Finding:
    ratios = {technique.name: found.gain(technique, GAINS_AT) for technique in GAINS}
    shown = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return Finding(
        "Not in the paper: exact calibration has smaller errors than its constants.",
        f"Median error under the paper's constants over that under the exact ones, m = 0, "
        f"2^{GAINS_AT} rows: {shown}.",
        by_share(sum(ratio > 1 for ratio in ratios.values()) / len(ratios)),
    )


def _components(run: Run) -> Outcome:
    design = Design.draw(run.seed)
    first, last = "components", "all_but_one"
    errors = {
        redundant: (
            component_error(design, redundant, COLUMNS),
            component_error(design, redundant, COLUMNS + redundant),
        )
        for redundant in REDUNDANT
    }
    path = run.folder / "sheffet-components.csv"
    shown = ((m, *(f"{error:.6g}" for error in pair)) for m, pair in errors.items())
    write_csv(path, ("redundant", first, last), shown)
    plain = errors.pop(0)
    share = float(np.mean([pair[1] > 10 * plain[1] for pair in errors.values()]))
    finding = Finding(
        "Regression on principal components is close without redundant features, and distorts the "
        "coefficients with them, even without privacy.",
        f"Relative error without noise, n = ∞, all components but one: {plain[1]:.3f} at m = 0, "
        f"{span(pair[1] for pair in errors.values())} at m ≥ 1.",
        by_share(share) if plain[1] < 0.1 else FAILS,
    )
    return Outcome((finding,), (path,))


EXHIBITS: dict[str, Exhibit] = {
    "figure1": _figure1,
    "components": _components,
}
