"""What every ledger promises, wherever its lines are kept."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from dplinear.arguments import wrong_type
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.figures import DELTAS, Figures, facts_of, figures
from dplinear.ledger.fingerprint import fingerprint, plain
from dplinear.ledger.hash_chain import FORMAT, Entry, damage_error, entry, sha256
from dplinear.ledger.request import (
    WORD,
    DamagedLedgerError,
    Request,
    check_request,
    is_word,
    refusal,
)
from dplinear.ledger.shortage import shortage, what_fits
from dplinear.ledger.status import Price, Status, Statuses
from dplinear.ledger.verification import SO_FAR, STATE, verify_lines
from dplinear.privacy.compose import Filter
from dplinear.privacy.guarantees import Guarantee
from dplinear.privacy.neighbours import Neighbours


class Lines(ABC):
    """The lines of a ledger as one transaction sees them. Nobody else writes meanwhile."""

    @abstractmethod
    def last(self, kind: str | None = None, **same: str) -> Entry | None:
        """Return the last line of a kind with the same dataset or request, checked."""

    @abstractmethod
    def at(self, sequence: int) -> Entry | None:
        """Return a line, checked."""

    @abstractmethod
    def total(self, dataset: str) -> Units:
        """Return the sum of a dataset's spends."""

    @abstractmethod
    def output(self, request: str) -> bytes | None:
        """Return the bytes of a release, or None."""

    @abstractmethod
    def walk(self) -> Iterator[tuple[Entry, bytes | None]]:
        """Return all lines from the first on, unchecked, each with the bytes it keeps."""

    @abstractmethod
    def append(self, line: Entry, output: bytes | None = None) -> None:
        """Write a line."""

    @abstractmethod
    def sound(self) -> None:
        """Raise if whatever holds the lines finds itself damage_error."""

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Return the lines after one of them, in order, unchecked, without the bytes they keep."""
        return (line for line, _ in self.walk() if line.sequence > after)

    def budgets(self) -> list[Entry]:
        """Return the lines that give a dataset its budget, in order, checked."""
        return [line.check() for line in self.entries() if line.kind == "budget"]

    def spends(self, dataset: str) -> int:
        """Return how many spends a dataset has."""
        return sum((line.kind, line.dataset) == ("spend", dataset) for line in self.entries())

    def adds_up(self, dataset: str, spent: Units) -> bool:
        """Return whether what a dataset's last spend says is spent is what was spent."""
        return self.total(dataset) == spent

    def state(self) -> str | None:
        """Return the digest of all budgets and what is spent of them; None if lines keep none."""
        return None

    def first(self) -> Entry:
        """Return the ledger's own line."""
        line = self.at(1)
        if line is None or line.content().get("format") != FORMAT:
            raise damage_error("its first line is missing, or of a format that is not known here")
        return line

    def newest(self) -> Entry:
        """Return the last line of all."""
        line = self.last()
        return self.first() if line is None else line


class DatedLines(Lines):
    """Lines that can be looked at as they once were: they are only ever added to."""

    @abstractmethod
    def as_of(self, sequence: int) -> "DatedLines":
        """Return the lines up to one of them."""


class BudgetLedger(ABC):
    """A ledger that admits spends within budgets, and keeps the releases they paid for.

    Promises: a spend is recorded for good before `spend` returns, and nothing gives it back; all
    spends of a dataset, by any number of processes, stay within its budget; whatever is not as it
    was written, or cannot be written, raises and releases nothing.
    """

    @abstractmethod
    def writing(self) -> AbstractContextManager[Lines]:
        """Return the lines, to be written to by nobody else until the block ends.

        What was appended lasts when the block has ended, and is gone if it raises.
        """

    @abstractmethod
    def reading(self) -> AbstractContextManager[Lines]:
        """Return the lines, to be read."""

    def declare(
        self,
        dataset: str,
        guarantee: Guarantee,
        neighbours: str = Neighbours.ADD_REMOVE,
        change: float | None = None,
        *,
        missing_public: bool = False,
        unit: str | None = None,
    ) -> None:
        """Give a dataset its budget, once: it can never be raised, reset or taken back."""
        if not is_word(dataset):
            raise wrong_type("dataset", "declare", WORD, dataset)
        relation = Neighbours.parse(neighbours, "declare")
        budget = Budget(guarantee, relation, change, missing_public, unit)
        with self.writing() as lines:
            if lines.last("budget", dataset=dataset) is not None:
                hint = "a budget cannot be raised once it is there; other data are another dataset."
                raise refusal(f"The dataset {dataset!r} has a budget already.", hint)
            _append(lines, "budget", budget.facts(), dataset=dataset, cost=budget.limit)

    def spend(self, request: Request) -> bytes | None:
        """Record a spend for good and return None; or return what the same request got before.

        Raises BudgetExceededError where the budget does not suffice, and LedgerError where the
        request cannot be counted, was made with other arguments, or has been paid for without a
        release to show: that stays spent.
        """
        request = check_request(request, "spend")
        dataset = _dataset_name(request)
        digest = _digest(request)
        with self.writing() as lines:
            earlier = lines.last("spend", request=request.request)
            if earlier is not None:
                return _again(lines, earlier, digest)
            budget, spent, latest = _latest(lines, dataset)
            so_far = _so_far(lines, dataset, latest, request)
            cost = budget.cost(request)
            account, left = Filter(budget.limit, spent), budget.limit.minus(spent)
            fits = account.admits(cost)
            refused = "" if fits else shortage(budget, dataset, cost, left, request)
            after = account.after(cost, refused)
            # All spends are added up only for one that would be admitted: that may take long.
            _check_sum(lines, dataset, spent)
            _append(
                lines,
                "spend",
                {**_facts(request), SO_FAR: so_far},
                dataset=dataset,
                request=request.request,
                digest=digest,
                cost=cost,
                spent=Units(*after.spent),
            )
        return None

    def price(self, request: Request) -> Price:
        """Return what `spend` would do with a request, and do nothing.

        Raises what `spend` would, but for a budget that does not suffice, which the price tells.
        """
        request = check_request(request, "price")
        dataset = _dataset_name(request)
        with self.reading() as lines:
            earlier = lines.last("spend", request=request.request)
            if earlier is not None:
                _again(lines, earlier, _digest(request))
            budget, spent, latest = _state(lines, dataset)
            if earlier is None:
                _so_far(lines, dataset, latest, request)
        cost = Units(0) if earlier is not None else budget.cost(request)
        left = budget.limit.minus(spent)
        hint = "" if earlier is not None else what_fits(budget, left, request)
        return Price(budget, cost, left, earlier is not None, hint)

    def keep(self, request: str, content: bytes) -> None:
        """Keep the bytes of a release, once, so that the same request gets them again."""
        if not is_word(request):
            raise wrong_type("request", "keep", WORD, request)
        if not isinstance(content, bytes):
            raise wrong_type("content", "keep", "the bytes of a release", type(content).__name__)
        with self.writing() as lines:
            paid = lines.last("spend", request=request)
            if paid is None:
                told = f"The request {request!r} has paid for nothing, so nothing is kept."
                raise refusal(told, kind=DamagedLedgerError)
            if lines.last("release", request=request) is not None:
                raise refusal(f"The request {request!r} has its release already.")
            _append(
                lines,
                "release",
                {"bytes": len(content)},
                content,
                dataset=paid.dataset,
                request=paid.request,
                digest=sha256(content),
            )

    def kept_release(self, request: str) -> bytes | None:
        """Return the bytes of the release that a request got, or None; nothing is spent."""
        with self.reading() as lines:
            return _read_release(lines, request)

    def status(self) -> Statuses:
        """Return every dataset's budget and what is left of it."""
        with self.reading() as lines:
            found = Statuses()
            for declared in lines.budgets():
                budget, spent, latest = _state(lines, declared.dataset)
                count = _count(lines, declared.dataset, latest)
                found.append(Status(declared.dataset, budget, spent, count))
            return found

    def figures(self, dataset: str, deltas: Sequence[float] = DELTAS) -> Figures:
        """Return what a dataset's releases so far promise, had they been settled beforehand.

        For readers, beside what is spent: it never admits a spend.
        """
        with self.reading() as lines:
            budget, spent, _ = _state(lines, dataset)
            spends = [line.content() for line in _spends(lines, dataset)]
        told = [(facts.get("figures", {}), _steps(budget, facts)) for facts in spends]
        found = figures(told, budget, deltas)
        return Figures(dataset, budget, budget.text(spent), len(spends), found)

    def history(self, dataset: str | None = None) -> list[Entry]:
        """Return all lines, or those of one dataset, in order."""
        with self.reading() as lines:
            found = [line.check() for line in lines.entries()]
        return [line for line in found if dataset in {None, line.dataset}]

    def verify(self) -> int:
        """Check every line and every sum; return how many lines there are, or raise."""
        with self.reading() as lines:
            lines.sound()
            return verify_lines(lines)


def _dataset_name(request: Request) -> str:
    if request.dataset is None:
        hint = 'name the table whose budget it is: dataset="visits-2026".'
        raise refusal("A ledger counts for a dataset, and none was named.", hint)
    return request.dataset


def _digest(request: Request) -> str:
    """Return the digest of all arguments."""
    asked = [request.dataset, request.mechanism, str(request.neighbours), request.guarantee]
    return fingerprint([*asked, request.arguments or request.parameters])


def _facts(request: Request) -> Mapping[str, Any]:
    return {
        "mechanism": request.mechanism,
        "guarantee": str(request.guarantee),
        "neighbours": str(request.neighbours),
        "parameters": plain(request.parameters),
        "figures": facts_of(request.guarantee, request.concentrated, request.profile),
    }


def _steps(budget: Budget, facts: Mapping[str, Any]) -> int:
    return budget.steps(Neighbours(facts["neighbours"]), facts["parameters"])


def _state(lines: Lines, dataset: str) -> tuple[Budget, Units, Entry | None]:
    """Return a dataset's budget, what is spent of it, and its last spend, if all of them agree."""
    budget, spent, latest = _latest(lines, dataset)
    _check_sum(lines, dataset, spent)
    return budget, spent, latest


def _latest(lines: Lines, dataset: str) -> tuple[Budget, Units, Entry | None]:
    """Return a dataset's budget, what is spent of it as its last spend says, and that."""
    declared = lines.last("budget", dataset=dataset)
    if declared is None:
        hint = "declare one first: dplinear ledger create PATH DATASET --rho 1"
        raise refusal(f"The dataset {dataset!r} has no budget in this ledger.", hint)
    latest = lines.last("spend", dataset=dataset)
    spent = Units(0) if latest is None else latest.spent
    return Budget.from_facts(declared.content()), spent, latest


def _check_sum(lines: Lines, dataset: str, spent: Units) -> None:
    if not lines.adds_up(dataset, spent):
        raise damage_error(f"the spends of {dataset!r} do not add up")


def _spends(lines: Lines, dataset: str) -> Iterator[Entry]:
    """Return a dataset's spends, checked."""
    for line in lines.entries():
        if (line.kind, line.dataset) == ("spend", dataset):
            yield line.check()


def _count(lines: Lines, dataset: str, latest: Entry | None) -> int:
    """Return how many spends a dataset has, which its last one says unless it is an old line."""
    if latest is None:
        return 0
    said = latest.content().get(SO_FAR)
    return lines.spends(dataset) if said is None else int(said["spends"])


def _so_far(
    lines: Lines, dataset: str, latest: Entry | None, request: Request
) -> Mapping[str, Any]:
    """Return what a spend says of its dataset's spends with it, so that none has to be looked up.

    Raises where a change, which is in half-ranges, is not what it was in earlier spends.
    """
    ranges: dict[str, Any] = {}
    before = None if latest is None else latest.content().get(SO_FAR)
    if before is not None:
        ranges |= before["half_ranges"]
    elif latest is not None:
        for line in _spends(lines, dataset):
            ranges = line.content()["parameters"].get("half_ranges", {}) | ranges
    said = request.parameters.get("half_ranges") or {}
    others = sorted(name for name in said if ranges.get(name, said[name]) != said[name])
    if others:
        hint = "use the schema of the earlier release, or count it as another dataset."
        fact = f"Changes are in half-ranges, and those of {', '.join(others)} were others"
        raise refusal(
            f"{fact} when {_first_with_half_range(lines, dataset, others[0])!r} was released.", hint
        )
    return {"spends": _count(lines, dataset, latest) + 1, "half_ranges": plain({**said, **ranges})}


def _first_with_half_range(lines: Lines, dataset: str, column: str) -> str:
    """Return the first request with a half-range of a column."""
    spends = ((line, line.content()["parameters"]) for line in _spends(lines, dataset))
    return next(line.request for line, said in spends if column in said.get("half_ranges", {}))


def _append(
    lines: Lines,
    kind: str,
    facts: Mapping[str, Any],
    output: bytes | None = None,
    **said: Any,
) -> None:
    """Write the next line, and read it back: what could not be read again is not written at all."""
    state = lines.state()
    told = facts if state is None else {**facts, STATE: state}
    line = entry(lines.newest(), kind, told, **said)
    lines.append(line, output)
    same = output is None or lines.output(line.request) == output
    if not same or lines.at(line.sequence) != line:
        raise refusal(
            f"The line {line.sequence} does not read as it was written; it is taken back."
        )


def _again(lines: Lines, earlier: Entry, digest: str) -> bytes:
    """Return the release that a request got before."""
    request = earlier.request
    if earlier.digest != digest:
        hint = "a request is one release with one set of arguments: give this one another name."
        raise refusal(f"The request {request!r} was made before, with other arguments.", hint)
    content = _read_release(lines, request)
    if content is None:
        hint = "it is still running, or ended without a release that is kept here. It stays spent."
        raise refusal(f"The request {request!r} is spent, and there is no release of it.", hint)
    return content


def _read_release(lines: Lines, request: str) -> bytes | None:
    """Return the bytes of a request's release, if they are as they were kept."""
    kept, content = lines.last("release", request=request), lines.output(request)
    if kept is None or content is None:
        return None
    if sha256(content) != kept.digest:
        raise damage_error(f"the release of the request {request!r} is not as it was kept")
    return content
