"""The lines of a ledger: each carries the hash of the one before it."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dplinear.ledger.budget import Units
from dplinear.ledger.request import DamagedLedgerError, refusal

BEGINNING = "0" * 64
FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """One line: the ledger's own first line, a budget, a spend, or a release.

    `cost` is what a spend took or what a budget is, `spent` the dataset's total after it; `digest`
    is that of the arguments of a spend, or of the bytes of a release. `time` is for readers: a
    clock that is wrong changes nothing.
    """

    sequence: int
    time: str
    kind: str
    dataset: str
    request: str
    digest: str
    cost: Units
    spent: Units
    facts: str
    previous: str
    hash: str

    def content(self) -> Mapping[str, Any]:
        """Return the facts."""
        return dict(json.loads(self.facts))

    def expected_hash(self) -> str:
        """Return the hash that belongs to this line."""
        fields = [
            self.sequence,
            self.time,
            self.kind,
            self.dataset,
            self.request,
            self.digest,
            *self.cost,
            *self.spent,
            self.facts,
            self.previous,
        ]
        return sha256(json.dumps(fields, ensure_ascii=False, default=repr).encode())

    def check(self) -> "Entry":
        """Return the line, if it is as it was written."""
        if self.hash != self.expected_hash():
            raise damage_error(f"line {self.sequence} is not as it was written")
        return self


def entry(
    before: Entry | None,
    kind: str,
    facts: Mapping[str, Any],
    *,
    dataset: str = "",
    request: str = "",
    digest: str = "",
    cost: Units = Units(0),  # noqa: B008 - frozen
    spent: Units = Units(0),  # noqa: B008 - frozen
) -> Entry:
    """Return the line that follows another, or a ledger's first."""
    line = Entry(
        sequence=1 if before is None else before.sequence + 1,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        kind=kind,
        dataset=dataset,
        request=request,
        digest=digest,
        cost=cost,
        spent=spent,
        facts=json.dumps(facts, ensure_ascii=False, default=repr),
        previous=BEGINNING if before is None else before.hash,
        hash="",
    )
    return replace(line, hash=line.expected_hash())


def sha256(content: bytes) -> str:
    """Return the digest of bytes."""
    return hashlib.sha256(content).hexdigest()


def damage_error(fact: str) -> Exception:
    """Return the error for a ledger that is not what was written to it."""
    hint = (
        "nothing can be spent from it. Bring back the newest copy, of which the side file "
        "(.anchor) knows; an older one is refused."
    )
    return refusal(f"The ledger is damaged: {fact}.", hint, DamagedLedgerError)
