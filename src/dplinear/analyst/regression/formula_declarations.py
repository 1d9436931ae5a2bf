"""What a schema would have declared for a term of a formula that a release lacks: for hints."""

import ast
from typing import Any

from dplinear.arguments import ArgumentError
from dplinear.schema import Schema
from dplinear.schema.transforms import FUNCTIONS

_LOGARITHMS = {"log2": "log", "log10": "log"}  # multiples of the natural one


def declaration(term: Any, schema: Schema) -> str:
    """Return a sentence on what to declare for a term; "" where nothing is known to do.

    Requires: a term of a formula whose words were checked.
    """
    parts = [_of_text(factor.expr, schema) for factor in term.factors]
    text = "*".join(parts)
    if not all(parts) or text in {"", *schema.declared}:
        return ""
    try:
        Schema.from_dict(schema.to_dict() | {"derived": [text]})
    except ArgumentError as error:  # such as a logarithm of what may be 0: it says what to do
        return f'For derived=["{text}"], {error.hint}' if error.hint else ""
    return f'Declare derived=["{text}"] in the schema of the next release.'


def _of_text(text: str, schema: Schema) -> str:
    return text if text in schema.declared else _of_node(ast.parse(text, mode="eval").body, schema)


def _of_node(node: ast.expr, schema: Schema) -> str:
    """Return how a schema writes an expression; "" where it cannot."""
    found = ""
    match node:
        case ast.Name(id=name) if name in schema.declared:
            found = name
        case ast.Call(func=ast.Name(id="C" | "I"), args=[inner, *_]):
            found = _of_node(inner, schema)
        case ast.Call(func=ast.Attribute(attr="square"), args=[ast.Name(id=name)]):
            found = f"{name}^2"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[_, *_]):
            name = _LOGARITHMS.get(name, name)
            inside = ", ".join(ast.unparse(each) for each in node.args)
            found = f"{name}({inside})" if name in FUNCTIONS else ""
        case ast.BinOp(left=ast.Name(id=name), op=ast.Pow(), right=ast.Constant(value=int(power))):
            found = f"{name}^{power}"
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            both = [_of_node(each, schema) for each in (left, right)]
            found = "*".join(both) if all(both) else ""
        case ast.Compare(left=ast.Name(), ops=[_], comparators=[ast.Constant()]):
            found = ast.unparse(node).replace(" ", "")
    return found
