"""The gate for rows: one released row for each of the table's, in their order.

The same order as at `gate.py`: check every public argument and calibrate; check the table's columns
and where the rows are to go; spend; read, once, and write as rows go by.
"""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from dplinear.analyst.noise_models.rows import RowLaw
from dplinear.analyst.releases.certificate import CALIBRATIONS, Certificate
from dplinear.analyst.releases.container import ReleaseError
from dplinear.analyst.releases.outputs import Output
from dplinear.analyst.rows import row_files, row_reading
from dplinear.analyst.rows.release import RowsRelease
from dplinear.analyst.rows.row_files import RowsFile
from dplinear.analyst.rows.row_head import Head
from dplinear.analyst.rows.row_reading import HeldRows
from dplinear.arguments import choice, mistyped, rejection
from dplinear.curator.gates.moments import Passage, curve_of, own_options, reading_options
from dplinear.curator.recorded import check_file, recorded
from dplinear.curator.sources.ordered import OrderedRows, open_rows
from dplinear.exact.grid import Grid
from dplinear.exact.shape import Shape
from dplinear.ledger import AnyLedger, NotKeptWarning
from dplinear.ledger.fingerprint import plain
from dplinear.mechanisms import ROW_MECHANISMS, EncryptedFile, PreparedRows
from dplinear.mechanisms.checks import read_guarantee, within_reach
from dplinear.privacy.guarantees import MIDP, Guarantee
from dplinear.privacy.neighbours import Neighbours
from dplinear.schema import Schema

RELATIONS = (Neighbours.ELEMENT, Neighbours.ROW_L1, Neighbours.ROW_L2)
_WHERE = "release_rows"


@recorded
def release_rows(
    data: Any,
    schema: Schema,
    *,
    mechanism: str = "auto",
    bits: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    guarantee: Guarantee | None = None,
    neighbours: str = Neighbours.ELEMENT,
    calibration: str = "exact",
    output: str | os.PathLike[str] | None = None,
    ledger: AnyLedger | None = None,
    dataset: str | None = None,
    request: str | None = None,
    **options: Any,
) -> RowsRelease:
    """Release the rows of a table, once, for any algorithm to run on.

    Requires: a table and its public schema; `bits`, or `epsilon` and `delta`, or a `guarantee` that
    the mechanism supports; which tables are `neighbours`: their rows are as many, and in the same
    order. `mechanism` is "additive_noise", or "projection" to `k` numbers (with "auto", if there is
    a `k`). `output`, a .parquet, .arrow or .csv file that is not there yet, gets rows as they go
    by, so that a table of any size needs little memory; without it they are held in memory. Further
    options go to the mechanism (`target`, `y_public`, …) or to the reading (`threads`, `progress`).
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
    names = ("auto", *ROW_MECHANISMS)
    if choice(mechanism, "mechanism", _WHERE, names) == "auto":
        mechanism = "projection" if "k" in options else "additive_noise"
    chosen = ROW_MECHANISMS[mechanism]
    relation = Neighbours.parse(neighbours, _WHERE, RELATIONS)
    asked = _asked(bits, epsilon, delta, guarantee)
    choice(calibration, "calibration", _WHERE, CALIBRATIONS)
    if not isinstance(schema, Schema):
        raise mistyped("schema", _WHERE, "a Schema", schema)
    own = own_options(chosen, options, _WHERE)
    if mechanism == "projection" and "k" not in own:
        raise rejection("k", _WHERE, "given for a projection: how many numbers a row gets", None)
    built = chosen(guarantee=asked, neighbours=relation, calibration=calibration, **own)
    passage = Passage(_WHERE, ledger, dataset, request)
    grid = Grid.of(schema)
    shape = Shape(schema.dimension, grid.cells, grid.exponent)
    prepared = built.prepare(schema, shape, passage.entropy)
    certificate = passage.certificate(
        built, prepared.account, prepared.parameters, curve_of(prepared.account.profile)
    )
    law = RowLaw.from_dict(prepared.law)
    head = Head(schema, certificate, law, _plain(own), prepared.output)
    target = None if output is None else _target(output)
    if target is not None and os.path.lexists(target):
        return _already(target, head, request, passage.ledger)
    reading = reading_options(options)
    if passage.entropy.simulated:
        reading["threads"] = 1  # so that equal seeds give equal rows
    table = open_rows(data, schema, _WHERE, **reading)
    with ExitStack() as stack:
        # All files are opened before the spend, so that what stands in their way loses nothing.
        kept = _opened_all(prepared, stack)
        writing = None if target is None else _opened(target, head, stack)
        passage.spend(built, prepared.account, _told(own, schema))
        with _released(table, prepared, passage) as batches:
            if writing is None:
                held = pa.Table.from_batches(batches, prepared.output)
            else:
                for batch in batches:
                    writing.write(batch)
        if target is None or writing is None:
            release = RowsRelease(head, HeldRows(held))
        else:
            writing.finish()
            release = RowsRelease(*row_reading.opened(target))
        _place(kept, release)
    return release


def _asked(
    bits: float | None, epsilon: float | None, delta: float | None, guarantee: Guarantee | None
) -> Guarantee:
    if bits is None:
        return read_guarantee(_WHERE, epsilon, delta, guarantee)
    if epsilon is not None or delta is not None or guarantee is not None:
        rule = "left out where epsilon, delta or a guarantee is given"
        raise rejection("bits", _WHERE, rule, bits)
    return within_reach(MIDP(bits), _WHERE)


def _released(
    table: OrderedRows, prepared: PreparedRows, passage: Passage
) -> AbstractContextManager[Iterator[pa.RecordBatch]]:
    return table.through(partial(prepared.release, entropy=passage.entropy))


# The output


def _target(output: Any) -> Path:
    """Return where rows are to go, once it is sure that they can."""
    if not isinstance(output, str | os.PathLike) or isinstance(os.fspath(output), bytes):
        raise mistyped("output", _WHERE, "the path of a file to write, or None", output)
    if "\0" in os.fspath(output):
        name = os.path.basename(output)  # noqa: PTH119 - of a path that may be none
        raise rejection("output", _WHERE, "the path of a file to write", repr(name))
    target = Path(output)
    row_files.suffix_of(target, _WHERE)
    if not target.parent.is_dir():
        raise rejection("output", _WHERE, "in a folder that is there", target.name)
    return target


def _opened(target: Path, head: Head, stack: ExitStack) -> RowsFile:
    try:
        writing = RowsFile(target, head)
    except OSError as error:
        rule = f"the path of a file that can be written ({error.strerror})"
        raise rejection("output", _WHERE, rule, target.name) from None
    stack.callback(writing.abandon)
    return writing


def _opened_all(prepared: PreparedRows, stack: ExitStack) -> Sequence[Output]:
    """Open what the mechanism keeps beside the rows; what gets no name is removed."""
    outputs = prepared.outputs()
    for each in outputs:
        stack.callback(each.abandon)
    return outputs


def _place(kept: Sequence[Output], release: RowsRelease) -> None:
    """Give their names to files beside complete rows, which no failure here takes back."""
    for each in kept:
        try:
            each.complete()
            each.place()
        except ReleaseError as error:
            told = f"The rows are released and spent. {error}"
            warnings.warn(NotKeptWarning(told, release), stacklevel=5)


def _refused(target: Path) -> ValueError:
    rule = "the path of a file that is not there yet"
    hint = "with the `request` and the arguments that made the file, it is loaded instead."
    return rejection("output", _WHERE, rule, target.name, hint)


def _already(
    target: Path, head: Head, request: str | None, ledger: AnyLedger | None
) -> RowsRelease:
    """Return the release in a file, if it is the one that is asked for now; otherwise refuse."""
    if request is None:
        raise _refused(target)
    try:
        found, rows = row_reading.opened(target)
    except ReleaseError:
        raise _refused(target) from None
    if _identity(found) != _identity(head):
        raise _refused(target)
    check_file(ledger, request, target)
    return RowsRelease(found, rows)


def _identity(head: Head) -> tuple[Any, ...]:
    """Return what the caller decides; what was drawn or counted on the way may differ."""
    given = head.certificate
    return (
        _decided(given),
        head.schema,
        head.law.kind,
        dict(head.options),
        head.columns.names,
    )


def _decided(given: Certificate) -> tuple[Any, ...]:
    return (
        given.request,
        given.dataset,
        given.mechanism,
        given.asked,
        given.neighbours,
        given.calibration,
        given.simulated,
    )


def _told(own: Mapping[str, Any], schema: Schema) -> dict[str, Any]:
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
