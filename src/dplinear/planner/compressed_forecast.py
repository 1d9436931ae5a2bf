"""What to expect of learners in a constraint set, projected or not, before a budget is spent.

    python -m dplinear.planner.compressed_forecast --expected-rows 20000 --features 5000

Tables are simulated from public facts, and the library's own learners learn from them. Beside what
they reach stands what the theory promises (`convex/compression/theorems.py`).
"""

import argparse
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dplinear.arguments import choice, integer, real, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.convex.compression import theorems
from dplinear.convex.losses import LOSSES, Loss
from dplinear.convex.sets.given import Constraint, check_constraint, set_of
from dplinear.mechanisms import checks
from dplinear.planner.compression import weaken
from dplinear.planner.populations import seed_of
from dplinear.planner.texts import Assumed
from dplinear.planner.trials import MOST_ENTRIES, Contestant, Trial
from dplinear.privacy.guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import CONSTRAINED

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_ROWS = 20_000  # that are simulated
MOST_CELLS = 20_000_000  # of dense rows, 160 MB
FAILURE = 0.05  # β of the theorems
RADII = {False: 20.0, True: 100.0}  # of the command's L1 ball, by whether labels are classes
HEADS = ("mechanism", "m", "excess", "90% of tables", "above 1", "seconds", "3.9", "3.10")
_DELTA = 1e-6  # at which the theorems read a guarantee that has no ε
_WHERE = "forecast_compressed"

Watch = Callable[[Iterable[int]], Iterable[int]]


@dataclass(frozen=True)
class ExpectedLearner:
    """What to expect of a learner, projected to `dimension` (None: rows as they are).

    `excess` is the median over tables of the excess empirical risk, as a share of that of the model
    that needs no data: 0 is the best model of the set, 1 no better than θ = 0. 90% of tables are
    between `low` and `high`; `worse` is the share of them above 1. `seconds` is the median time to
    project, learn and lift, for the simulated rows. `risks` has the excess on each table.

    With unit constants, `distance` is Corollary 3.9's, of the lifted θ from any other of the same
    Φθ, and `gap` what Lemma 3.10 adds to the risk, a share like `excess`. None without a Φ.
    """

    mechanism: str
    dimension: int | None
    excess: float
    low: float
    high: float
    worse: float
    seconds: float = field(compare=False)
    distance: float | None
    gap: float | None
    risks: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True)
class TheoryBound:
    """What the theory promises with unit constants, whatever the dimension.

    `preserving` is the m of Lemma 3.10 for γ = 1, below which it says nothing, `approximate` and
    `pure` that of Theorem 3.11, parts 1 and 2, at this ε. `compressed` and `traditional` are
    Table 1's rates, in units of the loss; None where it has none for this loss.
    """

    width: float
    diameter: float
    preserving: int
    approximate: int
    pure: int
    compressed: float
    traditional: float | None


@dataclass(frozen=True)
class CompressedForecast:
    """What each learner is expected to do in each dimension; prints as a table, the best first.

    `simulated` is the number of rows that were simulated, under a guarantee that makes up for the
    difference to `rows`. `trivial` is the median excess risk of the model that needs no data.
    """

    rows: int
    simulated: int
    features: int
    nonzeros: float | None
    constraint: str
    loss: str
    guarantee: Guarantee
    neighbours: Neighbours
    trivial: float
    promised: TheoryBound
    lines: tuple[ExpectedLearner, ...]

    @property
    def mechanism(self) -> str:
        """The learner of the least median excess, as `release_model` calls it."""
        return self.lines[0].mechanism

    @property
    def dimension(self) -> int | None:
        """The dimension that goes with it; None where rows are best left as they are."""
        return self.lines[0].dimension

    @property
    def compressed(self) -> ExpectedLearner | None:
        """The best line with a projection, if there is one."""
        return next((line for line in self.lines if line.dimension is not None), None)

    def __str__(self) -> str:
        printed = [list(HEADS), *(_table_row(line) for line in self.lines)]
        widths = [max(map(len, column)) for column in zip(*printed, strict=True)]
        rows = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in printed
        ]
        rule = "─" * len(rows[0])
        return "\n".join([*self.above(), rule, rows[0], rule, *rows[1:], rule, *self.below()])

    __repr__ = __str__

    def above(self) -> list[str]:
        """Return what was assumed, in lines to print."""
        cells = "dense" if self.nonzeros is None else f"about {self.nonzeros:g} in a row"
        size = f"{self.rows:,} rows, {self.features:,} features ({cells})"
        tables = f"{len(self.lines[0].risks)} simulated tables"
        fewer = f" of {self.simulated:,} rows, with as much less noise"
        return [
            f"Forecast for {size}",
            f"from {tables}{fewer if self.simulated < self.rows else ''}",
            f"{self.loss} loss, {self.constraint}, {self.guarantee} ({self.neighbours} neighbours)",
        ]

    def below(self) -> list[str]:
        """Return what the numbers mean, and what the theory promises, in lines to print."""
        theory = self.promised
        rates = f"{_short(theory.compressed / self.trivial)} compressed"
        if theory.traditional is not None:
            rates += f", {_short(theory.traditional / self.trivial)} from the rows themselves"
        asked = f"m = {theory.approximate:,} for (ε, δ), {theory.pure:,} for pure ε"
        return [
            f"Excess: 0 is the least risk in the set, 1 that of θ = 0, {self.trivial:.3g} above.",
            "Theory, with unit constants:",
            f"  3.9   how far apart two θ of one Φθ can be; the diameter is {theory.diameter:g}",
            f"  3.10  what a projection may add to the excess, from m = {theory.preserving:,} on",
            f"  3.11  {asked}; Gaussian width {theory.width:.3g}",
            f"  Table 1's excess: {rates}",
        ]


def forecast_compressed(
    expected_rows: int,
    features: int,
    *,
    constraint: Constraint,
    loss: str | Loss = "squared",
    nonzeros: float | None = 50.0,
    relevant: int = 20,
    spread: float = 0.2,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    dimensions: Sequence[int] | None = None,
    mechanisms: Sequence[str] | None = None,
    clip: float | None = None,
    repetitions: int = 3,
    seed: int = 0,
    watch: Watch = iter,
) -> CompressedForecast:
    """Predict the risk of private models in a constraint set, in several dimensions, by simulation.

    Requires: public guesses of the number of rows (`expected_rows`) and of `features`; the
    `constraint`, `loss`, budget, `neighbours` and `clip` as for `release_model`; what is assumed of
    the table: about how many `nonzeros` a row has, at most half of the features (None: dense), how
    many `relevant` features there are, the most frequent, and the `spread` of labels within ±1
    around the model that they come from. All `dimensions` are tried for all `mechanisms`; by
    default those of 50, 100, 400 and 1000 that suit each. `watch` wraps the loop over so many
    `repetitions`, a table each.
    Promises: nothing private is read and nothing is spent. The same arguments give the same
    numbers, but for the seconds. At most 20,000 rows are simulated, and 20,000,000 dense cells:
    fewer rows get a guarantee that is weaker by as much, so that noise is the same beside them.
    """
    loss = loss if isinstance(loss, Loss) else LOSSES[choice(loss, "loss", _WHERE, LOSSES)]()
    features = integer(features, "features", _WHERE, low=1)
    check_constraint(constraint, _WHERE)
    assumed = Assumed(
        set_of(constraint, features, _WHERE),
        loss,
        _nonzeros(nonzeros, features),
        integer(relevant, "relevant", _WHERE, low=1),
        real(spread, "spread", _WHERE, low=0),
    )
    asked = checks.read_guarantee(_WHERE, epsilon, delta, guarantee)
    rows = integer(expected_rows, "expected_rows", _WHERE, low=2)
    most = MOST_ROWS if assumed.nonzeros is not None else max(2, MOST_CELLS // features)
    simulated = min(rows, MOST_ROWS, most)
    trial = Trial(
        assumed,
        simulated,
        weaken(asked, rows / simulated) if simulated < rows else asked,
        checks.relation(neighbours, _WHERE),
        None if clip is None else real(clip, "clip", _WHERE, low=2.0**-10, high=8.0),
    )
    contestants = trial.contestants(_mechanisms(mechanisms), _dimensions(dimensions, features))
    seed = integer(seed, "seed", _WHERE, low=0)
    runs = range(integer(repetitions, "repetitions", _WHERE, low=1))
    found = [trial.run(contestants, seed_of("trial", seed, run)) for run in watch(runs)]
    trivial = float(np.median([least for least, _ in found]))
    results = np.stack([result for _, result in found], axis=1)
    setting = theorems.Setting(
        rows=rows,
        width=assumed.base.width().value,
        size=assumed.base.radius,
        lipschitz=loss.steepest(assumed.base.radius),
    )
    lines = [
        _summarise(who, each, setting, trivial)
        for who, each in zip(contestants, results, strict=True)
    ]
    return CompressedForecast(
        rows=rows,
        simulated=simulated,
        features=features,
        nonzeros=assumed.nonzeros,
        constraint=_constraint_name(assumed),
        loss=loss.name,
        guarantee=asked,
        neighbours=trial.neighbours,
        trivial=trivial,
        promised=_theory_bound(setting, asked, assumed),
        lines=tuple(sorted(lines, key=lambda line: line.excess)),
    )


def _nonzeros(nonzeros: float | None, features: int) -> float | None:
    if nonzeros is None:
        return None
    hint = "leave rows dense by nonzeros=None."
    return real(nonzeros, "nonzeros", _WHERE, low=0, high=features / 2, open_low=True, hint=hint)


def _mechanisms(mechanisms: Any) -> list[str] | None:
    if mechanisms is None:
        return None
    if isinstance(mechanisms, str) or not isinstance(mechanisms, Sequence) or not mechanisms:
        raise wrong_type("mechanisms", _WHERE, "a list of at least one mechanism", mechanisms)
    return [choice(name, "mechanisms", _WHERE, CONSTRAINED) for name in mechanisms]


def _dimensions(dimensions: Any, features: int) -> list[int] | None:
    if dimensions is None:
        return None
    if isinstance(dimensions, str) or not isinstance(dimensions, Sequence):
        raise wrong_type("dimensions", _WHERE, "a list of numbers of dimensions", dimensions)
    most = min(features, MOST_ENTRIES // features)
    if most < 1 and dimensions:
        rule = f"empty for more than {MOST_ENTRIES:,} features"
        raise rejection("dimensions", _WHERE, rule, dimensions)
    return [integer(m, "dimensions", _WHERE, low=1, high=most) for m in dimensions]


def _summarise(
    who: Contestant, results: Floats, setting: theorems.Setting, trivial: float
) -> ExpectedLearner:
    risks, seconds = results.T
    low, median, high = (float(value) for value in np.quantile(risks, [0.05, 0.5, 0.95]))
    mechanism, dimension = who
    distance = gap = None
    if dimension is not None:
        distance = theorems.lift_distance(setting, dimension, FAILURE)
        distortion = theorems.preserved_distortion(setting, dimension, FAILURE)
        gap = theorems.risk_gap(setting, distortion) / trivial
    return ExpectedLearner(
        mechanism=mechanism,
        dimension=dimension,
        excess=median,
        low=low,
        high=high,
        worse=float(np.mean(risks > 1)),
        seconds=float(np.median(seconds)),
        distance=distance,
        gap=gap,
        risks=tuple(risks.tolist()),
    )


def _theory_bound(setting: theorems.Setting, asked: Guarantee, assumed: Assumed) -> TheoryBound:
    known = asked.to(ApproxDP, delta=_DELTA) if isinstance(asked, ZCDP) else asked
    assert isinstance(known, PureDP | ApproxDP)  # noqa: S101 - other kinds are refused by learners
    base, smoothness = assumed.base, assumed.loss.smoothness
    pure = isinstance(known, PureDP) or known.delta == 0
    curvature = smoothness * base.diameter**2
    return TheoryBound(
        width=setting.width,
        diameter=base.diameter,
        preserving=theorems.preserving_dimension(setting, 1.0, FAILURE),
        approximate=theorems.projected_dimension(setting, ApproxDP(known.epsilon, _DELTA), FAILURE),
        pure=theorems.projected_dimension(setting, PureDP(known.epsilon), FAILURE),
        compressed=theorems.compressed_rate(setting, known),
        traditional=theorems.traditional_rate(setting, known, curvature)
        if pure or math.isfinite(curvature)
        else None,
    )


def _constraint_name(assumed: Assumed) -> str:
    base = assumed.base
    return f"{base.name} set of radius {base.radius:g}"


def _short(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"


def _table_row(line: ExpectedLearner) -> list[str]:
    return [
        line.mechanism,
        "–" if line.dimension is None else f"{line.dimension}",
        f"{line.excess:.2f}",
        f"{line.low:.2f} to {line.high:.2f}",
        f"{100 * line.worse:.0f}%",
        f"{line.seconds:.1f}",
        "–" if line.distance is None else _short(line.distance),
        "–" if line.gap is None else _short(line.gap),
    ]


def forecast_table(found: CompressedForecast) -> "Table":
    """Return the lines as a table to print."""
    from rich.box import SIMPLE
    from rich.table import Table

    table = Table(box=SIMPLE, padding=0)
    for head in HEADS:
        table.add_column(head, justify="left" if head == HEADS[0] else "right", no_wrap=True)
    for line in found.lines:
        table.add_row(*_table_row(line))
    return table


def main(arguments: Sequence[str] | None = None, console: "Console | None" = None) -> None:
    """Print a forecast as the command line asks."""
    from rich.console import Console
    from rich.progress import track

    parser = argparse.ArgumentParser(
        prog="python -m dplinear.planner.compressed_forecast",
        description="Which learner, and how many dimensions, for a model in an L1 ball.",
    )
    parser.add_argument("--expected-rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=5_000)
    parser.add_argument("--nonzeros", type=float, default=50.0, help="a row; 0 for dense rows")
    parser.add_argument("--radius", type=float, default=None, help="20, or 100 for classes")
    parser.add_argument("--loss", choices=list(LOSSES), default="squared")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6, help="0 for a pure guarantee")
    parser.add_argument("--dimensions", type=int, nargs="*", default=None)
    parser.add_argument("--mechanisms", nargs="+", choices=list(CONSTRAINED), default=None)
    parser.add_argument("--clip", type=float)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    asked = vars(parser.parse_args(arguments))
    console = console or Console()
    radius = asked.pop("radius") or RADII[LOSSES[asked["loss"]].classes]
    asked["nonzeros"] = asked["nonzeros"] or None

    def watch(runs: Iterable[int]) -> Iterable[int]:
        return track(list(runs), "Simulating", console=console, transient=True)

    found = forecast_compressed(**asked, constraint=radius, watch=watch)
    for line in found.above():
        console.print(line, highlight=False)
    console.print(forecast_table(found))
    for line in found.below():
        console.print(line, highlight=False)


if __name__ == "__main__":
    main()
