"""Fingerprints of public arguments, so that the same request can be told from another."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def fingerprint(value: Any) -> str:  # noqa: ANN401 - arguments of any type
    """Return the digest of arguments: equal for equal ones, in any process.

    What has no content that can be compared counts by its text, which may be new each time: such
    requests are taken for different ones.
    """
    text = json.dumps(plain(value), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one way for each type
    """Return an argument as JSON; an array as the digest of its bytes."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.generic):
        inner = value.item()  # of a number of many bits, itself
        return repr(value) if isinstance(inner, np.generic) else plain(inner)
    if isinstance(value, Mapping):
        return {str(name): plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        content = repr((value.dtype.str, value.shape)).encode() + value.tobytes()
        return "sha256:" + hashlib.sha256(content).hexdigest()
    if is_dataclass(value) and not isinstance(value, type):
        named = {each.name: plain(getattr(value, each.name)) for each in fields(value)}
        return [type(value).__qualname__, named]
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return [type(value).__qualname__, plain(value.to_dict())]
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value)
