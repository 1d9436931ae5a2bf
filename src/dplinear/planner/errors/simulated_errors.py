"""From simulated tables to the table of errors: a curve for each method and kind of table."""

import warnings
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dplinear.arrays import Floats
from dplinear.coinpress.regression import CoinPressRegression
from dplinear.descent.whitened import WhitenedDescent
from dplinear.planner.contest import NAMES
from dplinear.planner.errors.curves import NODES, Size, abscissa, chi_square_median, fit_curve
from dplinear.planner.forecast import FLOOR
from dplinear.planner.populations import TAILS

DELTA = 1e-6
SLOW = (WhitenedDescent.name, CoinPressRegression.name)
CONDITIONS = (1.0, 100.0, 1e4)
COLUMNS = (2, 8, 32, 128)
ROWS_A_COLUMN = (10, 100, 1000)
MUS = (0.0125, 0.032, 0.08, 0.2, 0.5, 1.25, 3.2, 8.0)
MOST_CELLS = 2_000_000
MANY_ROWS = 100_000  # where least squares has next to no error but that of clamped cells
REPETITIONS = 6
FEWER = ((200_000, REPETITIONS), (900_000, 4), (4_000_000, 2))  # tables of at most so many cells
SEEN = 1.8  # times √(rows/columns): beyond, a descent's noise is not seen beside sampling
_LEAST = 0.15  # of the error without noise, that noise is taken to add where it is seen
_CLEAR = 1.4  # times that error, above which a whole matrix's noise is seen
_NEIGHBOUR = 0.3  # the weight of a table with a few times more or fewer columns

Risks = dict[str, list[float | None]]  # by method, at each μ


@dataclass(frozen=True)
class Spot:
    """One simulated table, fitted at every budget."""

    tails: str
    condition: float
    columns: int
    rows: int
    repetition: int

    @property
    def cells(self) -> int:
        """The size of the table."""
        return self.columns * self.rows

    @property
    def key(self) -> tuple[Any, ...]:
        """The population it comes from."""
        return self.tails, self.condition, self.columns, self.rows


@dataclass(frozen=True)
class Results:
    """The risks on all simulated tables, by population: tables by budgets, NaN where not tried."""

    risks: dict[tuple[Any, ...], dict[str, Floats]]
    tables: int

    @classmethod
    def of(cls, results: Iterable[tuple[Spot, Risks]]) -> "Results":
        """Gather what was simulated."""
        found: dict[tuple[Any, ...], list[Risks]] = defaultdict(list)
        for spot, risks in results:
            found[spot.key].append(risks)
        names = (FLOOR, *NAMES)
        gathered = {
            key: {
                name: np.array([one[name] for one in tables if name in one], float)
                for name in names
            }
            for key, tables in found.items()
        }
        return cls(gathered, sum(map(len, found.values())))

    def median(self, key: tuple[Any, ...], name: str) -> Floats:
        """Return the median risk at each budget."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NaN where nothing was tried
            return np.asarray(np.nanmedian(self.risks[key][name], axis=0))

    def content(self) -> dict[str, Any]:
        """Return the table as plain JSON."""
        return {
            "made by": "python -m dplinear.planner.errors.table",
            "what": "log10 of what privacy adds to the median excess risk, at log10 of x",
            "tables": self.tables,
            "delta": DELTA,
            "tails": list(TAILS),
            "conditions": list(CONDITIONS),
            "columns": list(COLUMNS),
            "nodes": [round(float(node), 3) for node in NODES],
            "floors": {name: self.floor(name) for name in (FLOOR, *SLOW)},
            "methods": {
                name: {
                    "added": [
                        [[self.curve(name, tails, k, d) for d in COLUMNS] for k in CONDITIONS]
                        for tails in TAILS
                    ],
                    "spread": [self.spread(name, d) for d in COLUMNS],
                }
                for name in NAMES
            },
        }

    def floor(self, name: str) -> dict[str, Any]:
        """Return the error without noise: a factor of the normal law's, and the bias of clamps."""
        factors = [self._factor(name, tails) for tails in TAILS]
        return {
            "factor": [round(factor, 3) for factor in factors],
            "bias": [
                [[self._bias(name, (t, k, d, MANY_ROWS), f) for d in COLUMNS] for k in CONDITIONS]
                for t, f in zip(TAILS, factors, strict=True)
            ],
        }

    def _factor(self, name: str, tails: str) -> float:
        if tails == TAILS[0]:  # the normal law itself
            return 1.0
        ratios = [
            float(self.median(key, name)[-1]) * (n - d - 2) / chi_square_median(d + 1)
            for key in self.risks
            for tail, _, d, n in [key]
            if tail == tails and n <= 100 * d and d > 2
        ]
        return float(np.nanmedian(ratios))

    def _bias(self, name: str, key: tuple[Any, ...], factor: float) -> float:
        if key not in self.risks or not self.risks[key][name].size or key[0] == TAILS[0]:
            return 0.0  # four standard deviations of a normal law hold next to all of it
        columns, rows = key[2], key[3]
        sampling = factor * chi_square_median(columns + 1) / (rows - columns - 2)
        left = float(self.median(key, name)[-1]) - sampling
        return float(f"{left:.3g}") if left > sampling / 2 else 0.0

    def curve(self, name: str, tails: str, condition: float, columns: int) -> list[float]:
        """Return what privacy adds, fitted to tables of all sizes.

        Tables of the next fewer or more columns count, too, but less.
        """
        index = COLUMNS.index(columns)
        points = []
        for key in self.risks:
            tail, k, d, n = key
            apart = abs(COLUMNS.index(d) - index)
            if (tail, k) != (tails, condition) or n >= MANY_ROWS or apart > 1:
                continue
            for mu, added in zip(MUS, self.added_error(key, name), strict=True):
                if np.isfinite(added):
                    x = abscissa(name, Size(n, d, mu, d + 2))
                    points.append((x, float(added), _NEIGHBOUR if apart else 1.0))
        return [round(float(value), 3) for value in fit_curve(name, points, condition)]

    def added_error(self, key: tuple[Any, ...], name: str) -> Floats:
        """Return the median of what privacy adds at each budget, NaN where it cannot be told.

        The ratio to the same table's error without noise is taken first: both share its sample.
        """
        _, _, d, n = key
        risks, plain = self.risks[key][name], self.risks[key][FLOOR]
        own = risks[:, -1:] if name in SLOW else plain
        own = np.where(np.isnan(own), plain, own)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NaN where nothing was tried
            ratio = np.exp(np.nanmedian(np.log(risks / own), axis=0))
            floor = float(np.nanmedian(own))
        added = floor * np.maximum(ratio - 1, _LEAST)
        if name in SLOW:
            sizes = [Size(n, d, mu, d + 2) for mu in MUS]
            xs = np.array([abscissa(name, size) for size in sizes])
            return np.where(xs <= SEEN * np.sqrt(n / d), added, np.nan)
        return np.where(ratio > _CLEAR, added, np.nan)

    def spread(self, name: str, columns: int) -> float:
        """Return the typical standard deviation of the logarithm of the risk, noise prevailing."""
        found: list[float] = []
        for key, risks in self.risks.items():
            if key[2] != columns or key[3] >= MANY_ROWS or len(risks[name]) < 3:
                continue
            middle, floor = np.log(self.median(key, name)), np.log(self.median(key, FLOOR)[0])
            noisy = (middle > floor + 1) & (middle < -0.5)
            logs = np.log(risks[name][:, noisy])
            logs = logs[:, (~np.isnan(logs)).sum(axis=0) > 2]
            found += np.nanstd(logs, axis=0, ddof=1).tolist()
        return round(float(np.nanmedian(found)), 3) if found else 0.5
