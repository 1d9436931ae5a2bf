"""Refusals of arguments, by what they say and not by how they say it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dplinear.arguments import ArgumentError


@contextmanager
def refused(
    parameter: str, where: str, rule: str = "", kind: type[ArgumentError] = ArgumentError
) -> Iterator[pytest.ExceptionInfo[ArgumentError]]:
    """Expect an error of just this kind about a parameter, with words of its rule."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert type(error) is kind
    assert (error.parameter, error.where) == (parameter, where)
    assert rule in error.rule
