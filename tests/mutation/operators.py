"""The mutants of a module: one small change each, made on its syntax tree.

Left alone, as no behaviour that is promised hangs on them: docstrings, annotations, decorators,
the texts of errors and hints (all of a `raise` but whether it happens, f-strings, strings with
spaces, names of functions in error sentences), the arguments of `np.errstate`, the tolerances of
root finders, sizes of caches, how many units in the last place `up` and `down` move by (which way
they move is tried), and numbers below 1e-8 or that multiply a unit in the last place: allowances.
"""

import ast
import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

OPERATORS = {
    "compare": "`<` to `<=`, `==` to `!=`, `is` to `is not`, `in` to `not in`, and back",
    "arithmetic": "`+` and `-`, `*` and `/`, `<<` and `>>`, `&` and `|`, `**` and `//` to `*`",
    "number": "an integer ± 1; a float doubled, halved; `True` and `False`",
    "text": "a string or bytes without spaces, changed",
    "logic": "`and` and `or`; `not` or a minus sign dropped",
    "condition": "an `if`, `while`, conditional expression or filter turned round",
    "call": "`min` and `max`, `floor` and `ceil`, `any` and `all`, `up` and `down` and the like",
    "arguments": "the first two swapped; one given by name dropped",
    "statement": "a call, a `raise`, an assignment to an attribute or an item, or `+=` left out",
    "return": "`None` returned instead",
    "jump": "`break` for `continue` and back",
}

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("floor", "ceil"),
    ("any", "all"),
    ("up", "down"),
    ("log", "log1p"),
    ("exp", "expm1"),
    ("largest_private", "smallest_private"),
)
_CALLS = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])}
_SYMMETRIC = {"min", "max", "minimum", "maximum", "hypot", "array_equal", "isinstance", "getattr"}
_MESSAGES = {"rule", "hint", "where", "sentence", "message", "shown", "text", "names"}
_TOLERANCES = {"xtol", "rtol", "maxsize"}
_ALLOWANCE = 1e-8
_CHECKS = {"rejection", "mistyped", "describe"}
_SPEAKERS = {"real", "positive", "integer", "rational", "one_of", "flag", "text", "parse"}
_PLACE = re.compile(r"[A-Za-z_]\w*\.[\w.]+")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Mutant:
    """One change. `unit` is the function it is in, by qualified name, or "" for the module."""

    file: str
    unit: str
    first: int
    last: int
    operator: str
    change: str
    key: str
    default: bool  # whether the change is to a default of the unit's own arguments


@dataclass(frozen=True)
class _Edit:
    operator: str
    node: ast.AST
    change: str
    make: Callable[[], None]
    undo: Callable[[], None]


def _swap(
    operator: str, owner: ast.AST, field: str, old: ast.AST, new: ast.AST, at: int | None = None
) -> _Edit:
    """Return the edit that puts another node in a field of its owner."""
    if isinstance(old, ast.stmt | ast.expr):
        ast.copy_location(new, old)
    ast.fix_missing_locations(new)

    def put(node: ast.AST) -> Callable[[], None]:
        if at is None:
            return lambda: setattr(owner, field, node)
        return lambda: getattr(owner, field).__setitem__(at, node)

    wide = owner if isinstance(old, ast.operator | ast.cmpop) else old
    before = ast.unparse(wide)
    put(new)()
    after = ast.unparse(owner if wide is owner else new)
    put(old)()
    return _Edit(operator, wide, f"{before} → {after}", put(new), put(old))


def _name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    return ""


def _worded(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _numbers(value: float) -> list[float]:
    if isinstance(value, int):
        return [value + 1, value - 1]
    return [value * 2, value / 2] if value else [1.0]


def _constant(node: ast.Constant) -> list[float | str | bytes]:
    value = node.value
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [*_numbers(value)]
    if isinstance(value, str) and value and " " not in value and not _PLACE.fullmatch(value):
        return [value + "_"]
    if isinstance(value, bytes) and value:
        return [value + b"_"]
    return []


def _own(node: ast.AST, owner: ast.AST, field: str, at: int | None) -> Iterator[_Edit]:  # noqa: C901, PLR0912 - one case for each kind of node
    """Yield the edits of one node, which is in a field of its owner."""
    match node:
        case ast.Constant():
            for value in _constant(node):
                if value == -1 and isinstance(owner, ast.Subscript):
                    continue  # the only entry, as often as not
                yield _swap(
                    "number" if not isinstance(value, str | bytes) else "text",
                    owner,
                    field,
                    node,
                    ast.Constant(value),
                    at,
                )
        case ast.Compare():
            for i, sign in enumerate(node.ops):
                yield _swap("compare", node, "ops", sign, _COMPARE[type(sign)](), i)
        case ast.BinOp(left, sign, right) if type(sign) in _ARITHMETIC:
            if not (_worded(left) or _worded(right)):
                yield _swap("arithmetic", node, "op", sign, _ARITHMETIC[type(sign)]())
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield _swap("logic", owner, field, node, operand, at)
        case ast.BoolOp(sign, values):
            other = ast.Or() if isinstance(sign, ast.And) else ast.And()
            yield _swap("logic", owner, field, node, ast.BoolOp(other, values), at)
        case ast.If(test) | ast.While(test) | ast.IfExp(test):
            yield _swap("condition", node, "test", test, ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=tests):
            for i, test in enumerate(tests):
                yield _swap("condition", node, "ifs", test, ast.UnaryOp(ast.Not(), test), i)
        case ast.Call():
            yield from _of_call(node, owner, field, at)
        case ast.Expr(ast.Call()) | ast.Raise() | ast.AugAssign():
            yield _swap("statement", owner, field, node, ast.Pass(), at)
            if isinstance(node, ast.AugAssign) and type(node.op) in _ARITHMETIC:
                yield _swap("arithmetic", node, "op", node.op, _ARITHMETIC[type(node.op)]())
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield _swap("statement", owner, field, node, ast.Pass(), at)
        case ast.Return(ast.expr() as value) if not (
            isinstance(value, ast.Constant) and value.value is None
        ):
            yield _swap("return", node, "value", value, ast.Constant(None))
        case ast.Break():
            yield _swap("jump", owner, field, node, ast.Continue(), at)
        case ast.Continue():
            yield _swap("jump", owner, field, node, ast.Break(), at)


def _of_call(node: ast.Call, owner: ast.AST, field: str, at: int | None) -> Iterator[_Edit]:
    name = _name(node)
    if name in _CALLS:
        func: ast.expr = ast.Name(_CALLS[name], ast.Load())
        if isinstance(node.func, ast.Attribute):
            func = ast.Attribute(node.func.value, _CALLS[name], ast.Load())
        yield _swap("call", node, "func", node.func, func)
    plain = node.args
    if len(plain) > 1 and name not in _SYMMETRIC | _SPEAKERS:
        first, second = plain[:2]
        starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
        if not starred and ast.dump(first) != ast.dump(second):
            swapped = ast.Call(node.func, [second, first, *plain[2:]], node.keywords)
            yield _swap("arguments", owner, field, node, swapped, at)
    for i, word in enumerate(node.keywords):
        if word.arg not in {*_MESSAGES, *_TOLERANCES, None}:
            fewer = [*node.keywords[:i], *node.keywords[i + 1 :]]
            yield _swap("arguments", owner, field, node, ast.Call(node.func, plain, fewer), at)


def _skipped(node: ast.AST, owner: ast.AST, field: str) -> bool:  # noqa: PLR0911 - one a kind
    """Tell whether nothing below a node is to change."""
    if field in {"annotation", "returns", "decorator_list", "exc", "cause", "type_params", "type"}:
        return True
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True  # a docstring, or an ellipsis
    if isinstance(node, ast.Call) and _name(node) in {*_CHECKS, "errstate", "TypeVar"}:
        return True
    if isinstance(node, ast.keyword) and node.arg in _MESSAGES | _TOLERANCES:
        return True
    if isinstance(owner, ast.Call) and _name(owner) in {"up", "down"} and node in owner.args[1:]:
        return True
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return 0 < node.value < _ALLOWANCE or "ULP" in _factors(owner)
    if isinstance(owner, ast.Call) and _name(owner) in _SPEAKERS and _worded(node):
        return True
    match node:
        case ast.Assign(targets=[ast.Name(name)], value=value):
            return (
                name in _MESSAGES
                or name.startswith("__")
                or (
                    isinstance(value, ast.Name | ast.BinOp)
                    and isinstance(owner, ast.Module)
                    and name[0].isupper()
                    and not name.isupper()
                )
            )  # the second is an alias of types
    return False


def _factors(node: ast.AST) -> set[str]:
    """Return the names that a product has as factors."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = (node.left, node.right)
        return {side.id for side in sides if isinstance(side, ast.Name)}
    return set()


def _children(node: ast.AST) -> Iterator[tuple[ast.AST, str, int | None]]:
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            yield from ((v, field, i) for i, v in enumerate(value) if isinstance(v, ast.AST))
        elif isinstance(value, ast.AST):
            yield value, field, None


@dataclass(frozen=True)
class _Place:
    names: tuple[str, ...] = ()
    unit: str = ""
    source: str = ""
    first: int = 1
    last: int = 1
    default: bool = False


def _inside(place: _Place, node: ast.AST) -> _Place:
    """Return the place of what is directly below a node: its unit and the lines it runs on."""
    if not isinstance(node, ast.stmt):
        return place
    first, last = node.lineno, node.end_lineno or node.lineno
    body = getattr(node, "body", None)
    if body:
        last = max(first, body[0].lineno - 1)
    place = replace(place, first=first, last=last)
    if place.unit or not isinstance(node, ast.ClassDef | Function):
        return place
    names = (*place.names, node.name)
    if isinstance(node, ast.ClassDef):
        return replace(place, names=names)
    return replace(place, names=names, unit=".".join(names), source=written(node))


def written(node: ast.AST) -> str:
    """Return a tree in the words of Python 3.11, so that keys are the same with any later one."""
    if sys.version_info >= (3, 13):
        return ast.dump(node, show_empty=True).replace(", type_params=[]", "")
    return ast.dump(node).replace(", type_params=[]", "")


def _walk(
    node: ast.AST, owner: ast.AST, field: str, at: int | None, place: _Place
) -> Iterator[tuple[_Edit, _Place]]:
    if _skipped(node, owner, field):
        return
    below = _inside(place, node)
    for edit in _own(node, owner, field, at):
        yield edit, below
    for child, inner, i in _children(node):
        lies = below
        if (
            isinstance(node, Function) and not place.unit and inner == "args"
        ):  # evaluated once; seen by whatever calls the function
            lies = replace(below, default=True, last=node.end_lineno or below.last)
        yield from _walk(child, node, inner, i, lies)


# A mutant's key has the name that its file had when it was first tried, so that no move forgets it.
_LEDGER = "src/dplinear/ledger"
FORMER = {
    "src/dplinear/exact/gram.py": "src/dplinear/curator/gram.py",
    f"{_LEDGER}/sqlite/ledger.py": f"{_LEDGER}/sqlite.py",
    f"{_LEDGER}/sqlite/lines.py": f"{_LEDGER}/sqlite_lines.py",
    f"{_LEDGER}/sqlite/tables.py": f"{_LEDGER}/sqlite_tables.py",
    f"{_LEDGER}/sqlite/words.py": f"{_LEDGER}/sqlite_words.py",
    f"{_LEDGER}/sqlite/anchor.py": f"{_LEDGER}/anchor.py",
    f"{_LEDGER}/sqlite/forks.py": f"{_LEDGER}/forks.py",
    f"{_LEDGER}/sqlite/mounts.py": f"{_LEDGER}/mounts.py",
    f"{_LEDGER}/postgres/ledger.py": f"{_LEDGER}/postgres.py",
    f"{_LEDGER}/postgres/session.py": f"{_LEDGER}/postgres_session.py",
    f"{_LEDGER}/postgres/tables.py": f"{_LEDGER}/postgres_tables.py",
    f"{_LEDGER}/postgres/trigger.py": f"{_LEDGER}/postgres_trigger.py",
    f"{_LEDGER}/postgres/upgrade.py": f"{_LEDGER}/postgres_upgrade.py",
    f"{_LEDGER}/postgres/words.py": f"{_LEDGER}/postgres_words.py",
    f"{_LEDGER}/hash_chain.py": f"{_LEDGER}/chain.py",
}


def mutants(file: str, tree: ast.Module) -> Iterator[Mutant]:
    """Yield the mutants of a module; `tree` is mutated while one is held, and whole at the end."""
    seen: dict[str, int] = {}
    former = FORMER.get(file, file)
    for child, field, i in _children(tree):
        for edit, place in _walk(child, tree, field, i, _Place()):
            source = place.source or "module"
            said = f"{former}|{place.unit}|{source}|{edit.operator}|{edit.change}"
            seen[said] = seen.get(said, 0) + 1
            key = hashlib.sha256(f"{said}|{seen[said]}".encode()).hexdigest()[:10]
            change = " ".join(edit.change.split())
            edit.make()
            try:
                yield Mutant(
                    file,
                    place.unit,
                    place.first,
                    place.last,
                    edit.operator,
                    change,
                    key,
                    place.default,
                )
            finally:
                edit.undo()
