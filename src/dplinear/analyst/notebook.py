"""Small pieces of HTML for notebooks: every text escaped, every colour the reader's own.

Nothing sets a colour of text or ground, so that what is shown reads on dark and on light; lines and
tints are half transparent.
"""

import html
from collections.abc import Iterable, Sequence

TABLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;color:inherit;margin:0.5em 0"
HEAD = "padding:0.25em 0.9em;border-bottom:2px solid rgba(128,128,128,0.6);font-weight:600"
CELL = "padding:0.25em 0.9em;border-bottom:1px solid rgba(128,128,128,0.25)"
NOTE = "border-left:4px solid rgb(214,130,20);padding:0.3em 0.9em;margin:0.6em 0;max-width:48em"
TINT = "rgba(110,140,190,0.35)"
_CARD = "font-family:system-ui,sans-serif;line-height:1.4"
_SHOWN = 100


def card(title: str, *parts: str) -> str:
    """Return parts that are HTML already, under a title that is not."""
    return "\n".join(
        [
            f'<div style="{_CARD}">',
            f"<p><strong>{html.escape(title)}</strong></p>",
            *parts,
            "</div>",
        ]
    )


def lines(texts: Iterable[str]) -> str:
    """Return plain sentences, one to a line."""
    return "".join(f"<div>{html.escape(text)}</div>" for text in texts)


def warning(text: str) -> str:
    """Return a sentence that must not be overlooked."""
    return f'<p role="note" style="{NOTE}">{html.escape(text)}</p>'


def pairs(facts: Iterable[tuple[str, str]], caption: str = "") -> str:
    """Return names and what they are, to the left."""
    rows = "".join(
        f'<tr><th scope="row" style="{CELL};font-weight:400;text-align:left">{html.escape(name)}'
        f'</th><td style="{CELL};text-align:left">{html.escape(text)}</td></tr>'
        for name, text in facts
    )
    return f'<table style="{TABLE}">{_caption(caption)}{rows}</table>'


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    strong: int | None = None,
) -> str:
    """Return a table of numbers with a name in front of each row; row `strong` is in bold.

    Of more rows than fit a screen the first are shown.
    """
    top = "".join(
        f'<th scope="col" style="{HEAD};text-align:{_side(index)}">{html.escape(head)}</th>'
        for index, head in enumerate(heads)
    )
    head = f"<thead><tr>{top}</tr></thead>" if heads else ""
    body = "".join(_row(row, bold=index == strong) for index, row in enumerate(rows[:_SHOWN]))
    more = len(rows) - _SHOWN
    ending = f"<p><small>{more} more rows</small></p>" if more > 0 else ""
    start = f'<table style="{TABLE}">'
    return f"{start}{head}<tbody>{body}</tbody></table>{ending}"


def bar(share: float, text: str) -> str:
    """Return a part of a whole, from 0 to 1, as a bar behind its words."""
    stop = f"{100 * min(max(share, 0.0), 1.0):.0f}%"
    ground = f"linear-gradient(to right,{TINT} {stop},transparent {stop})"
    style = f"background:{ground};border:1px solid rgba(128,128,128,0.4);padding:0.1em 0.6em"
    return f'<div style="{style};max-width:30em">{html.escape(text)}</div>'


def _caption(text: str) -> str:
    return f'<caption style="text-align:left">{html.escape(text)}</caption>' if text else ""


def _row(row: Sequence[str], *, bold: bool) -> str:
    name, *rest = row
    weight = 600 if bold else 400
    head = f'<th scope="row" style="{CELL};font-weight:{weight};text-align:left">'
    cells = "".join(
        f'<td style="{CELL};font-weight:{weight};text-align:right;white-space:nowrap">'
        f"{html.escape(cell)}</td>"
        for cell in rest
    )
    return f"<tr>{head}{html.escape(name)}</th>{cells}</tr>"


def _side(index: int) -> str:
    return "left" if index == 0 else "right"
