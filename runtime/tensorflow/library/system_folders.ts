/** Where the system's loader looks for shared libraries. @module */
import { delimiter } from "node:path";

/** Folders of the system's libraries, in the order they are searched: `LD_LIBRARY_PATH` first. */
export function systemFolders(): string[] {
  if (Deno.build.os !== "linux") return [];
  const named = (Deno.env.get("LD_LIBRARY_PATH") ?? "").split(delimiter).filter((folder) => folder !== "");
  const arch = `${Deno.build.arch}-linux-gnu`;
  return [
    ...new Set([
      ...named,
      "/usr/local/lib",
      `/usr/local/lib/${arch}`,
      "/usr/local/lib64",
      "/usr/lib",
      `/usr/lib/${arch}`,
      "/usr/lib64",
      `/lib/${arch}`,
      // Where NVIDIA's container tools and WSL put the driver.
      "/usr/local/nvidia/lib64",
      "/usr/lib/wsl/lib",
    ]),
  ];
}
