"""Temporary files of numbers: no name, readable by nobody else, gone with their owner.

They have no name from the moment they are made (where the system allows it). They hold rounded
cells, so their disk must be trusted as the table's own; `TMPDIR` says which one it is.
"""

import os
import tempfile
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", bound=np.generic)


def open_temporary(owner: object) -> IO[bytes]:
    """Return a file without a name, closed with its owner."""
    file = tempfile.TemporaryFile(prefix="dplinear-")  # noqa: SIM115 - closed as said
    weakref.finalize(owner, _close, file)
    return file


def _close(file: IO[bytes]) -> None:
    with suppress(OSError):  # of a full disk: whoever wrote to it was told
        file.close()


class BlockFile:
    """A temporary file of arrays, which any thread may add to and read from."""

    def __init__(self) -> None:
        self._handle = open_temporary(self).fileno()
        self._lock = threading.Lock()
        self._end = 0

    def put(self, block: npt.NDArray[_Number]) -> Callable[[], npt.NDArray[_Number]]:
        """Write an array; return what reads it. Raises `OSError` where the disk fails."""
        flat: Any = np.ascontiguousarray(block).reshape(-1)
        content = memoryview(flat.view(np.uint8))
        with self._lock:
            start = self._end
            self._end += len(content)
        written = 0
        while written < len(content):
            written += os.pwrite(self._handle, content[written:], start + written)
        dtype, shape, size = block.dtype, block.shape, len(content)

        def load() -> npt.NDArray[Any]:
            data = os.pread(self._handle, size, start)
            if len(data) != size:
                raise OSError("a temporary file was cut short")
            return np.frombuffer(data, dtype).reshape(shape)

        return load
