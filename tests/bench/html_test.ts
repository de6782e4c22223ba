/** The report's page. @module */
import assert from "node:assert/strict";
import { reportHtml } from "../../bench/report/html.ts";
import { encodeExamples } from "../../bench/report/examples.ts";
import { decodeImage } from "../../runtime/data/decode.ts";
import { EXAMPLE, RESULTS, UNET } from "./fixtures.ts";

const SVG = '<svg xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>';
const PLOTS = [{ comparison: "resnet50", title: "A <plot>", svg: SVG, caption: 'B & "C"' }] as const;

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

Deno.test("reportHtml() asks for nothing from elsewhere", async () => {
  const page = reportHtml({ ...RESULTS, unet: UNET }, PLOTS, await encodeExamples([EXAMPLE]));
  assert.equal(page.match(/<img /g)!.length, 3);
  assert.doesNotMatch(page, /<script|<link|@import|url\(|\shref=|\ssrc="(?!data:image\/png;base64,)/i);
  assert.match(
    page,
    /Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:"/,
  );
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

Deno.test("reportHtml() has the U-Net's tables as published: every cut, the best in bold; then the strategies", () => {
  const page = reportHtml({ ...RESULTS, resnet50: undefined, unet: UNET }, []);
  assert.deepEqual(
    [...page.matchAll(/<strong>([^<]*)<\/strong>/g)].map((match) => match[1]),
    ["*0.600 (0.610, +2 %)"],
  );
  const rows = [...page.matchAll(/<tr>\s*<td class="text">([^<]*)<\/td>/g)].map((match) => match[1]);
  assert.deepEqual(rows, [
    "encoder3",
    "decoder4",
    "single",
    "data parallel ring",
    "data parallel parameter server",
    "model parallel",
    "pipeline best cut",
    "torch single",
    "data parallel",
    "pipeline",
  ]);
  assert.match(page, /best predicted: encoder3 in micro-batches of 4/);
  assert.match(page, /<td class="gain">1\.85<\/td>/);
});

Deno.test("encodeExamples() writes the pixels as they are", async () => {
  const [encoded] = await encodeExamples([EXAMPLE]);
  const pixels = async (uri: string) => {
    const bytes = Uint8Array.from(atob(uri.replace("data:image/png;base64,", "")), (c) => c.charCodeAt(0));
    return await decodeImage(bytes);
  };
  const { image, mask, prediction } = EXAMPLE;
  for (
    const [uri, data] of [[encoded!.image, image], [encoded!.mask, mask], [encoded!.prediction, prediction]]
  ) {
    assert.deepEqual([...(await pixels(uri as string)).data], [...data as Uint8Array]);
  }
});
