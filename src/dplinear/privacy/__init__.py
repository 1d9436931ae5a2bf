"""Guarantees: what a release promises, exactly, and how much noise that takes.

`guarantees` and `neighbours` say what is promised; `profiles` are exact curves δ(ε);
`calibrate` inverts them; `compose` adds them up.
"""

from dplinear.privacy import calibrate, compose, profiles
from dplinear.privacy.conversions import NoConversionError
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours

__all__ = [
    "GDP",
    "MIDP",
    "ZCDP",
    "ApproxDP",
    "Guarantee",
    "Neighbours",
    "NoConversionError",
    "PureDP",
    "calibrate",
    "compose",
    "profiles",
]
