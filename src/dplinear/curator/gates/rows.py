"""The gate for rows: one released row for each of the table's, in their order."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

import pyarrow as pa

from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.container import ReleaseError
from dplinear.analyst.releases.outputs import Output, no_folder
from dplinear.analyst.rows import row_files, row_reading
from dplinear.analyst.rows.release import RowsRelease
from dplinear.analyst.rows.row_files import RowsFile
from dplinear.analyst.rows.row_head import Head
from dplinear.analyst.rows.row_reading import HeldRows
from dplinear.arguments import choice, rejection, wrong_type
from dplinear.curator.gates.objects import unfold
from dplinear.curator.gates.options import RowsOptions, own_options, reading_options
from dplinear.curator.passage import Passage
from dplinear.curator.sources.ordered import open_rows, refuse_units
from dplinear.exact.grid import shape_of
from dplinear.ledger import AnyLedger, NotKeptWarning
from dplinear.ledger.fingerprint import plain
from dplinear.mechanisms import EncryptedFile, PreparedRows
from dplinear.mechanisms.checks import read_guarantee
from dplinear.mechanisms.rows.contract import ReleasedRows, RowsMechanism
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.registry import ROWS
from dplinear.schema import Schema, SchemaLike

RELATIONS = (Neighbours.ELEMENT, Neighbours.ROW_L1, Neighbours.ROW_L2)
_WHERE = "release_rows"


def release_rows(
    data: Any,
    schema: SchemaLike,
    *,
    mechanism: str | RowsMechanism = "auto",
    bits: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ELEMENT,
    output: str | os.PathLike[str] | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Unpack[RowsOptions],
) -> RowsRelease:
    """Release the rows of a table, once, for any algorithm to run on.

    Requires: a table and its public schema; `bits`, or `epsilon` and `delta`, or a `guarantee` that
    the mechanism supports; which tables are `neighbours`: their rows are as many, and in the same
    order. `mechanism` is "additive_noise", or "projection" to `k` numbers (with "auto", if there is
    a `k`), or an object with its own guarantee, neighbours and options. `output`, a .parquet,
    .arrow or .csv file that is not there yet, gets rows as they go by, so that a table of any size
    needs little memory; without it they are held in memory. Further options go to the mechanism
    (`target`, `y_public`, …) or to the reading (`threads`, `progress`).
    Give paths where you can: what another library makes of a row, as it reads a file, may depend on
    other rows (docs/schema.md, "Types that a library guessed").
    Promises: what the certificate says, whatever the rows hold. Arguments, columns, types and the
    output are checked, and all files opened, before anything is spent; nothing is read before it is
    spent. A file gets its name when it is whole: what fails half-way leaves none, and a process
    that is killed leaves a hidden file beside it (.NAME.….tmp, of released rows), which may be
    deleted. Whole rows whose name was taken meanwhile stay in such a file, which the error names.
    Where `output` is there already, with the same `request` and arguments, it is loaded: nothing is
    spent, read or drawn again.
    This process draws all noise itself, once for each row. Partitions of a Dask or Spark collection
    come to it one after the other, so a task that an engine tries again sends the same rows again,
    and never publishes a second draw of their noise.
    """
    with Passage(_WHERE, locals()) as passage:
        given, guarantee, neighbours, said = unfold(passage, RowsMechanism)
        name = choice(given, "mechanism", _WHERE, ("auto", *ROWS))
        if name == "auto":
            name = "projection" if "k" in said else "additive_noise"
        chosen = ROWS[name]
        relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
        asked = read_guarantee(_WHERE, epsilon, delta, guarantee, bits=bits)
        schema = passage.schema(schema)
        own = own_options(chosen, said, _WHERE)
        if name == "projection" and "k" not in own:
            rule = "given for a projection: how many numbers a row gets"
            raise rejection("k", _WHERE, rule, None)
        built = chosen(guarantee=asked, neighbours=relation, **own)
        return rows_through(passage, built, own, schema)


def rows_through(
    passage: Passage,
    built: RowsMechanism,
    own: Mapping[str, Any],
    schema: Schema,
) -> RowsRelease:
    """Calibrate, check the table, open all files, and go through the passage."""
    refuse_units(schema, passage.where)
    prepared = built.prepare(schema, shape_of(schema), passage.entropy)
    certificate = passage.certificate(built, prepared.account, prepared.parameters)
    head = Head(schema, certificate, prepared.noise_model, _plain(own), prepared.output)
    output = passage.given["output"]
    target = None if output is None else _target(output, passage.where)
    if target is not None and os.path.lexists(target):
        return _already(target, head, passage)
    reading = reading_options(passage.given["options"])
    if passage.entropy.simulated:
        reading["threads"] = 1  # so that equal seeds give equal rows
    table = open_rows(passage.given["data"], schema, passage.where, **reading)
    with ExitStack() as stack:
        # All files are opened before the spend, so that what stands in their way loses nothing.
        kept = _open_all(prepared, stack)
        writing = None if target is None else _open_file(target, head, stack, passage.where)

        def release(found: ReleasedRows, _: Certificate) -> RowsRelease:
            with found.batches as batches:
                if target is None or writing is None:
                    held = pa.Table.from_batches(batches, prepared.output)
                    made = RowsRelease(head, HeldRows(held))
                else:
                    for batch in batches:
                        writing.write(batch)
                    writing.finish()
                    made = RowsRelease(*row_reading.open_rows_file(target))
            _place(kept, made, passage)
            return made

        return passage.cross(built, prepared, lambda: table, release, _ledger_facts(own, schema))


# The output


def _target(output: Any, where: str) -> Path:
    """Return where rows are to go, once it is sure that they can."""
    if not isinstance(output, str | os.PathLike) or isinstance(os.fspath(output), bytes):
        raise wrong_type("output", where, "the path of a file to write, or None", output)
    if "\0" in os.fspath(output):
        name = os.path.basename(output)  # noqa: PTH119 - of a path that may be none
        raise rejection("output", where, "the path of a file to write", repr(name))
    target = Path(output)
    row_files.suffix_of(target, where)
    if not target.parent.is_dir():
        raise no_folder("output", where, target)
    return target


def _open_file(target: Path, head: Head, stack: ExitStack, where: str) -> RowsFile:
    try:
        writing = RowsFile(target, head)
    except OSError as error:
        rule = f"the path of a file that can be written ({error.strerror})"
        raise rejection("output", where, rule, target.name) from None
    stack.callback(writing.abandon)
    return writing


def _open_all(prepared: PreparedRows, stack: ExitStack) -> Sequence[Output]:
    """Open what the mechanism keeps beside the rows; what gets no name is removed."""
    outputs = prepared.outputs()
    for each in outputs:
        stack.callback(each.abandon)
    return outputs


def _place(kept: Sequence[Output], release: RowsRelease, passage: Passage) -> None:
    """Give their names to files beside complete rows, which no failure here takes back."""
    for each in kept:
        try:
            each.complete()
            each.place()
        except ReleaseError as error:
            told = f"The rows are released and spent. {error}"
            passage.warn(NotKeptWarning(told, release))


def _refusal(target: Path, where: str) -> ValueError:
    rule = "the path of a file that is not there yet"
    hint = "with the `request` and the arguments that made the file, it is loaded instead."
    return rejection("output", where, rule, target.name, hint)


def _already(target: Path, head: Head, passage: Passage) -> RowsRelease:
    """Return the release in a file, if it is the one that is asked for now; otherwise refuse."""
    if not passage.named:
        raise _refusal(target, passage.where)
    try:
        found, rows = row_reading.open_rows_file(target)
    except ReleaseError:
        raise _refusal(target, passage.where) from None
    if _identity(found) != _identity(head):
        raise _refusal(target, passage.where)
    passage.check_file(target)
    return RowsRelease(found, rows)


def _identity(head: Head) -> tuple[Any, ...]:
    """Return what the caller decides; what was drawn or counted on the way may differ."""
    given = head.certificate
    return (
        _decision(given),
        head.schema,
        head.noise_model.kind,
        dict(head.options),
        head.columns.names,
    )


def _decision(given: Certificate) -> tuple[Any, ...]:
    return (
        given.request,
        given.dataset,
        given.mechanism,
        given.asked,
        given.neighbours,
        given.calibration,
        given.simulated,
    )


def _ledger_facts(own: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
    """Return what a ledger is told; a change is in half-ranges, so it says nothing without them."""
    told = _plain(own)
    if told.get("change") is not None:
        own_features = (feature for feature in schema.features if feature.factors)
        told["half_ranges"] = {feature.name: float(feature.half_width) for feature in own_features}
    return told


def _plain(own: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON; of a kept projection neither where it is nor a digest of its key."""
    return {
        name: repr(value) if isinstance(value, EncryptedFile) else plain(value)
        for name, value in own.items()
    }
