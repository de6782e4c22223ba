/**
 * tfjs-core's published specs as one module.
 *
 * The package ships them compiled, as ES modules without file extensions, which Deno does not load. The bundle
 * has tfjs-core's ops within it; engine, environment, kernels, gradients and the Tensor class it shares with
 * Stagger's TensorFlow.js: tfjs-core keeps them on `globalThis`, and `checkShared` sees that it does.
 * @module
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import "npm:@tensorflow/tfjs-core@4.22.0";
import { loadEsbuild, type Plugin } from "../deps.ts";

/** The environment that every spec with a backend runs in. */
export interface TestEnvironment {
  /** Its name is part of the specs' names. */
  readonly name: string;
  readonly backendName: string;
  readonly flags: Readonly<Record<string, boolean | number | string>>;
  readonly isDataSync: boolean;
}

/** What the bundle exports. */
export interface SpecBundle {
  /** As the bundle's own tfjs-core sees them. */
  readonly ENGINE: unknown;
  readonly env: () => unknown;
  readonly getGlobalTensorClass: () => unknown;
  readonly getKernel: (name: string, backend: string) => unknown;
  readonly getGradient: (name: string) => unknown;
}

/** Finds packages in npm's cache: there is no folder `node_modules`. */
function npmCache(core: string): Plugin {
  // Written out: Deno sees only literal specifiers ahead of the run.
  const jasmine = import.meta.resolve("npm:jasmine-core@3.99.1/lib/jasmine-core/jasmine.js");
  const require = createRequire(core);
  return {
    name: "npm-cache",
    setup(build) {
      build.onResolve({ filter: /^jasmine-core\// }, () => ({ path: fileURLToPath(jasmine) }));
      build.onResolve({ filter: /^(seedrandom|long)$/ }, ({ path }) => ({ path: require.resolve(path) }));
      build.onResolve(
        { filter: /^[a-z]/ },
        ({ path, kind }) => kind === "entry-point" ? undefined : { path, external: true },
      ); // Node's own, on first use
    },
  };
}

/** Bundles the specs for `environment`. */
export async function bundleSpecs(environment: TestEnvironment): Promise<string> {
  const core = import.meta.resolve("npm:@tensorflow/tfjs-core@4.22.0/dist/tests.js");
  const folder = fileURLToPath(new URL(".", core));
  const esbuild = await loadEsbuild();
  try {
    const { outputFiles } = await esbuild.build({
      stdin: {
        // Modules run in the order in which they are imported: environments are set before specs are declared.
        contents: `
          import "stagger:environment";
          export { ENGINE } from "./engine";
          export { env } from "./environment";
          export { getGlobalTensorClass } from "./tensor";
          export { getGradient, getKernel } from "./kernel_registry";
          import "./public/chained_ops/register_all_chained_ops";
          import "./tests";
        `,
        resolveDir: folder,
      },
      bundle: true,
      write: false,
      format: "esm",
      platform: "node",
      mainFields: ["module", "main"],
      // The package declares its specs free of side effects: they would be left out.
      ignoreAnnotations: true,
      banner: {
        js: `import { createRequire } from "node:module"; const require = createRequire("file:///");`,
      },
      plugins: [environmentModule(environment, folder), npmCache(core)],
      logLevel: "silent",
    });
    return outputFiles[0]!.text;
  } finally {
    await esbuild.stop();
  }
}

function environmentModule(environment: TestEnvironment, folder: string): Plugin {
  return {
    name: "environment",
    setup(build) {
      build.onResolve({ filter: /^stagger:environment$/ }, ({ path }) => ({ path, namespace: "stagger" }));
      build.onLoad({ filter: /.*/, namespace: "stagger" }, () => ({
        contents: `import { setTestEnvs } from "./jasmine_util"; setTestEnvs([${
          JSON.stringify(environment)
        }]);`,
        resolveDir: folder,
      }));
    },
  };
}
