"""Files in the making: opened before anything is spent on them, and never lost once they are whole.

A file is written under a name of its own in its folder, and gets its name when it is complete. The
name of its own is the longer one, so a name that is too long, a folder that is not there or cannot
be written to, and a full table of files are all found when it is opened.
"""

import os
import uuid
from contextlib import suppress
from functools import partial
from pathlib import Path

from dplinear.analyst.releases.container import ReleaseError
from dplinear.arguments import ArgumentError, printable, redact


def no_folder(parameter: str, where: str, target: Path) -> ArgumentError:
    """Return the error for a file that is to go where no folder is."""
    hint = "make the folder first: nothing was written or spent."
    folder = repr(redact(printable(str(target.parent))))  # whole: its end tells most
    return ArgumentError(parameter, where, "in a folder that exists", folder, hint)


class UnplacedError(ReleaseError):
    """A file that is whole, and could not get its name: `reason`. `path` is where it stays."""

    def __init__(self, target: Path, path: Path, reason: str) -> None:
        super().__init__(
            f"What was to be '{target.name}' is written, and could not get that name ({reason}): "
            f"it is in '{path.name}', in the same folder."
            "\n\nHint: give that file another name; nothing of it is lost."
        )
        self.path, self.reason = path, reason


class Output:
    """A file in the making. `complete` it, then `place` it; `abandon` removes what is not complete.

    Requires: a path whose folder is there; raises OSError where the file cannot be written.
    Promises: nobody else can name it meanwhile; once `complete`, it is removed by no failure.
    """

    def __init__(
        self, target: Path, *, overwrite: bool = False, mode: int = 0o666, path: Path | None = None
    ) -> None:
        self.target, self._overwrite = target, overwrite
        # CSV is known by the end of its name, and is to be readable wherever it stays.
        end = ".csv" if target.suffix.lower() == ".csv" else ""
        own = target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp{end}")
        self.path = own if path is None else path
        self._whole = False
        self.file = open(self.path, "xb", opener=partial(os.open, mode=mode))  # noqa: SIM115 - `abandon` closes it

    def complete(self) -> None:
        """Make what was written last. From now on no failure removes it."""
        self.file.flush()
        self._whole = True
        try:
            os.fsync(self.file.fileno())
            self.file.close()
        except OSError as error:
            raise self._unplaced_error(error) from None

    @property
    def whole(self) -> bool:
        """Whether all is written, so that no failure may remove it."""
        return self._whole

    def place(self) -> None:
        """Give the file its name; or raise `UnplacedError`, which says where it stays."""
        self.claim()
        self.settle()

    def claim(self) -> None:
        """Let the name lead to the file too; then `settle`, or take it back with `release`.

        May be called again where a signal came between.
        """
        try:
            if self.target.exists() and self.path.samefile(self.target):
                return
            if self._overwrite:
                self.path.replace(self.target)
            else:
                claim(self.path, self.target)
        except OSError as error:
            raise self._unplaced_error(error) from None

    def _unplaced_error(self, error: OSError) -> UnplacedError:
        taken = isinstance(error, FileExistsError)
        reason = "another file has it by now" if taken else error.strerror or type(error).__name__
        return UnplacedError(self.target, self.path, reason)

    def settle(self) -> None:
        """Give up the name that the file had while it was made."""
        with suppress(OSError):
            self.path.unlink(missing_ok=True)
        with suppress(OSError):  # some folders cannot be synced: the system does it in time
            sync_folder(self.target.parent)

    def release(self) -> None:
        """Take the file back from its name."""
        with suppress(OSError):
            if self.path.exists():
                self.target.unlink()
            else:  # of a file system without links
                self.target.replace(self.path)

    def finish(self) -> None:
        """Give a complete file its name after all, where a signal came between.

        May be called at any time, and again: of a file that is not complete it does nothing.
        """
        if not self._whole:
            return
        with suppress(OSError, UnplacedError):
            self.place()

    def abandon(self) -> None:
        """Remove what was written, unless it is complete. May be called at any time, and again."""
        if not self._whole:
            self.discard()
        with suppress(Exception):
            self.file.close()

    def discard(self) -> None:
        """Remove what was written, complete or not: of what can be written again."""
        with suppress(Exception):
            self.file.close()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)


def claim(beside: Path, target: Path) -> None:
    """Give the finished file its name, unless another has it by now."""
    try:
        os.link(beside, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without links cannot do both at once
        if os.path.lexists(target):
            raise FileExistsError from None
        beside.replace(target)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder last."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
