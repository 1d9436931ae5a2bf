"""Huber's line by whitened descent: residuals are clipped at 1.345 scales, whatever their tails.

Whitened descent clips residuals where that costs least, and levels the line in the end, so that it
is least squares' where errors are symmetric. With one public clip and no levelling, its fixed point
is the line of Huber's loss, which few far targets hardly move (docs/theory/whitened-descent.md).
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

from dplinear.descent.settings import Settings
from dplinear.descent.whitened import WhitenedDescent

CLIP = 1.345  # 95% as efficient as least squares for normal errors: Huber's usual choice


def _settings() -> Settings:
    return Settings(residual_clip=CLIP, intercept=Fraction(0))


@dataclass(frozen=True, kw_only=True)
class HuberDescent(WhitenedDescent):
    """Huber's line by noisy descent; a scale is what 68% of the residuals are within.

    Requires and promises what `WhitenedDescent` does.
    Departs from Huber's loss: residuals of rows that are long in whitened coordinates are clipped
    sooner, as in all descents here, to bound what one row can do.
    """

    settings: Settings = field(default_factory=_settings)
    name: ClassVar[str] = "huber_descent"
    loss: ClassVar[str] = "huber"
