// SPDX-License-Identifier: Apache-2.0
#include "eval/report/page.h"

namespace winnow::eval {

const char* const kColours = R"css(
:root { color-scheme: light dark; --paper: #fdfdfc; --ink: #1f2328; --soft: #5c646d; --grid: #c9ced4; --stripe: #f1f3f5;
  --s0: #0a6cc4; --s1: #c2410c; --s2: #0f8a5f; --s3: #a6288f; --s4: #8a6d00; --s5: #0e8a9a; --s6: #c81e3a; --s7: #6d4fd0; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --ink: #e4e7ea; --soft: #9aa3ad; --grid: #4a5159; --stripe: #1d2125;
  --s0: #5aaef5; --s1: #f58b5a; --s2: #46c795; --s3: #e07ad0; --s4: #d6b53c; --s5: #4ac5d6; --s6: #f7707f; --s7: #a892f5; } }
)css";

const char* const kStyle = R"css(* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1400px; padding: 1rem; background: var(--paper); color: var(--ink); font: 16px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0.5rem 0; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 0.5rem; border-bottom: 2px solid var(--grid); }
h3 { font-size: 1.1rem; margin: 1.5rem 0 0.25rem; }
h4 { font-size: 0.95rem; margin: 1rem 0 0.25rem; }
p { margin: 0.25rem 0 0.75rem; color: var(--soft); max-width: 75ch; overflow-wrap: anywhere; }
a { color: var(--s0); }
.wide { overflow-x: auto; width: fit-content; max-width: 100%; border: 1px solid var(--grid); border-radius: 4px; }
table { border-collapse: separate; border-spacing: 0; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.6rem; text-align: right; white-space: nowrap; }
th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper); font-weight: normal; }
thead th { background: var(--stripe); vertical-align: bottom; border-bottom: 1px solid var(--grid); }
thead th:first-child { background: var(--stripe); }
thead small { display: block; }
small { color: var(--soft); font-size: 0.8em; font-weight: normal; }
tr.budget th, tr.budget td { background: var(--stripe); font-weight: 600; border-top: 1px solid var(--grid); }
td.text, thead th.text { text-align: left; white-space: normal; min-width: 14rem; }
ul { margin: 0.25rem 0 0.75rem; padding-left: 1.2rem; color: var(--soft); max-width: 75ch; overflow-wrap: anywhere; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1rem; }
.maps { display: grid; grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr)); gap: 0.5rem; }
.grids { display: flex; flex-wrap: wrap; gap: 0 1.5rem; }
.grids > div { min-width: 0; max-width: 100%; break-inside: avoid; }
figure { margin: 0; break-inside: avoid; }
figcaption { font-size: 0.9rem; font-weight: 600; }
.maps figcaption { font-size: 0.8rem; font-weight: normal; }
svg { display: block; width: 100%; height: auto; }
.maps svg { max-width: 20rem; }
@media screen and (max-width: 700px) {
  body { padding: 0.6rem; }
  .wide, .grids > div { width: 100%; }
  table, tbody, tr, th, td { display: block; }
  th, th:first-child, td, td.text { white-space: normal; overflow-wrap: anywhere; min-width: 0; }
  tr + tr { border-top: 1px solid var(--grid); }
  th:first-child { position: static; font-weight: 600; }
  td[data-column] { display: flex; gap: 0.5rem; }
  td[data-column]::before { content: attr(data-column); color: var(--soft); text-align: left; margin-right: auto; }
  thead, td:empty, td[data-column]:empty { display: none; }
}
@media print {
  :root { color-scheme: light; --paper: #fff; --ink: #000; --soft: #444; --grid: #bbb; --stripe: #eee;
    --s0: #0a6cc4; --s1: #c2410c; --s2: #0f8a5f; --s3: #a6288f; --s4: #8a6d00; --s5: #0e8a9a; --s6: #c81e3a; --s7: #6d4fd0; }
  body { max-width: none; padding: 0; font-size: 10pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .wide { overflow: visible; max-height: none; border: 0; }
  table { font-size: 7pt; }
  th, td { padding: 0.1rem 0.3rem; white-space: normal; }
  thead th, th:first-child { position: static; }
  thead { display: table-header-group; }
  tr { break-inside: avoid; }
  .charts { grid-template-columns: 1fr 1fr; }
  .maps { grid-template-columns: repeat(5, 1fr); }
  h2, h3, h4, h3 + p { break-after: avoid; }
  nav { display: none; }
}
)css";

}  // namespace winnow::eval
