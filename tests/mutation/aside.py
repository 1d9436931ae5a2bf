"""What is set aside, and why: read from aside.toml, which a person writes."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from mutation.live import ROOT

_PLACES = Path(__file__).with_suffix(".toml")


@cache
def _read() -> dict[str, Any]:
    return tomllib.loads(_PLACES.read_text())


@cache
def _lines(file: str) -> list[str]:
    return (ROOT / file).read_text().splitlines()


def by_rule(file: str, unit: str, first: int, last: int) -> str:
    """Return why a mutant on these lines is not tried, or ""."""
    text = "\n".join(_lines(file)[first - 1 : last])
    for rule in _read().get("rule", ()):
        for name, function, pattern in rule["places"]:
            if file.endswith(name) and unit == function and re.search(pattern, text):
                return str(rule["why"])
    return ""


def of_survivor(key: str) -> tuple[str, bool]:
    """Return why a mutant survives, and whether it is the same program in other words."""
    for group in _read().get("survivors", ()):
        if key in group["keys"]:
            return str(group["why"]), bool(group.get("same", False))
    return "", False
