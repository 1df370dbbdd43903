"""The look of the lag page: by light and by dark, on paper too."""

from __future__ import annotations

STYLE = """
:root { --ink: #1c2733; --soft: #5d6b7a; --line: #d8dee6; --paper: #ffffff; --none: #eef1f4; color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ef; --soft: #9aa7b5; --line: #3a4552; --paper: #161c23; --none: #242c36; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 14px/1.5 system-ui, sans-serif; }
main { max-width: 1200px; margin: 0 auto; padding: 28px 24px 60px; }
h1 { font-size: 26px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 36px 0 8px; }
h3 { font-size: 14px; margin: 20px 0 4px; font-weight: 600; }
.about, .note { color: var(--soft); margin: 0 0 10px; }
svg { width: 100%; height: auto; display: block; overflow: visible; }
svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .tick { font-size: 11px; fill: var(--soft); }
svg .label { font-weight: 600; }
svg .axis { stroke: var(--soft); stroke-width: 1; }
svg .grid { stroke: var(--line); stroke-width: 1; }
svg .p95 { fill: none; stroke: var(--ink); stroke-width: 1.5; stroke-dasharray: 4 3; }
svg .hover { fill: transparent; }
svg .hover:hover { fill: var(--soft); fill-opacity: 0.15; }
svg rect.none { fill: var(--none); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 16px; margin: 8px 0; color: var(--soft); font-size: 12px; }
.key i { display: inline-block; width: 14px; height: 12px; margin-right: 6px; vertical-align: -1px; border-radius: 2px; }
.key i.none { background: var(--none); border: 1px solid var(--line); }
.key i.line { width: 22px; height: 0; border-radius: 0; border-top: 2px dashed var(--ink); vertical-align: 4px; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 8px; border-bottom: 1px solid var(--line); text-align: left; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: 12px; }
.n { text-align: right; }
.bar { display: inline-block; height: 9px; margin-right: 8px; border-radius: 2px; }
summary { cursor: pointer; color: var(--soft); }
@media print { main { max-width: none; padding: 0; } details { display: none; } }
"""
