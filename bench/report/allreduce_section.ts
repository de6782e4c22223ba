/** Sums among workers, as a table of the page. @module */
import { html } from "../deps.ts";
import { type AllreduceResults, CONTESTANTS } from "../allreduce/results.ts";
import {
  bytesName,
  CONTESTANT_TITLES,
  gigabytes,
  headline,
  MEANING,
  percent,
  times,
} from "../allreduce/words.ts";

/** A row for each number of workers and size; nothing where nothing was measured. */
export function allreduceSection(results: AllreduceResults | undefined): ReturnType<typeof html> | string {
  if (!results || results.cases.length === 0) return "";
  const rows = results.cases.map(({ workers, bytes, timings, ringSpeedup }) =>
    html`
      <tr>
        <td>${workers}</td>
        <td>${bytesName(bytes)}</td>
        ${CONTESTANTS.map((name) => html`<td>${gigabytes(timings[name])}</td>`)}
        <td>${times(ringSpeedup.parameterServer)}</td>
        <td>${times(ringSpeedup.gloo)}</td>
        <td>${percent(ringSpeedup.memcpy)}</td>
      </tr>
    `
  );
  const skipped = results.skipped.map(({ workers, bytes, reason }) =>
    html`<p>Left out: ${bytesName(bytes)} between ${workers} workers ${reason}.</p>`
  );
  return html`
    <section>
      <h2>Sums between workers</h2>
      <p class="quiet">${headline(results)}</p>
      <div class="wide">
        <table>
          <thead>
            <tr>
              <th scope="col">workers</th>
              <th scope="col">each</th>
              ${CONTESTANTS.map((name) =>
                html`<th scope="col">${CONTESTANT_TITLES[name]}<small>GB/s</small></th>`
              )}
              <th scope="col">ring/server</th>
              <th scope="col">ring/gloo</th>
              <th scope="col">ring/memcpy</th>
            </tr>
          </thead>
          <tbody>${rows}</tbody>
        </table>
      </div>
      ${MEANING.map((line) => html`<p class="quiet">${line}</p>`)}
      ${skipped}
    </section>
  `;
}
