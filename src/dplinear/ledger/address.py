"""The address of a ledger on a server, which may hold a password and is never shown."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dplinear.arguments import is_url, redact, rejection

_WHERE = "open_ledger"
# Strict, so that no part of a password with an unescaped mark is taken for a name that is shown.
_URL = re.compile(
    r"(postgres(?:ql)?://(?:[^:/?#@\s]*(?::[^/?#@\s]*)?@)?[^/?#@\s]*)"
    r"(?:/([^/?#@\s]*))?(?:\?([^#@\s]*))?"
)
_OWN = ("ledger", "anchor")  # everything else is the driver's
_PASSWORD = re.compile(r"(://[^:@]*):[^@]+@")
_PASSWORDS = ("password", "sslpassword")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")


@dataclass(frozen=True)
class Address:
    """A server's database, the name of a ledger in it, and the side file on this machine.

    `url` is what the driver is given; `anchor` is None where the side file is to be found by the
    ledger's own id. Whatever saves an address (pickle, joblib, the processes of a search) gets it
    without the password, so that none is ever in a file: who loads it needs ~/.pgpass, or the
    environment.
    """

    url: str = field(repr=False)
    database: str
    ledger: str
    anchor: Path | None

    @staticmethod
    def parse(given: str) -> "Address":
        """Return the parts of a URL, or raise without quoting it."""
        found = _URL.fullmatch(given)
        if found is None:
            raise rejection("path", _WHERE, f"a URL such as {_EXAMPLE}", given, _HINT)
        server, database, query = found.groups(default="")
        pairs = [pair.partition("=") for pair in query.split("&")] if query else []
        if not all(name and mark for name, mark, _ in pairs):
            rule = "a URL whose ?name=value&name=value can be read"
            raise rejection("path", _WHERE, rule, given, _HINT)
        own = {name: unquote(value) for name, _, value in pairs if name in _OWN}
        ledger, anchor = own.get("ledger", "dplinear"), own.get("anchor")
        if not _NAME.fullmatch(ledger):
            rule = "named ?ledger= in at most 40 letters a-z, digits and _"
            raise rejection("path", _WHERE, rule, given)
        if anchor == "":
            raise rejection("path", _WHERE, "with a path after ?anchor=", given)
        others = "&".join("".join(pair) for pair in pairs if pair[0] not in _OWN)
        url = f"{server}/{database}" + (f"?{others}" if others else "")
        return Address(url, unquote(database), ledger, Path(anchor) if anchor else None)

    @property
    def has_password(self) -> bool:
        """Whether the URL holds a password, rather than a file or the environment."""
        return _bare(self.url) != self.url

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"url": _bare(self.url)}

    def __deepcopy__(self, _: object) -> "Address":
        return self  # which is not saved, and never changed

    def __str__(self) -> str:
        return f"{self.ledger!r} in the database {self.database!r}"


def _bare(url: str) -> str:
    """Return a URL that was parsed, without its password."""
    place, mark, query = url.partition("?")
    pairs = [pair for pair in query.split("&") if unquote(pair.partition("=")[0]) not in _PASSWORDS]
    return _PASSWORD.sub(r"\1@", place) + mark * any(pairs) + "&".join(pairs)


_EXAMPLE = "postgresql://user@host/database"
_HINT = "marks such as @ : / ? # in a name or a password are written as %40 %3A %2F %3F %23."


class Veiled(str):
    """A URL that shows only its kind where it is printed.

    To those who open files or connections, and to comparisons, it is the whole text; to those who
    save it, the text without a password.
    """

    __slots__ = ()

    def __reduce_ex__(self, _: object) -> tuple[Any, ...]:
        return Veiled, (self.without_secrets(),)

    def __copy__(self) -> "Veiled":
        return self

    def __deepcopy__(self, _: object) -> "Veiled":
        return self

    def without_secrets(self) -> str:
        """Return what may be written to a file: of what nobody can connect with, its kind."""
        text = self[:]
        try:
            has_password = Address.parse(text).has_password
        except ValueError:
            return redact(text)
        return _bare(text) if has_password else text

    def __str__(self) -> str:
        return redact(self[:])

    def __repr__(self) -> str:
        return repr(redact(self[:]))

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


def veil(given: object) -> object:
    """Return an address that prints without its password; anything else as it is."""
    text = given
    if isinstance(given, os.PathLike):
        text = os.fspath(given)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if isinstance(given, Veiled) or not (isinstance(text, str) and is_url(text)):
        return given
    return Veiled(text)


def savable(given: object) -> object:
    """Return an address as it may be saved, in a text that no library sees more in."""
    return veil(given.without_secrets()) if isinstance(given, Veiled) else given


def check_shown(given: object, where: str) -> None:
    """Raise for a URL with a password, which whoever saves an estimator would save with it."""
    if not (isinstance(given, str) and is_url(given)):
        return
    if Address.parse(given[:]).has_password:
        rule = "a URL without a password, which would be saved with the estimator"
        hint = "pass ledger=dpl.open_ledger(url), or keep the password in the file ~/.pgpass."
        raise rejection("ledger", where, rule, given, hint)
