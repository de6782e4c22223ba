/** The npm packages that only the conformance run needs, with their versions in full. @module */
import type { BuildOptions, Plugin } from "npm:esbuild@0.28.2";

export type { BuildOptions, Plugin };

/** esbuild, on first use. Its program comes with its platform's package: no install script has to run. */
export const loadEsbuild = (): Promise<typeof import("npm:esbuild@0.28.2")> => import("npm:esbuild@0.28.2");

/** Jasmine 3, which tfjs-core's specs are written for. It is booted by hand: nothing else of it is used. */
export { default as jasmineRequire } from "npm:jasmine-core@3.99.1/lib/jasmine-core/jasmine.js";
