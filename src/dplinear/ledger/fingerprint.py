"""Fingerprints of public arguments, so that the same request can be told from another."""

import functools
import hashlib
import json
import sys
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

import numpy as np

# Marks a field of a dataclass that is secret: nothing that is told of an object is made of it. Not
# even a digest, which would tell whoever guesses what is behind it.
SECRET = MappingProxyType({"secret": True})
_EXACT = {Fraction.__qualname__, Decimal.__qualname__}  # numbers that may be floats
_LIST, _WORD = 0, 1  # before what is no object: those begin with the text of their kind
# Whose text says all that they are.
_TOLD = (Fraction, Decimal, complex, date, timedelta, range, PurePath)


def fingerprint(value: Any) -> str:
    """Return the digest of arguments: equal for equal ones, in any process.

    What has no content that can be compared (a lambda, an object of an unknown class) is new each
    time: a request with it is never taken for an earlier one.
    """
    return hashlib.sha256(_text(_canonical(_describe(value))).encode()).hexdigest()


class _Word(str):
    """Text that stands for something else: the digest of an array, the name of a function."""

    __slots__ = ()


def _canonical(content: Any) -> Any:
    """Return JSON that is equal for equal arguments alone, whatever they hold.

    Equal numbers are written alike; truth values stay what they are. A list that looks like what
    stands for an object is still a list.
    """
    if isinstance(content, dict):
        return {name: _canonical(entry) for name, entry in content.items()}
    if isinstance(content, list):
        return [_LIST, *map(_canonical, content)]
    if isinstance(content, tuple):
        kind, *held = content
        exact = _float(*content) if kind in _EXACT else None
        return [kind, *map(_canonical, held)] if exact is None else _canonical(exact)
    if isinstance(content, _Word):
        return [_WORD, content]
    whole = isinstance(content, float) and content.is_integer()
    return int(content) if whole else content


def _float(_: str, text: object) -> float | None:
    """Return the float that a fraction or a decimal is, if it is one."""
    with suppress(ValueError, OverflowError):
        exact = Fraction(str(text))
        return float(exact) if Fraction(float(exact)) == exact else None
    return None


def plain(value: Any) -> Any:
    """Return an argument as JSON, to be read; an array as the digest of its bytes."""
    return _bare(_describe(value))


def _bare(content: Any) -> Any:
    if isinstance(content, dict):
        return {name: _bare(entry) for name, entry in content.items()}
    if isinstance(content, list | tuple):
        return [_bare(entry) for entry in content]
    return str(content) if isinstance(content, _Word) else content


def _describe(value: Any) -> Any:  # noqa: PLR0911 - one way for each type
    """Return what an argument holds: objects as tuples that begin with their kind, lists as lists.

    So nothing that a caller writes is taken for an object that it looks like.
    """
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:]  # and not a class with a text of its own
    if isinstance(value, np.generic):
        inner = value.item()  # of a number of many bits, itself
        return _Word(repr(value)) if isinstance(inner, np.generic) else _describe(inner)
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, list | tuple):
        return [_describe(entry) for entry in value]
    if isinstance(value, set | frozenset):
        return ("set", sorted((_describe(entry) for entry in value), key=_text))
    if isinstance(value, bytes | bytearray | memoryview):
        return ("bytes", hashlib.sha256(value).hexdigest())
    if isinstance(value, _TOLD):
        return (type(value).__qualname__, str(value))
    found = _array(value)
    return _object(value) if found is None else found


def _text(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False)


def _mapping(value: Mapping[Any, Any]) -> Any:
    if all(isinstance(name, str) for name in value):
        return {name[:]: _describe(value[name]) for name in sorted(value)}
    pairs = [[_describe(name), _describe(entry)] for name, entry in value.items()]
    return ("mapping", sorted(pairs, key=_text))  # as 1 and "1" are two names


def _array(value: Any) -> Any:
    """Return what stands for an array of numbers, dense or sparse; None for anything else."""
    if isinstance(value, type):
        return None
    if isinstance(value, np.ma.MaskedArray):
        return ("masked", _describe(value.data), _describe(np.ma.getmaskarray(value)))
    if hasattr(value, "tocsr"):
        return _sparse(value.tocsr(copy=True))
    if not (isinstance(value, np.ndarray) or hasattr(value, "__array__")):
        return None
    array = np.asarray(value)
    if array.dtype.hasobject:
        return ("array", list(array.shape), [_describe(entry) for entry in array.ravel().tolist()])
    content = repr((array.dtype.str, array.shape)).encode() + array.tobytes()
    return _Word("sha256:" + hashlib.sha256(content).hexdigest())


def _sparse(rows: Any) -> Any:
    rows.sum_duplicates()
    rows.eliminate_zeros()
    parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
    return ("sparse", list(rows.shape), *map(_describe, parts))


def _object(value: Any) -> Any:
    """Return what stands for an object: its class and content, or a word used only once."""
    if isinstance(value, functools.partial):
        return ("partial", _describe(value.func), _describe(value.args), _describe(value.keywords))
    if isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        return _Word(_name(value) or _unlike())
    kind = _name(type(value))
    if kind is not None and kind.startswith("dplinear."):
        kind = type(value).__qualname__
    if kind is None:
        return _unlike()
    if isinstance(value, Enum):
        return (kind, value.name)
    if is_dataclass(value):
        return (kind, {name: _describe(getattr(value, name)) for name in _public_fields(value)})
    return (kind, _in_order(value.to_dict())) if hasattr(value, "to_dict") else _unlike()


def _public_fields(value: Any) -> list[str]:
    """Return the names of what an object holds, but for secrets; of others' classes, all of it."""
    names = {each.name for each in fields(value) if "secret" not in each.metadata}
    if not type(value).__module__.startswith("dplinear."):
        names |= set(getattr(value, "__dict__", ()))
    return sorted(names)


def _in_order(value: Any) -> Any:
    """Return what an object tells of itself, in its order: columns of an array have no other."""
    if not isinstance(value, dict):
        return _describe(value)
    return {str(name): _in_order(entry) for name, entry in value.items()}


def _name(value: Any) -> str | None:
    """Return where a class or a function is found again; None for one of a session or a call."""
    module, path = str(value.__module__), str(value.__qualname__)
    found: Any = None if module == "__main__" else sys.modules.get(module)
    for part in path.split("."):
        found = getattr(found, part, None)
    return f"{module}.{path}" if found is value else None


def _unlike() -> str:
    return f"unlike any other: {uuid.uuid4().hex}"
