"""While an engine computes rows, its own words reach no log or terminal: they may quote cells."""

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_ENGINES = frozenset({"dask", "distributed", "pyspark"})
_SPARKS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


class _Quiet:
    """Holds back warnings, and what engines log, while any pass runs; the last one out ends it.

    Of this process only: `enter` and `leave` are for workers in others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._warnings = warnings.catch_warnings()
        self._loggers: list[logging.Logger] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Fall silent."""
        with self._lock:
            self._inside += 1
            if self._inside > 1:
                return
            self._warnings = warnings.catch_warnings()
            self._warnings.__enter__()
            warnings.simplefilter("ignore")
            known = logging.root.manager.loggerDict.items()
            self._loggers = [
                logger
                for name, logger in list(known)
                if isinstance(logger, logging.Logger)
                and (name.partition(".")[0] in _ENGINES or name in _SPARKS)
                and not logger.disabled
            ]
            for logger in self._loggers:
                logger.disabled = True

    def leave(self) -> None:
        """Speak again, if nobody else is inside; a worker may have begun after all fell silent."""
        with self._lock:
            if not self._inside:
                return
            self._inside -= 1
            if self._inside:
                return
            for logger in self._loggers:
                logger.disabled = False
            self._warnings.__exit__(None, None, None)


quiet = _Quiet()


def fall_silent() -> None:
    """Fall silent, in the process of a worker that is told to."""
    quiet.enter()


def speak_again() -> None:
    """End it."""
    quiet.leave()
