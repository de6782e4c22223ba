/** Reads back what the plots drew, as far as the tests ask. @module */

/** A filled rectangle, in pixels. */
export interface Block {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** The rectangles filled with `fill`, in the order in which they were drawn. */
export function blocksOf(svg: string, fill: string): Block[] {
  const number = "(-?[\\d.]+)";
  const rectangle = new RegExp(
    `<path d="M${number} ${number}l${number} 0l0 ${number}l${number} 0Z" fill="${escape(fill)}"`,
    "g",
  );
  return [...svg.matchAll(rectangle)].map((match) => {
    const [x, y, width, height] = match.slice(1, 5).map(Number) as [number, number, number, number];
    return {
      x: Math.min(x, x + width),
      y: Math.min(y, y + height),
      width: Math.abs(width),
      height: Math.abs(height),
    };
  });
}

/** The texts, in the order in which they were drawn. */
export function textsOf(svg: string): string[] {
  return [...svg.matchAll(/<text [^>]*>([^<]*)<\/text>/g)].map((match) => match[1]!);
}

/** Where the first such text stands, in pixels. */
export function placeOf(svg: string, text: string): { x: number; y: number } {
  const tag = svg.match(new RegExp(`<text ([^>]*)>${escape(text)}</text>`))?.[1];
  if (tag === undefined) throw new Error(`Cannot find text "${text}" in the SVG`);
  const attribute = (name: string) => Number(tag.match(new RegExp(` ${name}="([^"]*)"`))?.[1] ?? 0);
  const [, x = 0, y = 0] = tag.match(/translate\(([\d.-]+) ([\d.-]+)\)/)?.map(Number) ?? [];
  return { x: x + attribute("x"), y: y + attribute("y") };
}

function escape(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
