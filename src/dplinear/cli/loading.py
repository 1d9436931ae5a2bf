"""Releases from files: the analyst's side, which never takes a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dplinear.cli.errors import Code, CommandError
from dplinear.cli.settings import require

_TABLES = (".parquet", ".pq", ".parq", ".csv", ".tsv", ".gz", ".feather", ".ipc", ".arrow")

_PROJECTED = (
    "rows that went through a projection have no regressions: they are for `dplinear distances` "
    "and, in Python, for kernels and clusters."
)


def load(said: Mapping[str, Any], kinds: tuple[str, ...] = ()) -> Any:
    """Return the release that a command names, if it is of one of the kinds."""
    import dplinear

    hint = "the file that `dplinear release` wrote, first."
    path = Path(require(said, "release", "The command names no release.", hint))
    try:
        found = dplinear.load(path)
    except dplinear.ReleaseError as error:
        sentence = str(error).partition("\n")[0]
        told = sentence if path.is_file() else f"There is no file '{path.name}'."
        table = path.name.lower().endswith(_TABLES) and path.is_file()
        rule = "this command takes what was released, never a table: see `dplinear release`."
        raise CommandError(told, rule if table else "", Code.FILE) from None
    kind = sort_of(found)
    if kinds and kind not in kinds:
        held = f"a {kind}" if kind in {"model", "mean", "covariance", "sketch"} else kind
        told = f"The file '{path.name}' holds {held}, and this command is for {_list(kinds)}."
        hint = f"`dplinear report {path.name}` shows what is in it."
        raise CommandError(told, _PROJECTED if kind == "projected rows" else hint, Code.FILE)
    return found


def sort_of(release: Any) -> str:
    """Return the kind of a release, rows by what they allow: regressions, or distances."""
    if release.kind != "rows":
        return str(release.kind)
    return "projected rows" if release.noise_model.kind == "projected rows" else "noisy rows"


def words(release: Any) -> str:
    """Return what was released, without its certificate."""
    if release.kind == "model":
        return str(release.summary())
    return str(release.describe()).removesuffix(str(release.certificate)).rstrip()


def _list(kinds: tuple[str, ...]) -> str:
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"
