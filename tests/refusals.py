"""Refusals of arguments, by what they say and not by how they say it.

An `ArgumentError` has its facts as attributes: the parameter, the function, the rule, what came,
and a hint. Tests check these, with the few words that carry the rule, so that a sentence may be
put better without a change of tests.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dplinear.arguments import ArgumentError


@contextmanager
def refused(
    parameter: str,
    where: str,
    rule: str = "",
    kind: type[ArgumentError] = ArgumentError,
    *,
    hint: str = "",
    got: str = "",
) -> Iterator[pytest.ExceptionInfo[ArgumentError]]:
    """Expect an error of just this kind about a parameter, with words of its rule and its hint."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert type(error) is kind
    assert (error.parameter, error.where) == (parameter, where)
    assert rule in error.rule
    assert hint in error.hint
    assert got in error.got
