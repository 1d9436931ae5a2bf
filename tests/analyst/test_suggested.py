"""Suggested bounds in a file: what was changed is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dplinear.analyst.releases import container, files
from dplinear.analyst.releases.bounds import BoundsKind, SuggestedBounds
from dplinear.analyst.releases.certificate import Certificate
from dplinear.analyst.releases.container import Parts
from dplinear.arguments import ArgumentTypeError
from dplinear.privacy import ZCDP, Neighbours
from dplinear.schema import Schema
from refusals import refused


def bounds() -> SuggestedBounds:
    certificate = Certificate(
        "bounds", {}, Neighbours.ADD_REMOVE, ZCDP(1), ZCDP(1), (), "exact", "exact", False, "monday"
    )
    return SuggestedBounds(Schema(a=(-1, 1), b=(0, 0.1)), {"a": True, "b": False}, certificate)


def test_bounds_have_bytes_that_give_them_back() -> None:
    content = files.pack(bounds())
    assert content is not None
    again = files.unpack(content)
    assert files.pack(again) == content
    assert again.bounds == {"a": (-1, 1), "b": (0, 0.1)}
    assert again == bounds()
    assert str(again) == "a: -1 to 1\nb: 0 to 0.1 (as given: not found)"


@pytest.mark.parametrize(
    "change",
    [
        {"found": {"a": True}},
        {"found": {"b": True, "a": True}},
        {"found": {"a": 1, "b": True}},
        {"found": [True, True]},
        {"schema": Schema(a=(-1, 1), b=(0, 0.2)).to_dict()},
        {"schema": Schema(a=(-1, 1), b=["x", "y"]).to_dict()},
        {"certificate": {}},
        {"more": 1},
    ],
    ids=str,
)
def test_other_content_is_refused(change: dict[str, Any]) -> None:
    parts = BoundsKind().to_parts(bounds())
    changed = Parts("bounds", dict(parts.facts) | change, parts.arrays)
    with pytest.raises(files.ReleaseError):
        files.unpack(container.write(changed))


def test_a_release_without_a_schema_gives_none(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"format": "dplinear-release"}', encoding="utf-8")
    with refused(
        "content", "Schema.from_dict", "a mapping with a table `columns`", kind=ArgumentTypeError
    ):
        Schema.from_file(tmp_path / "other.json")


def test_other_arrays_are_refused() -> None:
    parts = BoundsKind().to_parts(bounds())
    for arrays in ({"bounds": np.ones((2, 2))}, {"values": np.ones((1, 1))}):
        with pytest.raises(files.ReleaseError):
            files.unpack(container.write(Parts("bounds", parts.facts, arrays)))
