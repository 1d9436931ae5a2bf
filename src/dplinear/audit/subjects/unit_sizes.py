"""How many rows units have: what the noisy histogram tells of a unit that comes or goes.

The counts come from the pass that weighs rows. A unit is one count in one bin, so that its number
of rows is hidden by noise for one count, Laplace or normal.
"""

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from dplinear.arrays import BigIntegers, Floats
from dplinear.audit import densities
from dplinear.audit.subjects.contract import Claim, Subject
from dplinear.curator.sources import open_reader
from dplinear.exact.unit_sizes import UnitSizes
from dplinear.exact.weights import WHOLE
from dplinear.mechanisms.unit_sizes import PreparedHistogram, UnitSizeHistogram
from dplinear.noise.entropy import Entropy
from dplinear.privacy.guarantees import ZCDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

_SCHEMA = Schema({"id": {"type": "category", "levels": ["any"]}}, unit="id")
_EDGES = (1, 4, 16, 64, 256)
_SIZES = (1, 3, 20, 200)  # of units that are in both tables
_NEW = 64  # rows of the one that is not
_COPIES = 64  # of the histogram in one release, each with noise of its own


def _sums(sizes: Sequence[int]) -> BigIntegers:
    """Return the sums of weights in each bin, as `suggest_rows_per_unit` adds them up."""
    ids = [f"p{unit}" for unit, size in enumerate(sizes) for _ in range(size)]
    reader = open_reader(pa.table({"id": ids}), _SCHEMA, threads=1, progress=False)
    return reader.run(UnitSizes(_SCHEMA, _EDGES)).integers()


class UnitSizesSubject(Subject):
    """Noisy counts of two tables, of which one has a unit more."""

    batch = 4_000

    def __init__(self, guarantee: Guarantee, neighbours: Neighbours) -> None:
        self.guarantee, self.neighbours = guarantee, neighbours
        self.claim = Claim.of(guarantee, normal=isinstance(guarantee, ZCDP))
        method = UnitSizeHistogram(guarantee=guarantee, neighbours=neighbours)
        self.prepared: PreparedHistogram = method.prepare(_COPIES * (len(_EDGES) + 1))
        self.name = f"suggest_rows_per_unit ({'gaussian' if self.prepared.normal else 'laplace'})"
        self._tables = [_sums([*_SIZES, _NEW]), _sums(_SIZES)]

    def draw(self, count: int, entropy: Entropy, *, other: bool) -> Floats:
        """Release, and compare likelihoods."""
        sums = np.tile(self._tables[other], _COPIES)
        runs = -(-count // _COPIES)
        drawn = [self.prepared.run(sums, entropy).counts for _ in range(runs)]
        values = np.stack(drawn).reshape(runs * _COPIES, -1)[:count]
        one, far = (table.astype(float) / WHOLE for table in self._tables)
        if self.prepared.normal:
            return densities.normal(values, one, far, np.array(self.prepared.deviation**2))
        return densities.laplace(values, one, far, self.prepared.deviation / math.sqrt(2))
