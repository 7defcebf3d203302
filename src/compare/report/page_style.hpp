// The style sheet of compare's page: light and dark, wide and narrow.
#pragma once

namespace concord {

inline constexpr const char* kPageStyle = R"css(
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b1f24; --soft: #57606a; --edge: #d8dee4; --grid: #e6eaee;
  --good: #1a7f37; --bad: #b3261e;
  --s0: #0b62b8; --s1: #b4540a; --s2: #1f7a4d; --s3: #8a3ffc; --s4: #b0256b; --s5: #5f6b00; --s6: #006d77; --s7: #7a4b2b;
  --noise: #6e7781;
  --h0: transparent; --h1: #e3f1e6; --h2: #f3eec2; --h3: #fbd9a0; --h4: #b3261e; --h4ink: #ffffff; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0f1318; --card: #181e25; --ink: #e8ecf1; --soft: #a3adb8; --edge: #313a45; --grid: #28303a;
  --good: #57c278; --bad: #ff8a80;
  --s0: #6cb2ff; --s1: #ffa657; --s2: #5fd08f; --s3: #c4a5ff; --s4: #ff8fc0; --s5: #cbd65c; --s6: #5ccfd9; --s7: #d9a580;
  --noise: #8d98a5;
  --h1: #163324; --h2: #3c3713; --h3: #573812; --h4: #e5534b; --h4ink: #14080a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, "Segoe UI", Roboto, sans-serif; }
main { max-width: 980px; margin: 0 auto; padding: 24px 16px 64px; }
h1, p, .legend li { overflow-wrap: anywhere; }
h1 { font-size: 1.55rem; line-height: 1.25; margin: 0 0 4px; }
h2 { font-size: 1.15rem; margin: 40px 0 4px; }
h3 { font-size: 1rem; margin: 20px 0 4px; }
p { margin: 4px 0 12px; max-width: 70ch; }
.soft { color: var(--soft); }
code { font: 0.92em ui-monospace, "Cascadia Mono", Menlo, monospace; overflow-wrap: anywhere; }
.verdict { display: block; margin: 16px 0; padding: 12px 16px; border-radius: 8px; background: var(--card);
  border: 1px solid var(--edge); border-left: 6px solid var(--good); }
.verdict.bad { border-left-color: var(--bad); }
.verdict > b { color: var(--good); } .verdict.bad > b { color: var(--bad); }
.verdict p { margin: 4px 0 0; max-width: none; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr)); gap: 12px; }
.card { background: var(--card); border: 1px solid var(--edge); border-radius: 8px; padding: 12px 16px;
  min-width: 0; max-width: 560px; }
.card h3 { margin: 0 0 2px; overflow-wrap: anywhere; }
.card dl { display: grid; grid-template-columns: auto 1fr; gap: 2px 12px; margin: 8px 0 0; }
.card dt { color: var(--soft); } .card dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 8px 0 0; padding: 0; list-style: none; }
.legend li { display: flex; align-items: center; gap: 7px; }
.legend b { flex: 0 0 auto; max-width: 60%; font-weight: 600; }
.key { flex: none; width: 18px; height: 0; border-top: 3px solid var(--c); border-radius: 2px; }
.key.dashed { border-top-style: dashed; }
.chart { background: var(--card); border: 1px solid var(--edge); border-radius: 8px; padding: 12px; margin: 8px 0 12px; }
.chart svg { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.narrow { display: none; }
svg text { fill: var(--soft); font: 12px system-ui, "Segoe UI", Roboto, sans-serif; }
svg .name { fill: var(--ink); }
.grid { stroke: var(--grid); } .axis, .tickmark { stroke: var(--soft); }
.line { fill: none; stroke: var(--c); stroke-width: 2; stroke-linejoin: round; }
.line.wideline { stroke-width: 6; stroke-opacity: 0.45; }
.line.dashed { stroke-dasharray: 6 4; stroke-width: 1.5; }
.mark { fill: var(--c); fill-opacity: 0.75; stroke: var(--card); stroke-width: 1; }
.mark.lone { fill-opacity: 1; }
.s0 { --c: var(--s0); } .s1 { --c: var(--s1); } .s2 { --c: var(--s2); } .s3 { --c: var(--s3); }
.s4 { --c: var(--s4); } .s5 { --c: var(--s5); } .s6 { --c: var(--s6); } .s7 { --c: var(--s7); }
.noise { --c: var(--noise); }
.scroll { overflow: auto; max-height: 75vh; background: var(--card); border: 1px solid var(--edge); border-radius: 8px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: 0.92rem; font-alternative-numeric: tabular-nums; }
th, td { padding: 5px 10px; border-bottom: 1px solid var(--grid); text-align: right; white-space: nowrap; vertical-align: top; }
thead th { position: sticky; top: 0; background: var(--card); color: var(--soft); font-weight: 600; z-index: 2; }
th:first-child { position: sticky; left: 0; background: var(--card); text-align: left; z-index: 1; font-weight: 500;
  white-space: normal; overflow-wrap: anywhere; min-width: 130px; max-width: 420px; }
thead th:first-child { z-index: 3; }
td small, th small { display: block; color: var(--soft); font-weight: 400; }
.h1 { background: var(--h1); } .h2 { background: var(--h2); } .h3 { background: var(--h3); }
.h4 { background: var(--h4); color: var(--h4ink); font-weight: 700; } .h4 small { color: inherit; }
.scale { display: flex; flex-wrap: wrap; gap: 6px; margin: 8px 0; font-size: 0.88rem; }
.scale span { padding: 2px 10px; border-radius: 5px; border: 1px solid var(--edge); }
.bar { display: block; height: 5px; margin: 3px 0 0 auto; border-radius: 3px; background: var(--c); min-width: 1px; }
details { margin: 12px 0; } summary { cursor: pointer; padding: 4px 0; font-weight: 600; }
summary:focus-visible, .scroll:focus-visible { outline: 2px solid var(--s0); outline-offset: 2px; }
@media (max-width: 719px) { .wide { display: none; } .narrow { display: block; } main { padding: 16px 10px 48px; }
  .chart { padding: 8px 4px; } .legend { padding: 0 8px; } th, td { padding: 5px 7px; }
  th:first-child { min-width: 112px; max-width: 150px; } }
)css";

}  // namespace concord
