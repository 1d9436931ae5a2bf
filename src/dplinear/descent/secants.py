"""How curved the loss really is, direction by direction, from what successive gradients show.

A noisy Gram matrix of clipped rows understates directions that few, long rows hold: a rare level of
a category. A step that trusts it passes its aim, and the next gradient says by how much.
"""

import numpy as np

from dplinear.arrays import Floats

_DOUBT = 0.5**2  # of a factor before anything is seen, as a variance
_DRIFT = 0.1**2  # more of it after each step, as clips and residuals change
_CROSSED = 0.2  # of a move in other directions, that may show in this one
_LEAST, _MOST = 0.3, 6.0


class Secants:
    """Factors on expected curvatures. Gradients are divided by what clips leave of the curvature.

    Requires: gradients that are released, and the moves between them; so this is post-processing.
    """

    def __init__(self, expected: Floats) -> None:
        self._expected = expected
        self._variance = np.full(len(expected), _DOUBT)
        self._last: tuple[Floats, float, Floats] | None = None
        self.factors = np.ones(len(expected))

    def see(self, gradient: Floats, sigma: float) -> None:
        """Weigh the fall of the gradient over the last move, by its noise, against the factors."""
        if self._last is None:
            return
        before, its_sigma, move = self._last
        crossed = _CROSSED**2 * float(move @ move)
        # Both sides are multiplied by the move, which may be nothing.
        reach = (self._expected * move) ** 2
        error = sigma**2 + its_sigma**2 + crossed
        weight = self._variance * reach / (self._variance * reach + error)
        fall = self._expected * move * (before - gradient)
        found = np.divide(fall, reach, out=self.factors.copy(), where=reach > 0)
        factors = self.factors + weight * (found - self.factors)
        self.factors = np.clip(factors, _LEAST, _MOST)
        self._variance = self._variance * (1 - weight) + _DRIFT

    def note_move(self, gradient: Floats, sigma: float, move: Floats) -> None:
        """Remember a gradient, and the move that was made from there."""
        self._last = gradient, sigma, move

    def forget_move(self) -> None:
        """Take the last move for none, where it was taken back."""
        self._last = None
