"""What several releases guarantee together, from their certificates alone.

A neighbouring pair of all tables at once differs in one of them where no row and no unit is in two
tables: the joint law then differs in one factor, so δ(ε) is the largest of theirs. Elsewhere it may
differ in all of them, and they compose (docs/theory/joined-releases.md).
"""

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from dplinear.analyst.design_effect import LEFT_OUT, POOLED, SQUARES, noise_of
from dplinear.analyst.filled_in import COLUMNS, SENSITIVITY
from dplinear.analyst.releases.certificate import Certificate, Part, Scalar
from dplinear.privacy import compose
from dplinear.privacy.conversions import zcdp_delta
from dplinear.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.gaussian import GridGaussian
from dplinear.privacy.rounding import up

MECHANISM = "join"
_CURVE = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_ROUNDING = 64  # units in the last place, above what a few float operations lose
_SAME = 1e-9  # relative: how far below a certificate's own curve a profile of it may lie
# Which all have, where groups are joined level by level.
_GROUPED = ("by", "groups", "combinations", "group")
_DISJOINT = "joined as disjoint tables: whoever joined them states that no {0} is in two of them"
_ONE_DATASET = (
    "joined as disjoint, though several are of one dataset, which a ledger counts as one table: if "
    "the same {0} is in two of them, this guarantee does not hold, and their composition does"
)
_SHARED = "joined as tables in several of which the same {0} may be: what they guarantee composes"


def join_certificates(
    certificates: Sequence[Certificate],
    dimension: int,
    *,
    disjoint: bool,
    rows_per_unit: int | None,
    parameters: dict[str, Scalar],
) -> Certificate:
    """Return the certificate of a sum of releases.

    Requires: certificates with a proved guarantee, of one neighbour relation and one unit.
    Promises: what holds for all releases at once, so for anything that is computed from them.
    """
    first = certificates[0]
    profile = _profile_of_all(certificates, dimension, disjoint=disjoint)
    holds = (
        _worst([_held(each) for each in certificates], certificates)
        if disjoint
        else _composed([_held(each) for each in certificates], profile)
    )
    asked = {each.asked for each in certificates}
    shared = {name: first.parameters[name] for name in _of_all(certificates)}
    datasets = {each.dataset for each in certificates}
    parts = tuple(part for each in certificates for part in parts_of(each))
    return Certificate(
        mechanism=MECHANISM,
        parameters=_parameters(certificates, profile, disjoint=disjoint) | shared | parameters,
        neighbours=first.neighbours,
        asked=asked.pop() if disjoint and len(asked) == 1 else holds,
        holds=holds,
        curve=_largest_curve(certificates) if disjoint else _curve(profile),
        numerics="exact" if {each.numerics for each in certificates} == {"exact"} else "idealised",
        calibration="exact" if {c.calibration for c in certificates} == {"exact"} else "paper",
        simulated=any(each.simulated for each in certificates),
        request=_request(parts, disjoint=disjoint),
        dataset=datasets.pop() if len(datasets) == 1 else None,
        notes=_notes(certificates, disjoint=disjoint),
        unit=first.unit,
        rows_per_unit=rows_per_unit,
        parts=parts,
    )


def parts_of(certificate: Certificate) -> tuple[Part, ...]:
    """Return the releases that a certificate is of: those that were joined, or the one."""
    own = Part(certificate.request, certificate.dataset, _held(certificate))
    return certificate.parts or (own,)


def most_tables(certificate: Certificate) -> int:
    """Return how many of the joined tables one row or unit may be in; 1 for a single release."""
    found = certificate.parameters.get("most_tables", 1)
    return found if type(found) is int and found > 1 else 1


def gaussian_profile(certificate: Certificate, dimension: int) -> GridGaussian | None:
    """Return the profile of Gaussian noise on a matrix of so many features; None if not known.

    It is found from the certificate's public numbers, rounded up, and backed by its curve: a
    profile that lies below the proved curve anywhere is not that of the mechanism.
    """
    numbers = [certificate.parameters.get(name) for name in ("mu", "inverse_variance")]
    if certificate.mechanism == "analyze_gauss" and certificate.numerics == "exact":
        numbers = list(_analyze_gauss(certificate, dimension))
    mu, inverse = (value if isinstance(value, float) and value > 0 else None for value in numbers)
    if mu is None or inverse is None:
        return None
    profile = GridGaussian(mu, inverse, certificate.neighbours)
    points = np.array(certificate.curve).reshape(-1, 2)
    below = profile.curve(points[:, 0]) < points[:, 1] * (1 - _SAME)
    return None if below.any() else profile


def _analyze_gauss(certificate: Certificate, dimension: int) -> tuple[float | None, float | None]:
    """Return μ and Σ 1/σᵢ² of Analyze Gauss (`mechanisms/moments/analyze_gauss.py`)."""
    names = ("sigma", "bound", "grid_step")
    read = [certificate.parameters.get(name) for name in names]
    sigma, bound, step = (value if isinstance(value, float) else 0.0 for value in read)
    if sigma <= 0 or bound <= 0 or step <= 0:
        return None, None
    found = certificate.parameters.get("groups", 1)
    groups = found if isinstance(found, int) else 1  # each of which has a matrix of its own
    entries = groups * dimension
    twice = 2 if certificate.neighbours is Neighbours.REPLACE and entries > 1 else 1
    coordinates = groups * dimension**2  # off the diagonal half as many, of half the variance
    # Rounding to a coarser grid moves the difference of two entries by less than a step.
    norm = math.sqrt(twice) * bound**2 + math.sqrt(coordinates) * step
    side = _side_noises(certificate)
    # A sum beside the matrix moves by 1, and by one step of its own, of step/sigma deviations; of
    # groups, by 1 in all together (by 1 in each of two, where a row changes its group).
    ends = 2 if certificate.neighbours is Neighbours.REPLACE and groups > 1 else 1
    steps = math.sqrt((groups - ends) * len(side)) * step / sigma
    moved = [math.sqrt(ends) * (1 / noise + step / sigma) for noise in side]
    mu = math.hypot(norm / sigma, steps, *moved)
    whole, columns = (certificate.parameters.get(name) for name in (SENSITIVITY, COLUMNS))
    counts = columns if isinstance(columns, int) else 0
    if counts and isinstance(whole, float):  # counts of cells move together with the matrix
        mu = whole / sigma
    inverse = (coordinates + groups * (len(side) + counts)) * (step / sigma) ** 2
    return up(mu, _ROUNDING), up(inverse, _ROUNDING)


def _side_noises(certificate: Certificate) -> list[float]:
    """Return the standard deviations of the noise of sums that are released beside a matrix.

    Where those of groups were added up, it is that of each.
    """
    found = [certificate.parameters.get(noise_of(name)) for name in (LEFT_OUT, SQUARES)]
    pooled = certificate.parameters.get(POOLED, 1)
    added = math.sqrt(pooled) if type(pooled) is int and pooled > 1 else 1.0
    return [noise / added for noise in found if isinstance(noise, float) and noise > 0]


def _of_all(certificates: Sequence[Certificate]) -> list[str]:
    """Return the names of what all certificates say of groups, in the same words."""
    return [
        name
        for name in _GROUPED
        if name in certificates[0].parameters
        and len({each.parameters.get(name) for each in certificates}) == 1
    ]


def _profile_of_all(
    certificates: Sequence[Certificate], dimension: int, *, disjoint: bool
) -> GridGaussian | None:
    found = [gaussian_profile(each, dimension) for each in certificates]
    known = [profile for profile in found if profile is not None]
    if len(known) < len(found):
        return None
    if disjoint:  # no smaller than any of them, as the curve grows with both
        mu = max(each.mu for each in known)
        return GridGaussian(mu, max(each.inverse_variance for each in known), known[0].neighbours)
    total = compose.profiles(known)
    return total if isinstance(total, GridGaussian) else None


def _held(certificate: Certificate) -> Guarantee:
    assert certificate.holds is not None  # noqa: S101 - as join has made sure
    return certificate.holds


def _worst(parts: list[Guarantee], certificates: Sequence[Certificate]) -> Guarantee:
    """Return what holds of each of several guarantees, all of one kind where they are."""
    if len(set(parts)) == 1:
        return parts[0]
    kinds = {type(part) for part in parts}
    if kinds in ({ZCDP}, {PureDP}, {GDP}):
        return max(parts, key=lambda part: next(iter(vars(part).values())))
    pairs = _pairs(parts)
    epsilon = max(pair.epsilon for pair in pairs)
    known = zip(pairs, certificates, strict=True)
    return ApproxDP(epsilon, max(min(pair.delta, delta_at(c, epsilon)) for pair, c in known))


def _pairs(parts: list[Guarantee]) -> list[ApproxDP]:
    """Return (ε, δ) of all, where ρ or μ becomes one of the largest δ of the others."""
    pairs = [part for part in parts if isinstance(part, ApproxDP)]
    delta = max((pair.delta for pair in pairs), default=0.0)
    kinds = (ZCDP, GDP)
    return [
        part.to(ApproxDP, delta=delta or None) if isinstance(part, kinds) else part.to(ApproxDP)
        for part in parts
    ]


def _composed(parts: list[Guarantee], profile: GridGaussian | None) -> Guarantee:
    """Return what a list of guarantees keeps together, by the exact profile where it is known."""
    if {type(part) for part in parts} <= {PureDP, ZCDP, GDP}:
        return compose.guarantees(parts)
    pairs = _pairs(parts)
    if profile is None:
        return compose.guarantees(pairs)
    delta = max(pair.delta for pair in pairs)
    return ApproxDP(profile.epsilon(delta), delta)


def delta_at(certificate: Certificate, epsilon: float) -> float:
    """Return the least δ at ε that a certificate proves; 1 where it proves none."""
    holds = certificate.holds
    points = [delta for at, delta in certificate.curve if at <= epsilon]
    if isinstance(holds, ApproxDP | PureDP) and holds.epsilon <= epsilon:
        points.append(holds.to(ApproxDP).delta)
    if isinstance(holds, ZCDP):
        points.append(zcdp_delta(holds.rho, epsilon))
    return min([*points, 1.0])


def _largest_curve(certificates: Sequence[Certificate]) -> tuple[tuple[float, float], ...]:
    points = [(at, max(delta_at(each, at) for each in certificates)) for at in _CURVE]
    return tuple((at, delta) for at, delta in points if 0 < delta < 1)


def _curve(profile: GridGaussian | None) -> tuple[tuple[float, float], ...]:
    if profile is None:
        return ()
    points = zip(_CURVE, profile.curve(np.array(_CURVE)).tolist(), strict=True)
    return tuple((at, delta) for at, delta in points if 0 < delta < 1)


def _parameters(
    certificates: Sequence[Certificate], profile: GridGaussian | None, *, disjoint: bool
) -> dict[str, Scalar]:
    tables = [most_tables(each) for each in certificates]
    named: dict[str, Scalar] = {
        "tables": sum(len(parts_of(each)) for each in certificates),
        "most_tables": max(tables) if disjoint else sum(tables),
    }
    if profile is not None:
        named |= {"mu": profile.mu, "inverse_variance": profile.inverse_variance}
    return named


def _notes(certificates: Sequence[Certificate], *, disjoint: bool) -> tuple[str, ...]:
    whose = "row" if certificates[0].unit is None else repr(certificates[0].unit)
    own = [_DISJOINT if disjoint else _SHARED]
    own += [_ONE_DATASET] if disjoint and _share_a_dataset(certificates) else []
    kept = [note for each in certificates for note in each.notes]
    return tuple(dict.fromkeys([*(note.format(whose) for note in own), *kept]))


def _share_a_dataset(certificates: Sequence[Certificate]) -> bool:
    """Return whether two of the releases are of datasets of one name."""
    named = [{part.dataset for part in parts_of(each)} - {None} for each in certificates]
    return len(set().union(*named)) < sum(map(len, named))


def _request(parts: tuple[Part, ...], *, disjoint: bool) -> str:
    """Return a name that the same releases have whenever they are joined, in any order."""
    text = "\n".join([str(disjoint), *sorted(f"{part.request} {part.dataset}" for part in parts)])
    return hashlib.sha256(text.encode()).hexdigest()[:32]
