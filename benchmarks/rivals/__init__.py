"""Other ways to a private regression, written from their papers; all are called alike.

`common` has the protocol. Each file says what its method requires and promises, and derives the
sensitivities of what it releases.

Not among them: ISSP (Brown, Hayase, Hopkins, Kong, Liu, Oh, Perdomo and Smith 2024, arXiv
2404.15409). Whether its guarantee holds, and from which n/d on its test lets a table pass, rests on
constants in its proofs, which we could check neither in the paper nor in published code.
"""

from dataclasses import dataclass

from benchmarks.rivals import (
    adassp,
    boosted_adassp,
    functional,
    hessian_mixing,
    library,
    marginals,
    mean,
    noisy_gd,
    noisy_sgd,
    ols,
    theil_sen,
    tukey_em,
)
from benchmarks.rivals.common import Array, Fit, Line

__all__ = ["FLOOR", "MEAN", "METHODS", "OURS", "Array", "Fit", "Line", "Mechanism"]

OURS = "dplinear"
MEAN = "mean"
FLOOR = "ols"


@dataclass(frozen=True)
class Mechanism:
    """A way to fit, and where trying it is worth the time."""

    fit: Fit
    repetitions: int | None = None  # at most so many, where a method is slow and far behind
    rows_a_column: float = 0.0  # not tried with fewer rows than this many times the columns
    columns: int | None = None  # not tried with more columns than this
    asked: bool = False  # tried where it is asked for by name: a fit takes minutes

    def worthwhile(self, rows: int, columns: int, repetition: int) -> bool:
        """Say whether the benchmark tries this method there."""
        enough = rows >= self.rows_a_column * (columns + 1)
        few = self.columns is None or columns <= self.columns
        return enough and few and (self.repetitions is None or repetition < self.repetitions)


METHODS = {
    OURS: Mechanism(library.fit),
    "adassp": Mechanism(adassp.fit_paper),
    "adassp joint": Mechanism(adassp.fit),
    "adassp joint, tight": Mechanism(adassp.fit_tight),
    "adassp joint, box": Mechanism(adassp.fit_box),
    "boosted adassp": Mechanism(boosted_adassp.fit),
    "boosted adassp, box": Mechanism(boosted_adassp.fit_box),
    "tukey em": Mechanism(tukey_em.fit, rows_a_column=tukey_em.MODELS),
    "hessian mixing": Mechanism(hessian_mixing.fit),
    "hessian mixing, tight": Mechanism(hessian_mixing.fit_tight),
    "hessian mixing, paper": Mechanism(hessian_mixing.fit_paper),
    "noisy gd": Mechanism(noisy_gd.fit),
    "noisy gd, short": Mechanism(noisy_gd.fit_short),
    "dp-sgd": Mechanism(noisy_sgd.fit),
    "dp-sgd, long": Mechanism(noisy_sgd.fit_long),
    "dp-sgd, short": Mechanism(noisy_sgd.fit_short),
    "diffprivlib": Mechanism(functional.fit, repetitions=5, columns=20),
    "dd-ssp": Mechanism(marginals.fit, columns=marginals.COLUMNS, asked=True),
    "opendp": Mechanism(theil_sen.fit, columns=1),
    MEAN: Mechanism(mean.fit),
    FLOOR: Mechanism(ols.fit),
}
