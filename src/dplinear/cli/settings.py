"""Flags and a TOML file of settings, made into one set of arguments; flags win."""

import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dplinear.arguments import is_url
from dplinear.cli.errors import Code, CommandError, like

# What says how a command runs, and not what it computes.
_MANNERS = frozenset({"config", "json_", "dry_run"})
_SWITCHES = frozenset({"overwrite", "html", "audit"})  # off is what they are without a word
# All flags that are yes or no and that a file may set; a test holds this to the flags there are.
BOOLEANS = _SWITCHES | {
    "centred", "disjoint", "intercept", "missing_public", "progress", "public_projection",
    "public_types", "scaled", "y_public",
}  # fmt: skip
_GUARANTEES = ("epsilon", "delta", "rho", "mu", "bits")
_DESCRIPTION = ("columns", "derived", "row_norm")
_PATHS = frozenset({"data", "release", "releases", "schema", "output", "ledger", "model"})
_LARGEST = 16 * 2**20


def merge_settings(given: Mapping[str, Any], aside: Collection[str] = ()) -> dict[str, Any]:
    """Return the arguments of a command: its flags and, where they are silent, its file's.

    Requires: the command's own parameters by name, None where a flag was not given; what a file
    may say that is for other commands, and is left `aside`.
    Promises: only what was given; `columns`, from a file, is a table of declarations.
    """
    flags = {name: value for name, value in given.items() if name not in _MANNERS}
    said = {name: value for name, value in flags.items() if not _silent(name, value)}
    if given.get("config") is None:
        return said
    path = Path(given["config"])
    return _without_rivals(_read(path, flags, aside), said) | said


def unchanged_settings(path: str | None, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file of settings says, but for what flags have said otherwise."""
    if path is None:
        return {}
    found = {name.replace("-", "_"): value for name, value in _content(Path(path)).items()}
    return {name: value for name, value in found.items() if said.get(name, value) == value}


def _silent(name: str, value: Any) -> bool:
    return value is None or value == [] or (value is False and name in _SWITCHES)


def _read(path: Path, flags: Mapping[str, Any], aside: Collection[str]) -> dict[str, Any]:
    known = set(flags) - {"column"}
    if "column" in flags:
        known |= set(_DESCRIPTION)
    found: dict[str, Any] = {}
    for key, value in _content(path).items():
        name = key.replace("-", "_")
        if name in aside:
            continue
        if name not in known:
            hint = like(name, sorted(known))
            raise CommandError(f"The file '{path.name}' has no use for '{key}' here.", hint)
        if name in BOOLEANS and not isinstance(value, bool):  # "no" would be a yes
            told = f"The setting '{key}' of the file '{path.name}' must be true or false."
            raise CommandError(told, f"without quotes: {key} = false.")
        found[name] = _beside(path.parent, value) if name in _PATHS else value
    return found


def _content(path: Path) -> dict[str, Any]:
    if path.suffix != ".toml":
        raise CommandError(f"--config takes a .toml file, and '{path.name}' is none.")
    try:
        if path.stat().st_size > _LARGEST:
            raise CommandError(f"The file '{path.name}' is too large for settings.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        told = f"The file of settings '{path.name}' cannot be read ({error.strerror})."
        raise CommandError(told, code=Code.FILE) from None
    except ValueError as error:  # not UTF-8, or not TOML; settings are public
        raise CommandError(f"The file '{path.name}' is not well-formed TOML ({error}).") from None


def _beside(folder: Path, value: Any) -> Any:
    """Return paths as they are meant: from the folder of the file that has them."""
    if isinstance(value, list):
        return [_beside(folder, entry) for entry in value]
    if not isinstance(value, str) or is_url(value):
        return value
    return os.path.join(folder, value)  # noqa: PTH118 - globs, which are not paths


def _without_rivals(file: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file says, without guarantees that flags name in another way."""
    named = {name for name in _GUARANTEES if name in said}
    if not named:
        return file
    pair = {"epsilon", "delta"}
    keep = pair if named <= pair else set()
    return {key: value for key, value in file.items() if key not in _GUARANTEES or key in keep}


def split_names(value: Any) -> Any:
    """Return names that may be given one by one or between commas."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        return value  # the library says what it should be
    return [name.strip() for entry in value for name in _split(entry) if name.strip()]


def _split(text: str) -> list[str]:
    """Split at commas that are not within brackets: "spline(age, 4),bmi" are two names.

    A half-open interval ends with the other kind of bracket. Where brackets are not in pairs, they
    are letters of names.
    """
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
        if depth < 0:
            break
    return text.split(",") if depth else parts


def one_guarantee(said: dict[str, Any], own: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the arguments that ask for a guarantee, taken out of `said`.

    `own` are kinds that the gate has an argument for; others become its `guarantee`.
    """
    asked = {name: said.pop(name) for name in _GUARANTEES if name in said}
    kinds = sorted({"epsilon" if name == "delta" else name for name in asked})
    if not kinds:
        hint = "there is no default: --epsilon 1 --delta 1e-6, or --rho 0.1, is common."
        raise CommandError("The command does not say how private the result is to be.", hint)
    if len(kinds) > 1:
        flags = " and ".join(f"--{name}" for name in kinds)
        raise CommandError(f"One guarantee is enough, and {flags} are two.")
    if asked.keys() == {"delta"}:
        raise CommandError("--delta is half a guarantee.", "add --epsilon.")
    kind = kinds[0]
    if kind == "epsilon" or kind in own:
        return asked
    from dplinear.privacy.guarantees import GDP, MIDP, ZCDP

    makers: dict[str, Any] = {"rho": ZCDP, "mu": GDP, "bits": MIDP}
    return {"guarantee": makers[kind](asked[kind])}


def positional(value: str | None, name: str, command: str) -> str:
    """Return a word that a command cannot do without.

    Checked here, since some releases of typer and click together let it be left out.
    """
    if not value:
        raise CommandError(f"dplinear {command} needs {name}.", f"`dplinear {command} --help`")
    return value


def require(said: Mapping[str, Any], name: str, sentence: str, hint: str = "") -> Any:
    """Return an argument that a command cannot do without."""
    if said.get(name) in (None, [], ""):
        raise CommandError(sentence, hint)
    return said[name]
