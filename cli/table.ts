/** Tables without lines but one under the head. @module */
import { Table } from "./deps.ts";

/** Makes one; `push` rows into it. @param gap between columns */
export function plainTable(head: string[], colAligns: ("left" | "right")[], gap: string): Table.Table {
  const none = { top: "", "top-mid": "", "top-left": "", "top-right": "", left: "", right: "", mid: "" };
  return new Table({
    head,
    colAligns,
    style: { head: [], border: [], "padding-left": 0, "padding-right": 0 },
    chars: {
      ...none,
      "left-mid": "",
      "mid-mid": "",
      "right-mid": "",
      bottom: "",
      "bottom-mid": "",
      "bottom-left": "",
      "bottom-right": "",
      middle: gap,
    },
  });
}
