"""Scores of a model on private rows, under a guarantee: R², errors, AUC, calibration, residuals."""

import math
import os
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from dplinear.analyst import notebook
from dplinear.analyst.left_out import side_notes
from dplinear.analyst.regression.names import unknown
from dplinear.analyst.regression.summary import number
from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.scores import labels, values
from dplinear.analyst.scores.sums import ReleasedSums, Score, bounded
from dplinear.arguments import choice, integer, real, rejection, wrong_type
from dplinear.arrays import Floats
from dplinear.privacy.units import size
from dplinear.schema import Schema

_KIND = "scores"
_WHERE = "a release of scores"
_FACTS = [
    "certificate",
    "schema",
    "target",
    "labels",
    "scores",
    "rows",
    "count",
    "count_deviation",
    "histogram_deviation",
    "terms",
    "clip",
    "centre",
    "spread",
    "width",
    "beyond",
    "scale",
    "loss_unit",
]
_POSITIVE = ("clip", "spread", "width", "scale")
_LACKING = "lack the target or a feature. They were not scored."
_ARRAYS = ("sums", "histogram", "edges")
_EMPTY = {"sums": np.zeros((2, 0)), "histogram": np.zeros((1, 0)), "edges": np.zeros((1, 0))}
_LEVEL = 0.95
_WIDTH = 80
_MOST = 1000
_MANY = 0.1  # of the rows: where scores of clipped errors say little of the rest
_VALUES: Mapping[str, Callable[[ReleasedSums], Score]] = {
    "r2": values.r_squared,
    "rmse": values.root_mean_square,
    "mae": values.mean_absolute,
    "bias": values.bias,
}
_LABELS: Mapping[str, Callable[[ReleasedSums], Score]] = {
    "auc": labels.auc,
    "accuracy": labels.accuracy,
    "brier": labels.brier,
    "calibration": labels.calibration,
}
_HISTOGRAM_ALONE = "residuals"


@dataclass(frozen=True)
class Bin:
    """One bin of a released histogram: its ends, the noisy number of rows, and the noise on it."""

    low: float
    high: float
    count: float
    noise: float


@dataclass(frozen=True)
class CalibrationBin:
    """Rows whose predicted probability is between `low` and `high`.

    `observed` is the share of them with label 1, `error` its standard error, both NaN where the
    noise hides them; `count` is the noisy number of rows.
    """

    low: float
    high: float
    count: float
    observed: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class ScoresRelease:
    """Scores of one model on private rows, released under the guarantee on its certificate.

    `scores["r2"]` is a number; `scores.score("r2")` has its errors too. Standard errors include the
    sampling of the rows and the privacy noise. `labels` says whether the target is a label. The
    guarantee is for the rows that were scored, and for no others: not for those that the model was
    made of.
    """

    schema: Schema
    target: str
    labels: bool
    names: tuple[str, ...]
    sums: ReleasedSums = field(repr=False)
    edges: Floats = field(repr=False)
    certificate: Certificate = field(repr=False)
    rows: int | None = None
    loss_unit: float = 1.0
    kind: ClassVar[str] = _KIND

    @property
    def count(self) -> float:
        """The number of rows that were scored, exact where it is public, or about so many."""
        return self.sums.count * self.sums.scale

    def score(self, name: str) -> Score:
        """Return one score: its value, its errors, and `interval(level)`."""
        if name not in self.names or name == _HISTOGRAM_ALONE:
            shown = tuple(each for each in self.names if each != _HISTOGRAM_ALONE)
            raise unknown(name, shown, "name", "scores", "one of the scores that were released")
        if name == "log_loss":
            return bounded(labels.log_loss(self.sums, self.loss_unit), self.sums)
        return bounded((_LABELS if self.labels else _VALUES)[name](self.sums), self.sums)

    def __getitem__(self, name: str) -> float:
        return self.score(name).value

    def all(self) -> list[Score]:
        """Return every score that was released."""
        return [self.score(name) for name in self.names if name != _HISTOGRAM_ALONE]

    def residual_sizes(self) -> list[Bin]:
        """Return how large residuals are, in the target's units: a noisy histogram."""
        if self.labels:
            raise rejection("scores", "residual_sizes", "those of values, not labels", self.target)
        ends = [0.0, *(self.edges * self.sums.width).tolist(), math.inf]
        counts = (self.sums.histogram * self.sums.scale).tolist()
        noise = self.sums.histogram_deviation * self.sums.scale
        return [
            Bin(low, high, count, noise)
            for (low, high), count in zip(pairwise(ends), counts, strict=True)
        ]

    def reliability(self, bins: int = 8) -> list[CalibrationBin]:
        """Return how often label 1 is seen among rows of similar predicted probability.

        Requires: released "calibration" or "auc"; `bins`, from 1 to 32: neighbouring bins of the
        histogram are added up to so many, each with about as many rows.
        """
        where = "reliability"
        bins = integer(bins, "bins", where, low=1, high=32)
        if not self.labels or not len(self.sums.histogram):
            rule = 'a release with "calibration" or "auc", of a label'
            raise rejection("scores", where, rule, ", ".join(self.names))
        zeros, ones = np.split(self.sums.histogram, 2)
        ends = [0.0, *expit(self.edges).tolist(), 1.0]
        sigma = self.sums.histogram_deviation
        found = []
        for first, last in _parts(zeros + ones, sigma, bins):
            width = last - first
            positive, total = float(ones[first:last].sum()), float((zeros + ones)[first:last].sum())
            share, error = math.nan, math.nan
            if total > 4 * sigma * math.sqrt(2 * width):
                share = min(max(positive / total, 0.0), 1.0)
                spread = share * (1 - share) * total
                noise = sigma**2 * width * ((1 - share) ** 2 + share**2)
                error = math.sqrt(spread + noise) / total
            held = total * self.sums.scale
            found.append(CalibrationBin(ends[first], ends[last], held, share, error))
        return found

    def summary(self, level: float = _LEVEL) -> str:
        """Return the scores with their intervals, line by line, and what to know of them."""
        level = real(level, "level", "summary", low=0, high=1, open_low=True, open_high=True)
        heads = ("score", "value", f"{level:.0%} interval", "std. error", "due to noise")
        rows: list[tuple[str, ...]] = [heads]
        rows += [_line(score, level) for score in self.all()]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        table = [
            "  ".join([row[0].ljust(wide[0]), *map(str.rjust, row[1:], wide[1:])]) for row in rows
        ]
        title = f"Scores of a model of {self.target}, {self._size()}"
        notes = [textwrap.fill(note, _WIDTH) for note in self._notes()]
        return "\n".join([title, *table, *notes])

    def _size(self) -> str:
        if self.rows is not None:
            return f"{self.rows:,} rows"
        return size(max(self.count, 0.0), self.certificate.unit, weight=self.schema.weight_name)

    def _notes(self) -> list[str]:
        notes = list(dict.fromkeys(score.unknown for score in self.all() if score.unknown))
        notes += side_notes(self.schema, self.certificate, self.count, _LACKING)
        if not self.labels and any(name != _HISTOGRAM_ALONE for name in self.names):
            notes += self._clipped()
        if self.labels and "log_loss" in self.names:
            notes.append(f"In the log loss a row counts as at most {self.loss_unit:g}.")
        if self.certificate.unit is not None:
            notes.append("Standard errors are upper bounds, however rows of a unit are correlated.")
        if self.certificate.simulated:
            notes.append("SIMULATED: the noise was seeded, and protects nobody.")
        return notes

    def _clipped(self) -> list[str]:
        """Return sentences on errors beyond the clip: how many seem to be, and how many may be."""
        beyond = np.array([0.0, *self.edges]) >= self.sums.clip * (1 - 1e-9)
        count = max(float(self.sums.histogram[beyond].sum()), 0.0)
        doubt = 2 * self.sums.histogram_deviation * math.sqrt(int(beyond.sum()))
        limit = number(self.sums.clip * self.sums.width, self.sums.clip * self.sums.width / 100)
        share = min((count + doubt) / self.sums.rows, 1.0)
        rows = "rows" if self.schema.weight is None else "weight"
        far = (
            f"Up to {100 * share:.2g}% of the {rows} may have larger errors; noise would hide them"
        )
        told = f"Errors larger than {limit} count as {limit}"
        if share > _MANY:
            return [f"{told}. {far}, and these scores say little of them."]
        return [f"{told}, and what that takes away is estimated. {far}."]

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release to one file that `dplinear.load` reads anywhere."""
        files.save(self, path, overwrite=overwrite)

    def describe(self) -> str:
        """Return the scores, of how many rows, and under which guarantee."""
        return f"{self.summary()}\n{self.certificate}"

    def __repr__(self) -> str:
        return self.describe()

    def _repr_html_(self) -> str:
        heads = ["score", "value", f"{_LEVEL:.0%} interval", "std. error", "due to noise"]
        table = notebook.table(heads, [list(_line(score, _LEVEL)) for score in self.all()])
        notes = notebook.lines(self._notes())
        title = f"Scores of a model of {self.target}, {self._size()}"
        return notebook.card(title, table, notes, self.certificate._repr_html_())


def _line(score: Score, level: float) -> tuple[str, ...]:
    if score.unknown is not None:
        return score.name, "hidden", "", "", ""
    error, low_high = score.standard_error, score.interval(level)
    low, high = (number(end, error) for end in low_high)
    shown = number(score.value, error), f"{low} to {high}", number(error, error)
    return score.name, *shown, number(score.privacy_error, error)


def _parts(counts: Floats, sigma: float, bins: int) -> list[tuple[int, int]]:
    """Return runs of neighbouring bins that hold about equally many rows, at most so many."""
    clear = np.where(counts > 2 * sigma, counts, 0.0)
    total = float(clear.sum())
    if not total:
        return [(0, len(counts))]
    reached = np.cumsum(clear) / total
    ends = [int(np.searchsorted(reached, part / bins - 1e-9)) + 1 for part in range(1, bins)]
    return list(pairwise(dict.fromkeys([0, *ends, len(counts)])))


class ScoresKind:
    """How such a release is taken apart, and put together again."""

    name = _KIND
    release = ScoresRelease

    def to_parts(self, release: ScoresRelease) -> files.Parts:
        """Take a release apart."""
        sums = release.sums
        facts = {
            "certificate": release.certificate.to_dict(),
            "schema": release.schema.to_dict(),
            "target": release.target,
            "labels": release.labels,
            "scores": list(release.names),
            "rows": release.rows,
            "count": sums.count,
            "count_deviation": sums.count_deviation,
            "histogram_deviation": sums.histogram_deviation,
            "terms": list(sums.sums),
            "clip": sums.clip,
            "centre": sums.centre,
            "spread": sums.spread,
            "width": sums.width,
            "beyond": [sums.beyond["e²"], sums.beyond["t²"]],
            "scale": sums.scale,
            "loss_unit": release.loss_unit,
        }
        numbers = [list(sums.sums.values()), list(sums.deviations.values())]
        arrays = {
            "sums": np.array(numbers, float).reshape(2, -1),
            "histogram": sums.histogram[None, :],
            "edges": release.edges[None, :],
        }
        there = {name: each for name, each in arrays.items() if each.size}
        return files.Parts(self.name, facts, there)

    def from_parts(self, parts: files.Parts) -> ScoresRelease:
        """Put a release together, or raise."""
        named = [name for name in _ARRAYS if name in parts.arrays]
        if list(parts.facts) != _FACTS or list(parts.arrays) != named or "edges" not in named:
            found = ", ".join([*parts.facts, *parts.arrays])
            raise rejection("keys", _WHERE, ", ".join([*_FACTS, *_ARRAYS]), found)
        facts = parts.facts
        if not isinstance(facts["labels"], bool):
            raise wrong_type("labels", _WHERE, "true or false", facts["labels"])
        known = (*_LABELS, "log_loss") if facts["labels"] else (*_VALUES, _HISTOGRAM_ALONE)
        names = _names(facts["scores"], "scores")
        for name in names:
            choice(name, "scores", _WHERE, known)
        arrays = {name: parts.arrays.get(name, empty) for name, empty in _EMPTY.items()}
        sums = _sums(facts, arrays)
        release = ScoresRelease(
            schema=Schema.from_release(facts["schema"]),
            target=_names([facts["target"]], "target")[0],
            labels=facts["labels"],
            names=names,
            sums=sums,
            edges=arrays["edges"][0].astype(float),
            certificate=Certificate.from_dict(facts["certificate"]),
            rows=None if facts["rows"] is None else integer(facts["rows"], "rows", _WHERE, low=0),
            loss_unit=real(facts["loss_unit"], "loss_unit", _WHERE, low=0, open_low=True),
        )
        _check(release)
        return release


def _check(release: ScoresRelease) -> None:
    """Raise unless the sums are those that the scores are made of."""
    edges, bins = release.edges, len(release.sums.histogram)
    if len(edges) > 1 and not (np.diff(edges) > 0).all():
        raise rejection("edges", _WHERE, "rising", "others")
    expected = {0, 2 * (len(edges) + 1)} if release.labels else {len(edges) + 1}
    if bins not in expected:
        raise rejection("histogram", _WHERE, "of one count for each bin", bins)
    needs_histogram = {"auc", "calibration"} & set(release.names)
    if needs_histogram and not bins:
        raise rejection("histogram", _WHERE, "there for these scores", 0)
    try:
        release.all()
    except KeyError as error:
        raise rejection("terms", _WHERE, "those of its scores", f"without {error}") from None


def _sums(facts: Mapping[str, Any], arrays: Mapping[str, Floats]) -> ReleasedSums:
    terms = _names(facts["terms"], "terms", least=0)
    table, histogram = arrays["sums"], arrays["histogram"]
    if table.shape != (2, len(terms)) or histogram.shape[0] != 1 or arrays["edges"].shape[0] != 1:
        raise rejection("sums", _WHERE, "two rows of numbers, one for each term", table.shape)
    sizes = {name: real(facts[name], name, _WHERE, low=0, open_low=True) for name in _POSITIVE}
    noises = ("count_deviation", "histogram_deviation")
    deviations = {name: real(facts[name], name, _WHERE, low=0) for name in noises}
    if (table[1] < 0).any():
        raise rejection("sums", _WHERE, "with deviations of at least 0", "others")
    return ReleasedSums(
        sums=dict(zip(terms, table[0].tolist(), strict=True)),
        deviations=dict(zip(terms, table[1].tolist(), strict=True)),
        count=real(facts["count"], "count", _WHERE),
        histogram=histogram[0].astype(float),
        clip=sizes["clip"],
        centre=real(facts["centre"], "centre", _WHERE),
        spread=sizes["spread"],
        width=sizes["width"],
        beyond=_beyond(facts["beyond"]),
        scale=sizes["scale"],
        **deviations,
    )


def _beyond(value: Any) -> dict[str, float]:
    if not isinstance(value, list) or len(value) != 2:
        raise rejection("beyond", _WHERE, "two numbers", type(value))
    return {
        name: real(each, "beyond", _WHERE, low=0)
        for name, each in zip(("e²", "t²"), value, strict=True)
    }


def _names(value: Any, parameter: str, least: int = 1) -> tuple[str, ...]:
    fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
    if not fits or not least <= len(value) <= _MOST or len(set(value)) < len(value):
        raise rejection(parameter, _WHERE, "a list of different names", type(value))
    return tuple(value)


files.register(ScoresKind())
