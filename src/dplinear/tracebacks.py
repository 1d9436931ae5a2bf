"""Errors whose sentence says all there is to know: a notebook shows it without the inner frames."""

import traceback
from types import FrameType

_INNER = ("dplinear", "IPython", "ipykernel", "contextlib")


class PlainError(Exception):
    """An error of the caller's own line; mixed into those whose words are the library's own.

    IPython asks an error how it is to be shown. `raise`, `except`, `traceback` and the debugger see
    all frames as ever.
    """

    def _render_traceback_(self) -> list[str]:
        """Return the lines that a notebook shows: the caller's frames, and the sentence."""
        steps = traceback.walk_tb(self.__traceback__)
        own = [(frame, line) for frame, line in steps if not _is_inner(frame)]
        said = traceback.format_exception_only(type(self), self)
        return "".join([*traceback.StackSummary.extract(iter(own)).format(), *said]).splitlines()


def _is_inner(frame: FrameType) -> bool:
    """Return whether a frame is the library's own, or of what runs a notebook's cells."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _INNER
