"""What every ledger promises, wherever its lines are kept."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from dplinear.analyst import notebook
from dplinear.arguments import mistyped
from dplinear.ledger.budget import Budget, Units
from dplinear.ledger.chain import BEGINNING, FORMAT, Entry, damaged, entry, sha256
from dplinear.ledger.figures import DELTAS, Figures, facts_of, figures
from dplinear.ledger.fingerprint import fingerprint, plain
from dplinear.ledger.request import DamagedLedgerError, Request, refusal
from dplinear.privacy.compose import BudgetExceededError
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
        """Raise if whatever holds the lines finds itself damaged."""

    def first(self) -> Entry:
        """Return the ledger's own line."""
        line = self.at(1)
        if line is None or line.content().get("format") != FORMAT:
            raise damaged("its first line is missing, or of a format that is not known here")
        return line

    def newest(self) -> Entry:
        """Return the last line of all."""
        line = self.last()
        return self.first() if line is None else line


@dataclass(frozen=True)
class Status:
    """A dataset's budget and what is left of it."""

    dataset: str
    budget: Budget
    spent: Units
    releases: int

    @property
    def remaining(self) -> Units:
        """What can still be spent."""
        return self.budget.limit.minus(self.spent)

    def __str__(self) -> str:
        spent, left = self.budget.text(self.spent), self.budget.text(self.remaining)
        return f"{self.dataset}: {self.budget}; {spent} spent in {self.releases}, {left} left"

    def _repr_html_(self) -> str:
        spent, limit = self.spent, self.budget.limit
        parts = ((spent.main, limit.main), (spent.delta, limit.delta))
        share = max((used / whole for used, whole in parts if whole), default=0.0)
        facts = [
            ("budget", str(self.budget)),
            ("spent", f"{self.budget.text(spent)}, in {self.releases}"),
            ("left", self.budget.text(self.remaining)),
        ]
        told = notebook.bar(share, f"{100 * share:.0f}% spent"), notebook.pairs(facts)
        return notebook.card(f"Budget of {self.dataset}", *told)


@dataclass(frozen=True)
class Price:
    """What a request would cost a dataset's budget; nothing where it was paid for before."""

    budget: Budget
    cost: Units
    left: Units
    repeated: bool

    @property
    def after(self) -> Units:
        """What would be left; negative where the budget does not suffice."""
        return self.left.minus(self.cost)

    @property
    def suffices(self) -> bool:
        """Whether the request would be admitted."""
        return self.cost.within(self.left)


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
    ) -> None:
        """Give a dataset its budget, once: it can never be raised, reset or taken back."""
        _check_name(dataset)
        relation = Neighbours.parse(neighbours, "declare")
        budget = Budget(guarantee, relation, change, missing_public)
        with self.writing() as lines:
            if lines.last("budget", dataset=dataset) is not None:
                hint = "a budget cannot be raised once it is there; other data are another dataset."
                raise refusal(f"The dataset {dataset!r} has a budget already.", hint)
            line = entry(
                lines.newest(), "budget", budget.facts(), dataset=dataset, cost=budget.limit
            )
            lines.append(line)

    def spend(self, request: Request) -> bytes | None:
        """Record a spend for good and return None; or return what the same request got before.

        Raises BudgetExceededError where the budget does not suffice, and LedgerError where the
        request cannot be counted, was made with other arguments, or has been paid for without a
        release to show: that stays spent.
        """
        dataset = _named(request)
        digest = _digest(request)
        with self.writing() as lines:
            earlier = lines.last("spend", request=request.request)
            if earlier is not None:
                return _again(lines, earlier, digest)
            budget, spent = _latest(lines, dataset)
            _check_ranges(lines, dataset, request)
            cost = budget.cost(request)
            after = spent.plus(cost)
            if not after.within(budget.limit):
                raise BudgetExceededError(
                    f"The release costs {budget.text(cost)}, and of {dataset!r} "
                    f"{budget.text(budget.limit.minus(spent))} of {budget} are left.\n\n"
                    "Hint: ask for a weaker guarantee; a budget cannot be raised."
                )
            # All spends are added up only for one that would be admitted: that takes long.
            _check_sum(lines, dataset, spent)
            line = entry(
                lines.newest(),
                "spend",
                _facts(request),
                dataset=dataset,
                request=request.request,
                digest=digest,
                cost=cost,
                spent=after,
            )
            lines.append(line)
        return None

    def price(self, request: Request) -> Price:
        """Return what `spend` would do with a request, and do nothing.

        Raises what `spend` would, but for a budget that does not suffice, which the price tells.
        """
        dataset = _named(request)
        with self.reading() as lines:
            earlier = lines.last("spend", request=request.request)
            if earlier is not None:
                _again(lines, earlier, _digest(request))
            budget, spent = _state(lines, dataset)
            if earlier is None:
                _check_ranges(lines, dataset, request)
        cost = Units(0) if earlier is not None else budget.cost(request)
        return Price(budget, cost, budget.limit.minus(spent), earlier is not None)

    def keep(self, request: str, content: bytes) -> None:
        """Keep the bytes of a release, once, so that the same request gets them again."""
        with self.writing() as lines:
            paid = lines.last("spend", request=request)
            if paid is None:
                told = f"The request {request!r} has paid for nothing, so nothing is kept."
                raise refusal(told, kind=DamagedLedgerError)
            if lines.last("release", request=request) is not None:
                raise refusal(f"The request {request!r} has its release already.")
            line = entry(
                lines.newest(),
                "release",
                {"bytes": len(content)},
                dataset=paid.dataset,
                request=request,
                digest=sha256(content),
            )
            lines.append(line, content)

    def kept(self, request: str) -> bytes | None:
        """Return the bytes of the release that a request got, or None; nothing is spent."""
        with self.reading() as lines:
            return _kept(lines, request)

    def status(self) -> list[Status]:
        """Return every dataset's budget and what is left of it."""
        with self.reading() as lines:
            all_lines = [line for line, _ in lines.walk()]
            named = [line.dataset for line in all_lines if line.kind == "budget"]
            counts = dict.fromkeys(named, 0)
            for line in all_lines:
                counts[line.dataset] = counts.get(line.dataset, 0) + (line.kind == "spend")
            return [Status(name, *_state(lines, name), counts[name]) for name in named]

    def figures(self, dataset: str, deltas: Sequence[float] = DELTAS) -> Figures:
        """Return what a dataset's releases so far promise, had they been settled beforehand.

        For readers, beside what is spent: it never admits a spend.
        """
        with self.reading() as lines:
            budget, spent = _state(lines, dataset)
            spends = [
                line.checked().content()
                for line, _ in lines.walk()
                if (line.kind, line.dataset) == ("spend", dataset)
            ]
        told = [(facts.get("figures", {}), _steps(budget, facts)) for facts in spends]
        found = figures(told, budget, deltas)
        return Figures(dataset, budget, budget.text(spent), len(spends), found)

    def history(self, dataset: str | None = None) -> list[Entry]:
        """Return all lines, or those of one dataset, in order."""
        with self.reading() as lines:
            found = [line.checked() for line, _ in lines.walk()]
        return [line for line in found if dataset in {None, line.dataset}]

    def verify(self) -> int:
        """Check every line and every sum; return how many lines there are, or raise."""
        with self.reading() as lines:
            lines.sound()
            return _verified(lines)


def _check_name(dataset: object) -> None:
    if not (isinstance(dataset, str) and 0 < len(dataset) <= 200 and dataset.isprintable()):
        rule = "a text of 1 to 200 printable characters"
        raise mistyped("dataset", "declare", rule, dataset)


def _named(request: Request) -> str:
    if request.dataset is None:
        hint = 'name the table whose budget it is: dataset="visits-2026".'
        raise refusal("A ledger counts for a dataset, and none was named.", hint)
    return request.dataset


def _digest(request: Request) -> str:
    said = request.arguments or plain(request.parameters)
    return fingerprint(
        [request.dataset, request.mechanism, str(request.neighbours), request.guarantee, said]
    )


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


def _state(lines: Lines, dataset: str) -> tuple[Budget, Units]:
    """Return a dataset's budget and what is spent of it, found in two ways that must agree."""
    budget, spent = _latest(lines, dataset)
    _check_sum(lines, dataset, spent)
    return budget, spent


def _latest(lines: Lines, dataset: str) -> tuple[Budget, Units]:
    """Return a dataset's budget and what is spent of it, as its last spend says."""
    declared = lines.last("budget", dataset=dataset)
    if declared is None:
        hint = "declare one first: dplinear ledger create PATH DATASET --rho 1"
        raise refusal(f"The dataset {dataset!r} has no budget in this ledger.", hint)
    latest = lines.last("spend", dataset=dataset)
    spent = Units(0) if latest is None else latest.spent
    return Budget.from_facts(declared.content()), spent


def _check_sum(lines: Lines, dataset: str, spent: Units) -> None:
    if lines.total(dataset) != spent:
        raise damaged(f"the spends of {dataset!r} do not add up")


def _check_ranges(lines: Lines, dataset: str, request: Request) -> None:
    """Raise where a change, which is in half-ranges, is not what it was in earlier spends."""
    said = request.parameters.get("half_ranges")
    if said is None:
        return
    for line, _ in lines.walk():
        if (line.kind, line.dataset) != ("spend", dataset):
            continue
        before = line.checked().content()["parameters"].get("half_ranges", {})
        others = sorted(name for name in said if before.get(name, said[name]) != said[name])
        if others:
            hint = "use the schema of the earlier release, or count it as another dataset."
            fact = f"Changes are in half-ranges, and those of {', '.join(others)} were others"
            raise refusal(f"{fact} when {line.request!r} was released.", hint)


def _again(lines: Lines, earlier: Entry, digest: str) -> bytes:
    """Return the release that a request got before."""
    request = earlier.request
    if earlier.digest != digest:
        hint = "a request is one release with one set of arguments: give this one another name."
        raise refusal(f"The request {request!r} was made before, with other arguments.", hint)
    content = _kept(lines, request)
    if content is None:
        hint = "it is still running, or ended without a release that is kept here. It stays spent."
        raise refusal(f"The request {request!r} is spent, and there is no release of it.", hint)
    return content


def _kept(lines: Lines, request: str) -> bytes | None:
    """Return the bytes of a request's release, if they are as they were kept."""
    kept, content = lines.last("release", request=request), lines.output(request)
    if kept is None or content is None:
        return None
    if sha256(content) != kept.digest:
        raise damaged(f"the release of the request {request!r} is not as it was kept")
    return content


def _verified(lines: Lines) -> int:
    before: Entry | None = None
    spent: dict[str, Units] = {}
    limits: dict[str, Units] = {}
    for line, output in lines.walk():
        line.checked()
        expected = (1, BEGINNING) if before is None else (before.sequence + 1, before.hash)
        if (line.sequence, line.previous) != expected:
            raise damaged(f"line {line.sequence} does not follow the one before it")
        if line.kind == "budget":
            if line.dataset in limits:
                raise damaged(f"line {line.sequence} gives {line.dataset!r} a second budget")
            limits[line.dataset] = Budget.from_facts(line.content()).limit
        if line.kind == "spend":
            spent[line.dataset] = spent.get(line.dataset, Units(0)).plus(line.cost)
            counted = line.spent == spent[line.dataset] and Units(0).within(line.cost)
            if not (counted and line.dataset in limits and line.spent.within(limits[line.dataset])):
                raise damaged(f"line {line.sequence} spends what is not there")
        if line.kind == "release" and (output is None or sha256(output) != line.digest):
            raise damaged(f"the release in line {line.sequence} is not as it was kept")
        before = line
    for dataset in limits:
        _check_sum(lines, dataset, spent.get(dataset, Units(0)))
    return 0 if before is None else before.sequence
