"""Pages: one file each, that needs nothing from elsewhere and may fetch nothing.

Templates escape whatever they are given. The page's policy admits the styles and the scripts that
this module put into it, by their digests, and nothing else: were a name ever to slip through as
markup, it still could neither run nor reach a network.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dplinear.version import __version__

_FOLDER = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["breakable"] = _breakable
    return made


def _breakable(name: str) -> Markup:
    """Return a name that may be broken after its underscores."""
    return Markup("_<wbr>").join(name.split("_"))


def page(template: str, *, scripts: tuple[str, ...] = (), **facts: Any) -> str:
    """Return a whole page: a template of this folder, with its style and its scripts inside."""
    style = _asset("style.css")
    codes = [_asset(name) for name in ("theme.js", *scripts)]
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_digest(style)}; script-src {' '.join(map(_digest, codes))}"
    )
    # Our own files, not the caller's words: to be kept as they are.
    kept = {"style": Markup(style), "codes": [Markup(code) for code in codes]}  # noqa: S704
    made = _environment().get_template(template)
    return made.render(**facts, **kept, policy=policy, version=__version__)


@cache
def _asset(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    found = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(found).decode()}'"
