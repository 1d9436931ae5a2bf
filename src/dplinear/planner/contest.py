"""All ways to a regression, on one simulated table: single models, and regressions on moments.

A contest is calibrated once for a design and a guarantee, then fits any table of that design. The
real solvers and mechanisms run on it, with seeded noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arrays import Floats
from dplinear.exact.shape import Statistic
from dplinear.mechanisms.contract import PreparedMoments
from dplinear.mechanisms.model import PreparedModel
from dplinear.noise import simulation
from dplinear.planner.populations import seed_of
from dplinear.planner.simulated import SimulatedRows, plain_design
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import MODELS, MOMENTS
from dplinear.schema import Schema

SOLVERS = MODELS["squared"].own
NAMES = (*SOLVERS, *MOMENTS.own)  # dplinear's own: the table of simulated errors is of them
_TARGET = "y"


def plain_schema(columns: int) -> Schema:
    """Return the schema of a plain design: features in [−1, 1], the target last."""
    names = [*(f"x{index}" for index in range(columns)), _TARGET]
    return Schema(dict.fromkeys(names, (-1, 1)))


@dataclass(frozen=True, eq=False)
class Contest:
    """Solvers and mechanisms, calibrated for tables of so many columns."""

    schema: Schema
    guarantee: Guarantee
    neighbours: Neighbours
    solvers: Mapping[str, PreparedModel]
    mechanisms: Mapping[str, PreparedMoments]

    @classmethod
    def of(
        cls,
        columns: int,
        guarantee: Guarantee,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        names: tuple[str, ...] = NAMES,
    ) -> "Contest":
        """Calibrate the named ones."""
        asked, design = {"guarantee": guarantee, "neighbours": neighbours}, plain_design(columns)
        return cls(
            plain_schema(columns),
            guarantee,
            neighbours,
            {name: SOLVERS[name](**asked).prepare(design) for name in names if name in SOLVERS},  # type: ignore[arg-type]  # two arguments by name
            {
                name: MOMENTS[name](**asked).prepare(design.shape)  # type: ignore[arg-type]  # as above
                for name in names
                if name in MOMENTS
            },
        )

    def lines(
        self, rows: SimulatedRows, seed: int, names: Sequence[str] = NAMES
    ) -> dict[str, Floats]:
        """Return the line of each of those named, the intercept first, in cells."""
        found = {
            name: prepared.run(rows, simulation.entropy(seed_of(name, seed))).coefficients
            for name, prepared in self.solvers.items()
            if name in names
        }
        asked = [name for name in self.mechanisms if name in names]
        if asked:
            statistic = Statistic(rows.shape, rows.moments().integers, rows=self._count(rows))
            for name in asked:
                found[name] = self._regression(name, statistic, seed_of(name, seed))
        return found

    def _count(self, rows: SimulatedRows) -> int | None:
        return rows.count if self.neighbours.rows_are_public else None

    def _regression(self, name: str, statistic: Statistic, seed: int) -> Floats:
        """Release moments and regress on them, as an analyst would."""
        measured = self.mechanisms[name].run(statistic, simulation.entropy(seed))
        account = measured.account
        certificate = Certificate(
            mechanism="simulated",
            parameters=measured.parameters,
            neighbours=self.neighbours,
            asked=account.asked,
            holds=account.holds,
            curve=(),
            numerics=MOMENTS[name].numerics,
            calibration="exact",
            simulated=True,
            request="simulated",
            dataset=None,
            notes=(),
        )
        release = MomentsRelease(
            self.schema, measured.values, measured.noise_model, certificate, statistic.rows
        )
        fit = release.regress(_TARGET)
        return np.array([fit.intercept, *fit.coefficients.values])
