import threading

import pytest

from dplinear.arguments import ArgumentTypeError
from dplinear.noise import simulation
from refusals import refused


def drawn() -> int:
    return simulation.entropy_for_release().bits(64)


def test_the_door_starts_afresh_for_every_release_and_says_so() -> None:
    with simulation.door(5):
        first, second = drawn(), drawn()
        assert simulation.entropy_for_release().simulated
        with simulation.door(6):
            assert drawn() != first
        assert drawn() == first
    assert first == second
    assert not simulation.entropy_for_release().simulated
    assert len({drawn() for _ in range(8)}) == 8


def test_the_door_is_closed_for_other_threads_and_after_an_error() -> None:
    seen = []

    def look() -> None:
        seen.append(simulation.entropy_for_release().simulated)

    def fail() -> None:
        with simulation.door(1):
            other = threading.Thread(target=look)
            other.start()
            other.join()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    look()
    assert seen == [False, False]


def test_a_seed_is_a_whole_number() -> None:
    with refused("seed", "simulation.door", kind=ArgumentTypeError):
        simulation.door(1.5).__enter__()  # type: ignore[arg-type]
