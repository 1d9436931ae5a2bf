"""What a planted bug is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """A bug: what is wrong in words, where, and the test that fails because of it."""

    name: str
    wrong: str
    file: str
    good: str
    bad: str
    test: str
