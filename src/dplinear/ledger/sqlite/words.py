"""What SQLite and the system say when a ledger cannot be used, in sentences."""

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from dplinear.ledger.hash_chain import damage_error
from dplinear.ledger.request import refusal

_FACTS = (
    ("locked", "is locked by another process", "try again when it has ended."),
    ("busy", "is locked by another process", "try again when it has ended."),
    ("full", "cannot be written: the disk is full", "make room on the disk, and ask again."),
    ("readonly", "cannot be written: it is read-only", "ask for the right to write to the file."),
    ("unable to open", "cannot be opened", "ask for the right to read it and to write to it."),
)
_DAMAGE = ("malformed", "not a database", "decode", "corrupt", "overflow")
_DENIED = (
    "nothing is released; ask for the right to write to the file, to its side file (.anchor) and "
    "to their folder."
)
_HINTS = {
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: _DENIED,
    errno.ENOSPC: "nothing is released; make room on the disk, and ask again.",
}


@contextmanager
def explain_errors(name: str) -> Iterator[None]:
    """Say in a sentence what keeps a ledger from being used."""
    try:
        yield
    except sqlite3.Error as error:
        said = str(error)
        if any(word in said for word in _DAMAGE):
            raise damage_error(f"SQLite says {said!r}") from None
        for word, fact, hint in _FACTS:
            if word in said:
                raise refusal(
                    f"The ledger {name!r} {fact}.", f"nothing is released; {hint}"
                ) from None
        raise refusal(f"The ledger {name!r} cannot be used: SQLite says {said!r}.") from None
    except UnicodeDecodeError:  # SQLite's own words, quoting what is damaged
        raise damage_error("it holds what is no text") from None
    except OSError as error:
        fact = f"The ledger {name!r} cannot be used: {error.strerror or error}."
        raise refusal(fact, _HINTS.get(error.errno or 0, "")) from None
