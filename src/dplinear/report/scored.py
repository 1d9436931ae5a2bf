"""What scores of a model say, in panels."""

import math

from dplinear.analyst.regression.summary import number
from dplinear.analyst.releases.scores import ScoresRelease
from dplinear.report.panels import Panel, Table

_LEVEL = 0.95
_HEADS = ("score", "value", "95% interval", "standard error", "due to noise")


def scores_panels(release: ScoresRelease) -> tuple[Panel, ...]:
    """Return the scores with their intervals, and the histogram behind them."""
    rows = []
    for score in release.all():
        if score.unknown is not None:
            rows.append((score.name, "hidden", "", "", ""))
            continue
        error = score.standard_error
        low, high = (number(end, error) for end in score.interval(_LEVEL))
        own = number(score.value, error), f"{low} to {high}", number(error, error)
        rows.append((score.name, *own, number(score.privacy_error, error)))
    table = Table("Scores", _HEADS, tuple(rows))
    scores = (Panel("Scores", "", (), table),) if rows else ()
    return (*scores, _histogram(release)) if len(release.sums.histogram) else scores


def _histogram(release: ScoresRelease) -> Panel:
    """Return how large errors are, or how often label 1 is seen."""
    if release.labels:
        parts = tuple(
            (
                f"{each.low:.1%} to {each.high:.1%}",
                f"{each.count:,.0f}",
                "hidden" if math.isnan(each.observed) else f"{each.observed:.1%}",
                "" if math.isnan(each.error) else f"{each.error:.1%}",
            )
            for each in release.reliability()
        )
        heads = ("predicted probability of label 1", "rows, about", "label 1 seen", "std. error")
        return Panel("Calibration", "", (), Table("Calibration", heads, parts))
    bins = release.residual_sizes()
    clear = [index for index, each in enumerate(bins) if each.count > 2 * each.noise]
    shown = bins[clear[0] : clear[-1] + 1] if clear else []
    sizes = tuple(
        (f"{each.low:,.4g} to {each.high:,.4g}", f"{max(each.count, 0):,.0f}") for each in shown
    )
    return Panel("Errors", "", (), Table("How large errors are", ("size", "rows, about"), sizes))
