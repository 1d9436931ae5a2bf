"""Noise of density ∝ exp(−‖b‖/scale), rounded: its arguments. Its law is held in `test_chi`."""

import pytest

from dplinear.noise.spherical import spherical_laplace_integers


def test_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="scale"):
        spherical_laplace_integers(0.0, 3)
    with pytest.raises(ValueError, match="dimension"):
        spherical_laplace_integers(1.0, 0)
