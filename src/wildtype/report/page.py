"""The frame of every page: one HTML file that asks for nothing from outside and runs no script.

Style and drawings stand in the page, and every text that comes from data passes `html_text`. A page follows
the reader's choice of light or dark, fits a phone, and prints in light.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from wildtype.report.table import NONE

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load and run: nothing; only the style that stands in the page counts."""


def html_text(value: object) -> str:
    """Return a value from data as text of the page: escaped, and encodable."""
    return escape(NONE if value is None else str(value).encode("utf-8", "replace").decode())


def html_page(title: str, body: str, style: str = "") -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        Plain text.
    body : str
        HTML.
    style : str
        What this kind of page adds to the style of all.
    """
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html_text(title)}</title>\n<style>{STYLE}{style}</style></head>\n<body>{body}</body></html>\n"
    )


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table that scrolls by itself where it is too wide; cells are HTML, the first heads its row.

    A row that begins with an empty string is set apart, as a total.
    """
    lines = []
    for row in rows:
        total, cells = (' class="total"', row[1:]) if row[0] == "" else ("", row)
        lines.append(
            f'<tr{total}><th scope="row">{cells[0]}</th>{"".join(f"<td>{c}</td>" for c in cells[1:])}'
        )
    heads = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table class="{kind}">'
        f"<caption>{caption}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(f'{line}</tr>' for line in lines)}</tbody></table></div>"
    )


STYLE = """
:root{--paper:#fff;--ink:#1c2126;--quiet:#5b6570;--line:#dde1e6;--band:#f5f6f8;--more:#a8442a;
--less:#2c6fa8;--hatch:#aeb5bd;--early:#8a5a00;--early-paper:#fff3d6}
@media (prefers-color-scheme:dark){:root{--paper:#15181c;--ink:#e4e7ea;--quiet:#9aa4ae;--line:#333a42;
--band:#1c2025;--more:#e58a6f;--less:#7fb6e6;--hatch:#59626b;--early:#ffd98a;--early-paper:#3b2f12}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
main{max-width:1120px;margin:0 auto;padding:32px 24px 48px}
h1{font-size:28px;font-weight:600;letter-spacing:-.01em;margin:0 0 20px}
h2{font-size:19px;font-weight:600;margin:0 0 12px;overflow-wrap:anywhere}
h3{font-size:14px;font-weight:500;color:var(--quiet);margin:20px 0 8px}
section{margin-top:44px} p{margin:0} svg{display:block} .defs{position:absolute}
code{font:12.5px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,260px),1fr));gap:16px}
.card{border:1px solid var(--line);border-radius:8px;padding:16px 18px;min-width:0;overflow-wrap:anywhere}
.card h2{font-size:15px;margin:0} .card p{color:var(--quiet);font-size:13.5px}
.card .big{font-size:30px;font-weight:600;color:var(--ink);margin:8px 0 4px;letter-spacing:-.01em;
line-height:1.2}
.card .none{font-size:17px;color:var(--ink);margin:8px 0}
.big small{font-size:14px;font-weight:400;color:var(--quiet);letter-spacing:0} .card b{color:var(--ink)}
.letter{display:inline-block;min-width:22px;padding:0 6px;border-radius:4px;background:var(--ink);
color:var(--paper);text-align:center;font-size:.82em;font-weight:600;font-variant-numeric:normal}
.early{padding:1px 8px;border-radius:4px;background:var(--early-paper);color:var(--early);font-size:12px;
font-weight:600;white-space:nowrap}
.sentences{margin:0 0 14px;padding-left:18px}
.scroll{overflow-x:auto;margin:0 0 24px} .scroll:focus-visible{outline:2px solid var(--less);
outline-offset:2px}
table{border-collapse:collapse;width:100%;font-size:13.5px} caption,figcaption{text-align:left;
color:var(--quiet);font-size:13.5px;margin:0 0 6px} caption{white-space:nowrap}
th,td{padding:4px 0 4px 20px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--line);
vertical-align:top} th{font-weight:400} thead th{color:var(--quiet);font-size:12.5px;vertical-align:bottom;
border-bottom-color:var(--quiet)} th:first-child{text-align:left;padding-left:0} .total>*{font-weight:600;
border-bottom:0} tr:has(+.total)>*{border-bottom-color:var(--quiet)}
.scroll th:first-child{position:sticky;left:0;background:var(--paper)}
.words td,.words th,.last-words td:last-child,.last-words th:last-child{text-align:left;white-space:normal}
.words td,.words th{overflow-wrap:anywhere;min-width:110px} .last-words td:last-child{min-width:220px}
.words th:first-child,.last-words td:first-child{color:var(--quiet)} .words th b{color:var(--ink);
font-weight:600}
.facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,440px),1fr));gap:8px 40px;
align-items:start}
figure{margin:0}
footer{margin-top:44px;border-top:1px solid var(--line);padding-top:14px;color:var(--quiet);font-size:13px}
@media (max-width:560px){main{padding:20px 14px 32px} h1{font-size:23px} .card .big{font-size:26px}}
@media print{:root{--paper:#fff;--ink:#000;--quiet:#444;--line:#ccc;--band:#f3f3f3;--hatch:#999;
--more:#a8442a;--less:#2c6fa8;--early:#5c3c00;--early-paper:#fff} *{print-color-adjust:exact;
-webkit-print-color-adjust:exact}
body{font-size:12px} main{max-width:none;padding:0} section{margin-top:24px} .scroll{overflow:visible}
.card,figure,tr{break-inside:avoid} h2,h3,caption{break-after:avoid} table{font-size:11px}
th,td{padding:2px 0 2px 10px}}
"""
