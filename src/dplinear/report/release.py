"""The page of a release: what was published, what it protects, and how far it can be trusted."""

from collections.abc import Sequence
from typing import Any

from dplinear.analyst.releases.certificate import Certificate
from dplinear.arguments import wrong_type
from dplinear.planner.plan import Plan
from dplinear.report.account import account
from dplinear.report.audited import audit_panel
from dplinear.report.cautions import cautions
from dplinear.report.contents import content
from dplinear.report.curve import curve_pictures, curve_table
from dplinear.report.expected import expected_panel
from dplinear.report.pages import page
from dplinear.report.panels import Table, pairs
from dplinear.report.promise import percent, promise
from dplinear.report.trend import trends
from dplinear.report.words import guarantee_label


def release_page(
    release: Any,
    *,
    ledger: Any = None,
    dataset: str | None = None,
    audit: Any = None,
    plan: Plan | None = None,
    fits: Sequence[Any] = (),
) -> str:
    """Return one self-contained HTML page about a release.

    Requires: a release of any kind; a `ledger` with budgets, or its path, for the history of the
    release's `dataset`; the result of an `audit`; a `plan` made beforehand; regressions (`fits`) to
    show.
    Promises: the page needs no network and may use none; whatever was given is escaped; equal
    arguments give equal pages; no path and no other dataset of the ledger is shown.
    """
    if plan is not None and not isinstance(plan, Plan):
        raise wrong_type("plan", "release_page", "what dplinear.plan returned", plan)
    told = content(release, fits)
    certificate: Certificate = release.certificate
    named = dataset if dataset is not None else certificate.dataset
    book = None if ledger is None else account(ledger, named, _requests(certificate, named))
    kept = promise(certificate)
    bars = _bars(kept.accuracy)
    return page(
        "release.html",
        told=told,
        certificate=certificate,
        protects=dict(certificate.lines())["protects"],
        guarantee=guarantee_label(certificate.holds),
        dataset=named,
        promise=kept,
        bars=bars,
        bars_label="; ".join(f"{name}: {text}" for name, text, _ in bars),
        cautions=cautions(
            certificate,
            rows=told.rows,
            swamped=told.swamped,
            columns=getattr(release, "column_notes", {}).values(),
            audit=audit,
            counted=None if book is None else book.counted,
        ),
        curve=curve_pictures(certificate),
        curve_table=curve_table(certificate),
        expected=None if plan is None else expected_panel(plan),
        trends=None if plan is None else trends(plan, certificate.mechanism),
        account=book,
        audit=None if audit is None else audit_panel(audit),
        facts=_facts(certificate),
        parameters=pairs(certificate.parameters.items(), "Public parameters", ("name", "value")),
    )


def _requests(certificate: Certificate, dataset: str | None) -> tuple[str, ...]:
    """Return whose lines a dataset's account has: those of the releases that were joined."""
    parts = [part for part in certificate.parts if part.dataset in {None, dataset}]
    return tuple(part.request for part in parts) or (certificate.request,)


def _bars(accuracy: float | None) -> tuple[tuple[str, str, float], ...]:
    """Return the bars that compare guessing with and without the release."""
    if accuracy is None:
        return ()
    return (
        ("Guessing without this release", "50%", 0.5),
        ("Guessing with it, at best", percent(accuracy), min(accuracy, 1.0)),
        ("If the table itself were published", "100%", 1.0),
    )


def _facts(certificate: Certificate) -> Table:
    facts = [
        ("protected", certificate.protects),
        ("mechanism", certificate.mechanism),
        ("guarantee asked for", guarantee_label(certificate.asked)),
        ("guarantee that is proved", guarantee_label(certificate.holds)),
        ("neighbours", str(certificate.neighbours)),
        ("numerics", certificate.numerics),
        ("calibration", certificate.calibration),
        ("seeded noise", certificate.simulated),
        ("dataset", certificate.dataset),
        ("request", certificate.request),
        *(("joined release", str(part)) for part in certificate.parts),
        ("made by", f"dplinear {certificate.version}"),
    ]
    return pairs(facts, "Certificate", ("what", "value"))
