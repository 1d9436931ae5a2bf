"""Which repair of a noisy matrix gives the best regressions: error of each, relative to the best.

Designs: the paper's (20 columns, and columns made of them), and Gaussian ones of several sizes and
condition numbers, the coefficients at random or in the directions of most or least variance.
Prints the geometric mean over designs of mean error / least mean error, and the worst of them.
"""

import math
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from dplinear.analyst.noise_models.matrices import SymmetricGaussian
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arrays import Floats
from dplinear.noise import simulation
from dplinear.privacy import ApproxDP, Neighbours, calibrate
from dplinear.schema import Schema

REPAIRS = ("none", "scaled", "clipped", "floor", "shrunk", "auto")
DELTA = 1e-6
DRAWS = 20


def certificate() -> Certificate:
    """Return the certificate of a simulation."""
    asked = ApproxDP(1.0, DELTA)
    return Certificate(
        mechanism="analyze_gauss",
        parameters={},
        neighbours=Neighbours.ADD_REMOVE,
        asked=asked,
        holds=None,
        curve=(),
        numerics="idealised",
        calibration="exact",
        simulated=True,
        request="benchmark",
    )


def papers(generator: simulation.Generator) -> Iterator[tuple[str, Floats, int, float, float]]:
    """Yield (family, covariance, features, rows, σ) of the paper's experiment, the target last."""
    sigma = 3000 / (1 / calibrate.gaussian(ApproxDP(0.1, DELTA), 1.0))
    for m in (0, 1, 5, 19):
        mixing = generator.standard_normal((m + 1, 20))
        mixing *= 3.2 / np.linalg.norm(mixing, axis=1, keepdims=True)
        factor = np.vstack([np.eye(20), mixing])
        covariance = factor @ factor.T + 0.25 * np.diag([0.0] * 20 + [1.0] * (m + 1))
        for power in range(16, 28, 2):
            yield "paper", covariance, 20 + m, 2.0**power, sigma


def generic(generator: simulation.Generator) -> Iterator[tuple[str, Floats, int, float, float]]:
    """Yield Gaussian designs, rows of squared norm up to three times its mean."""
    for d in (5, 20, 60):
        for kappa in (1.0, 100.0, 1e4):
            spectrum = np.geomspace(1, 1 / kappa, d)
            spectrum *= d / spectrum.sum()
            rotation = np.linalg.qr(generator.standard_normal((d, d)))[0]
            inner = (rotation * spectrum) @ rotation.T
            for lean in (-1.0, 0.0, 1.0):
                beta = rotation @ (generator.standard_normal(d) * spectrum**lean)
                beta /= math.sqrt(float(beta @ inner @ beta))
                covariance = np.block(
                    [
                        [inner, (inner @ beta)[:, None]],
                        [(inner @ beta)[None, :], np.full((1, 1), 2)],
                    ]
                )
                for epsilon, n in ((0.5, 1e4), (1.0, 1e4), (1.0, 1e5), (4.0, 1e5)):
                    sigma = 3 * (d + 2) * calibrate.gaussian(ApproxDP(epsilon, DELTA), 1.0)
                    yield "Gaussian", covariance, d, n, sigma


def errors(covariance: Floats, features: int, n: float, sigma: float, seed: int) -> Floats:
    """Return the mean relative error of each repair over the draws."""
    generator = simulation.generator(seed)
    d = len(covariance)
    schema = Schema({f"x{i}": (-1, 1) for i in range(d)}, intercept=False)
    names = schema.names
    law = SymmetricGaussian(sigma**2, sigma**2 / 2)
    factor = np.linalg.cholesky(covariance)
    beta = np.linalg.solve(covariance[:features, :features], covariance[:features, -1])
    found = np.zeros((DRAWS, len(REPAIRS)))
    for draw in range(DRAWS):
        triangle = np.tril(generator.standard_normal((d, d)), -1)
        triangle[np.diag_indices(d)] = np.sqrt(generator.chisquare(n - np.arange(d)))
        half = factor @ triangle
        values = law.draw(half @ half.T, generator)
        moments = MomentsRelease(schema, values, law, certificate(), rows=round(n))
        for place, repair in enumerate(REPAIRS):
            fit = moments.regress(names[-1], list(names[:features]), intercept=False, repair=repair)
            wrong = np.linalg.norm(fit.coefficients.values - beta)
            found[draw, place] = wrong / np.linalg.norm(beta)
    return np.asarray(found.mean(0))


def main() -> None:
    """Print the table."""
    ratios: dict[str, list[Floats]] = {}
    generator = simulation.generator(1)
    designs = [*papers(generator), *generic(generator)]
    for seed, (family, covariance, features, n, sigma) in enumerate(designs):
        mean = errors(covariance, features, n, sigma, seed)
        if mean.min() < 0.9:  # where any repair says more than zero does
            ratios.setdefault(family, []).append(mean / mean.min())
    table = Table(title="Mean error, relative to the best repair: geometric mean (worst)")
    table.add_column("designs")
    for repair in REPAIRS:
        table.add_column(repair, justify="right")
    for family, found in ratios.items():
        stacked = np.stack(found)
        middle, worst = np.exp(np.log(stacked).mean(0)), stacked.max(0)
        cells = [f"{a:.2f} ({b:.1f})" for a, b in zip(middle, worst, strict=True)]
        table.add_row(f"{family}, {len(found)}", *cells)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
