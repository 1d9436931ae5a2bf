"""Formulas of the pages: LaTeX between dollar signs becomes MathML when the site is built.

Browsers set MathML by themselves: no script runs, nothing is fetched, and pages open from disk.
The sources may hold Unicode (ε, ≤, ·, ½, ‖x‖) beside LaTeX's commands. A browser never breaks a
formula, so that a long one in a paragraph is cut into several at its relations.
"""

import html
import re
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from latex2mathml.converter import convert_to_element

SOURCE = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
RELATIONS = frozenset("=<>≤≥≠∼∝∈⪯⪰→↦⟼&")
OPERATORS = RELATIONS | frozenset("−+±×·∑∏∫∘‖∣∥⟨⟩⌊⌋⌈⌉")
OPENING, CLOSING = frozenset("([{⟨⌊⌈"), frozenset(")]}⟩⌋⌉")
SCRIPTS = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
TERMS = frozenset("+−")
SIGNS = frozenset("+−±")
LONG = 24  # signs of a formula that a phone's line may not hold


def on_page_content(content: str, **_: Any) -> str:
    """Put MathML where the Markdown had a formula."""
    return SOURCE.sub(_formula, content)


def _formula(found: re.Match[str]) -> str:
    latex = html.unescape(found["latex"]).strip()
    return displayed(latex) if found["tag"] == "div" else inline(latex)


def displayed(latex: str) -> str:
    """Return a formula on a line of its own, which scrolls where it is too wide."""
    math = _math(latex)
    math.set("display", "block")
    for each in list(math.iter()):
        if each.tag in SCRIPTS and len(each) and each[0].text in {"∑", "∏", "max", "min", "sup"}:
            each.tag = SCRIPTS[each.tag]
    return f'<div class="formula" tabindex="0">{_text(math)}</div>'


def inline(latex: str) -> str:
    """Return a formula in a paragraph, with places where a line may end if it is long."""
    math = _math(latex)
    if len("".join(math.itertext())) <= LONG:
        return f'<span class="formula">{_text(math)}</span>'
    rows = [piece for row in _cut(list(math[0]), RELATIONS) for piece in _cut(row, TERMS)]
    return f'<span class="formula">{"<wbr>".join(map(_piece, rows))}</span>'


def _text(math: Element) -> str:
    return tostring(math, encoding="unicode")


def _math(latex: str) -> Element:
    """Return the MathML of a formula, its signs set as the operators and names that they are."""
    math: Element = convert_to_element(latex)
    math.attrib.pop("display", None)
    math.attrib.pop("xmlns", None)
    for each in math.iter():
        each.text = html.unescape(each.text or "")
    for each in list(math.iter()):
        _set_sign(each)
    for each in list(math.iter()):
        _space_names(each)
    _pair_bars(math)
    for each in list(math.iter("mrow")):
        _bind_signs(each)
    unknown = [text for text in math.itertext() if "\\" in text]
    if unknown:
        raise ValueError(f"{unknown[0]} is no command of the formula {latex}")
    return math


def _set_sign(each: Element) -> None:
    """Give a sign its element: operators, numbers and names of functions."""
    if each.tag == "mrow" and len(each) > 1 and all(letter.get("mathvariant") for letter in each):
        each.tag, each.text = "mi", "".join(each.itertext())
        for letter in list(each):
            each.remove(letter)
    text = each.text or ""
    if each.tag == "mi" and text in OPERATORS:
        each.tag = "mo"
    elif each.tag == "mi" and text and all(sign in "½¼¾⅛0123456789.," for sign in text):
        each.tag = "mn"
    elif each.tag == "mo" and text.isalpha():
        each.tag = "mi"
    if each.tag == "mo" and text in OPENING | CLOSING | {"‖", "|"}:
        each.set("stretchy", "false")
    if each.tag == "mo" and text == "/":
        each.set("lspace", "0")
        each.set("rspace", "0")
    if each.tag == "msup" and set(each[1].text or " ") == {"′"}:
        each.tag, each[1].tag = "mrow", "mi"  # a prime is raised by itself


def _space_names(each: Element) -> None:
    """Part the name of a function from a letter or a number beside it."""
    for index in range(len(each) - 1, -1, -1):
        if each.tag != "mrow" or not _is_name(each[index]):
            continue
        if index + 1 < len(each) and not _is_operator(each[index + 1]):
            each.insert(index + 1, Element("mspace", width="0.17em"))
        if index and not _is_operator(each[index - 1]):
            each.insert(index, Element("mspace", width="0.17em"))


def _is_name(each: Element) -> bool:
    if each.tag in SCRIPTS and len(each):
        return _is_name(each[0])
    return each.tag == "mi" and len(each.text or "") > 1 and (each.text or "").isalpha()


def _is_operator(each: Element) -> bool:
    return each.tag in {"mo", "mspace", "mtext"} or (each.tag in SCRIPTS and _is_operator(each[0]))


def _pair_bars(math: Element) -> None:
    """Say of the bars of norms and sizes which of them open and which close."""
    for bar in ("‖", "|"):
        bars = [each for each in math.iter("mo") if each.text == bar]
        for index, each in enumerate(bars):
            each.set("form", "postfix" if index % 2 else "prefix")


def _bind_signs(row: Element) -> None:
    """Bind a minus to what follows where there is nothing before it, or another sign."""
    for index, each in enumerate(row):
        before = row[index - 1] if index else None
        ends = before is not None and (
            before.tag not in {"mo", "mspace"}
            or before.text in CLOSING
            or before.get("form") == "postfix"
        )
        if each.tag == "mo" and each.text in SIGNS and not ends:
            each.set("form", "prefix")


def _cut(row: list[Element], signs: frozenset[str]) -> list[list[Element]]:
    """Return a row cut before these signs, but for those within brackets; a short one as it is."""
    if _length(row) <= LONG:
        return [row]
    pieces: list[list[Element]] = [[]]
    depth = 0
    for each in row:
        after = pieces[-1] and pieces[-1][-1].tag != "mo"  # a sign may be another one's
        if each.tag == "mo" and each.text in signs and not depth and after:
            pieces.append([])
            each.set("form", "infix")
        pieces[-1].append(each)
        depth += _step(each[0] if each.tag in SCRIPTS else each)
    return pieces


def _length(row: list[Element]) -> int:
    return sum(len("".join(each.itertext())) for each in row)


def _piece(row: list[Element]) -> str:
    """Return a part of a formula; one that a phone cannot show scrolls there."""
    math = Element("math")
    SubElement(math, "mrow").extend(row)
    return f'<span class="long">{_text(math)}</span>' if _length(row) > LONG else _text(math)


def _step(sign: Element) -> int:
    """Return by how much deeper in brackets a sign leads."""
    text, form = sign.text or "", sign.get("form")
    if sign.tag != "mo" or not text:
        return 0
    if text in {"‖", "|"}:
        return 1 if form == "prefix" else -1
    return (text in OPENING) - (text in CLOSING)
