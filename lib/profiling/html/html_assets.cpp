// SPDX-License-Identifier: Apache-2.0
#include "lib/profiling/html/html_assets.h"

namespace vartml::profiling {

const char* const html_style = R"(
:root { color-scheme: light dark; --page: #f5f7f9; --card: #fff; --line: #dde3ea; --ink: #17202a; --dim: #5b6875;
  --accent: #0b7a4b; --compute: #2f6fde; --memory: #d9730d; --overhead: #8a63d2; --host: #7d8894; --roof: #b3261e; }
@media (prefers-color-scheme: dark) {
  :root { --page: #11161c; --card: #171e26; --line: #2b3440; --ink: #e8edf2; --dim: #93a1b1; --accent: #4cc38a;
    --compute: #6c9cf5; --memory: #f0a04b; --overhead: #b497ea; --host: #93a1b1; --roof: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.45 system-ui, "DejaVu Sans", sans-serif; }
main { max-width: 76rem; margin: auto; padding: 1rem; }
h1 { font-size: 1.4rem; margin: .2rem 0 .1rem; overflow-wrap: anywhere; }
h2 { margin: 0 0 .7rem; font-size: .85rem; font-weight: 600; color: var(--dim); text-transform: uppercase; letter-spacing: .05em; }
section { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; margin: 0 0 1rem; }
.sub, .note { color: var(--dim); font-size: .87rem; margin: .5rem 0 0; overflow-wrap: anywhere; }
.sub { margin: 0 0 1rem; }
code { font-size: .93em; }
dl { margin: 0; }
dl.facts div { display: grid; grid-template-columns: 8rem minmax(0, 1fr); gap: .2rem 1rem; padding: .2rem 0; border-top: 1px solid var(--line); }
dl.facts div:first-child { border-top: 0; }
dt { color: var(--dim); }
dd { margin: 0; overflow-wrap: anywhere; }
dl.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .6rem; margin-bottom: .8rem; }
dl.figures dt { font-size: .8rem; }
dl.figures dd { font-size: 1.25rem; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
dl.figures small { font-size: .75rem; font-weight: 400; color: var(--dim); }
.sentence { font-size: 1.25rem; font-weight: 600; margin: 0 0 .7rem; }
.shares { display: flex; height: 1.7rem; border-radius: .4rem; overflow: hidden; background: var(--line); }
.shares i { display: block; min-width: 1px; }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1.1rem; margin: .5rem 0; padding: 0; font-size: .87rem; }
.legend i, .note i { display: inline-block; width: .75rem; height: .75rem; border-radius: .2rem; margin-right: .35rem; vertical-align: -.05rem; }
.note i { margin: 0 .1rem; }
i.compute { background: var(--compute); } i.memory { background: var(--memory); }
i.overhead { background: var(--overhead); } i.host { background: var(--host); } i.device { background: var(--accent); }
ul.hints { margin: .6rem 0 0; padding-left: 1.3rem; overflow-wrap: anywhere; }
.wide { overflow: auto; max-height: 32rem; margin: 0 -1rem; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .87rem; min-width: 100%; }
th, td { text-align: right; padding: .22rem 0 .22rem 1rem; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: var(--card); font-weight: 400; z-index: 1; }
th.name, td.name { text-align: left; }
td.name { max-width: 22rem; overflow: hidden; text-overflow: ellipsis; }
th:first-child, td:first-child { padding-left: 0; }
th button { all: unset; cursor: pointer; color: var(--dim); }
th button:focus-visible { outline: 2px solid var(--accent); }
th[aria-sort] button { color: var(--ink); font-weight: 600; }
th[aria-sort=ascending] button::after { content: " ▲"; }
th[aria-sort=descending] button::after { content: " ▼"; }
.pairs { display: grid; grid-template-columns: minmax(5rem, 14rem) minmax(0, 1fr); gap: .3rem .8rem; margin-top: 1rem; font-size: .87rem; align-items: center; }
.pairs b { font-weight: 400; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.pairs i { display: block; height: .45rem; border-radius: .2rem; margin: .1rem 0; min-width: 1px; }
i.est { background: var(--host); } i.meas { background: var(--accent); }
.lane { margin-bottom: .5rem; }
.lane b { display: block; font-size: .8rem; font-weight: 400; color: var(--dim); }
.lane svg { display: block; width: 100%; height: 2.2rem; background: var(--page); border-radius: .3rem; }
.lane svg.bars { height: 9rem; }
.lane rect { stroke: var(--card); stroke-width: .6px; vector-effect: non-scaling-stroke; }
.lane rect.picked { stroke: var(--ink); stroke-width: 2px; }
.axis { display: flex; justify-content: space-between; color: var(--dim); font-size: .8rem; font-variant-numeric: tabular-nums; }
.k0 { fill: #2f6fde; background: #2f6fde; } .k1 { fill: #1a9a6c; background: #1a9a6c; } .k2 { fill: #e08a1e; background: #e08a1e; }
.k3 { fill: #8a63d2; background: #8a63d2; } .k4 { fill: #c94f7c; background: #c94f7c; } .k5 { fill: #17a2b8; background: #17a2b8; }
.k6 { fill: #a08420; background: #a08420; } .k7 { fill: #7d8894; background: #7d8894; }
svg.plot { display: block; width: 100%; max-width: 34rem; margin: auto; }
svg.plot text { fill: var(--dim); font-size: 11px; }
svg.plot .grid { stroke: var(--line); } svg.plot .roof { stroke: var(--roof); stroke-width: 2; }
circle { fill-opacity: .75; } circle.compute { fill: var(--compute); } circle.memory { fill: var(--memory); }
circle.picked { stroke: var(--ink); stroke-width: 2; }
details summary { cursor: pointer; color: var(--dim); }
pre { overflow: auto; font-size: .8rem; line-height: 1.35; max-height: 32rem; }
@media (max-width: 40rem) { .pairs { grid-template-columns: minmax(5rem, 38%) minmax(0, 1fr); }
  main { padding: .5rem; } section { padding: .8rem; } .wide { margin: 0 -.8rem; padding: 0 .8rem; }
  dl.facts div { grid-template-columns: minmax(0, 1fr); gap: 0; } td.name { max-width: 14rem; } th, td { padding-left: .7rem; } }
)";

const char* const html_script = R"(
for (const table of document.querySelectorAll('table.sortable')) {
  const heads = [...table.tHead.rows[0].cells], body = table.tBodies[0], first = [...body.rows];
  heads.forEach((head, column) => head.firstChild.addEventListener('click', () => {
    const down = head.getAttribute('aria-sort') !== 'descending';
    heads.forEach(other => other.removeAttribute('aria-sort'));
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const text = row => row.cells[column] ? row.cells[column].textContent : '';
    const value = row => text(row).trim() === '' ? NaN : Number(text(row).replace('%', ''));
    const rows = first.map(row => ({ row, text: text(row), value: value(row) }));
    rows.sort((a, b) => {
      if (isNaN(a.value) !== isNaN(b.value)) return isNaN(a.value) ? 1 : -1;
      const order = isNaN(a.value) ? (a.text < b.text ? 1 : a.text > b.text ? -1 : 0) : a.value - b.value;
      return down ? -order : order;
    });
    body.append(...rows.map(entry => entry.row));
  }));
}
let picked = null;
for (const mark of document.querySelectorAll('.lane rect, svg.plot circle'))
  mark.addEventListener('click', () => {
    if (picked) picked.classList.remove('picked');
    picked = mark;
    mark.classList.add('picked');
    const line = mark.closest('section').querySelector('.picked-line');
    if (line) line.textContent = mark.firstElementChild.textContent;
  });
)";

}  // namespace vartml::profiling
