"""The table of a regression with its intervals, as plain text and as HTML.

Numbers are shown to two significant digits of their standard error: further ones are noise. Instead
of stars for significance there is a column that says whether the interval excludes 0.
"""

import html
import math
import textwrap
from dataclasses import dataclass, replace

import numpy as np

from dplinear.analyst.notebook import CELL, HEAD, TABLE, TINT, warning
from dplinear.analyst.regression.inference import Intervals

WIDTH = 100
PROSE = 80
LINES = 100
NAME = 32
GAP = "  "
METHODS = {"delta": "delta method", "bootstrap": "parametric bootstrap"}


@dataclass(frozen=True, eq=False)
class SummaryFacts:
    """What a summary tells besides its intervals. All of it is public.

    `rows` is the number of rows (None: not known), `rows_public` whether that is exact; where they
    belong to units of privacy, by the column `unit`, it is that of units; where they have survey
    weights, in the column `weight`, the sum of these. `guarantee` is the certificate's in words;
    `notes` are sentences to add at the end.
    """

    target: str
    intervals: Intervals
    guarantee: str
    rows: float | None = None
    rows_public: bool = False
    unit: str | None = None
    weight: str | None = None
    r_squared: float | None = None
    kind: str = "Linear"
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """A finished summary: prints as text, and as a table in a notebook."""

    text: str
    html: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.html


def summary(facts: SummaryFacts) -> Summary:
    """Return the summary of a regression.

    Promises: text of at most 100 columns; HTML that needs nothing from elsewhere, every name in it
    escaped, and sets no colour of text or ground, so that it reads on dark and on light.
    """
    heads, lines = cells(facts.intervals)
    lines, left_out = _fold(lines)
    if left_out:
        facts = replace(facts, notes=(left_out, *facts.notes))
    return Summary(_text(facts, heads, lines), _html(facts, heads, lines))


def of_intervals(intervals: Intervals) -> Summary:
    """Return intervals alone, as text and as HTML."""
    heads, lines = cells(intervals)
    lines, left_out = _fold(lines)
    refused = intervals.swamped
    text, page = table_lines(heads, lines), table_html(intervals, heads, lines)
    if left_out:
        text, page = [*text, left_out], [*page, f"<p><small>{html.escape(left_out)}</small></p>"]
    if refused is not None:
        text, page = [*_wrap(refused), *text], [warning(refused), *page]
    return Summary("\n".join(text), "\n".join(page))


def _fold(lines: list[list[str]]) -> tuple[list[list[str]], str]:
    """Return the lines to show, and what to say of the others, if there are any."""
    more = len(lines) - LINES
    if more <= 1:
        return lines, ""
    return lines[
        :LINES
    ], f"{more:,} more coefficients are not shown here; `estimates` has them all."


def cells(intervals: Intervals) -> tuple[list[str], list[list[str]]]:
    """Return the table's heads and its lines, as strings."""
    if intervals.swamped is not None:
        pairs = zip(intervals.names, intervals.estimates, strict=True)
        return ["coefficient", "estimate"], [
            [name, number(float(value), abs(float(value)))] for name, value in pairs
        ]
    percent = f"{100 * intervals.level:g}%"
    heads = ["coefficient", "estimate", "std. error", f"{percent} low", f"{percent} high"]
    lines = []
    for index, name in enumerate(intervals.names):
        error = float(intervals.standard_errors[index])
        if math.isnan(error):
            lines.append([name, number(float(intervals.estimates[index]), error), *["–"] * 5])
            continue
        low, high = float(intervals.low[index]), float(intervals.high[index])
        numbers = (float(intervals.estimates[index]), error, low, high)
        share = f"{100 * float(intervals.privacy_share[index]):.0f}%"
        clear = "yes" if low > 0 or high < 0 else "no"
        lines.append([name, *(number(value, error) for value in numbers), share, clear])
    return [*heads, "due to privacy", "clear?"], lines


def number(value: float, error: float) -> str:
    """Return `value` to two significant digits of its standard error."""
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return f"{value:.4g}"
    decimals = 1 - math.floor(math.log10(error))
    # 0.0996 has 0.10 for its two digits, one decimal fewer than its logarithm says.
    decimals -= round(error, decimals) >= 10 ** (2 - decimals)
    rounded = round(value, decimals) + 0.0  # no minus before a nought
    if decimals > 7 or abs(rounded) >= 1e10:
        digits = math.floor(math.log10(abs(rounded))) + decimals if rounded else 0
        return f"{rounded:.{min(max(digits, 0), 16)}e}"
    return f"{rounded:,.{max(decimals, 0)}f}"


def _header(facts: SummaryFacts) -> list[str]:
    """Return the facts above the table, one to a line."""
    parts = []
    if facts.rows is not None:
        counted = "rows" if facts.unit is None else f"units (by {facts.unit!r})"
        counted = counted if facts.weight is None else f"total weight (by {facts.weight!r})"
        parts.append(f"{counted}: {'' if facts.rows_public else 'about '}{facts.rows:,.0f}")
    if facts.r_squared is not None:
        parts.append(f"R²: about {facts.r_squared:.3f}")
    intervals = facts.intervals
    if intervals.swamped is None:
        how = METHODS.get(intervals.method, intervals.method)
        parts.append(f"intervals: {100 * intervals.level:g}%, {how}, sampling and privacy")
    promise = f"guarantee: {facts.guarantee}"
    return ["; ".join(parts), promise] if parts else [promise]


def _footer(facts: SummaryFacts) -> tuple[str, ...]:
    if facts.intervals.swamped is not None:
        return facts.notes
    counted = "rows" if facts.unit is None else "units"
    meaning = (
        f'std. error: of {counted} and noise together. "due to privacy": the part of its square '
        'that is noise. "clear?": whether the interval excludes 0.'
    )
    return (meaning, *facts.notes)


def _short(name: str, width: int) -> str:
    """Return a name on one line that fits its column; the middle of a long one is left out."""
    name = " ".join(name.split())
    keep = (width - 1) // 2
    return name if len(name) <= width else f"{name[: width - 1 - keep]}…{name[-keep:]}"


def table_lines(heads: list[str], lines: list[list[str]]) -> list[str]:
    """Return a table as lines of text of at most 100 columns, with rules around it."""
    rows = [heads, *lines]
    widths = [max(len(row[index]) for row in rows) for index in range(1, len(heads))]
    room = min(NAME, WIDTH - sum(widths) - len(GAP) * len(widths))
    first = [_short(row[0], room) for row in rows]
    longest = max(map(len, first))
    printed = []
    for name, row in zip(first, rows, strict=True):
        right = (cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))
        printed.append(GAP.join([name.ljust(longest), *right]))
    rule = "─" * len(printed[0])
    return [rule, printed[0], rule, *printed[1:], rule]


def _text(facts: SummaryFacts, heads: list[str], lines: list[list[str]]) -> str:
    table = table_lines(heads, lines)
    above = [f"{facts.kind} model of {_short(facts.target, NAME)}"]
    above += [line for fact in _header(facts) for line in _wrap(fact)]
    if facts.intervals.swamped is not None:
        above += ["", *_wrap(facts.intervals.swamped)]
        above += ["", "Estimates, without a measure of their error:"]
    below = [line for note in _footer(facts) for line in _wrap(note)]
    return "\n".join([*above, *table, *below])


def _wrap(sentence: str) -> list[str]:
    return textwrap.wrap(sentence, PROSE)


def _html(facts: SummaryFacts, heads: list[str], lines: list[list[str]]) -> str:
    escape = html.escape
    above = "<br>".join(escape(line) for line in _header(facts))
    parts = [
        '<div style="font-family:system-ui,sans-serif;line-height:1.4">',
        f"<p><strong>{escape(facts.kind)} model of {escape(facts.target)}</strong><br>{above}</p>",
    ]
    if facts.intervals.swamped is not None:
        parts.append(warning(facts.intervals.swamped))
    parts += table_html(facts.intervals, heads, lines)
    parts += [f"<p><small>{escape(note)}</small></p>" for note in _footer(facts)]
    return "\n".join([*parts, "</div>"])


def table_html(intervals: Intervals, heads: list[str], lines: list[list[str]]) -> list[str]:
    """Return a table as HTML; the share that is due to privacy has a bar behind its number."""
    columns = "".join(
        f'<th scope="col" style="{HEAD};text-align:{_side(index)}">{html.escape(head)}</th>'
        for index, head in enumerate(heads)
    )
    parts = [f'<table style="{TABLE}"><thead><tr>{columns}</tr></thead><tbody>']
    shares = np.nan_to_num(intervals.privacy_share)
    for line, share in zip(lines, shares, strict=False):  # of many, the first are shown
        parts.append(f"<tr>{''.join(_cells(line, float(share)))}</tr>")
    return [*parts, "</tbody></table>"]


def _cells(line: list[str], share: float) -> list[str]:
    """Return a line's cells; the share due to privacy is also a bar behind its number."""
    name, *rest = line
    made = [
        f'<th scope="row" style="{CELL};font-weight:400;text-align:left">{html.escape(name)}</th>'
    ]
    for index, cell in enumerate(rest, start=1):
        bar = ""
        if index == 5:
            stop = f"{100 * share:.0f}%"
            bar = f";background:linear-gradient(to right,{TINT} {stop},transparent {stop})"
        style = f"{CELL};text-align:right;white-space:nowrap{bar}"
        made.append(f'<td style="{style}">{html.escape(cell)}</td>')
    return made


def _side(index: int) -> str:
    return "left" if index == 0 else "right"
