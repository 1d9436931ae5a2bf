"""The digest of a request: of all public arguments of a gate, and of nothing in the table."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dplinear.ledger.fingerprint import fingerprint
from dplinear.noise import simulation

# The table itself, which is private, and who counts. A mechanism's own options may have such names.
_OF_THE_TABLE = frozenset(
    {"data", "groups", "sample_weight", "ledger", "request", "output", "options"}
)
# How it is read, which changes nothing of what is released.
_READING = frozenset({"threads", "engine", "progress", "public_types"})
# Of these a request without them knows nothing.
_LATER = frozenset({"unit", "rows_per_unit", "by", "weight", "weight_bound"})


def request_fingerprint(name: str, given: Mapping[str, Any]) -> str:
    """Return the digest of all public arguments of a gate.

    A seed is one of them: what it made is no release, and is not to be taken for one.
    """
    said = {key: value for key, value in given.items() if key not in _OF_THE_TABLE}
    said |= given.get("options", {})
    public = {
        key: float(value) if isinstance(value, np.longdouble) else value
        for key, value in said.items()
        if key not in _READING and not (key in _LATER and value is None)
    }
    if given.get("constraint") is not None:
        # Labels are private. Of rows without a schema the columns are a public argument: a model
        # has a number for each.
        public["target"] = int(given["data"].shape[1])
    return fingerprint([name, public, {"seed": simulation.seed_for_release()}])
