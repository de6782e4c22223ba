/** The report's page. @module */
import assert from "node:assert/strict";
import { reportHtml } from "../../bench/report/html.ts";
import { RESULTS } from "./fixtures.ts";

const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>';
const PLOTS = [{ title: "A <plot>", svg: SVG, caption: 'B & "C"' }];

Deno.test("reportHtml() escapes all text and takes plots as they are", () => {
  const page = reportHtml(RESULTS, PLOTS);
  assert.ok(page.includes("Xeon &amp; Sons &lt;2.5 GHz&gt;"));
  assert.ok(page.includes("A &lt;plot&gt;") && page.includes("B &amp; &quot;C&quot;"));
  assert.ok(!page.includes("<plot>") && !page.includes("Sons <"));
  assert.ok(page.includes(SVG));
});

Deno.test("reportHtml() escapes names that only peers and partitions bring", () => {
  const { resnet50 } = RESULTS;
  const evil = "<img src=x onerror=alert(1)>";
  const page = reportHtml({
    ...RESULTS,
    engine: evil,
    resnet50: {
      ...resnet50!,
      modelParallel: { ...resnet50!.modelParallel!, partition: [evil] },
      peers: { [evil]: resnet50!.peers!["torch single"]! },
    },
  }, []);
  assert.ok(!page.includes("<img"));
});

Deno.test("reportHtml() asks for nothing from elsewhere", () => {
  const page = reportHtml(RESULTS, PLOTS);
  assert.doesNotMatch(page, /<script|<link|@import|url\(|\s(?:src|href)=/i);
  assert.match(page, /Content-Security-Policy" content="default-src 'none'/);
});

Deno.test("reportHtml() has a table row a strategy, and the published figures with their sources", () => {
  const page = reportHtml(RESULTS, []);
  const rows = [...page.matchAll(/<tr>\s*<td class="text">([^<]*)<\/td>/g)].map((match) => match[1]);
  assert.deepEqual(rows.slice(0, 3), ["sequential", "model parallel", "pipeline gpipe"]);
  assert.equal(rows.length, 8 + 5);
  assert.match(page, /<td class="gain">\+81\.2<\/td>/);
  assert.match(page, /<td class="loss">-4\.0<\/td>/);
  assert.match(page, /Shen Li/);
  assert.match(page, /prefers-color-scheme: dark/);
});
