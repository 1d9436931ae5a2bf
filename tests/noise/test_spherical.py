"""Noise of density ∝ exp(−‖b‖/scale), rounded: its arguments. Its law is held in `test_chi`."""

from dplinear.noise.spherical import spherical_laplace_integers
from refusals import refused


def test_arguments_are_checked() -> None:
    with refused("scale", "spherical.spherical_laplace_integers"):
        spherical_laplace_integers(0.0, 3)
    with refused("dimension", "spherical.spherical_laplace_integers"):
        spherical_laplace_integers(1.0, 0)
