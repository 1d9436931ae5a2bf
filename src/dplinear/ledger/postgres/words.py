"""What a server says when a ledger cannot be used, in sentences that hold no password."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from dplinear.ledger.address import Address
from dplinear.ledger.hash_chain import damage_error
from dplinear.ledger.postgres.trigger import REFUSED
from dplinear.ledger.request import LedgerError, refusal

NAME_ONE = "name a file on a disk of this machine: ?anchor=/var/lib/me/budget.anchor"
# By SQLSTATE, or its first letters.
_FACTS = (
    ("55P03", "is locked by another process", "try again when it has ended."),
    ("57014", "does not answer in time", "try again when the server is less busy."),
    (
        "53",
        "cannot be written: the server's disk is full, or another limit is reached",
        "make room.",
    ),
    (
        "25006",
        "cannot be written: it is read-only",
        "name the server, and the role, that may write.",
    ),
    ("42501", "may not be used by this role", "ask for the right to read and to add lines."),
    ("23505", "was written to by somebody else meanwhile", "try again."),
    ("P0001", "was written to by somebody else meanwhile", "try again."),
)
_WRITTEN = "the line is written: what was asked for is spent, and nothing is released"
_DAMAGE = ("XX001", "XX002")
_WRONG = "it wants another password"
# Of attempts to connect, whose text may quote what the address holds.
_REFUSED = (
    ("password", _WRONG),
    ("authentication", _WRONG),
    ("pg_hba.conf", "it lets nobody in from here"),
    ("does not exist", "there is no such database or role"),
    ("timeout", "it does not answer in time"),
    ("starting up", "it is starting up"),
    ("shutting down", "it is shutting down"),
    ("too many", "too many are connected"),
    ("connection slots", "too many are connected"),
)


@contextmanager
def explain_errors(address: Address) -> Iterator[None]:
    """Say in a sentence what keeps a ledger from being used."""
    try:
        yield
    except psycopg.Error as error:
        raise _refusal(address, error) from None
    except OSError as error:
        fact = f"The side file of the ledger {address} cannot be used: {error.strerror or error}."
        raise refusal(fact, NAME_ONE) from None


def _refusal(address: Address, error: psycopg.Error) -> Exception:
    state = error.sqlstate or "08"
    said = error.diag.message_primary or type(error).__name__
    if state.startswith(_DAMAGE):
        return damage_error(f"PostgreSQL says {said!r}")
    if state == REFUSED:
        return refusal(f"The ledger {address} takes no such line: {said}.", "nothing is released.")
    for code, fact, hint in _FACTS:
        if state.startswith(code):
            return refusal(f"The ledger {address} {fact}.", f"nothing is released; {hint}")
    if state.startswith(("08", "57P", "25P03")):
        hint = "nothing is released, and nothing was written. Try again when the server is there."
        return refusal(f"The connection to the ledger {address} was lost.", hint)
    return refusal(f"The ledger {address} cannot be used: PostgreSQL says {said!r}.")


def unsure() -> LedgerError:
    """Return the error for a commit of which nobody knows whether it happened."""
    hint = (
        "nothing is released, and what was asked for may be spent. The same request, made again, "
        "tells: it says that it is spent, or spends."
    )
    return refusal("The server did not say whether the line was written.", hint)


def undone_error(address: Address) -> LedgerError:
    """Return the error for a commit that, as the server was asked again, did not happen."""
    hint = "nothing is released, and nothing was written. Try again."
    return refusal(f"The connection to the ledger {address} was lost at the last moment.", hint)


@contextmanager
def explain_unremembered(address: Address) -> Iterator[None]:
    """Say in a sentence that a line is written which the side file could not be told of."""
    try:
        yield
    except (OSError, LedgerError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error).partition("\n")[0]
        fact = f"The side file of the ledger {address} could not be written ({said or error})."
        raise refusal(fact, f"{_WRITTEN}. {NAME_ONE[0].upper()}{NAME_ONE[1:]}") from None


def unreachable_error(address: Address, error: Exception) -> LedgerError:
    """Return the error for a server that cannot be reached."""
    said = str(error)
    fact = next((fact for word, fact in _REFUSED if word in said), "it cannot be reached")
    hint = "nothing is released, and nothing was written."
    if fact == _WRONG:
        hint += " A ledger that was saved and loaded has no password: keep it in ~/.pgpass."
    return refusal(f"There is no way to the ledger {address}: {fact}.", hint)
