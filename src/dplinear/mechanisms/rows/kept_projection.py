"""Keeping a projection: in an encrypted file of the curator's, to map further rows the same way.

AES-256 in Galois/counter mode: whoever changes a bit of the file is found out. The promise of a
release does not rest on the projection being secret, so this is for use, not for safety.
"""

import hmac
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dplinear.analyst.releases.outputs import Output
from dplinear.arguments import rejection, wrong_type
from dplinear.ledger.fingerprint import SECRET
from dplinear.mechanisms.rows.row_maps import RowMap
from dplinear.noise.entropy import system

_MAGIC = b"dplinear projection 1\n"
_KEY = 32
_NONCE = 12


def new_key() -> bytes:
    """Return a fresh key of 32 bytes for an `EncryptedFile`."""
    return system().bits(8 * _KEY).to_bytes(_KEY, "little")


@dataclass(frozen=True)
class EncryptedFile:
    """Where a release keeps its projection, and the key that opens it.

    Requires: a key of 32 bytes, and a path in a folder that exists. A projection that is there
    already is replaced when the rows of another release are complete.
    """

    path: str | os.PathLike[str] = field(repr=False)  # a release's parameters show its repr
    key: bytes = field(repr=False, metadata=SECRET)

    def __post_init__(self) -> None:
        where = "EncryptedFile"
        path: Any = self.path
        key: Any = self.key
        if not isinstance(path, str | os.PathLike):
            raise wrong_type("path", where, "the path of a file", path)
        if not isinstance(key, bytes) or len(key) != _KEY:
            rule = "32 bytes, such as those of new_key()"
            raise wrong_type("key", where, rule, type(key).__name__)  # never the key itself

    def __str__(self) -> str:
        return f"encrypted file {Path(self.path).name}"

    def check(self, where: str) -> None:
        """Raise if the file could not be written, or is something else than a projection."""
        file = Path(self.path)
        rule = "the path of a new file, or of a kept projection, in a folder that exists"
        if not file.absolute().parent.is_dir() or (file.exists() and not _is_ours(file)):
            raise rejection("keep_projection", where, rule, file.name)

    def prepare(self, rows: RowMap, where: str) -> Output:
        """Write the projection under a name of its own; `index` then gives it that of the file."""
        nonce = system().bits(8 * _NONCE).to_bytes(_NONCE, "little")
        plain = json.dumps(rows.facts() | {"name": rows.name}).encode()
        sealed = AESGCM(self.key).encrypt(nonce, plain, _MAGIC)
        file = Path(self.path)
        output = None
        try:
            output = Output(file, overwrite=True, mode=0o600)
            output.file.write(_MAGIC + nonce + sealed)
            output.file.flush()
            os.fsync(output.file.fileno())
        except OSError as error:
            if output is not None:
                output.abandon()
            rule = f"the path of a file that can be written ({error.strerror})"
            raise rejection("keep_projection", where, rule, file.name) from None
        return output

    def read(self) -> RowMap:
        """Return the projection that was kept."""
        where = "EncryptedFile.read"
        content = Path(self.path).read_bytes()
        rule = "a projection that was kept under this key"
        if not content.startswith(_MAGIC):
            raise rejection("path", where, rule, Path(self.path).name)
        nonce, sealed = content[len(_MAGIC) :][:_NONCE], content[len(_MAGIC) + _NONCE :]
        try:
            plain = AESGCM(self.key).decrypt(nonce, sealed, _MAGIC)
        except InvalidTag:
            raise rejection("path", where, rule, Path(self.path).name) from None
        facts = json.loads(plain)
        return RowMap.of(facts, facts.get("name") or self._name(plain))

    def _name(self, plain: bytes) -> str:
        """Return a name for a projection that was kept without one: always the same.

        What it is made of cannot be guessed without the key.
        """
        return hmac.new(self.key, b"dplinear projection name\n" + plain, "sha256").hexdigest()[:32]


def _is_ours(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(_MAGIC)) == _MAGIC
