"""`dplinear report`: what a release says, promises and costs, in words or as a page."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplinear.arguments import printable
from dplinear.cli import flags
from dplinear.cli.output import certificate_facts, console, facts, say, short_path, tell

if TYPE_CHECKING:
    from dplinear.audit.audit import AuditResult

# What a plan is made for, to stand beside a release of each kind.
_LEARN = {
    "moments": "regression",
    "sketch": "moments",
    "model": "regression",
    "mean": "mean",
    "covariance": "covariance",
}


def report(
    release: flags.Release = None,
    *,
    html: Annotated[
        bool, typer.Option("--html", help="Write an HTML page that needs no network.")
    ] = False,
    output: Annotated[
        str | None, flags.output("The page to write (default: the release's name with .html).")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the page if it exists.")
    ] = False,
    target: Annotated[
        list[str] | None,
        flags.option("--target", text="Also show regressions of these columns.", metavar="NAMES"),
    ] = None,
    features: flags.Features = None,
    ledger: Annotated[
        str | None,
        flags.option(
            "--ledger", text="Also show the history of the dataset's budget in this ledger."
        ),
    ] = None,
    dataset: Annotated[
        str | None,
        flags.option("--dataset", text="The dataset to show, if it is not the release's own."),
    ] = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="Also audit the mechanism, which may take minutes.")
    ] = False,
    trials: Annotated[
        int | None, flags.option("--trials", text="How many runs the audit makes on each table.")
    ] = None,
    config: flags.Config = None,
    json_: flags.Json = False,
) -> int:
    """Show what was released, what it guarantees and what it cost, as text or as a page."""
    given = dict(locals())  # before anything else is
    from dplinear.cli import pages
    from dplinear.cli.errors import Code, CommandError
    from dplinear.cli.loading import load, sort_of
    from dplinear.cli.settings import merge_settings, split_names

    said = merge_settings(given)
    loaded = load(said)
    usual = Path(said["release"]).with_suffix(".html")
    replace = bool(said.get("overwrite"))
    wanted = bool(said.get("html"))
    pages.check_asked(output, html=wanted)
    if trials is not None and not said.get("audit"):
        raise CommandError("--trials is for an audit, and none is asked for.", "add --audit.")
    if "dataset" in said and "ledger" not in said:
        raise CommandError("--dataset is for a ledger, and none is named.", "add --ledger.")
    page_path = pages.target_path(said.get("output"), usual, overwrite=replace) if wanted else None
    named = said.get("dataset", loaded.certificate.dataset)
    counted = said.get("ledger")
    left = _remaining_budget(counted, named)
    targets = split_names(said.get("target", []))
    chosen = {"features": split_names(said["features"])} if "features" in said else {}
    fits = _fits(loaded, sort_of(loaded), targets, chosen)
    found = _run_audit(loaded, said.get("trials")) if said.get("audit") else None
    if page_path is not None:
        from dplinear.report import release_page

        page = release_page(
            loaded,
            ledger=counted,
            dataset=named,
            audit=found,
            plan=_plan_for(loaded, loaded.kind),
            fits=fits,
        )
        pages.write(page_path, page)
    if json_:
        tell(_content(loaded, page_path, found, left))
    else:
        _show(loaded, fits, found, left, page_path)
    return Code.BROKEN if found is not None and found.broken else Code.DONE


def _fits(loaded: Any, kind: str, targets: list[str], chosen: dict[str, Any]) -> list[Any]:
    from dplinear.cli.errors import CommandError

    if targets and kind not in {"moments", "sketch", "noisy rows"}:
        hint = "leave --target out: what it holds is shown anyway."
        raise CommandError(f"A release of {kind} is no ground for regressions.", hint)
    return [loaded.regress(target, **chosen) for target in targets]


def _plan_for(loaded: Any, kind: str) -> Any:
    """Return what was to be expected of such a release, where the planner knows."""
    import dplinear

    certificate, rows = loaded.certificate, _rows(loaded)
    if kind not in _LEARN or rows is None or rows < 1:
        return None
    try:
        return dplinear.plan(
            round(rows),
            loaded.schema,
            guarantee=certificate.asked,
            neighbours=str(certificate.neighbours),
            learn=_LEARN[kind],
        )
    except (ValueError, TypeError):  # not a question that the planner has an answer to
        return None


def _rows(loaded: Any) -> float | None:
    known = getattr(loaded, "rows", None)
    return known if known is not None else getattr(loaded, "count", None)


def _run_audit(loaded: Any, trials: int | None) -> "AuditResult | None":
    from dplinear.audit.audit import audit_subject
    from dplinear.audit.catalogue import entries, subject_of, usual_trials
    from dplinear.noise.entropy import system
    from dplinear.privacy.guarantees import PureDP

    certificate, shown, name = loaded.certificate, console(stderr=True), _entry(loaded)
    claim, entropy = certificate.holds, system()
    if name not in entries() or claim is None:
        shown.print(printable(f"There is no audit of {name}."), markup=False)
        return None
    step = certificate.parameters.get("step_epsilon")
    part = step is not None and not isinstance(claim, PureDP)
    # What draws add up to is a bound; that of one of them, which is pure, can be reached.
    claim = PureDP(step) if part else claim
    subject = subject_of(name, claim, str(certificate.neighbours), entropy)
    subject.name += " (one of its steps)" if part else ""
    runs = usual_trials(subject) if trials is None else trials
    with shown.status(f"Auditing {name}: {runs:,} runs on each of two tables"):
        return audit_subject(subject, runs, entropy=entropy)


def _entry(loaded: Any) -> str:
    """Return the name that the release's own noise is audited by, not another of its mechanism."""
    name, said = str(loaded.certificate.mechanism), loaded.certificate.parameters
    noise = str(said.get("noise", "laplace"))
    if name == "projection" and noise != "laplace":
        return f"{name}_{noise.replace(' ', '_')}"
    if name == "frank_wolfe" and "step_epsilon" in said:
        return "frank_wolfe_pure"
    if name == "whitened":
        from dplinear.convex.learners.whitened import DESCENTS

        return str(DESCENTS[loaded.loss].name)
    return f"{name}_after_query" if said.get("least_eigenvalue_share") is not None else name


def _remaining_budget(ledger: str | None, dataset: str | None) -> list[Any]:
    if ledger is None:
        return []
    from dplinear.cli.errors import Code, CommandError
    from dplinear.ledger import open_ledger

    if dataset is None:
        raise CommandError("The release names no dataset.", "--dataset says whose budget it is.")
    found = [status for status in open_ledger(ledger).status() if status.dataset == dataset]
    if not found:
        told = f"The dataset '{dataset}' has no budget in this ledger."
        hint = "`dplinear ledger show` lists those that have; choose one by --dataset."
        raise CommandError(told, hint, Code.LEDGER)
    return found


def _show(
    loaded: Any,
    fits: list[Any],
    found: "AuditResult | None",
    left: list[Any],
    page_path: Path | None,
) -> None:
    from dplinear.cli.loading import words

    lines = certificate_facts(loaded.certificate)
    lines += [("budget", str(status)) for status in left]
    if found is not None:
        unit = found.unit
        told = f"{unit} ≥ {found.audited:.3g} is proved, {unit} = {found.claimed:.3g} claimed"
        lines.append(("audit", f"{found.mechanism} {found.verdict}: {told}"))
    if page_path is not None:
        lines.append(("page", short_path(page_path)))
    say(words(loaded), "", *(part for fit in fits for part in (str(fit.summary()), "")))
    say(facts(lines))


def _content(
    loaded: Any,
    page_path: Path | None,
    found: "AuditResult | None",
    left: list[Any],
) -> dict[str, Any]:
    return {
        "kind": loaded.kind,
        "certificate": loaded.certificate.to_dict(),
        "schema": loaded.schema.to_dict() if hasattr(loaded, "schema") else None,
        "rows": loaded.rows,
        "page": page_path,
        "audit": None
        if found is None
        else {
            "mechanism": found.mechanism,
            "claimed": found.claimed,
            "audited": found.audited,
            "verdict": found.verdict,
        },
        "budget": [str(status) for status in left],
    }
