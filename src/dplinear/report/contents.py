"""What each kind of release is, in words, and what it says, in panels."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dplinear.analyst.left_out import MOMENTS, side_notes
from dplinear.analyst.noise_models.rows import AdditiveRows, ProjectedRows
from dplinear.analyst.regression.fit import Fit, Fits
from dplinear.analyst.regression.summary import number
from dplinear.analyst.releases.bounds import SuggestedBounds
from dplinear.analyst.releases.constrained import WEIGHT_BOUND, ConstrainedRelease
from dplinear.analyst.releases.groups import Groups
from dplinear.analyst.releases.levels import SuggestedLevels
from dplinear.analyst.releases.location import CovarianceRelease, MeanRelease
from dplinear.analyst.releases.model import ModelRelease
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.analyst.releases.rows_per_unit import SuggestedRowsPerUnit
from dplinear.analyst.releases.scores import ScoresRelease
from dplinear.analyst.releases.sketch import SketchRelease
from dplinear.analyst.rows.release import RowsRelease
from dplinear.arguments import ArgumentError, listed, wrong_type
from dplinear.privacy.units import size
from dplinear.report.forest import Line, forests
from dplinear.report.groups import groups_panel
from dplinear.report.panels import Content, Panel, Table, coefficients, correlations, pairs
from dplinear.report.scored import scores_panels
from dplinear.report.suggestions import bounds_content, levels_content, rows_per_unit_content
from dplinear.report.words import significant
from dplinear.schema import Schema
from dplinear.schema.describe import DERIVED, describe_columns

WHERE = "release_page"
_REACH = 1.96  # standard deviations: 95% of a normal law
_LARGEST = 20
_HEADS = ("what", "value")
_NOISES = {
    "laplace": "Laplace noise",
    "quantile": "Laplace noise",
    "gaussian": "Gaussian noise",
    "perturbed": "Laplace noise added beforehand",
    "perturbed gaussian": "Gaussian noise added beforehand",
}


def content(release: Any, fits: Sequence[Any] = ()) -> Content:
    """Return what is to be said of any kind of release, and of regressions on it."""
    teller = next((tell for kind, tell in _TELLERS.items() if isinstance(release, kind)), None)
    if teller is None:
        rule = "a release, as a gate returned it or load read it"
        raise wrong_type("release", WHERE, rule, release)
    told: Content = teller(release)
    single = [one for given in fits for one in _singles(given)]
    extra = tuple(_of_fit(one) for one in single)
    reasons = [one.intervals().swamped for one in single if one.l1 == 0]
    swamped = told.swamped + tuple(reason for reason in reasons if reason is not None)
    return Content(
        told.title, told.lede, told.size, told.rows, told.columns, extra + told.panels, swamped
    )


def _singles(given: object) -> Iterable[Fit]:
    if isinstance(given, Fits):
        return given.fits
    if isinstance(given, Fit):
        return (given,)
    raise wrong_type("fits", WHERE, "a list of fits, as regress returns them", given)


def _of_fit(fit: Fit) -> Panel:
    notes = [f"R² is about {fit.r_squared:.3f}."] if fit.r_squared is not None else []
    if fit.ridge > 0:
        notes.append(f"Ridge: {fit.ridge:g}.")
    if fit.empty:
        notes.append(f"Hardly any row holds {listed(fit.empty, 12)}: left out of the model.")
    used = (*fit.features, fit.target)
    notes += side_notes(fit.schema, fit.certificate, fit.count, MOMENTS, used)
    title = f"Regression of {fit.target}"
    return coefficients(title, fit.target, fit.intervals(), fit.schema, notes)


def size_of(
    rows: int | None, count: float | None, unit: str | None = None, weight: str | None = None
) -> str:
    """Return a number of rows, or of units or weights, in words, for what is known of it."""
    if rows is not None:
        return f"{rows:,} rows"
    return "number of rows not released" if count is None else size(count, unit, weight=weight)


_Counted = MomentsRelease | ModelRelease | MeanRelease | CovarianceRelease | ScoresRelease


def _rows_of(release: _Counted) -> float | None:
    """Return the number of rows; that of units, or None where only weights are added up."""
    return release.count if release.schema.weight is None else None


def _size_of(release: _Counted) -> str:
    unit, weight = release.certificate.unit, release.schema.weight_name
    return size_of(release.rows, release.count, unit, weight)


def _moments(release: MomentsRelease) -> Content:
    return Content(
        title="Second moments",
        lede=(
            "The sums of squares and products of all columns, with noise. Means, correlations and "
            "any linear regression between these columns follow from it, as often as one likes, "
            "at no further cost in privacy."
        ),
        size=_size_of(release),
        rows=_rows_of(release),
        columns=columns(release.schema),
        panels=_location(release),
    )


def _sketch(release: SketchRelease) -> Content:
    count = len(release.values)
    return Content(
        title="A random sketch",
        lede=(
            f"{count:,} artificial rows. Each is a random mixture of all rows of the table, none "
            "is one of them, and together they have about the table’s sums of squares and "
            "products."
        ),
        size=size_of(release.rows, release.moments.count if release.noise_model.known else None),
        rows=release.rows,
        columns=columns(release.schema),
        panels=_location(release.moments) if release.noise_model.known else (),
    )


def _location(release: MomentsRelease) -> tuple[Panel, ...]:
    """Return means and correlations, where the release allows them."""
    if not release.schema.has_intercept:
        return ()
    try:
        means, matrix = release.mean(), release.correlation()
    except ArgumentError as refused:
        return (Panel("Means and correlations", refused.sentence),)
    features = {each.name: each for each in release.schema.features}
    rows = tuple(
        (name, significant(means[name]), f"{float(features[name].low):,.6g}",
         f"{float(features[name].high):,.6g}")
        for name in means.names
    )  # fmt: skip
    table = Table("Means, within their public bounds", ("column", "mean", "low", "high"), rows)
    notes = side_notes(release.schema, release.certificate, release.count, MOMENTS)
    return (Panel("Means and correlations", "", (), table, correlations(matrix), tuple(notes)),)


def _model(release: ModelRelease) -> Content:
    found = release.intervals()
    kind = {"logistic": "logistic", "huber": "robust linear"}.get(release.loss, "linear")
    notes = []
    if release.loss == "logistic":
        notes.append("Coefficients are log-odds; the picture has changes of log-odds.")
    if release.empty:
        notes.append(f"No row seems to hold {', '.join(release.empty)}.")
    notes += side_notes(release.schema, release.certificate, release.count)
    return Content(
        title=f"A {kind} model of {release.target}",
        lede=(
            f"One {kind} model that predicts {release.target} from "
            f"{len(release.names)} features: its coefficients, with noise, and nothing else of the "
            "table."
        ),
        size=_size_of(release),
        rows=_rows_of(release),
        columns=columns(release.schema),
        panels=(coefficients("Coefficients", release.target, found, release.schema, notes),),
        swamped=() if found.swamped is None else (found.swamped,),
    )


def _linear(release: ConstrainedRelease) -> Content:
    values = [(f"x{index}", value) for index, value in release.largest(_LARGEST)]
    lines = [Line(*pair) for pair in values]
    constant = ("intercept", release.intercept)
    table = Table(
        "The largest coefficients, in the features’ own units",
        ("feature", "coefficient"),
        tuple((name, number(value, 0.0)) for name, value in [constant, *values]),
    )
    facts = [("loss", release.loss), *release.constraint.items(), *release.lift.items()]
    if WEIGHT_BOUND in release.certificate.parameters:
        facts.append(("weight_bound", release.certificate.parameters[WEIGHT_BOUND]))
    projected = release.projection is not None
    beside = " It was learnt in a random projection, and brought back." if projected else ""
    return Content(
        title=f"A linear model of {release.features:,} features",
        lede=(
            f"One linear model of {release.features:,} features whose coefficients lie in a public "
            f"set.{beside} Coefficients that are not 0: {release.source.count:,}."
        ),
        size=size_of(release.rows, None),
        rows=release.rows,
        columns=pairs(facts, "How it was learnt", _HEADS),
        panels=(
            Panel(
                "Coefficients",
                "There are no intervals for a model of this kind.",
                forests(lines, "The largest coefficients", "coefficient"),
                table,
            ),
        ),
    )


def _scores(release: ScoresRelease) -> Content:
    hidden = [score.unknown for score in release.all() if score.unknown is not None]
    return Content(
        title=f"Scores of a model of {release.target}",
        lede=(
            "How well a model predicts rows that it has not seen, with noise. The guarantee is for "
            "the rows that were scored; the model is taken to be public already."
        ),
        size=_size_of(release),
        rows=_rows_of(release),
        columns=columns(release.schema),
        panels=scores_panels(release),
        swamped=tuple(dict.fromkeys(hidden)),
    )


def _mean(release: MeanRelease) -> Content:
    errors = release.privacy_errors
    rows = tuple(
        (name, number(release[name], errors[name]), number(errors[name], errors[name]))
        for name in release.names
    )
    bounds = _bounds(release.schema)
    lines = []
    for name in release.names:
        low, high = bounds[name]
        width, reach = high - low, _REACH * errors[name]
        middle = (release[name] - low) / width
        lines.append(Line(name, middle, middle - reach / width, middle + reach / width))
    table = Table("Means, in their own units", ("column", "mean", "noise (std. dev.)"), rows)
    pictures = forests(
        lines,
        "Means, with what noise may do to them (95%)",
        "from the lower bound (0) to the upper (1)",
    )
    return Content(
        title="Means",
        lede="The mean of each column, with noise, and nothing else of the table.",
        size=_size_of(release),
        rows=_rows_of(release),
        columns=columns(release.schema),
        panels=(Panel("Means", "", pictures, table),),
    )


def _covariance(release: CovarianceRelease) -> Content:
    rows = tuple(
        (
            name,
            significant(release.mean[name]),
            significant(max(release[name, name], 0.0) ** 0.5),
        )
        for name in release.names
    )
    table = Table("Means and spreads", ("column", "mean", "standard deviation"), rows)
    return Content(
        title="Covariances",
        lede="The covariance of all columns, with noise, and the means it is about.",
        size=_size_of(release),
        rows=_rows_of(release),
        columns=columns(release.schema),
        panels=(Panel("Means and correlations", "", (), table, correlations(release.correlation)),),
    )


def _rows(release: RowsRelease) -> Content:
    model = release.noise_model
    if isinstance(model, ProjectedRows):
        how = (
            f"Each row of {model.dimension:,} numbers became {model.k:,} mixtures of them, with "
            f"{_NOISES.get(model.noise, 'noise')}. Distances between rows can be estimated from it."
        )
    elif isinstance(model, AdditiveRows):
        how = "Noise was added to every number. Regressions take its known size into account."
    else:
        how = f"How they were made: {model.kind}."
    said = model.to_dict().items()
    facts: list[tuple[str, object]] = [
        ("numbers in each row", len(release.names)),
        ("their names", listed(release.names, 12)),
        *((name, value) for name, value in said if isinstance(value, str | int | float)),
    ]
    return Content(
        title="Rows",
        lede=f"One released row for each row of the table, in the same order. {how}",
        size=size_of(release.rows, None),
        rows=release.rows,
        columns=columns(release.schema),
        panels=(Panel("Released numbers", "", (), pairs(facts, "What the rows hold", _HEADS)),),
    )


def _groups(release: Groups[Any]) -> Content:
    return Content(
        title=f"Groups by {', '.join(release.by)}",
        lede=(
            f"A release of its own ({release.of}) for each of {len(release):,} public groups of "
            "rows, with noise, all for the price of one."
        ),
        size=f"{len(release):,} groups",
        rows=None,
        columns=columns(release.schema),
        panels=(groups_panel(release),),
    )


def _bounds(schema: Schema) -> dict[str, tuple[float, float]]:
    return {each.name: (float(each.low), float(each.high)) for each in schema.features}


def columns(schema: Schema) -> Table:
    """Return the public declarations of a table's columns."""
    rows = tuple(
        (each.name, each.type, each.allowed, each.missing)
        for each in describe_columns(schema)
        if each.type != DERIVED
    )
    return Table(
        "Columns as declared in public, before anything was read",
        ("column", "type", "allowed values", "missing cells"),
        rows,
        left=(1, 2, 3),
    )


_TELLERS: dict[type, Callable[[Any], Content]] = {
    MomentsRelease: _moments,
    SketchRelease: _sketch,
    ModelRelease: _model,
    ConstrainedRelease: _linear,
    MeanRelease: _mean,
    CovarianceRelease: _covariance,
    RowsRelease: _rows,
    ScoresRelease: _scores,
    SuggestedBounds: bounds_content,
    Groups: _groups,
    SuggestedRowsPerUnit: rows_per_unit_content,
    SuggestedLevels: levels_content,
}
