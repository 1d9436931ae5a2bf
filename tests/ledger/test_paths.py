"""Odd paths and odd numbers: a sentence, or a fingerprint."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dplinear.ledger import LedgerError, open_ledger
from dplinear.ledger.fingerprint import fingerprint


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize("path", ["", ".", "a\0b", "\ud800.db", "long" * 100 + ".db"], ids=ascii)
def test_what_cannot_be_a_file_is_refused_in_a_sentence(
    path: str, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, LedgerError), match=r"path of a file|cannot be used"):
        open_ledger(path, create=create)
    assert not list(tmp_path.iterdir())


def test_a_path_of_bytes_is_no_path() -> None:
    class Odd:
        def __fspath__(self) -> bytes:
            return b"budget.db"

    with pytest.raises(ValueError, match="the path of a file"):
        open_ledger(Odd())  # type: ignore[arg-type]


@pytest.mark.parametrize("create", [False, True])
@pytest.mark.parametrize(
    "path",
    [
        Path("postgresql://me:hush@host/base"),  # which has lost a slash
        Path("postgresql://host/base?password=hush"),
        b"postgresql://me:hush@host/base",
        "postgresql:me:hush@host",
        ["postgresql://me:hush@host/base"],
    ],
    ids=ascii,
)
def test_what_is_nearly_a_url_is_not_quoted(
    path: Any, create: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ValueError, TypeError), match="'path' parameter of open_ledger") as told:
        open_ledger(path, create=create)
    assert "hush" not in str(told.value)
    assert not list(tmp_path.iterdir())


def test_numbers_of_many_bits_have_a_fingerprint() -> None:
    third = np.longdouble(1) / 3
    assert fingerprint(third) == fingerprint(np.longdouble(1) / 3)
    assert fingerprint(third) != fingerprint(np.clongdouble(third))
