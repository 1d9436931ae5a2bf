"""The certificate that every release carries: what was promised, and how it was kept."""

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from dplinear.analyst import notebook
from dplinear.analyst.filled_in import is_count_of_cells
from dplinear.arguments import choice, integer, real, rejection, wrong_type
from dplinear.privacy.guarantees import GDP, MIDP, ZCDP, ApproxDP, Guarantee, PureDP
from dplinear.privacy.neighbours import Neighbours
from dplinear.privacy.units import Unit, protected
from dplinear.version import __version__

GUARANTEES: dict[str, type[Guarantee]] = {
    kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, GDP, MIDP)
}
NUMERICS = ("exact", "idealised")
IDEAL = "of the ideal mechanism, not of this program"
CALIBRATIONS = ("exact", "paper")

Scalar = str | int | float | bool | None

_WHERE = "Certificate"
_FLOATS = (
    "the noise was drawn in floating point; which numbers can arise at all depends on the data, "
    "and that is known to tell neighbours apart"
)
_LONGEST = 2_000  # characters of a text
_MOST = 1_000  # parameters, notes, or points of the curve
_SHOWN = 5  # parts on a printed certificate
_PARTS = "a list of joined releases"
_LATER = frozenset({"unit", "rows_per_unit", "parts"})  # of units, and of joined releases alone


@dataclass(frozen=True)
class Part:
    """One of several releases that were joined: its request and dataset, and its guarantee."""

    request: str
    dataset: str | None
    holds: Guarantee

    def __post_init__(self) -> None:
        _text(self.request, "parts")
        if self.dataset is not None:
            _text(self.dataset, "parts")
        _guarantee(self.holds, "parts")

    def __str__(self) -> str:
        table = "" if self.dataset is None else f" of {self.dataset}"
        return f"{self.request}{table} ({self.holds})"


@dataclass(frozen=True)
class Certificate:
    """What a release guarantees. Everything on it is public, and nothing on it can be changed.

    `asked` is the guarantee that was requested, `holds` the one that is proved (None: no formal
    guarantee); `curve` has points (ε, δ) of the proved profile, δ rounded up. Where `numerics` are
    "idealised", the proof is about noise of real numbers and the program drew floating-point ones:
    the certificate is `of_ideal`, and `guarantee` says so. `simulated` marks
    seeded noise, which protects nobody. `parameters` are the mechanism's public numbers: each
    text, a finite number, true, false or None. With a `unit`, neighbours differ by all rows that
    share an id in that column, which count as at most `rows_per_unit` rows. `parts` are the
    releases that were joined into this one, if it is a sum of several.
    """

    mechanism: str
    parameters: Mapping[str, Scalar] = field(hash=False)
    neighbours: Neighbours
    asked: Guarantee
    holds: Guarantee | None
    curve: tuple[tuple[float, float], ...]
    numerics: str
    calibration: str
    simulated: bool
    request: str
    dataset: str | None = None
    notes: tuple[str, ...] = ()
    version: str = field(default=__version__)
    unit: str | None = None
    rows_per_unit: int | None = None
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        checks: dict[str, Callable[[Any], Any]] = {
            "mechanism": lambda value: _text(value, "mechanism"),
            "parameters": _parameters,
            "neighbours": lambda value: Neighbours.parse(value, _WHERE),
            "asked": lambda value: _guarantee(value, "asked"),
            "holds": lambda value: None if value is None else _guarantee(value, "holds"),
            "curve": _curve,
            "numerics": lambda value: choice(value, "numerics", _WHERE, NUMERICS),
            "calibration": lambda value: choice(value, "calibration", _WHERE, CALIBRATIONS),
            "simulated": _flag,
            "request": lambda value: _text(value, "request"),
            "dataset": lambda value: None if value is None else _text(value, "dataset"),
            "notes": _notes,
            "version": lambda value: _text(value, "version"),
            "unit": lambda value: None if value is None else _text(value, "unit"),
            "rows_per_unit": _rows_per_unit,
            "parts": _parts,
        }
        for name, check in checks.items():
            object.__setattr__(self, name, check(getattr(self, name)))
        if (self.unit is None) != (self.rows_per_unit is None):
            rule = "given with a unit, and only then"
            raise rejection("rows_per_unit", _WHERE, rule, self.rows_per_unit)

    @property
    def of_ideal(self) -> bool:
        """Whether what is proved is about real numbers that the program only approximates."""
        return self.holds is not None and self.numerics == "idealised"

    @property
    def protects(self) -> str:
        """What the guarantee is about: all rows of a unit, a single row, or less."""
        change = self.parameters.get("change")
        return protected(self.neighbours, change, self._unit)

    @property
    def _unit(self) -> Unit | None:
        return None if self.unit is None else Unit(self.unit, self.rows_per_unit or 1)

    @property
    def guarantee(self) -> str:
        """What holds, in words, with its neighbours; and whether that is true of the program."""
        held_by = f"{self.neighbours} neighbours"
        if self._unit is not None:
            held_by += f" of {self._unit}"
        if self.holds is None:
            return f"no formal guarantee ({held_by})"
        return f"{self.holds} ({held_by}{', ' + IDEAL if self.of_ideal else ''})"

    def __reduce__(self) -> tuple[Callable[[Any], "Certificate"], tuple[dict[str, Any]]]:
        return Certificate.from_dict, (self.to_dict(),)  # a read-only mapping cannot be pickled

    def __str__(self) -> str:
        protects, (_, title), *rest = self.lines()
        named = (f"{label}: {text}" for label, text in rest)
        return "\n".join([" ".join(protects), title, *named, *self.notes])

    def _repr_html_(self) -> str:
        facts = [*self.lines(), *(("note", note) for note in self.notes)]
        return notebook.pairs(facts, "Certificate")

    def lines(self) -> list[tuple[str, str]]:
        """Return what it says, line by line, each with its label; the notes are beside it.

        What is protected comes first, then the mechanism and its guarantee.
        """
        unproved = "nobody: no guarantee is proved" if self.holds is None else self.protects
        protects = "nobody: the noise was seeded" if self.simulated else unproved
        lines = [("protects", protects), ("guarantee", f"{self.mechanism}: {self.guarantee}")]
        if self.simulated:
            lines.append(("SIMULATED", "the noise was seeded, and protects nobody"))
        lines.append(("numerics", f"{self.numerics}; calibration: {self.calibration}"))
        if self.of_ideal:
            lines.append(("CAUTION", _FLOATS))
        if self.holds != self.asked:
            lines.append(("asked for", str(self.asked)))
        if self.curve:
            points = (f"δ({epsilon:g}) ≤ {delta:.3g}" for epsilon, delta in self.curve[:5])
            lines.append(("curve", ", ".join(points) + (", …" if len(self.curve) > 5 else "")))
        if self.parameters:
            told = {n: each for n, each in self.parameters.items() if not is_count_of_cells(n)}
            shown = (f"{name} = {_format(value)}" for name, value in told.items())
            lines.append(("parameters", ", ".join(shown)))
            lines += _cells_line(self.parameters)
        if self.dataset is not None:
            lines.append(("dataset", self.dataset))
        if self.parts:
            shown = (str(part) for part in self.parts[:_SHOWN])
            more = ", …" if len(self.parts) > _SHOWN else ""
            lines.append((f"joined of {len(self.parts)} releases", ", ".join(shown) + more))
        lines.append(("request", f"{self.request}, by dplinear {self.version}"))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON."""
        return {
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "neighbours": str(self.neighbours),
            "asked": _write_guarantee(self.asked),
            "holds": None if self.holds is None else _write_guarantee(self.holds),
            "curve": [list(point) for point in self.curve],
            "numerics": self.numerics,
            "calibration": self.calibration,
            "simulated": self.simulated,
            "request": self.request,
            "dataset": self.dataset,
            "notes": list(self.notes),
            "version": self.version,
        } | self._later()

    def _later(self) -> dict[str, Any]:
        """Return what stands only on some certificates."""
        named: dict[str, Any] = {}
        if self.unit is not None:
            named |= {"unit": self.unit, "rows_per_unit": self.rows_per_unit}
        if self.parts:
            named["parts"] = [_write_part(part) for part in self.parts]
        return named

    @staticmethod
    def from_dict(content: Any) -> "Certificate":
        """Build a certificate from what `to_dict` returned; anything else raises."""
        names = [entry.name for entry in fields(Certificate)]
        if not isinstance(content, dict):
            raise wrong_type("content", "Certificate.from_dict", "a mapping", content)
        if set(content) | _LATER != set(names) | _LATER or not set(content) <= set(names):
            rule = "made of " + ", ".join(names)
            raise rejection("content", "Certificate.from_dict", rule, ", ".join(map(str, content)))
        holds = content["holds"]
        built = {
            "asked": _read_guarantee(content["asked"], "asked"),
            "holds": None if holds is None else _read_guarantee(holds, "holds"),
            "parts": _read_parts(content.get("parts", [])),
        }
        return Certificate(**(content | built))


def _write_part(part: Part) -> dict[str, Any]:
    return {
        "request": part.request,
        "dataset": part.dataset,
        "holds": _write_guarantee(part.holds),
    }


def _read_parts(content: Any) -> tuple[Part, ...]:
    """Return the parts that a file names; a certificate without them has no empty list either."""
    read = []
    for part in _read_list(content, "parts", _PARTS):
        if not isinstance(part, dict) or set(part) != {"request", "dataset", "holds"}:
            raise wrong_type("parts", _WHERE, _PARTS, type(part))
        holds = _read_guarantee(part["holds"], "parts")
        read.append(Part(part["request"], part["dataset"], holds))
    return tuple(read)


def _parts(value: Any) -> tuple[Part, ...]:
    parts = _read_list(value, "parts", _PARTS)
    if not all(isinstance(part, Part) for part in parts):
        raise wrong_type("parts", _WHERE, _PARTS, type(value))
    return tuple(parts)


def _write_guarantee(guarantee: Guarantee) -> dict[str, Any]:
    return {"kind": type(guarantee).__name__} | dict(vars(guarantee))


def _read_guarantee(content: Any, parameter: str) -> Guarantee:
    rule = "a guarantee: one of " + ", ".join(GUARANTEES)
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        raise wrong_type(parameter, _WHERE, rule, content)
    kind = GUARANTEES.get(content["kind"])
    numbers_of = {name: value for name, value in content.items() if name != "kind"}
    if kind is None or set(numbers_of) != {entry.name for entry in fields(kind)}:
        raise rejection(parameter, _WHERE, rule, content)
    return kind(**numbers_of)


def _guarantee(value: Any, parameter: str) -> Any:
    if type(value) not in GUARANTEES.values():
        raise wrong_type(parameter, _WHERE, "a guarantee: one of " + ", ".join(GUARANTEES), value)
    return value


def _text(value: Any, parameter: str) -> str:
    # Printable, so that a certificate from elsewhere cannot steer the terminal it is shown on.
    rule = f"printable text of at most {_LONGEST} characters"
    if not isinstance(value, str):
        raise wrong_type(parameter, _WHERE, rule, value)
    if len(value) > _LONGEST or not value.isprintable():
        raise rejection(parameter, _WHERE, rule, value)
    return str(value)


def _cells_line(parameters: Mapping[str, Scalar]) -> list[tuple[str, str]]:
    """Return how many columns have counts of cells filled in: too many to list them here."""
    counts = sum(map(is_count_of_cells, parameters)) // 2  # each with its noise
    return [("filled in", f"counts of {counts} columns, in `parameters`")] if counts else []


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong_type("simulated", _WHERE, "true or false", value)
    return value


def _rows_per_unit(value: Any) -> int | None:
    return None if value is None else integer(value, "rows_per_unit", _WHERE, low=1)


def _read_list(value: Any, parameter: str, rule: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise wrong_type(parameter, _WHERE, rule, value)
    if len(value) > _MOST:
        raise rejection(parameter, _WHERE, f"{rule}, at most {_MOST}", f"{len(value)} of them")
    return list(value)


def _notes(value: Any) -> tuple[str, ...]:
    return tuple(_text(note, "notes") for note in _read_list(value, "notes", "a list of sentences"))


def _curve(value: Any) -> tuple[tuple[float, float], ...]:
    points = []
    for point in _read_list(value, "curve", "a list of pairs (ε, δ)"):
        if len(_read_list(point, "curve", "a list of pairs (ε, δ)")) != 2:
            raise rejection("curve", _WHERE, "a list of pairs (ε, δ)", point)
        epsilon = real(point[0], "curve", _WHERE, low=0)
        points.append((epsilon, real(point[1], "curve", _WHERE, low=0, high=1)))
    return tuple(points)


def _parameters(value: Any) -> Mapping[str, Scalar]:
    if not isinstance(value, Mapping):
        raise wrong_type("parameters", _WHERE, "a mapping of names to numbers or text", value)
    pairs = _read_list(list(value.items()), "parameters", "a mapping of names to numbers or text")
    read = {_text(name, "parameters"): _scalar(entry, str(name)) for name, entry in pairs}
    return MappingProxyType(read)


def _scalar(value: Any, name: str) -> Scalar:
    """Return a JSON scalar; of NumPy's numbers, the plain Python ones."""
    parameter, rule = f"parameters.{name}", "text, a finite number, true, false or None"
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, parameter)
    if isinstance(value, numbers.Integral):
        return int(value)
    if not isinstance(value, numbers.Real) or isinstance(value, numbers.Rational):
        hint = "write a fraction as text, or as the float it is used as."
        raise wrong_type(parameter, _WHERE, rule, value, hint)
    if not math.isfinite(value):
        raise rejection(parameter, _WHERE, rule, value)
    return float(value)


def _format(value: Scalar) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
