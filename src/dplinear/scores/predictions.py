"""What a model predicts of rounded rows, so that each prediction is a function of its row alone.

A prediction may decide between two neighbouring integers of a sum. A model that is handed a block
of rows may give a row another last bit for what stands beside it, as products of matrices do. So
linear models are multiplied in exact integers, and any other model is called for one row at a time.
"""

import contextlib
import io
import logging
import math
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import InitVar, dataclass, field

import numpy as np
import numpy.typing as npt

from dplinear.arrays import Floats
from dplinear.exact.integers import product
from dplinear.exact.logistic_sums import round_weights, unit_of_margins
from dplinear.exact.shape import Shape

FARTHEST = 64.0  # half-ranges of a target, or log-odds: predictions beyond them count as this


class Predictor(ABC):
    """A public model, as rounded rows see it.

    Promises: `of_rows` returns one finite number a row, at most `FARTHEST` in size: for a value
    its cell, in half-ranges from the middle of the target's bounds; for a label its log-odds. Each
    is a bitwise function of its row alone, and no row can make it raise.
    """

    @abstractmethod
    def of_rows(self, rows: Floats) -> Floats:
        """Return the predictions of a block of rounded rows, shape (dimension, rows)."""


@dataclass(frozen=True, eq=False)
class LinearPredictor(Predictor):
    """weights · cells, in exact integers.

    Requires: a public number for each cell, that of the column of ones included.
    """

    shape: Shape
    weights: InitVar[npt.ArrayLike]
    integers: Floats = field(init=False, repr=False)
    unit: float = field(init=False)

    def __post_init__(self, weights: npt.ArrayLike) -> None:
        integers, scale = round_weights(weights, self.shape, "release_scores")
        object.__setattr__(self, "integers", integers)
        object.__setattr__(self, "unit", unit_of_margins(scale, self.shape))

    def of_rows(self, rows: Floats) -> Floats:
        """Return the predictions of a block of rounded rows."""
        found = product(self.integers, rows)[0] * self.unit
        return np.asarray(np.clip(found, -FARTHEST, FARTHEST))


# What hides a model's words is of the whole process: filters of warnings, the standard streams. So
# one row is put to a model at a time, whatever threads there are.
_ALONE = threading.Lock()


@dataclass(frozen=True, eq=False)
class CalledPredictor(Predictor):
    """Any model: `function` of the cells of one row, for one row at a time.

    Requires: a function that gives equal rows equal numbers, whatever it was called for before.
    Promises: where it raises an error, exits or returns no finite number, the prediction is 0: the
    middle of the target's bounds, or even odds. What it prints or warns of is not shown.
    """

    function: Callable[[Floats], float]
    steps_per_unit: int

    def of_rows(self, rows: Floats) -> Floats:
        """Return the predictions of a block of rounded rows."""
        cells = rows / self.steps_per_unit
        with _ALONE, _silence():
            found = [self._of_row(cells[:, index].copy()) for index in range(rows.shape[1])]
        return np.array(found, np.float64)

    def _of_row(self, cells: Floats) -> float:
        try:
            found = float(self.function(cells))
        except KeyboardInterrupt:  # of whoever waits for the release
            raise
        except BaseException:  # noqa: BLE001 - exits and panics too: which one would tell of the row
            return 0.0
        return min(max(found, -FARTHEST), FARTHEST) if math.isfinite(found) else 0.0


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Hold back what a model prints, warns of and logs."""
    logged = logging.root.manager.disable
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(logged)
