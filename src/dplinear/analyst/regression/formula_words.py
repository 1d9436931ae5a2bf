"""What a formula may say: its factors are columns and a few functions, and nothing is run before.

The formula library evaluates factors as Python. So each one is read as a syntax tree first, and
only what is listed here gets through; what does not is refused with what to declare instead.
"""

import ast
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
_LONGEST = 10_000


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
        name = node.func.id if isinstance(node.func, ast.Name) else None
        known = name in _ELEMENTWISE | _CODINGS | {"C"} | FUNCTIONS
        fine = known or isinstance(node.func, ast.Attribute)
    elif isinstance(node, ast.Attribute):
        base = node.value.id if isinstance(node.value, ast.Name) else ""
        fine = node.attr in _MODULES.get(base, ())
    elif isinstance(node, ast.Constant):
        fine = isinstance(node.value, int | float | str)
    elif isinstance(node, ast.Compare):
        fine = all(map(_is_column_or_number, (node.left, *node.comparators)))
    elif isinstance(node, ast.BinOp):
        # A power of a power of numbers could fill the memory, and so could a text times a number.
        plain = not isinstance(node.op, ast.Pow)
        fine = plain or (isinstance(node.right, ast.Constant) and node.right.value in range(17))
        fine = fine and not any(map(_is_sequence, (node.left, node.right)))
    if not fine:
        raise rejection(PARAMETER, where, _RULE, text, _WHOLE)


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
