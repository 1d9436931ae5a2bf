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
        flags.option("--target", text="what is explained; several at once", metavar="NAMES"),
    ] = None,
    features: flags.Features = None,
    ridge: Annotated[float | None, flags.option("--ridge", text="scikit-learn's alpha")] = None,
    l1: Annotated[float | None, flags.option("--l1", text="scikit-learn's alpha of Lasso")] = None,
    intercept: Annotated[
        bool | None, flags.option("--intercept/--no-intercept", text="(default: yes)")
    ] = None,
    repair: Annotated[
        str | None,
        flags.option(
            "--repair",
            text="of a matrix that noise made unusable (default: auto)",
            **flags.words("auto", "none", "released", "scaled", "clipped", "floor", "shrunk"),
        ),
    ] = None,
    level: Annotated[float | None, flags.option("--level", text="of intervals (0.95)")] = None,
    method: Annotated[
        str | None,
        flags.option(
            "--method",
            text="of intervals: delta (the default) or bootstrap",
            **flags.words("delta", "bootstrap"),
        ),
    ] = None,
    draws: Annotated[int | None, flags.option("--draws", text="of the bootstrap")] = None,
    seed: Annotated[int | None, flags.option("--seed", text="of the bootstrap")] = None,
    config: flags.Config = None,
    json_: flags.Json = False,
) -> None:
    """Fit a linear model to a release. Costs no budget, however often."""
    given = dict(locals())  # before anything else is
    from dplinear.cli.loading import load
    from dplinear.cli.settings import merge_settings, require, split_names

    said = merge_settings(given)
    loaded = load(said, ("moments", "sketch", "noisy rows"))
    hint = f"--target {loaded.schema.names[-1]}, or another of its features."
    targets = split_names(
        require(said, "target", "The command does not say what to explain.", hint)
    )
    if "features" in said:
        said["features"] = split_names(said["features"])
    chosen = {name: said[name] for name in _OWN[1:] if name in said}
    how = {name: said[name] for name in ("level", "method", "draws", "seed") if name in said}
    fits = [loaded.regress(each, **chosen) for each in targets]
    if json_:
        told = [_content(fit, fit.intervals(**how)) for fit in fits]
        tell(told[0] if len(told) == 1 else told)
        return
    for fit in fits:
        show(fit.summary(**how))


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
