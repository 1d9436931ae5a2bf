"""The gate: the one way from a private table to a release.

Always in this order: check every public argument and calibrate; check the table's columns; spend;
read, once; measure; return. Whatever fails before the spend loses nothing.
"""

import numbers
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dplinear.analyst.releases.certificate import CALIBRATIONS, Certificate
from dplinear.analyst.releases.moments import MomentsRelease
from dplinear.arguments import choice, mistyped, rejection
from dplinear.curator.recorded import recorded
from dplinear.curator.sources import exact_pass
from dplinear.curator.sources.pool import one_blas_thread
from dplinear.exact.gram import SecondMoments
from dplinear.exact.grid import Grid
from dplinear.exact.shape import Shape, Statistic
from dplinear.exact.totals import Words
from dplinear.ledger import AnyLedger, Ledger, Request
from dplinear.ledger.tally import count
from dplinear.mechanisms import MECHANISMS
from dplinear.mechanisms.checks import read_guarantee
from dplinear.mechanisms.contract import Account, Measurement, Mechanism, Method, Prepared
from dplinear.noise import simulation
from dplinear.planner.auto import AUTO, Asked, choose, read_expected
from dplinear.privacy.concentration import concentration
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.profiles.base import Profile
from dplinear.schema import Schema

RELATIONS = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
_CURVE = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
READING = frozenset({"threads", "engine", "progress"})
Curve = tuple[tuple[float, float], ...]
_NOBODY_COUNTS = "no ledger was given: nobody counts what is spent on this table"


@recorded
def release_moments(
    data: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ADD_REMOVE,
    mechanism: str = "analyze_gauss",
    calibration: str = "exact",
    expected_rows: int | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> MomentsRelease:
    """Release the second moments of a table, once; every regression on them is then free.

    Requires: a table and its public schema; `epsilon` and `delta`, or a `guarantee` of another kind
    that the mechanism supports; which tables are `neighbours`. `mechanism` is one of
    "analyze_gauss", "additive_wishart", "sketch", "inverse_wishart", or "auto": the one of the
    least error that the planner predicts for `expected_rows`, a public guess (without one, the
    first that can keep the guarantee). Further options go to the mechanism (`rows`, `degrees`,
    `least_eigenvalue_share`, …) or to the reading (`threads`, `engine`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: the release satisfies what its certificate says, whatever the rows hold. Arguments,
    columns and types are checked before anything is spent; nothing is read before it is spent.
    """
    where = "release_moments"
    choice(mechanism, "mechanism", where, (*MECHANISMS, AUTO))
    relation = Neighbours.parse(neighbours, where, RELATIONS)
    asked = read_guarantee(where, epsilon, delta, guarantee)
    choice(calibration, "calibration", where, CALIBRATIONS)
    passing = Passing(where, schema, ledger, dataset, request)
    rows = read_expected(expected_rows, where)
    if mechanism == AUTO:
        size = (schema.dimension - schema.has_intercept, schema.dimension, schema.bound**2)
        found = choose("moments", tuple(MECHANISMS), Asked(asked, relation, *size), rows)
        mechanism, passing.notes = found.name, (found.note,)
    chosen = MECHANISMS[mechanism]
    own = own_options(chosen, options, where)
    built = chosen(guarantee=asked, neighbours=relation, calibration=calibration, **own)
    measured, certificate, count = passing.through(built, data, options, own)
    return MomentsRelease(schema, measured.values, measured.law, certificate, count)


def own_options(
    method: type[Method],
    options: Mapping[str, Any],
    where: str,
    others: Collection[str] = READING,
) -> dict[str, Any]:
    """Return the options that belong to the method; refuse those that belong to nobody."""
    names = {field.name for field in fields(method) if field.init}
    names -= {"guarantee", "neighbours", "calibration", "release"}  # the gate's own to set
    unknown = sorted(set(options) - names - set(others))
    if unknown:
        rule = "one of " + ", ".join(sorted(names.union(others)))
        raise rejection("options", where, rule, ", ".join(unknown))
    return {name: plain_number(value) for name, value in options.items() if name in names}


def plain_number(value: Any) -> Any:
    """Return a number as Python's own, which certificates can hold; anything else as it is."""
    if type(value) in {int, float, bool} or not isinstance(value, numbers.Real):
        return value
    try:
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    except Exception:  # noqa: BLE001 - a class with its own ideas: the method will refuse it
        return value


def reading_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that belong to the reading."""
    return {name: value for name, value in options.items() if name in READING}


def _profile(method: Method, account: Account) -> Profile | None:
    """Return the curve that is kept between the method's own neighbours, if one is known."""
    profile = account.profile
    if account.holds is None or profile is None or profile.neighbours is not method.neighbours:
        return None
    return profile


def _check_text(text: object, parameter: str, where: str) -> None:
    if text is None:
        return
    if not (isinstance(text, str) and 0 < len(text) <= 200 and text.isprintable()):
        raise mistyped(parameter, where, "a text of 1 to 200 printable characters", text)


class Passage:
    """One passage through a gate: who is told of the spend, and what certifies the release."""

    def __init__(
        self, where: str, ledger: AnyLedger | None, dataset: str | None, request: str | None
    ) -> None:
        if ledger is not None and not isinstance(ledger, Ledger):
            raise mistyped("ledger", where, "a path, or an object with a method `spend`", ledger)
        _check_text(dataset, "dataset", where)
        _check_text(request, "request", where)
        self.where, self.ledger, self.dataset = where, ledger, dataset
        self.notes: tuple[str, ...] = ()  # of how "auto" was read
        self.entropy = simulation.entropy_for_release()
        self.request = request or f"{self.entropy.bits(128):032x}"

    def spend(self, method: Method, account: Account, own: Mapping[str, Any]) -> None:
        """Tell whoever counts, before a row is read."""
        profile = _profile(method, account)
        spent = Request(
            request=self.request,
            dataset=self.dataset,
            guarantee=account.holds,
            neighbours=method.neighbours,
            mechanism=method.name,
            parameters={"calibration": method.calibration, **own},
            concentrated=concentration(profile),
            profile=profile,
        )
        if self.ledger is not None:
            self.ledger.spend(spent)
        count(spent)

    def certificate(
        self, method: Method, account: Account, parameters: Mapping[str, Any], curve: Curve
    ) -> Certificate:
        """Return the certificate of what was released."""
        return Certificate(
            mechanism=method.name,
            parameters=parameters,
            neighbours=method.neighbours,
            asked=account.asked,
            holds=account.holds,
            curve=curve,
            numerics=method.numerics,
            calibration=method.calibration,
            simulated=self.entropy.simulated,
            request=self.request,
            dataset=self.dataset,
            notes=account.notes + self.notes + ((_NOBODY_COUNTS,) if self.ledger is None else ()),
        )


class Passing(Passage):
    """The passage of a table that a schema describes."""

    def __init__(
        self,
        where: str,
        schema: Schema,
        ledger: AnyLedger | None,
        dataset: str | None,
        request: str | None,
    ) -> None:
        if not isinstance(schema, Schema):
            raise mistyped("schema", where, "a Schema", schema)
        super().__init__(where, ledger, dataset, request)
        self.schema = schema

    def through(
        self,
        mechanism: Mechanism,
        data: Any,
        options: Mapping[str, Any],
        own: Mapping[str, Any],
    ) -> tuple[Measurement, Certificate, int | None]:
        """Calibrate, check the table, spend, read, measure."""
        grid = Grid.of(self.schema)
        prepared = mechanism.prepare(Shape(self.schema.dimension, grid.cells, grid.exponent))
        reading = reading_options(options)
        curve = curve_of(prepared.account.profile)  # may fail for extreme guarantees: so, now
        read = exact_pass(data, self.schema, **reading)
        self.spend(mechanism, prepared.account, own)
        return self.measured(mechanism, prepared, read(), curve)

    def measured(
        self,
        mechanism: Method,
        prepared: Prepared,
        moments: SecondMoments,
        curve: Curve,
        peaks: Words | None = None,
    ) -> tuple[Measurement, Certificate, int | None]:
        """Return the measurement, its certificate, and the number of rows if that is public."""
        public = mechanism.neighbours is not Neighbours.ADD_REMOVE
        # A reproduction may use the count of rows where the paper does; its certificate says so.
        known = public or mechanism.calibration == "paper"
        count = moments.count if known else None
        statistic = Statistic(prepared.shape, moments.integers, rows=count, peaks=peaks)
        with one_blas_thread():  # more of them only wait for each other over small matrices
            measured = prepared.measure(statistic, self.entropy)
        account = measured.account
        shown = curve if account is prepared.account else curve_of(account.profile)
        certificate = self.certificate(mechanism, account, measured.parameters, shown)
        return measured, certificate, moments.count if public else None


def curve_of(profile: Profile | None) -> Curve:
    """Return points (ε, δ) of a profile, where δ is neither 0 nor 1."""
    if profile is None:
        return ()
    deltas = profile.curve(np.array(_CURVE))
    points = zip(_CURVE, deltas.tolist(), strict=True)
    return tuple((epsilon, delta) for epsilon, delta in points if 0 < delta < 1)
