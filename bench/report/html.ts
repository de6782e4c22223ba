/** The comparison as one self-contained page. @module */
import { html, raw } from "../deps.ts";
import { PUBLISHED_RESNET50 } from "../references.ts";
import type { BenchResults } from "../results.ts";
import { type Column, COLUMNS, signed } from "./columns.ts";
import { describeDevices, describeMachine, describeSettings } from "./describe.ts";
import { PAGE_STYLE } from "./page_style.ts";
import { type Row, rowsOf } from "./rows.ts";

/** A plot of the page. */
export interface Plot {
  readonly title: string;
  /** Trusted: goes into the page as it is. */
  readonly svg: string;
  readonly caption: string;
}

type Html = ReturnType<typeof html>;

const PUBLISHED =
  "Measured by others on other hardware: they show what such a comparison looked like elsewhere, " +
  "not what this machine should reach.";

const READING =
  "Sequential trains the whole model on one device. Model parallel cuts it into stages, one on each " +
  "device, and lets one device work at a time: it saves memory, not time. A pipeline cuts the batch into " +
  "micro-batches as well, so that the stages work at once; its schedules differ in what a device does when.";

/** The page: where and how it ran, the table, the plots, published figures, how to read it. */
export function reportHtml(results: BenchResults, plots: readonly Plot[]): string {
  const { resnet50 } = results;
  const page = html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <title>Stagger: training on several devices, compared</title>
        <style>${raw(PAGE_STYLE)}</style>
      </head>
      <body>
        <header>
          <h1>Training on several devices, compared</h1>
          <p class="quiet">${resnet50 === undefined
            ? "Nothing was measured."
            : describeSettings(resnet50)}</p>
        </header>
        <main>
          ${[whereSection(results), tableSection(results), plots.map(plotSection)]}
          ${[publishedSection(), readingSection()]}
        </main>
      </body>
    </html>
  `;
  return String(page).trimStart();
}

function whereSection(results: BenchResults): Html {
  const { machine, engine, date, resnet50 } = results;
  const devices = resnet50 === undefined ? `engine ${engine}` : describeDevices(results);
  return html`
    <dl>
      <dt>machine</dt>
      <dd>${describeMachine(machine)}</dd>
      <dt>devices</dt>
      <dd>${devices}</dd>
      <dt>date</dt>
      <dd><time datetime="${date}">${date}</time></dd>
    </dl>
  `;
}

function tableSection(results: BenchResults): Html | string {
  const rows = rowsOf(results.resnet50);
  if (rows.length === 0) return "";
  const head = COLUMNS.map(({ title, unit, meaning, text }) =>
    html`<th scope="col" class="${text ? "text" : ""}" title="${meaning}">${title}<small>${unit}</small></th>`
  );
  const body = rows.map((row) => html`<tr>${COLUMNS.map((column) => cell(column, row))}</tr>`);
  return html`
    <h2>Strategies</h2>
    <div class="wide">
      <table>
        <thead>
          <tr>${head}</tr>
        </thead>
        <tbody>${body}</tbody>
      </table>
    </div>
  `;
}

function cell(column: Column, row: Row): Html {
  const names = [];
  if (column.text) names.push("text");
  if (column.title === "partition") names.push("long");
  if (column.title === "gain" && row.kind !== "single") {
    names.push(row.result.gainPercent < 0 ? "loss" : "gain");
  }
  return html`<td class="${names.join(" ")}">${column.cell(row)}</td>`;
}

function plotSection({ title, svg, caption }: Plot): Html {
  return html`
    <section>
      <h2>${title}</h2>
      <figure>${raw(svg)}<figcaption>${caption}</figcaption></figure>
    </section>
  `;
}

function publishedSection(): Html {
  const rows = PUBLISHED_RESNET50.map(({ strategy, label, gainPercent, source }) =>
    html`
      <tr>
        <td class="text">${strategy === "pipeline" ? "pipeline" : "model parallel"}</td>
        <td class="text">${label}</td>
        <td>${signed(gainPercent, 0)}</td>
        <td class="text long">${source}</td>
      </tr>
    `
  );
  return html`
    <section>
      <h2>Published figures</h2>
      <p>${PUBLISHED}</p>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col" class="text">strategy</th>
              <th scope="col" class="text">figure</th>
              <th scope="col">gain<small>%</small></th>
              <th scope="col" class="text">source</th>
            </tr>
          </thead>
          <tbody>${rows}</tbody>
        </table>
      </div>
    </section>
  `;
}

function readingSection(): Html {
  const columns = COLUMNS.map(({ title, unit, meaning }) =>
    html`
      <dt>${title} ${unit}</dt>
      <dd>${meaning}</dd>
    `
  );
  return html`
    <section>
      <h2>How to read this</h2>
      <p>${READING}</p>
      <dl>${columns}</dl>
    </section>
  `;
}
