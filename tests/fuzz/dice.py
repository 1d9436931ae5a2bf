"""Seeded choices: everything an input is made of is thrown here, so that a seed is the input."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from dplinear.noise import simulation

_T = TypeVar("_T")


class Dice:
    """Throws of one input."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._generator = simulation.generator(seed)

    def below(self, count: int) -> int:
        """Return an integer from 0 to count − 1."""
        return int(self._generator.integers(count))

    def chance(self, share: float) -> bool:
        return bool(self._generator.random() < share)

    def pick(self, options: Sequence[_T]) -> _T:
        return options[self.below(len(options))]

    def make(self, options: Sequence[Callable[[], _T]]) -> _T:
        """Return what one of several makers makes, made only if it is picked."""
        return self.pick(options)()

    def some(self, options: Sequence[_T], most: int) -> list[_T]:
        """Return up to `most` of the options, each once, in any order."""
        order = self._generator.permutation(len(options))[: self.below(most + 1)]
        return [options[int(place)] for place in order]

    def uniform(self, low: float, high: float) -> float:
        return float(low + (high - low) * self._generator.random())

    def bytes(self, count: int) -> bytes:
        return self._generator.bytes(count)

    def fork(self) -> "Dice":
        """Return dice of their own, so that what they throw does not move later throws."""
        return Dice(self.below(2**62))


def seed_of(run: int, gate: str, place: int) -> int:
    """Return the seed of one input of a run."""
    text = f"dplinear fuzz {run} {gate} {place}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7], "big")


Maker = Callable[[Dice], Any]
