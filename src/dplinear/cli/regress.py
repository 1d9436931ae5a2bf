"""`dplinear regress`: any regression on released moments, a sketch or noisy rows; it is free."""

from typing import TYPE_CHECKING, Annotated, Any

from dplinear.cli import flags
from dplinear.cli.output import say, tell

if TYPE_CHECKING:
    from dplinear.analyst.regression.inference import Intervals

_OWN = ("target", "features", "ridge", "l1", "intercept", "repair")


def regress(
    release: flags.Release = None,
    *,
    target: Annotated[
        list[str] | None,
        flags.option(
            "--target", text="The column to explain, or several at once.", metavar="NAMES"
        ),
    ] = None,
    features: flags.Features = None,
    formula: Annotated[
        str | None,
        flags.option(
            "--formula", text='instead of both: "charges ~ age + C(smoker)"', metavar="TEXT"
        ),
    ] = None,
    group: Annotated[
        str | None,
        flags.option(
            "--group", text="For a release with groups: one level, such as north (default: all)."
        ),
    ] = None,
    ridge: Annotated[
        float | None,
        flags.option("--ridge", text="The penalty alpha of scikit-learn's Ridge (default: 0)."),
    ] = None,
    l1: Annotated[
        float | None,
        flags.option("--l1", text="The penalty alpha of scikit-learn's Lasso (default: 0)."),
    ] = None,
    intercept: Annotated[
        bool | None,
        flags.option(
            "--intercept/--no-intercept", text="Give the model an intercept (default: yes)."
        ),
    ] = None,
    repair: Annotated[
        str | None,
        flags.option(
            "--repair",
            text="How to repair a matrix that noise left indefinite (default: auto).",
            **flags.words("auto", "none", "released", "scaled", "clipped", "floor", "shrunk"),
        ),
    ] = None,
    level: Annotated[
        float | None,
        flags.option("--level", text="The confidence level of the intervals (default: 0.95)."),
    ] = None,
    method: Annotated[
        str | None,
        flags.option(
            "--method",
            text="How intervals are computed: delta (default) or bootstrap.",
            **flags.words("delta", "bootstrap"),
        ),
    ] = None,
    draws: Annotated[
        int | None, flags.option("--draws", text="How many draws the bootstrap takes.")
    ] = None,
    seed: Annotated[int | None, flags.option("--seed", text="The seed of the bootstrap.")] = None,
    config: flags.Config = None,
    json_: flags.Json = False,
) -> None:
    """Fit a linear model to a release. This costs no privacy budget."""
    given = dict(locals())  # before anything else is
    from dplinear.arguments import ArgumentError
    from dplinear.cli.errors import CommandError
    from dplinear.cli.loading import load
    from dplinear.cli.settings import merge_settings, require, split_names

    said = merge_settings(given)
    loaded = load(said, ("moments", "sketch", "noisy rows", "groups"))
    named = _groups(loaded, said.pop("group", None))
    asked = "formula" if "formula" in said else "target"
    if asked == "formula":
        targets = [_formula(said)]
    else:
        hint = f"--target {loaded.schema.names[-1]}, or another of its features."
        sentence = "The command does not say what to explain."
        targets = split_names(require(said, "target", sentence, hint))
    if "features" in said:
        said["features"] = split_names(said["features"])
    chosen = {name: said[name] for name in _OWN[1:] if name in said}
    how = {name: said[name] for name in ("level", "method", "draws", "seed") if name in said}
    try:
        fits = [(name, held.regress(each, **chosen)) for name, held in named for each in targets]
    except ArgumentError as error:
        if asked == error.parameter or error.parameter != "target":
            raise
        sentence = f"--formula must be {error.rule}. Got {error.got}."
        raise CommandError(sentence, error.hint) from None
    if json_:
        told = [
            _content(fit, fit.intervals(**how)) | ({"group": name} if name else {})
            for name, fit in fits
        ]
        tell(told[0] if len(told) == 1 else told)
        return
    for name, fit in fits:
        if name:
            say(f"Group: {name}")
        show(fit.summary(**how))


def _formula(said: dict[str, Any]) -> str:
    """Return the formula that stands for target, features and intercept; it is taken out."""
    from dplinear.cli.errors import CommandError

    beside = [name for name in ("target", "features", "intercept") if name in said]
    if beside:
        flags_beside = " and ".join(f"--{name}" for name in beside)
        told = f"--formula says what {flags_beside} would say."
        raise CommandError(told, 'one of them is enough: --formula "charges ~ 0 + age".')
    text = str(said.pop("formula"))
    if "~" not in text:
        raise CommandError(f"The formula '{text}' has no ~.", 'write "charges ~ age".')
    return text


def _groups(loaded: Any, chosen: str | None) -> list[tuple[str, Any]]:
    """Return the releases to fit, each after the name of its group; a single one has no name."""
    from dplinear.cli.errors import Code, CommandError

    if loaded.kind != "groups":
        if chosen is not None:
            raise CommandError("--group is for groups, and the file holds none.", "leave it out.")
        return [("", loaded)]
    if loaded.of != "moments":
        told = f"The groups of this file are releases of {loaded.of}, with regressions of no kind."
        raise CommandError(told, "`dplinear report` shows what is in it.", Code.FILE)
    named = list(zip(loaded.labels(), loaded.releases, strict=True))
    found = [pair for pair in named if chosen in {None, pair[0]}]
    if not found:
        told = f"The file has no group of that name by {', '.join(loaded.by)}."
        raise CommandError(told, f"--group is one of: {'; '.join(loaded.labels())}.")
    return found


def show(summary: Any) -> None:
    """Print a summary, as wide as it needs to be and the screen allows."""
    say(str(summary))


def _content(fit: Any, found: "Intervals") -> dict[str, Any]:
    return {
        "target": fit.target,
        "intercept": fit.intercept,
        "coefficients": fit.coefficients.to_dict(),
        "r_squared": fit.r_squared,
        "rows": fit.count,
        "rows_public": fit.rows_public,
        "empty": fit.empty,
        "repair": fit.repair,
        "intervals": intervals(found),
        "certificate": fit.certificate.to_dict(),
    }


def intervals(found: "Intervals") -> dict[str, Any]:
    """Return intervals by the names of what they are for."""
    columns = (found.estimates, found.standard_errors, found.low, found.high, found.privacy_share)
    heads = ("estimate", "standard_error", "low", "high", "privacy_share")
    each = {
        name: dict(zip(heads, (column[index] for column in columns), strict=True))
        for index, name in enumerate(found.names)
    }
    return {"level": found.level, "method": found.method, "swamped": found.swamped, "of": each}
