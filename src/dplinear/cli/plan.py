"""`dplinear plan`: what a budget will buy, before it is spent."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dplinear.cli import flags
from dplinear.cli.output import facts, say, short_path, table, tell

if TYPE_CHECKING:
    from dplinear.planner.plan import Plan
    from dplinear.planner.questions import Refusal

_ABOUT = "What is known of the table"
_PAGE = "Printing"
# Settings of a release, which a plan need not know.
_RELEASE = frozenset(
    {"data", "ledger", "dataset", "request", "output", "overwrite", "threads", "rows", "unit"}
)


def plan(
    *,
    expected_rows: Annotated[
        float | None,
        flags.option(
            "--expected-rows",
            text="A public guess of the number of rows. Its order of magnitude is enough.",
            panel=_ABOUT,
        ),
    ] = None,
    columns: Annotated[
        int | None,
        flags.option(
            "--columns",
            text="How many features the model has, if no --schema or --column declares them.",
            panel=_ABOUT,
        ),
    ] = None,
    learn: Annotated[
        str | None,
        flags.option(
            "--learn",
            text="What you want to learn: regression (default), moments, mean, covariance, "
            "pca, logistic or distances.",
            panel=_ABOUT,
            **flags.words("regression", "moments", "mean", "covariance", "pca", "distances"),
        ),
    ] = None,
    condition: Annotated[
        float | None,
        flags.option(
            "--condition",
            text="The condition number of the features' correlations; with --tails, of their"
            " covariance.",
            panel=_ABOUT,
        ),
    ] = None,
    tails: Annotated[
        str | None,
        flags.option(
            "--tails",
            text="Simulate tables with normal or heavy tails, all rows of one distribution.",
            panel=_ABOUT,
            **flags.words("normal", "heavy"),
        ),
    ] = None,
    explained: Annotated[
        float | None,
        flags.option(
            "--explained",
            text="The share of the variance that the best line explains, from 0 to 1.",
            panel=_ABOUT,
        ),
    ] = None,
    width: Annotated[
        float | None,
        flags.option(
            "--width",
            text="The width of all bounds, in standard deviations of the column (default: 4).",
            panel=_ABOUT,
        ),
    ] = None,
    zero_one: Annotated[
        float | None,
        flags.option(
            "--zero-one", text="The share of features that are 0 or 1, from 0 to 1.", panel=_ABOUT
        ),
    ] = None,
    target_shape: Annotated[
        str | None,
        flags.option(
            "--target-shape",
            text="The shape of the target: even (scores), skewed (wages), counts (visits) or"
            " long (costs). By default the plan covers all of them.",
            panel=_ABOUT,
            **flags.words("even", "skewed", "counts", "long"),
        ),
    ] = None,
    target_width: Annotated[
        float | None,
        flags.option(
            "--target-width",
            text="The distance from the middle of the target's bounds to each, in standard "
            "deviations.",
            panel=_ABOUT,
        ),
    ] = None,
    components: Annotated[
        int | None,
        flags.option(
            "--components",
            text="For --learn pca: the number of principal components.",
            panel=_ABOUT,
        ),
    ] = None,
    rows_per_unit: Annotated[
        str | None,
        flags.option(
            "--rows-per-unit",
            text="Let each unit count as at most this many rows: a number, several to "
            "compare such as 1,2,4, or auto.",
            panel=_ABOUT,
        ),
    ] = None,
    rows_each: Annotated[
        str | None,
        flags.option(
            "--rows-each",
            text="How many rows a unit, such as a person, has: a public guess such as 1,20.",
            panel=_ABOUT,
        ),
    ] = None,
    correlation: Annotated[
        float | None,
        flags.option(
            "--correlation",
            text="The correlation of two rows of the same unit. By default the plan covers "
            "small and large ones.",
            panel=_ABOUT,
        ),
    ] = None,
    error: Annotated[
        float | None,
        flags.option(
            "--error",
            text="Also say which budget, and how many rows, would bring the error down to this.",
        ),
    ] = None,
    schema: flags.SchemaFile = None,
    column: flags.Column = None,
    derived: flags.Derived = None,
    row_norm: flags.RowNorm = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    mu: flags.Mu = None,
    bits: flags.Bits = None,
    rows: Annotated[
        int | None,
        flags.option(
            "--rows",
            text="With --bits alone: the number of rows of a sketch (default: 1000).",
            panel=flags.GUARANTEE,
        ),
    ] = None,
    neighbours: Annotated[
        str | None,
        flags.option(
            "--neighbours",
            text="The neighbouring tables (default: add_remove; for distances: element).",
            panel=flags.GUARANTEE,
            **flags.words(*flags.RELATIONS),
        ),
    ] = None,
    html: Annotated[
        bool, typer.Option("--html", help="Write an HTML page with sliders.", rich_help_panel=_PAGE)
    ] = False,
    output: Annotated[
        str | None,
        flags.option("--output", text="The page to write (default: plan.html).", panel=_PAGE),
    ] = None,
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Replace the page if it exists.", rich_help_panel=_PAGE),
    ] = False,
    config: Annotated[
        str | None,
        flags.option(
            "--config",
            text="A .toml file of settings, which may be that of a release. Flags override it.",
            panel=_PAGE,
        ),
    ] = None,
    json_: Annotated[
        bool, typer.Option("--json", help="Print JSON, for scripts.", rich_help_panel=_PAGE)
    ] = False,
) -> None:
    """Predict the error of every mechanism from public facts. Nothing is read or spent.

    With --bits and no columns, translate bits of a cell into other guarantees.
    """
    given = dict(locals())  # before anything else is
    from dplinear.cli import pages
    from dplinear.cli.settings import merge_settings, unchanged_settings

    pages.check_asked(output, html=html)
    said = merge_settings(given, aside=_RELEASE)
    for name in ("html", "output", "overwrite"):
        said.pop(name, None)
    wanted = said.pop("error", None)
    if "bits" in said and not {"columns", "schema", "column", "learn"} & set(said):
        _bits(said, json=json_)
        return
    target = pages.target_path(output, Path("plan.html"), overwrite=overwrite) if html else None
    settings = unchanged_settings(config, said)
    made = _make_plan(said)
    reached = None if wanted is None else _reach_target(made, wanted)
    if target is not None:
        from dplinear.report import plan_page

        pages.write(target, plan_page(made))
    if json_:
        extra = {} if reached is None else {"for_error": {"error": wanted} | reached}
        tell(made.facts() | extra | ({} if target is None else {"page": target}))
        return
    _show(made, wanted, reached, _column_flags(config, schema), settings)
    if target is not None:
        say("", facts([("page", short_path(target))]))


def _make_plan(said: dict[str, Any]) -> "Plan":
    import dplinear
    from dplinear.cli.columns import read_schema
    from dplinear.cli.errors import CommandError
    from dplinear.cli.settings import one_guarantee, require

    hint = "--expected-rows 10000: a guess of the order of magnitude will do."
    if "rows" in said:
        raise CommandError("--rows is of a sketch, beside --bits alone.", hint)
    told = "The command does not say how many rows there are."
    count = require(said, "expected_rows", told, hint)
    promise = one_guarantee(said, frozenset({"bits"}))
    described = isinstance(said.get("columns"), dict) or {"schema", "column"} & set(said)
    size = read_schema(said) if described else said.pop("columns", None)
    if size is None:
        hint = '--columns 8, or --column "age 0 100" and so on.'
        raise CommandError("The command does not say which columns there are.", hint)
    known = {key: value for key, value in said.items() if key != "expected_rows"}
    for name in ("rows_per_unit", "rows_each"):
        if name in known:
            known[name] = _counts(known[name])
    made: Plan = dplinear.plan(count, size, **promise, **known)
    return made


def _counts(value: Any) -> Any:
    """Return one whole number, or several between commas; any other text as it is."""
    if not isinstance(value, str):
        return value
    parts = value.replace(",", " ").split()
    if not parts or not all(part.isdecimal() for part in parts):
        return value
    return int(parts[0]) if len(parts) == 1 else [int(part) for part in parts]


def _reach_target(made: "Plan", wanted: float) -> dict[str, Any]:
    """Return the budget and the rows that bring the error down to a goal, where some do."""
    from dplinear.arguments import positive

    positive(wanted, "error", "plan")
    found: dict[str, Any] = {}
    for name, ask in (("budget", made.budget_for), ("rows", made.rows_for)):
        try:
            found[name] = ask(wanted)
        except ValueError:  # out of reach by this alone
            found[name] = None
    return found


def _column_flags(config: str | None, schema: str | None) -> str:
    """Return the flags that tell the next command of the columns: the user's own files, if any."""
    given = (("--config", config), ("--schema", schema))
    named = [f"{flag} {shlex.quote(short_path(file))}" for flag, file in given if file is not None]
    return " ".join(named) or "--schema FILE"


def _show(
    made: "Plan",
    wanted: float | None,
    reached: dict[str, Any] | None,
    described: str,
    settings: Mapping[str, Any],
) -> None:
    from dplinear.planner.commands import as_command
    from dplinear.planner.plan import UNIT_HEADS, unit_of

    given = made.given
    lines = [
        (line.mechanism, _figure(line.error), f"{_figure(line.low)} to {_figure(line.high)}")
        for line in made.lines
    ]
    lines.append(("without privacy", _figure(made.floor), ""))
    title = f"Plan for {made.learn}: {given.rows:,} rows, {given.columns:,} features"
    told = [
        ("guarantee", f"{given.guarantee} ({given.neighbours} neighbours)"),
        ("error", made.measure),
        ("best", made.reason),
    ]
    told += [("units", made.unit_advice)] if made.unit_advice else []
    if not made.worthwhile:
        told.append(("but", "no mechanism does much better than an answer without any data"))
    told += [("note", f"{line.mechanism}: {line.note}") for line in _note_lines(made)]
    told += [("left out", f"{name}: {_short(why)}") for name, why in made.refused]
    if reached is not None:
        budget, rows = reached["budget"], reached["rows"]
        unit = unit_of(given.guarantee)
        by = "out of reach" if budget is None else f"{unit} = {budget:.3g}"
        size = "out of reach" if rows is None else f"{rows:,} rows"
        told.append((f"for {wanted:g}", f"{by} at this size, or {size} at this budget"))
    if made.beyond is None:
        told.append(("next", as_command(made.recommended.call, described, settings=settings)))
    tables = [table(("mechanism", "error", "90% of tables"), lines), ""]
    if len(made.by_rows_per_unit) > 1:
        tables += [table(UNIT_HEADS, [tuple(row) for row in made.unit_rows()]), ""]
    say(title, "", *tables, facts(told))


def _note_lines(made: "Plan") -> list[Any]:
    """Return a line for each note."""
    notes = {line.note: line for line in reversed(made.lines) if line.note}
    return list(notes.values())


def _short(why: "Refusal") -> str:
    """Return why a mechanism is left out: its hint, which says what to ask for."""
    from dplinear.cli.errors import as_flags

    return as_flags(why.hint or why.sentence).rstrip(".")


def _figure(value: float) -> str:
    return f"{value:.2g}" if value < 10 else f"{value:.3g}"


def _bits(said: dict[str, Any], *, json: bool) -> None:
    from dplinear.planner.bits import compare_guarantees

    chosen = {name: said[name] for name in ("delta", "rows") if name in said}
    found = compare_guarantees(said["bits"], **chosen)
    if json:
        names = ("what", "additive", "sketch")
        tell([dict(zip(names, line, strict=True)) for line in found.lines()])
        return
    heads = ("", found.additive.mechanism, found.sketch.mechanism)
    say(table(heads, found.lines()), "", *found.notes)
