"""Which of a schema's features an analyst means by a name."""

from collections.abc import Iterable, Sequence

from dplinear.arguments import listed, meant, rejection, wrong_type
from dplinear.schema import Schema
from dplinear.schema.terms import Constant

FEATURES = "the name of a feature, of a declared column, or of a derived term, or a list of them"
TARGET = "the name of a feature, or a list of them"


def unknown(
    name: object, known: Iterable[str], parameter: str, where: str, rule: str
) -> ValueError:
    """Return the error for a name that is not known, with those that look like it."""
    known = list(dict.fromkeys(known))
    hint = meant(str(name), known) or f"the names are {listed(map(repr, known))}."
    return rejection(parameter, where, rule, name, hint)


def own_features(schema: Schema) -> list[int]:
    """Return the places of all features but the intercept."""
    return list(range(1 if schema.has_intercept else 0, schema.dimension))


def indices_of(schema: Schema, names: object, parameter: str, where: str) -> list[int]:
    """Return the places of the features that are meant, in the order given.

    Requires: a name, or a sequence of them. The name of a feature is that feature; any other name
    must be a declared column or a derived term, and stands for all its features. No schema has one
    name for two of these.
    """
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
        raise wrong_type(parameter, where, FEATURES, names)
    found = [index for name in listed for index in _find_features(schema, name, parameter, where)]
    twice = sorted({schema.features[index].name for index in found if found.count(index) > 1})
    if twice:
        raise rejection(parameter, where, "free of features named twice", ", ".join(twice))
    if not found:
        raise rejection(parameter, where, "at least one feature", listed)
    return found


def _find_features(schema: Schema, name: str, parameter: str, where: str) -> list[int]:
    names = schema.names
    exact = [index for index in own_features(schema) if names[index] == name]
    if exact:
        return exact
    for term, indices in schema.terms.items():
        if term.label == name and not isinstance(term, Constant):
            return list(indices)
    if schema.has_intercept and name == schema.names[0]:
        hint = "the intercept is part of every model, unless intercept=False."
        raise rejection(parameter, where, "made of features other than the intercept", name, hint)
    known = [label for index in own_features(schema) for label in _labels(schema, index)]
    raise unknown(name, known, parameter, where, FEATURES)


def _labels(schema: Schema, index: int) -> tuple[str, str]:
    feature = schema.features[index]
    return feature.term.label, feature.name


def single(schema: Schema, name: object, where: str) -> int:
    """Return the place of the one feature that a target's name stands for."""
    if not isinstance(name, str):
        raise wrong_type("target", where, TARGET, name)
    found = _find_features(schema, name, "target", where)
    if len(found) > 1:
        several = listed(repr(schema.names[index]) for index in found)
        raise rejection("target", where, "a single feature", name, f"choose among {several}")
    return found[0]


def targets(schema: Schema, names: object, where: str) -> list[int]:
    """Return the places of the targets, each named once."""
    if not isinstance(names, Sequence):
        raise wrong_type("target", where, TARGET, names)
    found = [single(schema, name, where) for name in names]
    if not found or len(set(found)) < len(found):
        raise rejection("target", where, "a list of different features", list(names))
    return found
