"""The report of a load: one page for people, which nothing else has to be fetched for.

Owns the page: what was loaded, what was left out with samples, and where the time went, drawn.
Every text of the input is escaped. Never decides anything, and never fails a load that is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from omnigraph.errors import BadRequest, OmniGraphError
from omnigraph.write.change.results import LoadResult, RejectSample

_WIDTH = 560
_BAR = 16
_SHOWN = 5
_RAW = 400
_NONE = "-"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A load that was refused: what was said, and the rows that were wrong."""

    message: str
    codes: Mapping[str, int] = field(default_factory=dict)
    samples: Sequence[RejectSample] = ()


def require_writable(path: str) -> Path:
    """The file of a report, before anything is loaded: it must be possible to write it."""
    place = Path(path).expanduser()
    if place.is_dir() or not place.parent.is_dir():
        raise BadRequest(
            f"cannot write the report to {path}: name a file in a directory that exists"
        )
    return place


def _write(place: Path, title: str, outcome: LoadResult | Refusal) -> None:
    """Write the page."""
    try:
        place.write_text(page(title, outcome), encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot write the report to {place}: {error.strerror or error}") from None


def reported(load: Callable[[], LoadResult], path: str, branch: str) -> LoadResult:
    """Run a load, and write the page whether it succeeds or is refused."""
    place = require_writable(path)
    try:
        result = load()
    except OmniGraphError as error:
        _write(place, f"Load to branch {branch}", _refusal(error))
        raise
    _write(place, f"Load to branch {branch}", result)
    return result


def _refusal(error: OmniGraphError) -> Refusal:
    samples = [
        RejectSample(
            str(one.get("code") or one.get("rule")),
            one.get("source"),
            one.get("line") or 0,
            str(one.get("message")),
            "",
        )
        for one in error.details.get("violations", ())
    ]
    codes = error.details.get("codes") or Counter(one.code for one in samples)
    return Refusal(str(error), dict(codes), samples)


def page(title: str, outcome: LoadResult | Refusal) -> str:
    """The page as HTML."""
    body = _refused(outcome) if isinstance(outcome, Refusal) else _done(outcome)
    name = escape(title)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{name}</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{name}</h1>{body}</main></body></html>\n"
    )


def _refused(refusal: Refusal) -> str:
    return (
        '<p class="state">✗ Refused: nothing was written.</p>'
        f"<pre>{escape(refusal.message)}</pre>{_rejects(refusal.codes, refusal.samples)}"
    )


def _done(result: LoadResult) -> str:
    said = "◌ Dry run: nothing was written." if result.is_dry_run else "✓ Loaded as one commit."
    if result.repeats_run:
        said = "✓ This run was loaded before: nothing was done."
    facts = {
        "branch": result.branch,
        "mode": result.mode,
        "engine": result.engine,
        "commit": "none" if result.published is None else result.published.id,
        "actor": result.actor or "none",
        "rows": f"{result.total:,}",
        "left out": f"{result.rejected:,}",
    }
    listed = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items()
    )
    return (
        f'<p class="state">{said}</p><dl>{listed}</dl>{_types(result)}'
        f"{_rejects(result.rejects, result.samples)}{_stages(result)}"
    )


# -- types -------------------------------------------------------------------------------


def _types(result: LoadResult) -> str:
    counts = {f"node:{name}": count for name, count in sorted(result.nodes.items())}
    counts |= {f"edge:{name}": count for name, count in sorted(result.edges.items())}
    if not counts:
        return ""
    rows = []
    for key, count in counts.items():
        changed = result.changes.get(key)
        cells = [key, f"{count:,}"]
        names = ("inserted", "replaced", "patched", "emptied")
        cells += [_NONE if changed is None else f"{getattr(changed, name):,}" for name in names]
        rows.append(cells)
    table = _table(("type", "rows", "inserted", "replaced", "patched", "emptied"), rows)
    return f"<h2>Types</h2>{table}{_bars('Rows by type', counts)}"


def _rejects(codes: Mapping[str, int], samples: Sequence[RejectSample]) -> str:
    if not codes:
        return "<h2>Left out</h2><p>Nothing was left out.</p>"
    parts = [f"<h2>Left out</h2>{_bars('Rows left out by kind', codes)}"]
    for code, count in sorted(codes.items()):
        own = [one for one in samples if one.code == code][:_SHOWN]
        parts.append(f"<h3>{escape(code)}: {count:,}</h3>")
        if own:
            rows = [
                (f"{one.file or 'input'}:{one.line}", one.message, one.raw[:_RAW]) for one in own
            ]
            parts.append(_table(("where", "what is wrong", "the row"), rows, numbers=False))
    return "".join(parts)


# -- stages ------------------------------------------------------------------------------


def _stages(result: LoadResult) -> str:
    work = result.work
    if work is None:
        return ""
    seconds = {name: took for name, took in work.seconds.items() if took > 0}
    rows = []
    for name, took in seconds.items():
        tasks = sorted(work.tasks.get(name, ()))
        row = [name, f"{took:.2f} s", f"{len(tasks):,}"]
        if tasks:
            middle = tasks[len(tasks) // 2]
            row += [f"{tasks[0]:.2f} s", f"{middle:.2f} s", f"{tasks[-1]:.2f} s"]
            row.append(f"{tasks[-1] / middle:.1f}" if middle > 0 else _NONE)
        else:
            row += [_NONE] * 4
        rows.append(row)
    table = _table(("stage", "took", "tasks", "fastest", "median", "slowest", "skew"), rows)
    skewed = "".join(
        _strip(name, sorted(work.tasks[name]))
        for name in seconds
        if len(work.tasks.get(name, ())) > 1
    )
    size = f"<p>{work.fragments:,} fragments, {work.bytes:,} bytes.</p>"
    note = "<p>Skew is the slowest task over the median one: 1 is even.</p>"
    bars = _bars("Seconds by stage", seconds, unit=" s")
    return f"<h2>Stages</h2>{size}{bars}{table}{note}{skewed}"


def _bars(title: str, values: Mapping[str, float], unit: str = "") -> str:
    """Horizontal bars, each with its name and its number: no colour says anything."""
    most = max(values.values(), default=0) or 1
    height = _BAR + 10
    drawn = []
    for at, (name, value) in enumerate(values.items()):
        y, wide = at * height, max(_WIDTH * value / most, 1)
        shown = f"{value:,.2f}{unit}" if unit else f"{value:,}"
        drawn.append(
            f'<text x="0" y="{y + 13}">{escape(name)}</text>'
            f'<rect x="190" y="{y}" width="{wide:.1f}" height="{_BAR}"/>'
            f'<text x="{196 + wide:.1f}" y="{y + 13}">{escape(shown)}</text>'
        )
    return _figure(title, 190 + _WIDTH + 120, height * len(values), "".join(drawn))


def _strip(name: str, tasks: Sequence[float]) -> str:
    """One line for each task at its seconds, so that those behind are seen."""
    most = tasks[-1] or 1
    lines = "".join(
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="22"/>'
        for x in (190 + _WIDTH * one / most for one in tasks)
    )
    base = f'<line class="axis" x1="190" x2="{190 + _WIDTH}" y1="22" y2="22"/>'
    ends = (
        f'<text x="0" y="17">{escape(name)}</text><text x="190" y="38">0 s</text>'
        f'<text x="{196 + _WIDTH}" y="26">{most:.2f} s</text>'
    )
    return _figure(f"Tasks of {name} by seconds", 190 + _WIDTH + 120, 42, base + lines + ends)


def _figure(title: str, width: float, height: float, drawn: str) -> str:
    name = escape(title)
    return (
        f"<figure><figcaption>{name}</figcaption>"
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" role="img"'
        f' aria-label="{name}">{drawn}</svg></figure>'
    )


def _table(heads: Iterable[str], rows: Iterable[Sequence[str]], *, numbers: bool = True) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    kind = "numbers" if numbers else "texts"
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


_STYLE = """
:root{color-scheme:light dark;--ink:#1d2129;--back:#fff;--line:#9aa3af;--bar:#3b6ea5}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8ec;--back:#14171c;--line:#6b7480;--bar:#7fb0e0}}
body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main{max-width:920px;margin:0 auto;padding:24px}
h1{font-size:22px}h2{font-size:18px;margin-top:32px;border-bottom:1px solid var(--line)}
h3{font-size:15px;margin:20px 0 4px}.state{font-weight:600}
dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 16px}dt{font-weight:600}
dd{margin:0;overflow-wrap:anywhere}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:8px 0;width:100%}
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid var(--line);vertical-align:top}
.numbers td+td,.numbers th+th{text-align:right;font-variant-numeric:tabular-nums}
.texts td{overflow-wrap:anywhere}
.texts td:last-child{font-family:ui-monospace,monospace;font-size:13px}
pre{white-space:pre-wrap;border:1px solid var(--line);padding:8px}
figure{margin:14px 0}figcaption{font-weight:600;margin-bottom:6px}
svg{max-width:100%;height:auto;fill:var(--ink);font:13px system-ui,sans-serif}
rect{fill:var(--bar);stroke:var(--ink)}line{stroke:var(--ink);stroke-width:2;opacity:.7}.axis{stroke-width:1}
""".replace("\n", "")
