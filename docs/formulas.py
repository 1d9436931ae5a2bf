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
    pieces = "<wbr>".join(map(_text, _pieces(math)))
    return f'<span class="formula">{pieces}</span>'


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


def _pieces(math: Element) -> list[Element]:
    """Return a formula cut before its relations, but for those within brackets."""
    rows = [Element("mrow")]
    depth = 0
    for each in math[0]:
        sign = (each.text or "") if each.tag == "mo" else ""
        if sign and sign in RELATIONS and not depth and len(rows[-1]):
            rows.append(Element("mrow"))
            each.set("form", "infix")
        rows[-1].append(each)
        base = each[0] if each.tag in SCRIPTS else each
        depth += _step(base)
    pieces = [Element("math") for _ in rows]
    for piece, row in zip(pieces, rows, strict=True):
        SubElement(piece, "mrow").extend(row)
    return pieces


def _step(sign: Element) -> int:
    """Return by how much deeper in brackets a sign leads."""
    text, form = sign.text or "", sign.get("form")
    if sign.tag != "mo" or not text:
        return 0
    if text in {"‖", "|"}:
        return 1 if form == "prefix" else -1
    return (text in OPENING) - (text in CLOSING)
