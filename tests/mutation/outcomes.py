"""What became of mutants: a line for each beside this file, and details in build/mutation."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mutation.live import ROOT

STORE = ROOT / "build/mutation"
KEPT = Path(__file__).with_name("outcomes")
# Kept as "killed", or as "later" if that took tests that were added, or slower ones.
_KILLED = ("killed", "timeout")


def kept() -> dict[str, dict[str, Any]]:
    """Return what the repository knows, by key."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(KEPT.glob("*.txt")):
        for line in path.read_text().splitlines():
            key, outcome = line.split()
            later = outcome == "later"
            found[key] = {
                "key": key,
                "outcome": "killed" if later else outcome,
                "again": later or outcome == "survived",
            }
    return found


def so_far() -> dict[str, dict[str, Any]]:
    """Return the outcome of every mutant tried, by key; a kill is never taken back.

    `again` tells whether it has survived before, so that a test was added for it or more were run.
    """
    found = kept()
    survived = {key for key, entry in found.items() if entry["again"]}
    for path in sorted(STORE.glob("outcomes-*.jsonl")):
        for line in path.read_text().splitlines():
            entry = json.loads(line)
            if entry["outcome"] == "survived":
                survived.add(entry["key"])
            before = found.get(entry["key"])
            if before is None or before["outcome"] == "survived":
                found[entry["key"]] = entry
    return {key: entry | {"again": key in survived} for key, entry in found.items()}


def keep(room: str, keys: Iterable[str], known: Mapping[str, Mapping[str, Any]]) -> None:
    """Write down what is known of a room's mutants, as they are now."""
    lines = []
    for key in sorted(set(keys) & set(known)):
        outcome, again = known[key]["outcome"], known[key]["again"]
        if outcome in _KILLED:
            outcome = "later" if again else "killed"
        lines.append(f"{key} {outcome}\n")
    KEPT.mkdir(exist_ok=True)
    (KEPT / f"{room}.txt").write_text("".join(lines))
