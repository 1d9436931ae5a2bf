"""What of a release an onlooker sees beside its numbers.

A release of moments, sketches, means and models is one JSON file. Its arrays are .npy files in
base64, whose length their shape decides. Its facts hold arguments, which are public, and now and
then released numbers (a noisy count, a noisy least eigenvalue, standard errors made of them),
printed with as many digits as they have. So the length of a file is a function of public facts and
of released numbers: post-processing, which no neighbour can be told apart by beyond what the
release itself tells. `outline` is the file with each such number left blank: the same for
neighbours, to the byte. Where a kind of release prints no released number among its facts, the
length of the whole file is the same, too, and is compared.

Rows: an .arrow and a .parquet file are as long as their count of rows, their types and the head
decide (neither is compressed); the count is public where rows are released. Numbers in a .csv file
have as many digits as they have: post-processing again.
"""

import json
from collections.abc import Mapping
from typing import Any

from dplinear.analyst.releases import container, files
from dplinear.analyst.releases.bounds import SuggestedBounds
from dplinear.analyst.releases.levels import SuggestedLevels
from dplinear.analyst.releases.rows_per_unit import SuggestedRowsPerUnit
from dplinear.analyst.rows.release import RowsRelease

# Mechanisms whose releases print no released number among their facts, but for sums beside moments.
_NO_NUMBERS = ("analyze_gauss", "additive_wishart")
# How θ was found for the released point, and why a model has no standard errors, or which clips of
# a wide step it has them by: facts of what was released.
_OF_THE_RELEASED = ("lift", "unknown", "score_clip", "length_clip")
_CHOSEN = ("parameters", "law")
_THETA = ("theta", "places", "values")


def surface(value: Any) -> Any:
    """Return what must be equal for neighbours of what a gate returned."""
    if isinstance(value, RowsRelease):
        head = json.loads(value._head.to_bytes())
        sizes = getattr(value, "sizes", None)
        if drawn := head["options"].get("drawn"):
            drawn[1]["name"] = "a random name"  # of a projection, made before any row is read
        return {"head": outline(head), "shape": (value.rows, len(value.names)), "bytes": sizes}
    if isinstance(value, SuggestedBounds):
        facts = value.certificate.to_dict()
        return {"columns": value.schema.columns, "certificate": outline(facts)}
    if isinstance(value, SuggestedRowsPerUnit):  # whose integer is a released number
        facts = value.certificate.to_dict()
        return {"edges": value.edges, "certificate": outline(facts)}
    if isinstance(value, SuggestedLevels):
        facts = value.certificate.to_dict()
        return {"columns": tuple(value.found), "certificate": outline(facts)}
    content = files.pack(value)
    if content is None:
        return type(value).__name__
    parts = container.read(content, "a release")
    shapes = {name: array.shape for name, array in parts.arrays.items()}
    if parts.kind == "linear":  # as places and values where few are not 0: a fact of released θ
        shapes = {name: shape for name, shape in shapes.items() if name not in _THETA}
    if parts.kind == "model":  # has standard errors, or says why not, by what its answers showed
        shapes.pop("standard_errors", None)
        shapes.pop("centres", None)
    found = {"kind": parts.kind, "facts": outline(parts.facts), "shapes": shapes}
    certificate = parts.facts["certificate"]
    beside = any(name.endswith("_noise") for name in certificate["parameters"])
    if certificate["mechanism"] in _NO_NUMBERS and not beside:
        found["bytes"] = len(content)
    return found


def outline(facts: Any, *, integers: bool = True) -> Any:
    """Return facts with every released number left blank: all but integers.

    Of a mechanism's parameters and of its law integers are left blank, too: an adaptive one chooses
    its steps by what it has released so far, or degrees by a released least eigenvalue.
    """
    if isinstance(facts, Mapping):
        return {
            key: outline(each, integers=integers and key not in _CHOSEN)
            for key, each in facts.items()
            if key not in _OF_THE_RELEASED
        }
    if isinstance(facts, list | tuple):
        return [outline(each, integers=integers) for each in facts]
    kinds = float if integers else float | int
    return "a number" if isinstance(facts, kinds) and not isinstance(facts, bool) else facts


def sound(value: Any) -> str | None:
    """Return what is wrong with a release, if anything is."""
    content = None if isinstance(value, RowsRelease) else files.pack(value)
    if content is not None:
        again = files.unpack(content)
        if files.pack(again) != content:
            return "a release that is not the same when it is loaded"
    certificate = getattr(value, "certificate", getattr(value, "certificate_", None))
    if certificate is None:
        return f"returns a {type(value).__name__} without a certificate"
    if certificate.calibration != "exact" or certificate.holds != certificate.asked:
        return f"keeps {certificate.holds} where {certificate.asked} was asked for"
    return None
