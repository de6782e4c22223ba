/** The comparisons as one self-contained page. @module */
import { html, raw } from "../deps.ts";
import type { BenchResults } from "../results.ts";
import { allreduceSection } from "./allreduce_section.ts";
import { type Column, NOTHING, signed } from "./columns.ts";
import { type Comparison, comparisonsOf } from "./comparisons.ts";
import { type CutsTable, cutText } from "./cuts.ts";
import { describeMachine, INTERRUPTED } from "./describe.ts";
import type { ExampleImages } from "./examples.ts";
import { PAGE_STYLE } from "./page_style.ts";
import type { Row } from "./rows.ts";

/** A plot of the page. */
export interface Plot {
  /** Whose it is. */
  readonly comparison: Comparison["key"] | "allreduce";
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
  "Sequential, or single, trains the whole model on one device. Data parallel gives each device the whole model and a " +
  "share of the batch, and averages their gradients: around a ring, or at one place. Model parallel cuts it into stages, one on each " +
  "device, and lets one device work at a time: it saves memory, not time. A pipeline cuts the batch into " +
  "micro-batches as well, so that the stages work at once; its schedules differ in what a device does when.";

const STRATEGY_NAMES = {
  dataParallel: "data parallel",
  modelParallel: "model parallel",
  pipeline: "pipeline",
} as const;

/** The page: for each comparison how it ran, its tables, plots, published figures; how to read it. */
export function reportHtml(
  results: BenchResults,
  plots: readonly Plot[],
  examples: readonly ExampleImages[] = [],
): string {
  const comparisons = comparisonsOf(results);
  const nothing = comparisons.length === 0 && !results.allreduce;
  const ofAllreduce = (plot: Plot) => plot.comparison === "allreduce";
  const policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:";
  const page = html`
    <!DOCTYPE html>
    <html lang="en">
      <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta http-equiv="Content-Security-Policy" content="${raw(policy)}">
        <title>Stagger: training on several devices, compared</title>
        <style>${raw(PAGE_STYLE)}</style>
      </head>
      <body>
        <header>
          <h1>Training on several devices, compared</h1>
          ${nothing ? html`<p class="quiet">Nothing was measured.</p>` : ""}
        </header>
        <main>
          ${whereSection(results)}
          ${comparisons.map((comparison) => comparisonSection(comparison, comparisons, plots, examples))}
          ${[allreduceSection(results.allreduce), plots.filter(ofAllreduce).map(plotSection)]}
          ${comparisons.length > 0 || nothing ? readingSection(comparisons) : ""}
        </main>
      </body>
    </html>
  `;
  return String(page).trimStart();
}

function whereSection({ machine, engine, date, interrupted }: BenchResults): Html {
  return html`
    <dl>
      <dt>machine</dt>
      <dd>${describeMachine(machine)}</dd>
      <dt>engine</dt>
      <dd>${engine}</dd>
      <dt>date</dt>
      <dd><time datetime="${date}">${date}</time></dd>
    </dl>
    ${interrupted ? html`<p>${INTERRUPTED}</p>` : ""}
  `;
}

function comparisonSection(
  comparison: Comparison,
  all: readonly Comparison[],
  plots: readonly Plot[],
  examples: readonly ExampleImages[],
): Html {
  const { key, title, settings, devices, cuts, rows } = comparison;
  return html`
    ${all.length > 1 ? html`<h1 class="part">${title}</h1>` : ""}
    <p class="quiet">${settings}<br>${devices}</p>
    ${cuts ? cutsSection(cuts) : ""}
    ${rows.length > 0 ? tableSection(comparison) : ""}
    ${plots.filter((plot) => plot.comparison === key).map(plotSection)}
    ${key === "unet" && examples.length > 0 ? examplesSection(examples) : ""}
    ${publishedSection(comparison)}
  `;
}

/** Partitions down, split sizes across, the best in bold. */
function cutsSection({ partitions, splitSizes, cells, notes }: CutsTable): Html {
  const body = partitions.map((partition, row) =>
    html`<tr><td class="text">${partition}</td>${
      cells[row]!.map((cell) => {
        const text = cell ? cutText(cell) : NOTHING;
        return html`<td>${cell?.best ? html`<strong>*${text}</strong>` : text}</td>`;
      })
    }</tr>`
  );
  return html`
    <h2>Partitions and split sizes</h2>
    <div class="wide">
      <table>
        <thead>
          <tr>
            <th scope="col" class="text">partition<small>stages begin at</small></th>
            ${splitSizes.map((size) => html`<th scope="col">${size}<small>split size</small></th>`)}
          </tr>
        </thead>
        <tbody>${body}</tbody>
      </table>
    </div>
    ${notes.map((note) => html`<p class="quiet">${note}</p>`)}
  `;
}

function tableSection(comparison: Comparison): Html {
  const { rows, columns } = comparison;
  const head = columns.map(({ title, unit, meaning, text }) =>
    html`<th scope="col" class="${text ? "text" : ""}" title="${meaning}">${title}<small>${unit}</small></th>`
  );
  const body = rows.map((row) =>
    html`<tr>${columns.map((column) => cell(column, row, comparison.verdict))}</tr>`
  );
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

function examplesSection(examples: readonly ExampleImages[]): Html {
  const picture = (uri: string, what: string, { width, height }: ExampleImages) =>
    html`<img src="${uri}" width="${width}" height="${height}" alt="${what}">`;
  const figures = examples.map((example) =>
    html`<figure class="example">${[
      picture(example.image, "image", example),
      picture(example.mask, "mask", example),
      picture(example.prediction, "prediction", example),
    ]}</figure>`
  );
  return html`
    <section>
      <h2>Images that were held out</h2>
      <p>Each with its mask, and with what the trained model takes for it: the brighter, the surer.</p>
      <div class="examples">${figures}</div>
    </section>
  `;
}

function cell(column: Column, row: Row, verdict: string): Html {
  const names = [];
  if (column.text) names.push("text");
  if (column.title === "partition") names.push("long");
  if (column.title === verdict && row.kind !== "single") {
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

function publishedSection({ published }: Comparison): Html {
  const rows = published.map(({ strategy, label, gainPercent, source }) =>
    html`
      <tr>
        <td class="text">${STRATEGY_NAMES[strategy]}</td>
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

function readingSection(comparisons: readonly Comparison[]): Html {
  const meanings = new Map(
    comparisons.flatMap(({ columns }) => columns.map((column) => [`${column.title} ${column.unit}`, column])),
  );
  const columns = [...meanings.values()].map(({ title, unit, meaning }) =>
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
