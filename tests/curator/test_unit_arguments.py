"""Units of privacy as arguments: none is taken and then left aside."""

from typing import Any

import numpy as np
import pytest

import dplinear as dpl
from dplinear.arguments import ArgumentError
from dplinear.noise import simulation


@pytest.mark.parametrize("given", [{"unit": "id"}, {"rows_per_unit": 2}])
def test_models_in_a_set_take_no_units(given: dict[str, Any]) -> None:
    X = simulation.generator(0).uniform(-1, 1, (50, 3))
    with pytest.raises(ArgumentError, match="left out where a constraint is given") as caught:
        dpl.release_model(
            X,
            target=np.sign(X[:, 0]),
            row_norm=2.0,
            constraint=1.0,
            loss="logistic",
            classes=(-1, 1),
            epsilon=1.0,
            delta=1e-6,
            **given,
        )
    assert caught.value.parameter == next(iter(given))
