/** What to do about what the doctor found missing. @module */
import { commandLine } from "../commands.ts";
import type { Advice, DoctorReport } from "./report.ts";
import { TENSORFLOW_VERSION } from "../tensorflow/library/cache.ts";

type Examined = Omit<DoctorReport, "engine" | "devices" | "advice">;

/**
 * Goes through a report.
 *
 * @param tfjsFault why TensorFlow.js cannot be loaded, if it cannot
 */
export function adviceFor(report: Examined, tfjsFault?: string): Advice[] {
  return [
    ...aboutTfjs(tfjsFault),
    ...aboutTensorflow(report),
    ...aboutGpus(report),
    ...aboutLimits(report),
  ];
}

function* aboutTfjs(fault: string | undefined): Generator<Advice> {
  if (fault === undefined) return;
  yield {
    problem: `TensorFlow.js cannot be loaded: ${fault.split("\n")[0]}`,
    remedy: "Run this once with network, so that Deno can fetch its npm packages",
  };
}

function* aboutTensorflow({ search, tensorflow, python }: Examined): Generator<Advice> {
  const named = search.find((step) => step.origin === "path" && step.outcome === "unusable");
  if (named !== undefined) {
    yield {
      problem: `libtensorflow in ${named.place} cannot be used: ${named.detail}`,
      remedy: "Name a folder that holds it in STAGGER_TENSORFLOW, or unset that to search elsewhere",
    };
    return;
  }
  for (const { place, detail } of search.filter((step) => step.outcome === "unusable")) {
    yield {
      problem: `libtensorflow in ${place} cannot be used: ${detail}`,
      remedy: `Run "${commandLine("setup")}"`,
    };
  }
  if (tensorflow === undefined) {
    if (Deno.build.os !== "linux") {
      yield {
        problem:
          `The tensorflow engine is not to be had for ${Deno.build.os}: the slower wasm engine is used`,
        remedy: "Train on Linux (x86_64 or aarch64)",
      };
      return;
    }
    yield {
      problem: "libtensorflow is not there: the slower wasm engine is used",
      remedy: `Run "${commandLine("setup")}", or set STAGGER_TENSORFLOW to a folder that holds it`,
    };
    yield* aboutPython(python);
    return;
  }
  if (tensorflow.fault !== undefined) {
    yield {
      problem: `libtensorflow in ${tensorflow.directory} does not work: ${tensorflow.fault}`,
      remedy: tensorflow.origin === "path"
        ? "Name another one, or unset STAGGER_TENSORFLOW"
        : `Run "${commandLine("setup", tensorflow.origin === "cache" ? "--force" : "")}"`,
    };
  } else if (tensorflow.version !== TENSORFLOW_VERSION) {
    yield {
      problem: `TensorFlow ${tensorflow.version} was found: Stagger is tested with ${TENSORFLOW_VERSION}`,
      remedy: `If something fails, run "${commandLine("setup")}" to fetch that one`,
    };
  }
}

function* aboutPython(python: Examined["python"]): Generator<Advice> {
  if (python === undefined) {
    yield {
      problem: "Python 3 is not there: setup needs its pip",
      remedy: 'Install it, e.g. with "apt install python3-pip"',
    };
  } else if (python.pip === undefined) {
    yield {
      problem: `${python.command} has no pip: setup needs it`,
      remedy: `Install it, e.g. with "apt install python3-pip" or "${python.command} -m ensurepip"`,
    };
  }
}

function* aboutGpus({ nvidia, tensorflow }: Examined): Generator<Advice> {
  if (nvidia.problem !== undefined) {
    yield {
      problem: nvidia.problem,
      remedy: 'See what "nvidia-smi" says; in a container, give it the GPUs (docker run --gpus all)',
    };
  }
  if (tensorflow === undefined || tensorflow.fault !== undefined || nvidia.devices.length === 0) return;
  const seen = tensorflow.devices.filter((device) => device.startsWith("GPU:")).length;
  if (seen >= nvidia.devices.length) return;
  if (tensorflow.build === "cpu") {
    yield {
      problem: `The CPU build of libtensorflow is used, though there is ${nvidia.devices[0]!.name}`,
      remedy: tensorflow.origin === "path"
        ? "Name a CUDA build in STAGGER_TENSORFLOW, or unset it"
        : `Run "${commandLine("setup", "--build cuda")}"`,
    };
    return;
  }
  const log = tensorflow.gpuLog.length === 0 ? "" : `: ${tensorflow.gpuLog.join("; ")}`;
  yield {
    problem: `TensorFlow sees ${seen} of ${nvidia.devices.length} CUDA devices${log}`,
    remedy: `Run "${commandLine("setup", "--build cuda")}", which brings the NVIDIA libraries that it needs`,
  };
}

function* aboutLimits({ machine }: Examined): Generator<Advice> {
  const cores = machine.allowedCores.length;
  if (machine.cpuQuota !== undefined && machine.cpuQuota < cores) {
    yield {
      problem: `${cores} cores may be used, but the time of only ${machine.cpuQuota} (control group)`,
      remedy: "Raise the limit (docker run --cpus), or train on no more CPU devices than that",
    };
  }
  if (cores === 1 && machine.gpus.length < 2) {
    yield {
      problem: "Only one core may be used: there is nothing to spread training over",
      remedy: "Allow more cores (taskset, docker run --cpuset-cpus)",
    };
  }
}
