"""The passage: the one way from a private table to a release, and the one place that spends.

Always in this order: check, calibrate, open, **spend**, read, run, certify, keep. A gate checks its
arguments, calibrates a mechanism and opens the table; `Passage.cross` does the rest. Whatever fails
before the spend loses nothing; nothing is read before it.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import numpy as np

from dplinear.analyst.releases import files
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.rows import kept_rows
from dplinear.analyst.rows.release import RowsRelease
from dplinear.arguments import ArgumentError, describe, rejection, wrong_type
from dplinear.curator.request_fingerprint import request_fingerprint
from dplinear.curator.row_weights import RowWeights
from dplinear.curator.sources.pool import one_blas_thread
from dplinear.ledger import Keeper, Ledger, Request
from dplinear.ledger.ledger import BudgetLedger
from dplinear.ledger.opening import as_ledger
from dplinear.ledger.request import (
    DamagedLedgerError,
    LedgerError,
    NotKeptWarning,
    not_kept_warning,
    refusal,
)
from dplinear.ledger.spent import note_spent, note_unsure
from dplinear.ledger.tally import count
from dplinear.mechanisms.checks import ADD_DELTA, RELATIONS
from dplinear.mechanisms.contract import Account, Made, Mechanism, Prepared, Private
from dplinear.noise import simulation
from dplinear.privacy.compose import BudgetExceededError
from dplinear.privacy.concentration import concentration
from dplinear.privacy.guarantees import MIDP, ApproxDP
from dplinear.privacy.profiles.base import Profile
from dplinear.privacy.units import Unit
from dplinear.registry import class_names, is_own
from dplinear.schema import Schema, SchemaLike

Curve = tuple[tuple[float, float], ...]
_Release = TypeVar("_Release")
_CURVE = (0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
_NOBODY_COUNTS = "no ledger was given: this release is not charged to any privacy budget"
_PUBLISHED = "papers."  # whose gates reproduce what may guarantee nothing
_ITS_OWN = frozenset({"Schema"})  # whose errors are about what a schema says, not about a gate


class Passage:
    """One call of a gate, from its arguments to its release.

    Requires: the name of the gate, and all of its arguments by name (`locals()`, first thing).
    Promises: entered with `with`, errors about arguments name the gate. `entropy` is what the
    release draws from. `notes` are for the certificate.
    """

    def __init__(self, where: str, given: Mapping[str, Any]) -> None:
        self.where, self.given = where, dict(given)
        ledger = as_ledger(given["ledger"])
        if ledger is not None and not isinstance(ledger, Ledger):
            raise wrong_type("ledger", where, "a path, or an object with a method `spend`", ledger)
        self._ledger: Ledger | None = ledger
        self.dataset = _text(given["dataset"], "dataset", where)
        named = _text(given["request"], "request", where)
        self.notes: tuple[str, ...] = ()  # of how "auto" was read
        self.unit: Unit | None = None
        self._leaves_out = False
        self._weights: str | None = None  # the argument that says how much rows weigh
        self._warnings: list[NotKeptWarning] = []
        self.entropy = simulation.entropy_for_release()
        self.named = named is not None
        self.request = named or f"{self.entropy.bits(128):032x}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, ArgumentError) and self._lacks_delta(error):
            facts = ("delta", self.where, "above 0 for this mechanism")
            raise ArgumentError(*facts, describe(self.given["delta"]), error.hint) from None
        if isinstance(error, ArgumentError) and self._was_given(error):
            raise error.rename(self.where).with_traceback(error.__traceback__) from None
        if error is None:
            for each in self._warnings:
                warnings.warn(each, stacklevel=3)  # to whoever called the gate

    def _lacks_delta(self, error: ArgumentError) -> bool:
        """Return whether the caller gave an ε, and a mechanism refuses it for want of a δ."""
        given = self.given.get("guarantee") is None and self.given.get("epsilon") is not None
        given = given and error.parameter == "guarantee"
        return given and "delta" in self.given and error.hint.startswith(ADD_DELTA)

    def _was_given(self, error: ArgumentError) -> bool:
        """Return whether an error of an inner function is about an argument of this gate."""
        if error.where in {self.where, *_ITS_OWN}:
            return False
        if error.parameter in self.given or error.parameter in self.given.get("options", ()):
            return True
        return error.where in class_names()  # an option that was left out

    def warn(self, warning: NotKeptWarning) -> None:
        """Warn of what could not be kept of a release, once it is on its way to its user."""
        self._warnings.append(warning)

    def schema(self, schema: SchemaLike | None) -> Schema:
        """Return the schema that was given, as a mapping or not, with the unit of privacy.

        A unit that the schema names and one that is an argument of its own are one request.
        """
        found = self.given["schema"] = self.with_unit(Schema.of(schema, self.where))
        self.given["unit"] = None  # which the schema says
        self._leaves_out = bool(found.needed_features)
        return found

    def with_unit(self, schema: Schema) -> Schema:
        """Return the schema with the unit that was given, or that it names itself.

        A request is of that unit, whichever way it was named.
        """
        self._weights = None if schema.weight is None else "schema"
        named, rows = self.given.get("unit"), self.given.get("rows_per_unit")
        if named is not None:
            if not isinstance(named, str):
                raise wrong_type("unit", self.where, "the name of a column", type(named))
            if schema.unit not in {None, named}:
                rule = "left out, or the unit that the schema names"
                raise rejection("unit", self.where, rule, named)
            schema = schema.with_unit(named)
        if schema.unit is None:
            if rows is not None:
                hint = 'name the column that says whom a row belongs to: unit="patient".'
                raise rejection("rows_per_unit", self.where, "given with a unit", rows, hint)
            return schema
        self._set_unit(Unit.of(schema.unit, rows, self.where))
        return schema

    def with_weights(self, rows: RowWeights) -> None:
        """Take note of whose rows are whose, and how much they weigh, where arrays say so."""
        self._weights = "sample_weight" if rows.surveyed else None
        if rows.unit is not None:
            self._set_unit(rows.unit)

    def _set_unit(self, unit: Unit) -> None:
        self.unit = unit
        self.given |= {"unit": unit.column, "rows_per_unit": unit.rows}

    @property
    def rows_per_unit(self) -> int:
        """How many rows a unit of privacy counts as, at the most."""
        return 1 if self.unit is None else self.unit.rows

    def check_rows(self, method: Mechanism) -> None:
        """Raise where a mechanism has no proof for rows with weights, or for rows left out."""
        if self._leaves_out and method.neighbours not in RELATIONS:
            rule = 'free of columns with missing="leave_out", where every row is released'
            raise rejection("schema", self.where, rule, "such columns")
        if self.unit is None and self._weights is None:
            return
        if not (method.for_units or (self.unit is None and method.for_weights)):
            hint = "the usual mechanism of release_moments and release_model takes units."
            if self.unit is None and self._weights is not None:
                rule = f"free of survey weights for {method.name}, whose proof is about whole rows"
                hint = hint.replace("units", "weights")
                raise rejection(self._weights, self.where, rule, "a weight", hint)
            rule = f"left out for {method.name}, whose proof is about single rows"
            raise rejection("unit", self.where, rule, self.unit and self.unit.column, hint)
        if method.neighbours not in RELATIONS:
            rule = "add_remove or replace where a unit of privacy is named, or rows have weights"
            raise rejection("neighbours", self.where, rule, method.neighbours)

    def cross(
        self,
        method: Mechanism,
        prepared: Prepared[Private, Made],
        read: Callable[[], Private],
        release: Callable[[Made, Certificate], _Release],
        public: Mapping[str, Any],
    ) -> _Release:
        """Spend, read, run, certify and keep; or return what the same request was given before.

        Requires: a calibrated mechanism; `read`, which returns the private table and has checked
        all that can be checked without reading it; `release`, which makes a release of the outcome;
        the `public` arguments that a ledger is told.
        """
        self.check_rows(method)
        if prepared.account.holds is None and not self.where.startswith(_PUBLISHED):
            rule = "one that proves a guarantee"
            raise rejection("mechanism", self.where, rule, method.name)
        curve = curve_of(prepared.account)  # may fail for extreme guarantees: so, now
        kept = self._spend(method, prepared.account, public)
        if kept is not None:
            return cast("_Release", self._again(kept))
        try:
            with one_blas_thread():  # more of them only wait for each other over small matrices
                outcome = prepared.run(read(), self.entropy)
                account = outcome.account
                shown = curve if account is prepared.account else curve_of(account)
                made = release(
                    outcome, self.certificate(method, account, outcome.parameters, shown)
                )
            self._keep(made)
        except BaseException as error:
            if self._ledger is not None:
                note_spent(error, self.request)
            raise
        return made

    def certificate(
        self,
        method: Mechanism,
        account: Account,
        parameters: Mapping[str, Any],
        curve: Curve | None = None,
    ) -> Certificate:
        """Return the certificate of what is released."""
        counted = () if self._ledger is not None else (_NOBODY_COUNTS,)
        return Certificate(
            mechanism=method.name,
            parameters=parameters,
            neighbours=method.neighbours,
            asked=account.asked,
            holds=account.holds,
            curve=curve_of(account) if curve is None else curve,
            numerics=method.numerics,
            calibration=method.calibration,
            simulated=self.entropy.simulated,
            request=self.request,
            dataset=self.dataset,
            notes=account.notes + self.notes + _stranger(method) + counted,
            unit=None if self.unit is None else self.unit.column,
            rows_per_unit=None if self.unit is None else self.unit.rows,
        )

    def check_file(self, path: Path) -> None:
        """Raise if the ledger knows the rows of the request, and a file is not what held them."""
        if not isinstance(self._ledger, BudgetLedger):
            return
        content = self._ledger.kept_release(self.request)
        if content is None or not kept_rows.is_kept_rows(content):
            return
        if not kept_rows.read(content).is_in(path):
            name = self.request
            raise refusal(
                f"The file {path.name!r} is not as it was when the request {name!r} was released.",
                "bring back the file; or give another `output`, for rows that the ledger keeps.",
            )

    # The ledger

    def _spend(
        self, method: Mechanism, account: Account, public: Mapping[str, Any]
    ) -> bytes | None:
        """Tell whoever counts, before a row is read; return what the request was given before."""
        profile = _profile(method, account)
        spent = Request(
            request=self.request,
            dataset=self.dataset,
            guarantee=account.holds,
            neighbours=method.neighbours,
            mechanism=method.name,
            parameters={"calibration": method.calibration, **public, **self._of_unit()},
            concentrated=concentration(profile),
            profile=profile,
        )
        kept = None if self._ledger is None else self._record(self._ledger, spent)
        if kept is None:
            count(spent)
        return kept

    def _of_unit(self) -> dict[str, Any]:
        """Return what a ledger is told of the unit of privacy."""
        if self.unit is None:
            return {}
        return {"unit": self.unit.column, "rows_per_unit": self.unit.rows}

    def _record(self, ledger: Ledger, spent: Request) -> bytes | None:
        arguments = request_fingerprint(self.where, self.given)
        try:
            return ledger.spend(replace(spent, arguments=arguments))
        except (LedgerError, BudgetExceededError):  # which say that nothing is spent
            raise
        except BaseException as error:
            note_unsure(error, self.request)
            raise

    def _keep(self, release: object) -> None:
        """Let the ledger keep the release; what is spent is not lost with a full disk.

        Rows are kept whole only if they can be asked for by name. A ledger in which the spend
        itself may be missing still raises.
        """
        ledger: object = self._ledger
        if not isinstance(ledger, Keeper):
            return
        try:
            content = _content(release, named=self.named)
            if content is not None:
                ledger.keep(self.request, content)
        except DamagedLedgerError:
            raise
        except Exception as error:  # noqa: BLE001 - of a ledger of any kind
            self.warn(not_kept_warning(self.request, release, error))

    def _again(self, content: bytes) -> Any:
        """Return the release that the request was given before."""
        if not kept_rows.is_kept_rows(content):
            return self._refuse_seeded(files.unpack(content))
        kept = kept_rows.read(content)
        if kept.stream is None:
            where = "they were returned in memory alone"
            if kept.digests:
                where = (
                    f"they are in a file with the SHA-256 {kept.digests[0]}: give it as `output`"
                )
            raise refusal(
                f"The rows of the request {self.request!r} are not kept in the ledger.",
                f"{where}. Nothing is spent or read again, and what was spent stays spent.",
            )
        release = self._refuse_seeded(kept.release())
        if self.given["output"] is None:
            return release
        release.save(self.given["output"])
        return files.load(self.given["output"])

    def _refuse_seeded(self, release: Any) -> Any:
        """Return a release, unless a seed made it and none is in force."""
        if release.certificate.simulated and simulation.seed_for_release() is None:
            hint = "its noise can be taken away again. Give the real release another name."
            raise refusal(f"The request {self.request!r} was made with a seed.", hint)
        return release


def curve_of(account: Account) -> Curve:
    """Return points (ε, δ) of what is guaranteed, where δ is neither 0 nor 1.

    Of a guarantee in fewer bits than one, without a profile, (0, δ) follows.
    """
    profile, holds = account.profile, account.holds
    if profile is None:
        if isinstance(holds, MIDP) and holds.bits < 1:
            return ((0.0, holds.to(ApproxDP).delta),)
        return ()
    deltas = profile.curve(np.array(_CURVE))
    points = zip(_CURVE, deltas.tolist(), strict=True)
    return tuple((epsilon, delta) for epsilon, delta in points if 0 < delta < 1)


def _profile(method: Mechanism, account: Account) -> Profile | None:
    """Return the curve that is kept between the method's own neighbours, if one is known."""
    profile = account.profile
    if account.holds is None or profile is None or profile.neighbours is not method.neighbours:
        return None
    return profile


def _stranger(method: Mechanism) -> tuple[str, ...]:
    """Return a note on a mechanism that is not dplinear's: nobody here has proved or tested it."""
    kind = type(method)
    if is_own(kind):
        return ()
    named = f"{kind.__module__}.{kind.__qualname__}"
    return (f"the mechanism is {named}, not dplinear's own: its author vouches for the guarantee",)


def _text(text: object, parameter: str, where: str) -> str | None:
    if text is None:
        return None
    if not (isinstance(text, str) and 0 < len(text) <= 200 and text.isprintable()):
        raise wrong_type(parameter, where, "a text of 1 to 200 printable characters", text)
    return text


def _content(release: object, *, named: bool) -> bytes | None:
    """Return the bytes that a ledger keeps of a release."""
    if isinstance(release, RowsRelease):
        return kept_rows.pack(release, whole=named)
    return files.pack(release)
