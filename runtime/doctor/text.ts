/** Writes the doctor's report for people. @module */
import type { DoctorReport } from "./report.ts";

/** The report as lines of text. */
export function formatReport(report: DoctorReport): string {
  const { versions } = report;
  return [
    [
      `Stagger ${versions.stagger ?? "(version unknown)"}`,
      `Deno ${versions.deno}`,
      versions.tfjs === undefined ? "TensorFlow.js cannot be loaded" : `TensorFlow.js ${versions.tfjs}`,
    ].join(", "),
    section("Machine", machineRows(report)),
    section("libtensorflow", tensorflowRows(report)),
    section("WebAssembly", [["kernels", wasmKernels(report)]]),
    section("NVIDIA", nvidiaRows(report)),
    section("Fetching", fetchingRows(report)),
    section("Used", [
      ["engine", report.engine ?? "none works"],
      ["devices", report.devices.join(" ") || "none"],
    ]),
    ...adviceLines(report),
  ].join("\n");
}

type Row = readonly [label: string, text: string];

function section(title: string, rows: readonly Row[]): string {
  const width = Math.max(...rows.map(([label]) => label.length));
  return [`\n${title}`, ...rows.map(([label, text]) => `  ${label.padEnd(width)}  ${text}`)].join("\n");
}

function machineRows({ machine }: DoctorReport): Row[] {
  const features = machine.cpuFeatures.join(" ");
  const rows: Row[] = [
    ["system", machine.os],
    ["processor", features === "" ? machine.cpu : `${machine.cpu}: ${features}`],
    ["cores", `${machine.cores} allowed: ${machine.allowedCores.join(" ")}`],
    ["memory", `${gigabytes(machine.memory)}, ${gigabytes(machine.memoryAvailable)} available`],
  ];
  if (machine.cpuQuota !== undefined) {
    rows.push(["cpu limit", `the time of ${machine.cpuQuota} cores (control group)`]);
  }
  if (machine.memoryLimit !== undefined) {
    rows.push(["memory limit", `${gigabytes(machine.memoryLimit)} (control group)`]);
  }
  return rows;
}

function tensorflowRows({ search, tensorflow }: DoctorReport): Row[] {
  const rows = search.map(({ origin, place, outcome, detail }): Row => {
    if (outcome === "found") return [origin, `${place}: found, ${detail}`];
    return [origin, `${place}: ${detail}`];
  });
  if (tensorflow === undefined) return [...rows, ["found", "none"]];
  const { version, devices, fault, cudaLibraries } = tensorflow;
  if (fault !== undefined) return [...rows, ["works", `no: ${fault}`]];
  rows.push(["version", version ?? "unknown"], ["sees", devices.join(" ")]);
  if (tensorflow.build !== "cpu") rows.push(["CUDA", `${cudaLibraries.length} NVIDIA libraries beside it`]);
  return rows;
}

function wasmKernels({ wasm: { simd, relaxedSimd } }: DoctorReport): string {
  if (relaxedSimd) return "Stagger's own (relaxed SIMD)";
  return simd ? "TensorFlow.js's with SIMD, slower" : "TensorFlow.js's without SIMD, several times slower";
}

function nvidiaRows({ nvidia }: DoctorReport): Row[] {
  if (!nvidia.driver) return [["driver", "none"]];
  const version = nvidia.cudaVersion === undefined ? "" : `, CUDA up to ${nvidia.cudaVersion}`;
  return [
    ["driver", nvidia.problem === undefined ? `there${version}` : `${nvidia.problem}${version}`],
    ...nvidia.devices.map((
      { index, name, memory },
    ): Row => [`cuda:${index}`, `${name}, ${gigabytes(memory)}`]),
  ];
}

function fetchingRows({ python, cache }: DoctorReport): Row[] {
  const pip = python?.pip === undefined ? "no pip" : `pip ${python.pip}`;
  return [
    ["python", python === undefined ? "none" : `${python.command} ${python.version}, ${pip}`],
    ["cache", cache.folder === undefined ? "no place for one" : `${cache.folder}, ${gigabytes(cache.bytes)}`],
  ];
}

function adviceLines({ advice }: DoctorReport): string[] {
  if (advice.length === 0) return [];
  return ["\nTo do", ...advice.map(({ problem, remedy }) => `  - ${problem}\n    ${remedy}`)];
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
