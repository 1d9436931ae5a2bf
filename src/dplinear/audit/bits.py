"""What the bits of released floats tell, where values are set aside: for `numerics: exact`.

Noise in floating point has gaps and roundings that depend on what it is added to (Mironov 2012, "On
significance of the least significant bits for differential privacy"): a number near 0 that has many
zeros at its end was more likely made of larger ones. Noise on a grid leaves no such mark. The event
is chosen among last bits and trailing zeros, within regions of like values, on half of the runs.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np

from dplinear.adaptive.noisy_sums import Budget, NoisySums, Query
from dplinear.arrays import Floats
from dplinear.audit import worst_pairs
from dplinear.audit.audit import AuditResult, audit_runs
from dplinear.audit.subjects.contract import Claim
from dplinear.audit.subjects.released_rows import NUMBERS, release_block
from dplinear.audit.subjects.transcripts import Rows
from dplinear.exact.grid import shape_of
from dplinear.exact.mapped_sums import MappedSum
from dplinear.exact.shape import Shape
from dplinear.mechanisms import AdditiveNoise, AnalyzeGauss, ProjectedRows
from dplinear.noise import simulation
from dplinear.noise.entropy import Entropy, system
from dplinear.privacy.guarantees import ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours

HEADER = ("mechanism", "promise", "audited as", "claimed", "told by bits (95%)", "runs", "verdict")
REGIONS = (0, 3, 6, 9)  # powers of two below the usual size, within which bits are looked at
_LAST = 8
_MANTISSA = 52
_DELTA = 1e-3
_RUNS = 20_000
Draw = Callable[[int, bool, Entropy], Floats]


def trailing_zeros(values: Floats) -> Floats:
    """Return how many zeros end the mantissa of each float; as many as it has for powers of two."""
    words = np.ascontiguousarray(values, np.float64).view(np.uint64)
    mantissa = words & np.uint64((1 << _MANTISSA) - 1)
    lowest = mantissa & (~mantissa + np.uint64(1))
    zeros = np.log2(np.maximum(lowest, np.uint64(1)).astype(np.float64))
    return np.where(mantissa == 0, float(_MANTISSA), zeros)


def bit_numbers(values: Floats, usual: Floats) -> Floats:
    """Return the bits of floats of shape (runs, numbers) as numbers, and nothing else of them.

    `usual` is the size of each of the numbers, from both tables together.
    """
    words = np.ascontiguousarray(values, np.float64).view(np.uint64)
    last = [(words >> np.uint64(index)) & np.uint64(1) for index in range(_LAST)]
    zeros = trailing_zeros(values) + 1
    near = [np.where(np.abs(values) < usual * 2.0**-region, zeros, 0.0) for region in REGIONS]
    return np.concatenate([*(part.astype(np.float64) for part in last), *near], axis=1)


def audit_bits(
    name: str,
    guarantee: Guarantee,
    draw: Draw,
    *,
    normal: bool,
    trials: int = _RUNS,
    entropy: Entropy | None = None,
) -> AuditResult:
    """Audit what the bits of released numbers tell of the table, beyond their values.

    Requires: `draw(count, other, entropy)`, numbers of shape (count, k) from one table or another.
    """
    bits = entropy or system()
    one, other = (draw(trials, far, bits) for far in (False, True))
    usual = np.median(np.abs(np.concatenate((one, other))), axis=0)
    claim = Claim.of(guarantee, normal=normal)
    runs = bit_numbers(one, usual), bit_numbers(other, usual)
    return audit_runs(name, guarantee, claim, runs, neighbours="bits", simulated=bits.simulated)


def _rows(mechanism: AdditiveNoise | ProjectedRows, entropy: Entropy) -> Draw:
    shape = shape_of(NUMBERS)
    prepared = mechanism.prepare(NUMBERS, shape, entropy)
    pair = worst_pairs.row_pair(np.eye(3), shape.steps_per_unit, Neighbours.ELEMENT, None, 1)

    def draw(count: int, other: bool, entropy: Entropy) -> Floats:  # noqa: FBT001 - which table
        return release_block(prepared, pair[other], count, entropy)

    return draw


def _matrix(guarantee: Guarantee) -> Draw:
    shape = Shape(1, 724, 10)
    prepared = AnalyzeGauss(guarantee=guarantee).prepare(shape)
    pair = worst_pairs.matrix_pair(shape, Neighbours.ADD_REMOVE)
    tables = [worst_pairs.moments(shape, rows, 1) for rows in pair]

    def draw(count: int, other: bool, entropy: Entropy) -> Floats:  # noqa: FBT001 - which table
        table = tables[other]
        return np.stack([prepared.run(table, entropy).values[0] for _ in range(count)])

    return draw


def _noisy_sums(guarantee: Guarantee) -> Draw:
    shape = Shape(64, 1 << 7, 10)
    total = MappedSum(shape, np.eye(64), norm=float(shape.bound))
    budget = Budget.of(guarantee, 64, Neighbours.ADD_REMOVE, "audit")
    tables = [Rows(rows) for rows in worst_pairs.sum_pair(shape, Neighbours.ADD_REMOVE)]

    def draw(count: int, other: bool, entropy: Entropy) -> Floats:  # noqa: FBT001 - which table
        asked = [Query(total, Fraction(1))]
        runs = [
            NoisySums(tables[other], budget, entropy).ask(asked)[0].values
            for _ in range(-(-count // 64))
        ]
        return np.concatenate(runs)[:count, None]

    return draw


def exact_mechanisms(
    epsilon: float, entropy: Entropy
) -> Iterator[tuple[str, Guarantee, Draw, bool]]:
    """Yield mechanisms whose noise is integers: a name, a promise, its draws, whether it is normal.

    Those that round real draws are attacked in `precision.py`.
    """
    pure, normal = PureDP(epsilon), ApproxDP(epsilon, _DELTA)
    yield "analyze_gauss", normal, _matrix(normal), True
    yield "chain", normal, _noisy_sums(normal), True
    yield "additive_noise", normal, _rows(AdditiveNoise(guarantee=normal), entropy), True
    for noise, asked in (("laplace", pure), ("gaussian", normal), ("perturbed", pure)):
        mechanism = ProjectedRows(guarantee=asked, k=2, noise=noise)
        yield f"projection ({noise})", asked, _rows(mechanism, entropy), noise == "gaussian"


def results(
    epsilon: float = 1.0, trials: int = _RUNS, seed: int | None = None
) -> Iterator[AuditResult]:
    """Audit the bits of every mechanism whose noise is integers."""
    entropy = system() if seed is None else simulation.entropy(seed)
    for name, guarantee, draw, normal in exact_mechanisms(epsilon, entropy):
        yield audit_bits(name, guarantee, draw, normal=normal, trials=trials, entropy=entropy)


def markdown(found: Sequence[AuditResult]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| " + " | ".join(HEADER) + " |"
    yield "|" + "---|" * len(HEADER)
    for result in found:
        unit = {"epsilon": "ε", "mu": "μ"}[result.kind]
        cells = (
            *(result.mechanism, str(result.guarantee), unit, f"{result.claimed:.3g}"),
            *(f"{result.audited:.3g}", f"{result.trials:,}", result.verdict),
        )
        yield "| " + " | ".join(cells) + " |"


def main(given: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if bits tell more than is promised."""
    parser = argparse.ArgumentParser(prog="python -m dplinear.audit.bits", description=__doc__)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--trials", type=int, default=_RUNS)
    parser.add_argument("--seed", type=int)
    chosen = parser.parse_args(given)
    found = list(results(chosen.epsilon, chosen.trials, chosen.seed))
    sys.stdout.write("\n".join(markdown(found)) + "\n")
    return int(any(result.broken for result in found))


if __name__ == "__main__":
    sys.exit(main())
