/** The report page's style sheet: light or dark as the reader prefers, nothing fetched. @module */

/** CSS of the page. */
export const PAGE_STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1c2024; --quiet: #5c6570; --line: #dfe3e8;
  --band: #f6f8fa; --gain: #006d50; --loss: #b13c00; }
@media (prefers-color-scheme: dark) { :root { --paper: #16191d; --ink: #e8eaed; --quiet: #9aa4b0;
  --line: #32383f; --band: #1e2227; --gain: #3fcb9f; --loss: #ff8f5c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2rem 1.25rem 4rem; max-width: 86rem; background: var(--paper);
  color: var(--ink); font: 15px/1.55 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { margin: 0; font-size: 1.75rem; line-height: 1.25; }
h1.part { margin: 3.5rem 0 .4rem; padding-top: 1.25rem; border-top: 2px solid var(--line); }
h2 { margin: 2.75rem 0 .6rem; font-size: 1.2rem; }
p { margin: .4rem 0; max-width: 62rem; }
.quiet, figcaption, dt { color: var(--quiet); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.25rem; margin: .5rem 0; }
dd { margin: 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%;
  font-size: .84rem; }
th, td { padding: .4rem .5rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { vertical-align: bottom; font-weight: 600; line-height: 1.3; }
th small { display: block; color: var(--quiet); font-weight: 400; }
th.text, td.text { text-align: left; }
td.long { white-space: normal; min-width: 9.5rem; overflow-wrap: anywhere; }
tbody tr:nth-child(even) { background: var(--band); }
.gain { color: var(--gain); font-weight: 600; }
.loss { color: var(--loss); font-weight: 600; }
.examples { display: flex; flex-wrap: wrap; gap: .75rem; }
figure.example { display: flex; gap: .35rem; margin: 0; padding: .35rem; }
figure.example img { width: 112px; height: auto; image-rendering: pixelated; }
figure { margin: .5rem 0 1.5rem; padding: .75rem; border: 1px solid var(--line); border-radius: 8px; }
figure svg { display: block; max-width: 100%; height: auto; }
figcaption { margin-top: .5rem; max-width: 62rem; }
`;
