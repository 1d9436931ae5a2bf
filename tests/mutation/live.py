"""Putting a mutant into running code: by its function's code object, or by importing it anew."""

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from mutation.operators import Function, Mutant

ROOT = Path(__file__).resolve().parents[2]


def module_name(file: str) -> str:
    """Return the dotted name of a file below src."""
    return ".".join(Path(file).relative_to("src").with_suffix("").parts).removesuffix(".__init__")


def _code(code: CodeType, names: Sequence[str]) -> CodeType:
    for name in names:
        inner = (c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == name)
        code = list(inner)[-1]
    return code


def function(module: ModuleType, unit: str) -> FunctionType:
    """Return the plain function of that qualified name, whatever wraps it."""
    found: Any = module
    for name in unit.split("."):
        found = vars(found)[name]
    while not isinstance(found, FunctionType):
        if hasattr(found, "cache_clear"):
            found.cache_clear()  # of what was computed on import
        for wrapping in ("__func__", "fget", "__wrapped__", "func"):
            if hasattr(found, wrapping):
                found = getattr(found, wrapping)
                break
    while hasattr(found, "__wrapped__"):
        found = found.__wrapped__
    assert isinstance(found, FunctionType)
    return found


def _definition(tree: ast.Module, unit: str) -> Function:
    body: Any = tree
    for name in unit.split("."):
        body = [n for n in body.body if getattr(n, "name", None) == name][-1]
    assert isinstance(body, Function)
    return body


def swap(mutant: Mutant, tree: ast.Module) -> None:
    """Give the living function the code, or the defaults, of its mutant."""
    module = importlib.import_module(module_name(mutant.file))  # if nobody has needed it yet
    target = function(module, mutant.unit)
    if mutant.default:
        given = _definition(tree, mutant.unit).args

        def value(node: ast.expr) -> object:
            made = ast.Expression(node)
            return eval(compile(made, mutant.file, "eval"), vars(module))

        target.__defaults__ = tuple(map(value, given.defaults)) or None
        pairs = zip(given.kwonlyargs, given.kw_defaults, strict=True)
        target.__kwdefaults__ = {a.arg: value(node) for a, node in pairs if node is not None}
        return
    whole = compile(tree, str(ROOT / mutant.file), "exec", dont_inherit=True)
    code = _code(whole, mutant.unit.split("."))
    # A mutant that no longer says super() still gets its cell.
    target.__code__ = code.replace(co_freevars=target.__code__.co_freevars)


class Importer(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a mutated tree, everything else as ever."""

    def __init__(self, mutant: Mutant, tree: ast.Module) -> None:
        self.name, self.path = module_name(mutant.file), ROOT / mutant.file
        self.code = compile(tree, str(self.path), "exec", dont_inherit=True)

    def find_spec(
        self, fullname: str, path: object, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        del path, target
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(
            fullname,
            self.path,
            loader=self,
            submodule_search_locations=[str(self.path.parent)]
            if self.path.stem == "__init__"
            else None,
        )

    def create_module(self, spec: object) -> None:
        del spec

    def exec_module(self, module: ModuleType) -> None:
        exec(self.code, vars(module))
