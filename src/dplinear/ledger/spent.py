"""What an error says of the budget: whether the request that it ended is spent.

An error keeps its kind and its words, and gets a note. Notes of others may quote rows, so ours are
of a class of their own, and only they are shown where words are withheld.
"""


class SpentNote(str):
    """A note on an error, in public words: a request, and that it is spent or may be."""

    __slots__ = ()


def note_spent(error: BaseException, request: str) -> None:
    """Tell, on an error after the spend, that the request is spent."""
    _add(error, f"The request {request!r} is spent, and stays spent.")


def note_unsure(error: BaseException, request: str) -> None:
    """Tell, on an error during the spend, that the request may be spent."""
    _add(error, f"The request {request!r} may be spent: `dplinear ledger show` tells.")


def _add(error: BaseException, text: str) -> None:
    if spent_note(error) is None:
        error.add_note(SpentNote(text))


def spent_note(error: BaseException | None) -> str | None:
    """Return what an error, or one that it came from, says of the budget; None where nothing."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        for note in getattr(error, "__notes__", ()):
            if isinstance(note, SpentNote):
                return str(note)
        error = error.__cause__ or error.__context__
    return None
