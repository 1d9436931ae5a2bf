"""The list of files in ARCHITECTURE.md, made from the first lines of docstrings.

`python tests/architecture.py --write` rewrites the list between its two HTML comments;
`--participles` prints the functions of `src/` whose names are bare participles (`kept`, `told`).
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
PACKAGE = ROOT / "src/dplinear"
BEGIN = "<!-- files: written by `python tests/architecture.py --write` -->"
END = "<!-- end of files -->"
LONGEST = 110
# Participles that do not end in "ed"; not those that are verbs or nouns as well (read, cut, split).
IRREGULAR = re.compile(
    r"begun|born|bought|broken|brought|built|caught|chosen|done|drawn|fed|felt|forgotten|found|"
    r"frozen|given|gone|grown|heard|held|hidden|kept|known|laid|led|left|lent|lit|lost|made|meant|"
    r"met|paid|said|seen|sent|shown|shrunk|sold|sought|spent|stood|stuck|sunk|swept|taken|thought|"
    r"thrown|told|torn|undone|unmade|unseen|won|worn|wound|woven|written"
)
REGULAR = re.compile(r"(?!(?:need|seed|speed|feed|exceed|proceed|succeed|embed|shed)$)\w+ed")
LITTLE = re.compile(r"a|again|all|around|as|at|by|for|in|it|not|of|off|on|out|to|up|wrongly")


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring, or nothing if it has none."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def faults(line: str) -> list[str]:
    """Return what is wrong with the first line of a docstring."""
    found = [] if line else ["there is none"]
    if line and (not line.endswith(".") or " " not in line):
        found.append("it is no sentence")
    if len(line) > LONGEST:
        found.append(f"it is longer than {LONGEST} characters")
    return found


def rooms() -> list[str]:
    """Return the rooms in reading order: the layers of the import contract, lowest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = project["tool"]["importlinter"]["contracts"]
    names = [name for layer in reversed(contract["layers"]) for name in layer.split(" | ")]
    return [name.removeprefix("dplinear.") for name in names]


def folders() -> Iterator[tuple[str, list[Path]]]:
    """Yield each folder below the package, and its modules but `__init__.py`, in reading order."""
    yield "", sorted(PACKAGE.glob("*.py"))
    for room in rooms():
        if (PACKAGE / room).is_dir():
            inside = {path.parent for path in (PACKAGE / room).rglob("*.py")}
            for folder in sorted(inside):
                modules = sorted(path for path in folder.glob("*.py") if path.stem != "__init__")
                yield f"{folder.relative_to(PACKAGE).as_posix()}/", modules


def files() -> str:
    """Return the list of files: a heading for each folder, and a line for each module."""
    lines: list[str] = []
    for name, modules in folders():
        head = f"`{name}`" if name else "`src/dplinear/`"
        lines += [f"{'####' if name.count('/') > 1 else '###'} {head}"]
        if name:
            lines += [first_line(PACKAGE / name / "__init__.py"), ""]
        lines += [
            f"- `{path.relative_to(PACKAGE).as_posix()}`: {first_line(path)}" for path in modules
        ]
        lines += [""]
    return "\n".join(lines).rstrip("\n")


def renewed(page: str) -> str:
    """Return the page with its list of files as the files now are."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"ARCHITECTURE.md must have the lines {BEGIN!r} and {END!r}.")
    return f"{before}{BEGIN}\n{files()}\n{END}{after}"


def is_bare_participle(name: str) -> bool:
    """Return whether a name is a participle, alone or with little words: `kept`, `held_to`."""
    words = [word for word in name.strip("_").split("_") if not LITTLE.fullmatch(word)]
    if name.startswith("__") or len(words) != 1:
        return False
    return any(pattern.fullmatch(words[0]) for pattern in (IRREGULAR, REGULAR))


def participles() -> list[tuple[str, str]]:
    """Return where each function or method is that is named by a bare participle."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and is_bare_participle(node.name):
                where = f"{path.relative_to(PACKAGE).as_posix()}:{node.lineno}"
                found.append((where, node.name))
    return found


def main(arguments: list[str]) -> int:
    """Write the list, or print the participles and how many they are."""
    if arguments == ["--write"]:
        PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    if arguments == ["--participles"]:
        lines = [f"{where}\t{name}" for where, name in participles()]
        sys.stdout.write("\n".join([*lines, f"{len(lines)} functions"]) + "\n")
        return 0
    sys.stderr.write("usage: python tests/architecture.py --write | --participles\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
