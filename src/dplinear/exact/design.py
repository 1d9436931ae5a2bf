"""What is public about a regression on integer rows before one is read."""

from dataclasses import dataclass

from dplinear.exact.shape import Shape


@dataclass(frozen=True)
class Design:
    """What is public about a regression before any row is read.

    Rows are integers of `shape`. `features` are the places of those that explain, the column of
    ones first if the model has an `intercept`; `target` is the place of what is explained. The
    features' cells have a squared norm of at most `feature_square`, the target's of at most
    `target_square`, in integer units. `indicators` says which features are 0 for most rows, and
    perhaps for all.
    """

    shape: Shape
    features: tuple[int, ...]
    target: int
    feature_square: int
    target_square: int
    intercept: bool
    indicators: tuple[bool, ...]

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return len(self.features)
