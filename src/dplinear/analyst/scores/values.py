"""Scores of predicted values: R², errors and bias, from sums of clipped residuals."""

import math

from dplinear.analyst.scores.sums import ReleasedSums, Score, hidden

_CLEAR = 3.0  # deviations of its noise that a variance must be above
_NO_SPREAD = "The noise hides how much the target varies: ask for a larger ε, or score more rows."
_NO_SIZE = "The noise hides how large errors are: ask for a larger ε, or score more rows."


def r_squared(found: ReleasedSums) -> Score:
    """Return R², the part of the target's variance that predictions explain.

    1 − R with R = Σe²/Σ(y − ȳ)². A row moves R by (e² − R(y − ȳ)²)/Σ(y − ȳ)², to first order: the
    delta method with the released fourth moments. The number of rows cancels.
    """
    clip, spread = found.clip**2, found.spread**2
    middle = found.mean("t")
    lost = found.beyond_mean("e²"), found.beyond_mean("t²")
    total = spread * (found.mean("t²") + lost[1] - middle**2)
    noise_of_total = spread * math.hypot(found.noise("t²"), 2 * middle * found.noise("t"))
    if not total > _CLEAR * noise_of_total:
        return hidden("r2", _NO_SPREAD)
    ratio = clip * (found.mean("e²") + lost[0]) / total
    own = found.variance("e²", "e⁴")
    others = found.variance("t²", "t⁴")
    both = found.mean("e²t²") - found.noise("e²t²") - found.mean("e²") * found.mean("t²")
    variance = clip**2 * own + (ratio * spread) ** 2 * others - 2 * ratio * clip * spread * both
    # The mean ȳ moves it too, where the centre is off it: no farther than if all went together.
    shift = 2 * abs(ratio * middle) * spread * math.sqrt(max(found.mean("t²"), 0.0))
    sampling = (math.sqrt(max(variance, 0.0)) + shift) / math.sqrt(found.rows) / total
    privacy = math.hypot(clip * found.noise("e²"), ratio * noise_of_total) / total
    clipping = math.hypot(clip * lost[0], ratio * spread * lost[1]) / total
    return Score("r2", 1 - ratio, math.hypot(sampling, privacy, clipping), privacy, most=1.0)


def root_mean_square(found: ReleasedSums) -> Score:
    """Return the root of the mean squared error, in the target's units."""
    lost, unit = found.beyond_mean("e²"), found.clip * found.width
    mean = found.mean("e²") + lost
    privacy = found.noise_with_count("e²")
    if not mean > _CLEAR * privacy:
        return hidden("rmse", _NO_SIZE)
    sampling = math.sqrt(found.variance("e²", "e⁴") / found.rows)
    slope = unit / (2 * math.sqrt(mean))
    errors = slope * math.hypot(sampling, privacy, lost), slope * privacy
    return Score("rmse", unit * math.sqrt(mean), *errors, least=0.0)


def mean_absolute(found: ReleasedSums) -> Score:
    """Return the mean absolute error, in the target's units."""
    return _mean(found, "mae", "|e|", least=0.0)


def bias(found: ReleasedSums) -> Score:
    """Return the mean of the target minus its prediction, in the target's units."""
    return _mean(found, "bias", "e", least=-math.inf)


def _mean(found: ReleasedSums, name: str, term: str, least: float) -> Score:
    unit, privacy = found.clip * found.width, found.noise_with_count(term)
    # (|e| − 1)₊ is at most half of (e² − 1)₊: half of that is added to sizes, give or take as much;
    # a bias may be off by all of it, either way.
    most = found.beyond_mean("e²") / 2
    value, lost = (
        (found.mean(term) + most / 2, most / 2) if least == 0 else (found.mean(term), most)
    )
    sampling = math.sqrt(found.variance(term, "e²") / found.rows)
    errors = unit * math.hypot(sampling, privacy, lost), unit * privacy
    return Score(name, unit * value, *errors, least=least)
