"""Where to clip what squares are added up of, from a noisy histogram of its sizes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dplinear.adaptive.noisy_sums import Answer
from dplinear.arrays import Floats

_CLEAR = 3.7  # deviations of noise above which counts are taken for rows
_EXPONENTS = (4.0, 12.0)  # of tails: those of Student's t with 4 degrees, and next to normal ones
_STEP = 1.4  # how far apart sizes are, at the least, of which the exponent is found


@dataclass(frozen=True)
class Clip:
    """A clip, and about how much of the sum of squares is beyond it: Σ max(size² − at², 0)/at²."""

    at: float
    beyond: float


WHOLE = Clip(1.0, 0.0)


@dataclass(frozen=True)
class Tail:
    """Numbers of rows beyond each of some sizes, `starts`, rising.

    Counts as far as they stand out from the noise; further out as few as a power of the size
    foretells, at the rate at which rows became fewer before, or as the noisy counts allow.
    """

    starts: Floats
    rows: Floats
    exponent: float
    most: float

    @classmethod
    def of(cls, counts: Answer, ends: Floats, most: float) -> "Tail | None":
        """Return the tail of a histogram whose bins end at `ends`; None where nothing stands out.

        Bins may be in any order; rows of a bin that ends nearer come first.
        """
        order = np.argsort(ends, kind="stable")
        beyond = np.cumsum(counts.values[order][::-1])[::-1]
        doubt = _CLEAR * counts.sigma * np.sqrt(np.arange(len(ends), 0, -1))
        clear = np.flatnonzero(beyond > doubt)
        if not len(clear):
            return None
        last = int(clear[-1])
        starts = np.concatenate(([0.0], ends[order][:-1]))
        rows = np.minimum.accumulate(np.maximum(beyond[: last + 1], beyond[last]))
        exponent = _EXPONENTS[0]
        before = int(np.searchsorted(starts[: last + 1], starts[last] / _STEP, "right")) - 1
        if before > 0:
            fall = math.log(rows[before] / rows[-1]) / math.log(starts[last] / starts[before])
            exponent = min(max(fall, exponent), _EXPONENTS[1])
        further = rows[-1] * (starts[last] / starts[last + 1 :]) ** exponent
        allowed = np.maximum(beyond + doubt, 0.0)[last + 1 :]
        return cls(starts, np.concatenate((rows, np.minimum(further, allowed))), exponent, most)

    def beyond(self, clip: float) -> float:
        """Return about Σ max(size² − clip², 0)."""
        ends = np.append(self.starts[1:], max(self.starts[-1], min(clip, self.most)))
        lengths = np.square(ends) - np.maximum(np.square(self.starts), clip**2)
        inside = float(self.rows @ np.maximum(lengths, 0.0))
        last, power = float(self.starts[-1]), self.exponent
        near = max(clip, last)
        far = max(near, self.most)
        reach = last**power * (near ** (2 - power) - far ** (2 - power)) if last else 0.0
        return inside + float(self.rows[-1]) * reach * 2 / (power - 2)


def choose_clip(
    counts: Answer,
    ends: Floats,
    candidates: Sequence[float],
    noise: float,
    most: float = math.inf,
) -> Clip:
    """Return the candidate at which what is beyond and the noise on the sum are least together.

    Requires: `noise`, of the sum of squares in units of the clip's own; no size is above `most`.
    """
    tail = Tail.of(counts, ends, most)
    if tail is None:
        return Clip(max(candidates), 0.0)
    at = min(candidates, key=lambda clip: tail.beyond(clip) + noise * clip**2)
    return Clip(at, tail.beyond(at) / at**2)
