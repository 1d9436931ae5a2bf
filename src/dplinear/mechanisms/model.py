"""The contract of mechanisms for one model: bounded rows and a guarantee in, coefficients out.

As with mechanisms, `prepare` sees public facts only; what it returns sees the rows, in `run`.
"""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dplinear.arrays import Floats
from dplinear.exact.design import Design
from dplinear.exact.rows import Rows
from dplinear.mechanisms.contract import Account, Mechanism, Prepared


@dataclass(frozen=True, eq=False)
class Solution:
    """A released model, in the cells' units, in the order of the design's features. Public.

    `noise` is the covariance of the coefficients that is due to privacy alone, `spread` that of
    noise and sampling together; either is None where the method cannot tell, and `unknown` says
    why there is no `spread`. `count` is an estimate of the number of rows, `weight` of the sum of
    the intercept's squared cells: the same, unless rows are clipped to a norm. A level
    that no row seems to hold has a coefficient of 0, and no noise.
    """

    coefficients: Floats
    account: Account
    parameters: Mapping[str, Any]
    noise: Floats | None = field(default=None, repr=False)
    spread: Floats | None = field(default=None, repr=False)
    centre: Floats | None = field(default=None, repr=False)
    unknown: str | None = None
    count: float | None = None
    weight: float | None = None


class PreparedModel(Prepared[Rows, Solution]):
    """A mechanism calibrated for a design: it runs on the rows, and returns their model."""

    design: Design


@dataclass(frozen=True, kw_only=True)
class ModelMechanism(Mechanism):
    """A way of releasing one linear model.

    `loss` is what the model makes small. `passes`: whether it reads the rows more than once.
    `by_unit`: whether it asks for sums over units, and not over rows alone.
    """

    loss: ClassVar[str] = "squared"
    passes: ClassVar[bool] = False

    @property
    def by_unit(self) -> bool:
        """Whether it asks for sums over units, and not over rows alone: few methods do."""
        return False

    @abstractmethod
    def prepare(self, design: Design) -> PreparedModel:
        """Calibrate for public facts; raise if the guarantee cannot be kept."""
