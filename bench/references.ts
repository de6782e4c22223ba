/** Published figures that this benchmark repeats. All were measured on other hardware. @module */
import type { Reference } from "./results.ts";

/** A published gain and the strategy it is of. */
export interface PublishedGain extends Reference {
  readonly strategy: "dataParallel" | "modelParallel" | "pipeline";
}

const COMPARISON =
  "Published comparison of sequential, model parallel and pipeline training of ResNet50 on GPUs";

const TUTORIAL =
  "Shen Li, Single-Machine Model Parallel Best Practices, PyTorch tutorials: ResNet50 on 2 GPUs, " +
  "128x128 images, batch 120, MSE loss on 1000 classes";

/** Gains against sequential training of ResNet50, in the order in which they are drawn. */
export const PUBLISHED_RESNET50: readonly PublishedGain[] = [
  { strategy: "modelParallel", label: "published", gainPercent: -40, source: COMPARISON },
  {
    strategy: "modelParallel",
    label: "PyTorch tutorial",
    gainPercent: -7,
    source: `${TUTORIAL}; 4.02 s against 3.75 s`,
  },
  { strategy: "pipeline", label: "published", gainPercent: 20, source: COMPARISON },
  {
    strategy: "pipeline",
    label: "PyTorch tutorial, split 20",
    gainPercent: 49,
    source: `${TUTORIAL}; micro-batches of 20, 2.51 s against 3.75 s`,
  },
  {
    strategy: "pipeline",
    label: "PyTorch tutorial, split 12",
    gainPercent: 54,
    source: `${TUTORIAL}; micro-batches of 12, the best of nine sizes, 2.43 s against 3.75 s`,
  },
];

const UNET_COMPARISON =
  "Published comparison of single, data parallel and pipelined model parallel training of a U-Net with a ResNet34 " +
  "encoder on 2 GPUs";

/** Gains against single-device training of U-Net. */
export const PUBLISHED_UNET: readonly PublishedGain[] = [
  {
    strategy: "dataParallel",
    label: "published",
    gainPercent: 30,
    source: `${UNET_COMPARISON}; 1.30 times as fast`,
  },
  {
    strategy: "pipeline",
    label: "published, best cut",
    gainPercent: 4,
    source: `${UNET_COMPARISON}; its best partition and split size, 1.04 times as fast`,
  },
];
