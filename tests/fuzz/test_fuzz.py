"""Generated inputs of every gate: our own errors alone, and nothing that tells neighbours apart.

`python -m tests.fuzz` prints what comes of them; each problem comes with the seed that shows it.
"""

import pytest

from .gates import GATES
from .runs import HEADER, apart, counted

_FEW = {
    "release_model": 15,
    "release_covariance": 15,
    "release_mean": 20,
    "release_model, constrained": 20,
    "release_model, projected": 20,
    "estimators": 25,
}


@pytest.mark.heavy
@pytest.mark.engine
@pytest.mark.parametrize("gate", GATES)
def test_a_few_inputs_of_every_gate(gate: str) -> None:
    counts = counted(gate, _FEW.get(gate, 40), run=2)
    assert not counts.wrong, f"\n{HEADER}\n{counts}"
    assert counts.accepted, "every input was refused: the fuzz asks for what is no longer there"


@pytest.mark.long
@pytest.mark.engine
@pytest.mark.parametrize("gate", GATES)
def test_ten_thousand_inputs_of_every_gate(gate: str) -> None:
    counts = apart(gate, 10_000, run=1)
    print(f"\n{HEADER}\n{counts}")  # noqa: T201 - the figures of docs/fuzzing.md
    assert counts.inputs == 10_000
    assert counts.accepted > 300
    assert not counts.wrong, f"\n{HEADER}\n{counts}"
