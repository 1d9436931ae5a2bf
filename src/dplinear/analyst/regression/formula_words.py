"""What a formula may say: its factors are columns and a few functions, and nothing is run before.

The formula library evaluates factors as Python. So each one is read as a syntax tree first, and
only what is listed here gets through; what does not is refused with what to declare instead.
"""

import ast
import re
from collections.abc import Iterable
from typing import Any

from dplinear.analyst.regression.names import unknown
from dplinear.arguments import rejection
from dplinear.schema import Schema
from dplinear.schema.columns import Category
from dplinear.schema.transforms import FUNCTIONS

PARAMETER = "target"
_MODULES = {"np": {"log", "log1p", "log2", "log10", "sqrt", "square"}}
_MODULES["contr"] = {"treatment", "sum", "helmert", "diff", "poly", "sas", "SAS"}
_CODINGS = {"Treatment", "Sum", "Helmert", "Diff", "Poly"}
_ELEMENTWISE = {"I", "log", "log1p", "log2", "log10", "sqrt"}
_ALLOWED = (
    *(ast.Expression, ast.Call, ast.Name, ast.Load, ast.Attribute, ast.Constant, ast.keyword),
    *(ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.UnaryOp, ast.USub),
    *(ast.Compare, ast.Gt, ast.GtE, ast.Lt, ast.LtE, ast.List, ast.Tuple),
)
_RULE = "a formula of declared columns, C(), I(), log(), log1p(), sqrt(), bins() and spline()"
_WHOLE = (
    'a function of a column is declared before the release, as derived=["log(charges)"]. One that '
    "looks at all rows, such as center(), poly() or bs(), has no fixed bounds: declare powers, or "
    '"spline(age, 4)".'
)
_LONGEST = 4_000
_LARGEST = 10**300
_MOST_TERMS = 20_000
_HIGHEST = 16  # power of a sum, or of a column, which is itself at any power


def names_in(factor: Any, schema: Schema, where: str) -> tuple[str, ...]:
    """Return the columns, or features between backticks, that a factor of a formula is made of.

    Requires: a factor as the formula library parses it.
    Promises: an error for all but columns, numbers, texts, arithmetic, comparisons and the
    functions that are listed: nothing else of Python is ever evaluated.
    """
    if factor.eval_method.value == "literal":
        return ()
    if factor.eval_method.value == "lookup":
        _check_known(factor.expr, schema, where)
        return (factor.expr,)
    tree = _parse(factor.expr, where)
    found: list[str] = []
    for node in ast.walk(tree):
        _check_node(node, factor.expr, where)
    bases = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name) or id(node) in bases | called:
            continue
        if node.id in _CODINGS and node.id not in schema.declared:
            continue
        _check_known(node.id, schema, where)
        found.append(node.id)
    _check_categories(tree, schema, factor.expr, where)
    return tuple(found)


def jumps_in(factor: Any) -> tuple[float, ...]:
    """Return the numbers that a factor compares with, at which it jumps.

    Requires: a factor that `names_in` let through.
    """
    if factor.eval_method.value != "python":
        return ()
    compared = [node for node in ast.walk(ast.parse(factor.expr)) if isinstance(node, ast.Compare)]
    sides = [side for each in compared for side in (each.left, *each.comparators)]
    return tuple(float(ast.literal_eval(side)) for side in sides if not isinstance(side, ast.Name))


def _parse(text: str, where: str) -> ast.Expression:
    try:
        if len(text) > _LONGEST:
            raise ValueError  # noqa: TRY301 - one error for all text that is no expression here
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        hint = "a column whose name is no word of letters stands alone, between backticks."
        raise rejection(PARAMETER, where, _RULE, text, hint) from None


def _check_node(node: ast.AST, text: str, where: str) -> None:
    fine = isinstance(node, _ALLOWED)
    if isinstance(node, ast.Call):
        fine = _is_known_call(node)
    elif isinstance(node, ast.Attribute):
        base = node.value.id if isinstance(node.value, ast.Name) else ""
        fine = node.attr in _MODULES.get(base, ())
    elif isinstance(node, ast.Constant):
        # A whole number that no float holds could not be compared with a column.
        fine = type(node.value) in {float, str} or (
            type(node.value) is int and node.value < _LARGEST
        )
    elif isinstance(node, ast.Compare):
        fine = all(map(_is_column_or_number, (node.left, *node.comparators)))
    elif isinstance(node, ast.BinOp):
        # A power of a power of numbers could fill the memory, and so could a text times a number.
        plain = not isinstance(node.op, ast.Pow)
        small = isinstance(node.right, ast.Constant) and node.right.value in range(17)
        fine = plain or (small and any(isinstance(each, ast.Name) for each in ast.walk(node.left)))
        fine = fine and not any(map(_is_sequence, (node.left, node.right)))
    if not fine:
        raise rejection(PARAMETER, where, _RULE, text, _WHOLE)


def _is_known_call(node: ast.Call) -> bool:
    """Return whether a call is of a listed function, with the arguments that it has here.

    NumPy's own further arguments would write into columns. Edges and knots are of a column as it
    is: of an expression the schema has none.
    """
    if isinstance(node.func, ast.Attribute):
        module = getattr(node.func.value, "id", "")
        return module == "contr" or (len(node.args) == 1 and not node.keywords)
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in FUNCTIONS - _ELEMENTWISE:
        return bool(node.args) and isinstance(node.args[0], ast.Name) and not node.keywords
    if name in _ELEMENTWISE:
        return len(node.args) == 1 and not node.keywords
    return name in _CODINGS | {"C"} and not any(each.arg == "levels" for each in node.keywords)


def check_size(text: str, where: str) -> None:
    """Raise for a formula whose products would take long to multiply out, before it is read.

    A product of k sums is as many terms as their sizes multiply to, `a*b` three of them.
    """
    if len(text) > _LONGEST or _terms(text) > _MOST_TERMS:
        rule = f"a formula of at most {_MOST_TERMS} terms, and {_LONGEST} characters"
        raise rejection(PARAMETER, where, rule, text[:80])


def _terms(text: str) -> int:
    """Return a bound on the terms of a formula; arguments of calls are none."""
    outside: list[str] = []
    calls: list[bool] = []
    grouped = False
    for index, letter in enumerate(text):
        if letter == "(":
            called = bool(re.search(r"[\w.]\s*$", text[:index]))
            grouped = grouped or not (called or any(calls))
            calls.append(called)
        elif letter == ")" and calls:
            calls.pop()
        elif not any(calls):
            outside.append(letter)
    plain = "".join(outside).replace("**", "^")
    powers = [int(each) for each in re.findall(r"\^\s*(\d{1,9})", plain)]
    if any(each > _HIGHEST for each in powers):
        return _MOST_TERMS + 1
    power = 1
    for each in powers:
        power = min(power * max(each, 1), _MOST_TERMS)
    parts = re.split(r"[+~|-]", plain)
    if not grouped:
        return sum(2 ** min(part.count("*") + part.count("/"), 60) for part in parts)
    products = sum(plain.count(sign) for sign in "*:/")
    return int(min((len(parts) + 1) ** min(power * (products + 1), 60), 10**18))


def _is_sequence(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return isinstance(node, ast.List | ast.Tuple)


def _is_column_or_number(node: ast.expr) -> bool:
    inner = node.operand if isinstance(node, ast.UnaryOp) else node
    number = isinstance(inner, ast.Constant) and isinstance(inner.value, int | float)
    return number or isinstance(node, ast.Name)


def _check_known(name: str, schema: Schema, where: str) -> None:
    if name not in schema.declared and name not in schema.names:
        raise unknown(name, schema.declared, PARAMETER, where, "a formula of declared columns")


def _check_categories(tree: ast.AST, schema: Schema, text: str, where: str) -> None:
    """Raise for C(x) of a column of numbers, whose levels are not public, and for log(smoker)."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        first, name = node.args[0], getattr(node.func, "id", "")
        column = schema.declared.get(first.id) if isinstance(first, ast.Name) else None
        if name == "C":
            if column is None or not (isinstance(column, Category) or column.type == "boolean"):
                rule = "one where C() is of a category or a truth value, whose levels are public"
                hint = 'declare its levels, or derived=["bins(age, 30, 50)"], in the schema.'
                raise rejection(PARAMETER, where, rule, text, hint)
        elif isinstance(column, Category):
            raise rejection(PARAMETER, where, "one where functions are of numbers", text)


def call_text(name: str, column: str, arguments: Iterable[Any]) -> str:
    """Return how a schema writes a call of bins or spline."""
    parts = []
    for each in arguments:
        inner = ", ".join(map(str, each)) if isinstance(each, list | tuple) else str(each)
        parts.append(f"[{inner}]" if isinstance(each, list | tuple) else inner)
    return f"{name}({', '.join([column, *parts])})"
