"""`dplinear distances`: between rows that were released through a projection; they are free."""

from typing import Annotated, Any

from dplinear.cli import flags
from dplinear.cli.output import say, table, tell

_NOTE = (
    "Squared distances in the cells' units (bounds become ±1), the noise taken out:\n"
    "estimates may be negative. All pairs share one projection, and miss together."
)
_NEAREST = (
    "The nearest were picked for small estimates, which are too small where noise made\n"
    "them so: an interval is for a pair named beforehand, and misses these more often."
)
_NONE = (
    "none: even equal rows rarely seem so near, and no distance is below 0. Noise did\n"
    "this: it does not show that the rows are equal. The std. error is how far it goes."
)


def distances(
    release: flags.Release = None,
    *,
    i: Annotated[
        str | None,
        flags.option(
            "--i", text="The positions of rows, counted from 0, such as 0,1,2.", metavar="PLACES"
        ),
    ] = None,
    j: Annotated[
        str | None,
        flags.option(
            "--j", text="The positions of the rows to compare them with.", metavar="PLACES"
        ),
    ] = None,
    count: Annotated[
        int | None, flags.option("--count", text="Instead of --j: find this many nearest rows.")
    ] = None,
    confidence: Annotated[
        float | None,
        flags.option("--confidence", text="The confidence level of the intervals (default: 0.95)."),
    ] = None,
    method: Annotated[
        str | None,
        flags.option(
            "--method",
            text="How intervals are computed: simulated (default) or chebyshev.",
            **flags.words("simulated", "chebyshev"),
        ),
    ] = None,
    config: flags.Config = None,
    json_: flags.Json = False,
) -> None:
    """Estimate distances between projected rows, or find the nearest. This costs no budget."""
    given = dict(locals())  # before anything else is
    from dplinear.cli.errors import CommandError
    from dplinear.cli.loading import load
    from dplinear.cli.settings import merge_settings, require

    said = merge_settings(given)
    loaded = load(said, ("projected rows",))
    hint = "--i 0 --j 1,2, or --i 0 --count 3 for the nearest."
    first = _indices("i", require(said, "i", "The command does not say which rows.", hint))
    if ("j" in said) == ("count" in said):
        raise CommandError("The command needs either --j or --count.", hint)
    if "count" in said:
        pairs = loaded.nearest(first, said["count"]).indices
    else:
        second = _indices("j", said["j"])
        pairs = [second for _ in first]
    ones = [index for index, others in zip(first, pairs, strict=True) for _ in others]
    twos = [int(other) for others in pairs for other in others]
    found = loaded.distances(ones, twos)
    how = {name: said[name] for name in ("confidence", "method") if name in said}
    ends = found.interval(**how)
    columns = (found.squared, found.standard_error, ends.low, ends.high)
    values = [[float(column[index]) for column in columns] for index in range(len(ones))]
    if json_:
        keys = ("squared", "standard_error", "low", "high")
        tell(
            [
                {"i": one, "j": two} | dict(zip(keys, numbers, strict=True))
                for one, two, numbers in zip(ones, twos, values, strict=True)
            ]
        )
        return
    share = f"{100 * how.get('confidence', 0.95):g}%"
    lines = [
        (str(one), str(two), f"{at:.4g}", f"{error:.2g}", _ends(low, high, same=one == two))
        for one, two, (at, error, low, high) in zip(ones, twos, values, strict=True)
    ]
    notes = [_NONE] if any(line[-1] == "none" for line in lines) else []
    notes += [_NEAREST] if "count" in said else []
    heads = ("i", "j", "squared", "std. error", f"{share} interval")
    say(table(heads, lines, left=0), _NOTE, *notes)


def _ends(low: float, high: float, *, same: bool) -> str:
    """Return an interval in words: only a row's distance from itself is known to be 0."""
    return f"{low:.4g} to {high:.4g}" if high > 0 or same else "none"


def _indices(name: str, value: Any) -> list[int]:
    from dplinear.cli.errors import CommandError

    entries = value.split(",") if isinstance(value, str) else value
    try:
        found = [int(entry) for entry in (entries if isinstance(entries, list) else [entries])]
    except (TypeError, ValueError):
        found = [-1]
    if min(found, default=-1) < 0:
        raise CommandError(f"The value of --{name} must be whole numbers from 0, between commas.")
    return found
