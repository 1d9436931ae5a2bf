"""The contract of a mechanism that releases rows: one for each of the table's, in their order.

`prepare` sees public facts only, calibrates, and refuses what cannot be kept. What it returns is
handed blocks of bounded integer rows, as they stream by, and makes released columns of each.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from dplinear.analyst.noise_models.rows import RowNoiseModel
from dplinear.analyst.releases.outputs import Output
from dplinear.arrays import Floats
from dplinear.exact.shape import Shape
from dplinear.mechanisms.contract import Account, Mechanism, Prepared
from dplinear.noise.entropy import Entropy
from dplinear.schema import Schema


class RowStream(Protocol):
    """A private table whose rows go by once, in order."""

    def through(
        self, work: Callable[[Floats], pa.RecordBatch]
    ) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
        """Give what `work` makes of each block of rows, in order."""


@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """Rows that are released as they go by: `batches` is entered once, and then iterated."""

    batches: AbstractContextManager[Iterator[pa.RecordBatch]]
    account: Account
    parameters: Mapping[str, Any]


class PreparedRows(Prepared[RowStream, ReleasedRows]):
    """A mechanism calibrated for a schema, ready to release rows.

    `account` is what the whole release guarantees; `output` names and types the released columns,
    which are float64, int64, boolean or text; `parameters` are its public numbers, for the
    certificate; `noise_model` is what the analyst needs to know of the noise.
    """

    output: pa.Schema
    parameters: Mapping[str, Any]
    noise_model: RowNoiseModel

    def run(self, table: RowStream, entropy: Entropy) -> ReleasedRows:
        """Return the released rows, which are made as they are asked for."""
        batches = table.through(partial(self.release, entropy=entropy))
        return ReleasedRows(batches, self.account, self.parameters)

    @abstractmethod
    def release(self, rows: Floats, entropy: Entropy) -> pa.RecordBatch:
        """Return the released columns of a block of integer rows, shape (dimension, rows).

        Promises: a row of the result depends on its own row and fresh noise alone. Called from
        several threads at once; the block may be overwritten.
        """

    def outputs(self) -> Sequence[Output]:
        """Return files that the mechanism keeps beside the rows, written but for their names.

        The gate calls this before it spends, and gives them their names when the rows are complete.
        """
        return ()


@dataclass(frozen=True, kw_only=True)
class RowsMechanism(Mechanism):
    """A way of releasing rows."""

    @abstractmethod
    def prepare(self, schema: Schema, shape: Shape, entropy: Entropy) -> PreparedRows:
        """Calibrate for public facts; raise if the guarantee cannot be kept.

        `entropy` is for what is drawn without looking at a row, such as a projection.
        """
