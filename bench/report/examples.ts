/** Held-out images beside their masks and what the model makes of them, as PNG files inside the page. @module */
import { loadPngEncoder } from "../deps.ts";
import type { Example } from "../results.ts";

/** One image with its masks, each as a `data:` URI. */
export interface ExampleImages {
  readonly image: string;
  readonly mask: string;
  readonly prediction: string;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
}

/** Encodes examples for the page. */
export async function encodeExamples(examples: readonly Example[]): Promise<ExampleImages[]> {
  if (examples.length === 0) return [];
  const encode = await loadPngEncoder();
  return examples.map(({ width, height, image, mask, prediction }) => {
    const uri = (data: Uint8Array, channels: 1 | 3) =>
      `data:image/png;base64,${base64(encode({ width, height, data, channels, depth: 8 }))}`;
    return { width, height, image: uri(image, 3), mask: uri(mask, 1), prediction: uri(prediction, 1) };
  });
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
