"""Charts: figures over time with axes. The script draws them; without it there is a small picture with its range."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from urllib.parse import urlencode

from msgspec import Struct

from sockpqd.gateway.dashboard.markup import Child, Markup, tag
from sockpqd.gateway.dashboard.pages.parts.picture import HOUR_S, POINTS, amount, most, recent, shown_s, sparkline
from sockpqd.gateway.dashboard.pages.parts.view import View, duration
from sockpqd.gateway.samples import FigureSeries

SPANS = {"10m": ("10 minutes", 600), "1h": ("hour", HOUR_S), "6h": ("6 hours", 21_600), "1d": ("day", 86_400),
         "7d": ("week", 604_800)}
QUEUE_SPANS = ("10m", "1h", "6h")       # of a queue there is no more
SPAN, YOUNG = "1h", "10m"


class Chart(Struct, frozen=True):
    """A chart of up to four fields of a series. `unit`: as in `amount`; `labels`: one for each field."""

    title: str
    unit: str
    fields: tuple[str, ...]
    labels: tuple[str, ...]


def span_of(view: View) -> str:
    """Return the span that the address asks for; by default an hour, or ten minutes on a node that is young."""
    asked = view.word("span")
    if asked in SPANS:
        return asked
    return SPAN if recent(view)[1] > SPANS[YOUNG][1] else YOUNG


def spans(
    view: View, path: str, words: dict[str, str], series: FigureSeries, known: tuple[str, ...] = tuple(SPANS),
) -> Markup:
    """Return links to the page with each span, and for how long there are figures, if that is less.

    `words`: further words of the address; `series`: what the charts are of.
    """
    span_s = SPANS[span_of(view)][1]
    known_s = shown_s(view, series, span_s)
    return tag("p", "Last ", [
        [tag("a", SPANS[name][0], href=f"{path}?{urlencode({**words, 'span': name})}",
             aria_current="true" if name == span_of(view) else None), " "] for name in known
    ], tag("small", f"figures began {duration(known_s * 1000)} ago") if known_s < span_s else None, class_="ranges")


async def charts(view: View, drawn: Iterable[Chart], series: FigureSeries, of: str, name: str = "") -> Markup:
    """Return charts of a series. `of`, `name`: as in figures.py."""
    return tag("div", [await _chart(view, one, series, of, name) for one in drawn], class_="charts")


async def _chart(view: View, drawn: Chart, series: FigureSeries, of: str, name: str) -> Markup:
    span, now_s = span_of(view), view.samples.now_s
    words = {"of": of, "span": span} | ({"name": name} if name else {})
    lines = []
    for field in drawn.fields:
        lines.append(series.window(now_s, shown_s(view, series, SPANS[span][1]), POINTS, (field,)).values[field])
        await asyncio.sleep(0)          # a field is as long a turn as some lines of a table
    now = series.now()
    ranges = [f"{label}: at most {amount(most(line), drawn.unit)}"
              for label, line in zip(drawn.labels, lines, strict=True)]
    legend: list[Child] = [
        tag("span", tag("i", class_=f"line{place}"), f"{label} ", tag("b", amount(now[field], drawn.unit)), " ")
        for place, (label, field) in enumerate(zip(drawn.labels, drawn.fields, strict=True), start=1)
    ]
    summary = f"{drawn.title}, last {SPANS[span][0]}: {'; '.join(ranges)}"
    return tag(
        "figure", tag("h3", drawn.title, " ", tag("small")),
        tag("div", sparkline(summary, *lines), class_="plot", role="img", aria_label=summary),
        tag("p", legend, class_="legend"),
        class_="chart", id=f"{of}-{drawn.title.lower().replace(' ', '-')}", data_figures=f"/figures?{urlencode(words)}",
        data_fields=" ".join(drawn.fields), data_labels="|".join(drawn.labels), data_unit=drawn.unit,
    )
