"""What is public about a regression on integer rows before one is read."""

from dataclasses import dataclass, replace

from dplinear.exact.shape import Shape
from dplinear.exact.weights import WHOLE


@dataclass(frozen=True)
class Design:
    """What is public about a regression before any row is read.

    Rows are integers of `shape`. `features` are the places of those that explain, the column of
    ones first if the model has an `intercept`; `target` is the place of what is explained. The
    features' cells have a squared norm of at most `feature_square`, the target's of at most
    `target_square`, in integer units. `indicators` says which features are 0 for most rows, and
    perhaps for all. `weighted` says that rows carry weights, so that sums are counted in finer
    units; `surveyed`, that the weights are a survey's, and `survey_alone`, that they are nothing
    else, so that rows belong to no units; `leaves_out`, that rows may be left out because of what
    they hold; `filled` names the counts of cells that are filled in, one for each column that may
    have some. `in_group` says that the rows are those of one group of a table, which a row that is
    replaced may leave; `groups` is how many such regressions neighbours may move.
    """

    shape: Shape
    features: tuple[int, ...]
    target: int
    feature_square: int
    target_square: int
    intercept: bool
    indicators: tuple[bool, ...]
    weighted: bool = False
    surveyed: bool = False
    survey_alone: bool = False
    leaves_out: bool = False
    filled: tuple[str, ...] = ()
    groups: int = 1
    in_group: bool = False

    @property
    def count_varies(self) -> bool:
        """Whether replacing a row, or a unit's rows, may change how much all rows count for."""
        return self.weighted or self.leaves_out or self.in_group

    @property
    def dimension(self) -> int:
        """The number of coefficients."""
        return len(self.features)

    def of_sums(self) -> "Design":
        """Return the same facts in the units of sums: finer ones, where rows carry weights."""
        if not self.weighted:
            return self
        return replace(
            self,
            shape=self.shape.weighted(),
            feature_square=self.feature_square * WHOLE,
            target_square=self.target_square * WHOLE,
        )

    def of_rows(self) -> "Design":
        """Return what `of_sums` was made from."""
        if not self.weighted:
            return self
        return replace(
            self,
            shape=self.shape.unweighted(),
            feature_square=self.feature_square // WHOLE,
            target_square=self.target_square // WHOLE,
        )
