"""From the flags of `dplinear release ...` to a call of a gate, and from its release to a file."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dplinear.cli.columns import read_schema
from dplinear.cli.errors import Code, CommandError
from dplinear.cli.loading import load
from dplinear.cli.output import short_path
from dplinear.cli.release import values
from dplinear.cli.settings import merge_settings, one_guarantee, require

if TYPE_CHECKING:
    from dplinear.analyst.releases.outputs import Output
    from dplinear.schema import Schema


@dataclass(frozen=True)
class Gate:
    """A gate as the command line knows it.

    `own` are guarantees it has an argument for; `example` is a fitting name of an output; `file`
    says that the gate writes its output itself.
    """

    name: str
    function: str
    example: str
    own: frozenset[str] = frozenset()
    file: bool = False


GATES = {
    gate.name: gate
    for gate in (
        Gate("moments", "release_moments", "visits.moments.json"),
        Gate("sketch", "release_sketch", "visits.sketch.json", own=frozenset({"bits"})),
        Gate("rows", "release_rows", "visits.rows.parquet", own=frozenset({"bits"}), file=True),
        Gate("model", "release_model", "charges.model.json"),
        Gate("scores", "release_scores", "charges.scores.json"),
        Gate("mean", "release_mean", "visits.mean.json"),
        Gate("covariance", "release_covariance", "visits.covariance.json"),
        Gate("bounds", "suggest_bounds", "visits.schema.json", own=frozenset({"rho"})),
        Gate("rows_per_unit", "suggest_rows_per_unit", "visits.units.json", own=frozenset({"rho"})),
        Gate("levels", "suggest_levels", "visits.levels.json"),
    )
}
SEARCHES = frozenset({"bounds", "levels"})  # which take names of columns
WITHOUT_SCHEMA = SEARCHES | {"rows_per_unit"}  # what is asked for before there is one


@dataclass(frozen=True)
class Order:
    """One release, as the command line asks for it; `schema` is None where none is needed."""

    gate: Gate
    data: list[str]
    schema: "Schema | None"
    output: str | None
    arguments: Mapping[str, Any]
    ledger: str | None = None
    overwrite: bool = False

    @property
    def dataset(self) -> str | None:
        """Whose budget is spent."""
        return self.arguments.get("dataset")

    @property
    def description(self) -> str:
        """The files, in a few words."""
        if not self.data:
            return "none named"
        more = f" and {len(self.data) - 1} more" if len(self.data) > 1 else ""
        return f"{short_path(self.data[0])}{more}"


def order(name: str, given: Mapping[str, Any]) -> Order:
    """Return what a command's flags and file of settings ask for."""
    gate = GATES[name]
    said = merge_settings(given)
    overwrite = bool(said.pop("overwrite", False))
    data = said.pop("data", [])
    data = [data] if isinstance(data, str) else data
    if not data and not given.get("dry_run"):
        raise CommandError("The command names no table.", "a Parquet, CSV or Arrow file, first.")
    output = said.pop("output", None)
    if not output and not given.get("dry_run"):
        hint = f"--output {gate.example}: what is not written is lost, and stays spent."
        raise CommandError("The command does not say where the release is to go.", hint)
    ledger = said.pop("ledger", None)
    if ledger is not None:
        hint = "--dataset visits-2026, as `dplinear ledger show` lists them."
        require(said, "dataset", "A ledger counts for a dataset, and none is named.", hint)
    else:
        _check_counted(said)
    if name == "model":
        hint = "--target charges, say, with --features where not all others explain it."
        require(said, "target", "The command does not say what the model explains.", hint)
    if name in SEARCHES:
        require(said, "columns", "The command does not say which columns.", "--columns age,bmi")
    if name == "rows_per_unit":
        hint = "--unit patient, say: the column of ids."
        require(said, "unit", "The command does not say whom a row belongs to.", hint)
    if name == "scores":
        hint = "--model charges.model.json: what `dplinear release model` wrote."
        require(said, "model", "The command does not say which model is scored.", hint)
    promise = one_guarantee(said, gate.own)
    schema = None if name in WITHOUT_SCHEMA else _read_schema(name, said)
    return Order(gate, data, schema, output, values.read(said) | promise, ledger, overwrite)


def _read_schema(name: str, said: dict[str, Any]) -> "Schema":
    """Return the schema that is described; a model that is scored brings its own along."""
    if name == "scores":
        said["model"] = load({"release": said["model"]}, ("model",))
        if not any(said.get(key) for key in ("schema", "columns", "column")):
            return said["model"].schema  # type: ignore[no-any-return]  # of a release of any kind
    return read_schema(said)


def _check_counted(said: Mapping[str, Any]) -> None:
    """Raise for what only a ledger has a use for: whoever gives it believes that one counts."""
    for name in ("dataset", "request"):
        if name in said:
            told = f"--{name} is for a ledger, and none is named: no budget would be charged."
            raise CommandError(told, f"add --ledger budget.db, or leave --{name} out.")


def call_gate(order: Order, data: Any, arguments: Mapping[str, Any]) -> Any:
    """Call the gate."""
    import dplinear

    function = getattr(dplinear, order.gate.function)
    named = dict(arguments)
    if order.gate.file:
        named["output"] = order.output
    if order.gate.name == "scores":
        return function(named.pop("model"), data, order.schema, **named)
    if order.schema is None:
        return function(data, **named)
    return function(data, order.schema, **named)


def make_release(order: Order) -> tuple[Any, str]:
    """Make the release and write it; return it, and what its ledger says if it did not keep it.

    The output is opened first: what stands in its way is found while nothing is spent.
    """
    output = _open_output(order)
    try:
        data = order.data if len(order.data) > 1 else order.data[0]
        release, warning = _run_gate(order, data)
        if output is not None:
            _save(order, release, output, kept=order.ledger is not None and not warning)
    finally:
        if output is not None:
            output.abandon()
    return release, warning


def _run_gate(order: Order, data: Any) -> tuple[Any, str]:
    from dplinear.ledger import NotKeptWarning

    with warnings.catch_warnings():
        warnings.simplefilter("error", NotKeptWarning)
        try:
            return call_gate(order, data, dict(order.arguments) | {"ledger": order.ledger}), ""
        except NotKeptWarning as warning:
            return warning.release, str(warning).partition("\n\n")[0]


def _open_output(order: Order) -> "Output | None":
    """Open the output of a release, or raise while nothing is spent; rows open their own."""
    from dplinear.analyst.releases.outputs import Output

    target = Path(str(order.output))
    try:
        _check_output(order, target)
        return None if order.gate.file else Output(target, overwrite=order.overwrite)
    except OSError as error:
        told = f"The output '{target.name}' cannot be written ({error.strerror})."
        raise CommandError(told, "nothing was spent.", Code.FILE) from None


def _check_output(order: Order, target: Path) -> None:
    if order.gate.name in WITHOUT_SCHEMA and target.suffix != ".json":
        kind = order.gate.name.replace("_", " ").capitalize()
        raise CommandError(f"{kind} go to a .json file, not to '{target.name}'.")
    if target.is_dir():
        hint = f"name a file in it, such as {order.gate.example}."
        raise CommandError(f"The output '{target.name}' is a folder.", hint, Code.FILE)
    if os.path.lexists(target) and not order.overwrite and not order.gate.file:
        told = f"The output '{target.name}' is there already."
        raise CommandError(told, "choose another --output, or say --overwrite.", Code.FILE)
    if not target.parent.is_dir():
        told = f"The folder '{target.parent}' of --output does not exist."
        raise CommandError(told, "make it first: nothing was spent.", Code.FILE)
    if not os.access(target.parent, os.W_OK):
        told = f"The folder '{target.parent}' of --output cannot be written to."
        raise CommandError(told, "nothing was spent.", Code.FILE)


def _save(order: Order, release: Any, output: "Output", *, kept: bool) -> None:
    from dplinear.analyst.releases import files
    from dplinear.analyst.releases.outputs import UnplacedError
    from dplinear.ledger.spent import note_spent

    name = release.certificate.request
    hint = f"--ledger and --request '{name}' give the same release again, for nothing."
    try:
        output.file.write(files.pack(release, output.target.name) or b"")
        output.complete()
        output.place()
    except UnplacedError:  # which says where the release is
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        told = f"The release is paid for and could not be written ({reason})."
        lost = "no ledger has kept it: make room, and release again."
        raise CommandError(told, hint if kept else lost, Code.FILE) from None
    except BaseException as error:  # such as a signal
        output.finish()
        if order.ledger is not None:
            note_spent(error, name)
        raise
