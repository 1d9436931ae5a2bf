"""The gate for scores: how well a public model predicts private rows."""

from collections.abc import Sequence
from typing import Any, Unpack

import numpy as np

from dplinear.analyst.design_effect import weight_scale
from dplinear.analyst.regression.model import scales
from dplinear.analyst.regression.names import single
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.scores import ScoresRelease
from dplinear.analyst.scores.sums import ReleasedSums
from dplinear.arguments import choice, rejection, wrong_type
from dplinear.curator.gates.options import ReadingOptions, own_options, reading_options
from dplinear.curator.gates.scored_model import read_model
from dplinear.curator.passage import Passage
from dplinear.curator.passes import Table
from dplinear.curator.sources import open_reader
from dplinear.exact.grid import shape_of
from dplinear.ledger import AnyLedger
from dplinear.mechanisms.checks import RELATIONS, read_guarantee
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import SchemaLike
from dplinear.scores.method import LABELS, ODDS, SIZES, VALUES, Question, Scores, ScoreSums
from dplinear.scores.terms import MOST_LOSS

_WHERE = "release_scores"
_PUBLIC_MODEL = (
    "the guarantee is for the rows that were scored; the model is taken to be public already"
)


def release_scores(
    model: Any,
    data: Any,
    schema: SchemaLike | None = None,
    target: str | None = None,
    scores: Sequence[str] | str | None = None,
    *,
    features: Sequence[str] | str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[ReadingOptions],
) -> ScoresRelease:
    """Release how well a public model predicts rows that it has not seen, with intervals.

    Requires: a `model`: a ModelRelease, a fit of `MomentsRelease.regress`, the path of a saved
    model, or any object with `predict` (and `predict_proba` or `decision_function`, for labels),
    such as scikit-learn's; a table with the `schema`'s columns, which a model of dplinear's brings
    along, and so it does its `target`. `features` are what another model is given, in this order:
    names of features or of columns (None: what it says it was fitted to, or all but the target). It
    must give equal rows equal predictions. `scores` are some of "r2", "rmse", "mae", "bias" and
    "residuals" for a value, of "auc", "accuracy", "log_loss", "brier" and "calibration" for a label
    (None: all of them); fewer have less noise. `epsilon` and `delta`, or a `guarantee` such as
    ZCDP(0.1); which tables are `neighbours`; the `unit` of privacy, if there is one, counts as at
    most `rows_per_unit` rows (1 unless given). Further options go to the reading (`threads`,
    `engine`, `progress`).
    A model of dplinear's takes a pass over the table or two. Any other one is called for a row at a
    time, as what it makes of a row in a block may depend on the rest: that is slow.
    Promises: the release satisfies what its certificate says, whatever the rows hold, for the rows
    that were scored; nothing is promised for those that the model was made of. A row that lacks a
    number it needs is left out, unless the schema says otherwise. Arguments, columns and types are
    checked before anything is spent; nothing is read before it is spent.
    """
    with Passage(_WHERE, locals()) as passage:
        relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee)
        own_options(Scores, options, _WHERE)
        read = read_model(model, schema, target, features)
        passage.given |= read.public
        whole = passage.schema(read.schema)
        labels = read.labels
        names = _names(scores, labels=labels)
        index = single(whole, read.target, _WHERE)
        question = Question(
            shape=shape_of(whole),
            predictor=read.predictor(whole),
            target=index,
            scores=names,
            labels=labels,
            leaves_out=bool(whole.needed_features),
            count_varies=whole.count_varies,
        )
        method = Scores(guarantee=asked, neighbours=relation)
        prepared = method.prepare(question)
        passage.check_rows(method)
        passage.notes = (_PUBLIC_MODEL,)
        reading = {**reading_options(options), **read.reading}
        rows = passage.rows_per_unit
        read.check_shipping(question.predictor, data, reading)
        reader = open_reader(data, whole, again=not labels, rows_per_unit=rows, **reading)
        table = Table(reader, whole)

        def release(found: ScoreSums, certificate: Certificate) -> ScoresRelease:
            _, widths = scales(whole, [index])
            public = relation.rows_are_public and not whole.count_varies
            return ScoresRelease(
                schema=whole,
                target=read.target,
                labels=labels,
                names=names,
                sums=ReleasedSums(
                    sums=found.sums,
                    deviations=found.deviations,
                    count=found.count,
                    count_deviation=found.count_deviation,
                    histogram=found.histogram,
                    histogram_deviation=found.histogram_deviation,
                    clip=found.clip.at,
                    centre=found.centre,
                    spread=found.spread.at,
                    width=float(widths[0]),
                    beyond={"e²": found.clip.beyond, "t²": found.spread.beyond},
                    scale=weight_scale(whole, certificate.rows_per_unit),
                ),
                edges=np.array(ODDS if labels else SIZES),
                certificate=certificate,
                rows=round(found.count) if public else None,
                loss_unit=MOST_LOSS,
            )

        told = {"target": read.target, "scores": list(names)}
        return passage.cross(method, prepared, lambda: table, release, told)


def _names(scores: Any, *, labels: bool) -> tuple[str, ...]:
    """Return the scores that are asked for, each once, in the usual order."""
    known = LABELS if labels else VALUES
    if scores is None:
        return tuple(known)
    listed = [scores] if isinstance(scores, str) else scores
    if not isinstance(listed, Sequence):
        raise wrong_type("scores", _WHERE, f"some of {', '.join(known)}", type(scores))
    for name in listed:
        kind = "a label" if labels else "a value"
        choice(name, "scores", _WHERE, known, hint=f"the model predicts {kind}.")
    if not listed or len(set(listed)) < len(listed):
        raise rejection("scores", _WHERE, "at least one score, none twice", listed)
    return tuple(name for name in known if name in listed)
