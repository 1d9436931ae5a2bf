from collections.abc import Callable
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="session")
def generator() -> Callable[[int], Any]:
    """Fixed data for tests: a seeded NumPy generator."""
    return np.random.default_rng  # noqa: TID251 - fixed data for tests, never noise
