"""A missing service is a loud skip at a desk, and a failure in CI."""

import pytest

from services import library


def test_a_missing_library_is_skipped_at_a_desk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="NOT TESTED: no_such_engine is missing"):
        library("no_such_engine")


def test_a_missing_library_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="NOT TESTED: no_such_engine is missing"):
        library("no_such_engine")
