"""All three figures: every size or ε, every scheme, every calibration, and what the curves say."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import t as student

from dplinear.arguments import integer
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.papers.showkatbakhsh import tables
from dplinear.papers.showkatbakhsh.draws import Sums
from dplinear.papers.showkatbakhsh.schemes import CALIBRATIONS, SCHEMES, Setting, solution

DIGITS = "digits"
DOUBT = 0.01  # the p-value from which on a difference counts, to either side
_TINY = 1e-300

Watch = Callable[[Sequence[int]], Iterable[int]]
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Plan:
    """Sizes of Figures 1 and 2: n = unit·k for k up to `steps`, and n = unit·`middle`."""

    unit: int = 1000
    features: int = 800
    steps: int = 20
    trials: int = 5
    bits: float = 0.5
    middle: int = 10
    levels: tuple[float, ...] = tuple(np.geomspace(0.01, 10, 19).tolist())


SMALL = Plan(unit=50, features=40, steps=6, trials=5, middle=6, levels=(0.01, 0.1, 0.5, 2.0, 8.0))


@dataclass(frozen=True)
class DigitsPlan:
    """Sizes of Figure 3: n = unit·k for k up to `steps`, n' by rules of `rule` rows."""

    unit: int = 1000
    rule: int = 500
    features: int = 300
    steps: int = 9
    trials: int = 10
    bits: float = 0.2


SMALL_DIGITS = DigitsPlan(unit=40, rule=40, features=20, steps=7, trials=5)


class Score(NamedTuple):
    """At how many places a scheme is clearly better than another, neither, or clearly worse."""

    won: int
    open: int
    lost: int

    def __str__(self) -> str:
        return f"{self.won} / {self.open} / {self.lost}"


@dataclass(frozen=True, eq=False)
class Study:
    """Errors of each response, calibration and scheme: arrays of shape (positions, trials).

    `positions` are k or ε. `reference` is what needs no release, by response: the relative error of
    θ = 0 in Figures 1 and 2, the test error of least squares without privacy in Figure 3.
    """

    positions: tuple[float, ...]
    errors: dict[Key, Floats]
    reference: dict[str, Floats]

    def mean(self, response: str, calibration: str, scheme: str) -> Floats:
        """Return one curve."""
        return np.asarray(self.errors[response, calibration, scheme].mean(axis=1))

    def against(self, response: str, calibration: str, better: str, worse: str) -> Floats:
        """Return, place by place, by how many standard errors `worse` has the larger mean error.

        Of the differences trial by trial, as schemes of one trial share their table.
        """
        pair = (self.errors[response, calibration, scheme] for scheme in (worse, better))
        difference = next(pair) - next(pair)
        spread = difference.std(axis=1, ddof=1) / np.sqrt(difference.shape[1])
        return np.asarray(difference.mean(axis=1) / np.maximum(spread, _TINY))

    def score(
        self,
        response: str,
        calibration: str,
        better: str,
        worse: str,
        where: Callable[[float], bool],
    ) -> "Score":
        """Return at how many of the places that `where` picks `better` is so."""
        found = self.against(response, calibration, better, worse)
        kept = found[[where(position) for position in self.positions]]
        clear = float(student.isf(DOUBT / 2, self.trials - 1))
        won, lost = int((kept > clear).sum()), int((kept < -clear).sum())
        return Score(won, len(kept) - won - lost, lost)

    @property
    def trials(self) -> int:
        """The number of trials."""
        return int(next(iter(self.errors.values())).shape[1])

    @property
    def responses(self) -> tuple[str, ...]:
        """The responses, in their order."""
        return tuple(self.reference)


class _Record:
    """Errors as they come, to be made into a study."""

    def __init__(self) -> None:
        self._errors: dict[Key, dict[tuple[int, int], float]] = {}
        self._reference: dict[str, dict[tuple[int, int], float]] = {}

    def add(self, key: Key, index: int, trial: int, error: float) -> None:
        self._errors.setdefault(key, {})[index, trial] = error

    def refer(self, response: str, index: int, trial: int, error: float) -> None:
        self._reference.setdefault(response, {})[index, trial] = error

    def study(self, positions: Sequence[float], trials: int) -> Study:
        def whole(found: dict[tuple[int, int], float]) -> Floats:
            return np.array([[found[p, t] for t in range(trials)] for p in range(len(positions))])

        return Study(
            tuple(positions),
            {key: whole(found) for key, found in self._errors.items()},
            {response: whole(found) for response, found in self._reference.items()},
        )


def figure1(plan: Plan, seed: int, *, watch: Watch = iter) -> Study:
    """Return relative errors against k, at one ε."""
    record = _Record()
    for trial in watch(range(_trials(plan.trials))):
        source = simulation.generator(trial_seed(seed, 1, trial))
        grown = tables.growing(plan.unit, plan.features, plan.steps, source)
        for k, by_response in enumerate(grown, start=1):
            for response, sums in by_response.items():
                record.refer(response, k - 1, trial, _zero(sums))
                for calibration, scheme, error in _relative(
                    sums, Setting(plan.bits, plan.unit, k), source
                ):
                    record.add((response, calibration, scheme), k - 1, trial, error)
    return record.study(range(1, plan.steps + 1), plan.trials)


def figure2(plan: Plan, seed: int, *, watch: Watch = iter) -> Study:
    """Return relative errors against ε, at one n."""
    record = _Record()
    for trial in watch(range(_trials(plan.trials))):
        source = simulation.generator(trial_seed(seed, 2, trial))
        *_, by_response = tables.growing(plan.unit, plan.features, plan.middle, source)
        for response, sums in by_response.items():
            for index, bits in enumerate(plan.levels):
                record.refer(response, index, trial, _zero(sums))
                for calibration, scheme, error in _relative(
                    sums, Setting(bits, plan.unit, plan.middle), source
                ):
                    record.add((response, calibration, scheme), index, trial, error)
    return record.study(plan.levels, plan.trials)


def figure3(
    images: Floats, labels: Floats, plan: DigitsPlan, seed: int, *, watch: Watch = iter
) -> Study:
    """Return shares of test images in the wrong class, against k.

    `images` has pixels in [0, 1] of the `plan.features` pixels of most energy, `labels` ±1. Each
    trial parts them anew, 80 to 20, and takes the first unit·k training images of its order.
    """
    record = _Record()
    for trial in watch(range(_trials(plan.trials))):
        source = simulation.generator(trial_seed(seed, 3, trial))
        order = source.permutation(len(labels))
        trained = (4 * len(labels)) // 5
        test, hidden = images[order[trained:]], labels[order[trained:]]
        for k in range(1, plan.steps + 1):
            rows = order[: integer(plan.unit * k, "unit", "figure3", low=1, high=trained)]
            sums = sum_table(images[rows], labels[rows])
            record.refer(DIGITS, k - 1, trial, _wrong(test, hidden, sums.best()))
            for calibration, scheme, found in _solutions(
                sums, Setting(plan.bits, plan.rule, k), source
            ):
                wrong = _wrong(test, hidden, found)
                record.add((DIGITS, calibration, scheme), k - 1, trial, wrong)
    return record.study(range(1, plan.steps + 1), plan.trials)


def sum_table(features: Floats, target: Floats) -> Sums:
    """Return the sums of a table."""
    table = np.column_stack([features, target])
    squares = features * features
    sum_of_squares = float((squares.sum(axis=0) - squares.max(axis=0)).min())
    return Sums(table.T @ table, len(table), sum_of_squares)


def largest_columns(images: Floats, count: int) -> Floats:
    """Return the `count` columns with the largest sums of squares, in their own order."""
    return np.asarray(images[:, np.sort(np.argsort(-(images * images).sum(axis=0))[:count])])


def _relative(
    sums: Sums, setting: Setting, source: simulation.Generator
) -> Iterator[tuple[str, str, float]]:
    least = sums.loss(sums.best())
    for calibration, scheme, found in _solutions(sums, setting, source):
        yield calibration, scheme, sums.loss(found) / least


def _solutions(
    sums: Sums, setting: Setting, source: simulation.Generator
) -> Iterator[tuple[str, str, Floats]]:
    for calibration in CALIBRATIONS:
        for scheme in SCHEMES:
            yield calibration, scheme, solution(sums, scheme, calibration, setting, source)


def _zero(sums: Sums) -> float:
    return float(sums.gram[-1, -1]) / sums.loss(sums.best())


def _wrong(images: Floats, labels: Floats, coefficients: Floats) -> float:
    return float((np.sign(images @ coefficients) != labels).mean())


def _trials(trials: int) -> int:
    return integer(trials, "trials", "showkatbakhsh", low=1, high=2**16)


def trial_seed(seed: int, figure: int, trial: int) -> int:
    """Return the seed of one trial of a figure."""
    return (seed << 2 | figure) << 16 | trial
