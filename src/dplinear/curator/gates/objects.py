"""Mechanisms that are given as objects: each stands for arguments, and is unfolded into them.

So a gate reads but one form, and `mechanism=GaussianSketch(guarantee=g, rows=64)` is the same
request as `mechanism="sketch", guarantee=g, rows=64`.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, NamedTuple

from dplinear.arguments import rejection, wrong_type
from dplinear.curator.passage import Passage
from dplinear.ledger.fingerprint import plain
from dplinear.mechanisms.contract import Mechanism, option_names
from dplinear.registry import find

# By which a guarantee is asked for: an object has its own.
_ASKED = ("epsilon", "delta", "guarantee", "bits")


class Given(NamedTuple):
    """What a caller says of a mechanism."""

    mechanism: Any
    guarantee: Any
    neighbours: Any
    options: Mapping[str, Any]


def unfold(passage: Passage, contract: Any, *, whole: bool = False) -> Given:
    """Return what was said of the mechanism, as if by name; the request is told the same.

    Requires: a `contract` that an object must keep. `whole`: options that were left at their
    defaults count as said, where another choice would take their place.
    """
    given, mechanism = passage.given, passage.given["mechanism"]
    if isinstance(mechanism, Mechanism):
        _check(passage, mechanism, contract)
        own = {
            field.name: getattr(mechanism, field.name)
            for field in fields(mechanism)
            if field.name in option_names(type(mechanism))
            and (whole or not _is_default(field, getattr(mechanism, field.name)))
        }
        own |= {name: getattr(mechanism, name) for name in ("guarantee", "neighbours")}
        arguments = {name: own.pop(name) for name in set(own) & set(given)}
        given |= {**arguments, "mechanism": mechanism.name, "options": given["options"] | own}
    return Given(given["mechanism"], given["guarantee"], given["neighbours"], given["options"])


def _check(passage: Passage, mechanism: Mechanism, contract: Any) -> None:
    """Raise where an object is not for this gate, or something is said twice."""
    given, where, kind = passage.given, passage.where, type(mechanism)
    if not isinstance(mechanism, contract):
        raise wrong_type("mechanism", where, "a mechanism for what is released here", kind.__name__)
    if find(kind.name) is not kind:
        hint = f"dplinear.register({kind.__name__}) makes it known."
        raise rejection("mechanism", where, "of a registered kind", kind.__name__, hint)
    rule = "left out where the mechanism is an object, which has its own"
    said = given | given["options"]
    for name in (*_ASKED, *option_names(kind)):
        if said.get(name) is not None:
            raise rejection(name, where, rule, said[name])
    if given["neighbours"] is not None and given["neighbours"] != mechanism.neighbours:
        rule = f"{mechanism.neighbours}, as in the mechanism that is given"
        raise rejection("neighbours", where, rule, given["neighbours"])


def _is_default(field: Field[Any], value: Any) -> bool:
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return default is not MISSING and plain(value) == plain(default)
