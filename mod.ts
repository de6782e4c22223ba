/**
 * Stagger trains TensorFlow.js models on several devices.
 *
 * ```ts ignore
 * import { distribute, resnet50, tf } from "./mod.ts";
 *
 * const model = resnet50({ inputShape: [64, 64, 3], classes: 10 }); // or any tf.LayersModel
 * const trainer = await distribute(model, { strategy: "pipeline", devices: ["cpu:0", "cpu:1"], microBatches: 8 });
 * trainer.compile({ optimizer: tf.train.momentum(0.05, 0.9), loss: "categoricalCrossentropy", metrics: ["accuracy"] });
 * const history = await trainer.fit(x, y, { batchSize: 32, epochs: 3 });
 * await trainer.dispose(); // the model holds the trained weights
 * ```
 * @module
 */
export { tf } from "./deps.ts";
export { distribute } from "./runtime/distribute.ts";
export type { ProgressReport } from "./runtime/coordinator/coordinator.ts";
export type { StepResult } from "./runtime/coordinator/step_result.ts";
export type { DistributeOptions, Recut, ResolvedOptions, StrategyName } from "./runtime/options.ts";
export type { Trainer } from "./runtime/trainer/trainer.ts";
export type {
  BatchedData,
  CompileArgs,
  Data,
  EvaluateArgs,
  FitArgs,
} from "./runtime/trainer/trainer_args.ts";
export type { Forecast, ForecastArgs, ForecastEntry } from "./runtime/cost_model/forecast.ts";
export type { Callbacks } from "./runtime/trainer/callbacks.ts";
export type {
  Prediction,
  StageCounters,
  TraceEvent,
  WorkerDevice,
  WorkerEngine,
} from "./runtime/protocol.ts";
export type { Tail } from "./runtime/data/distributed_sampler.ts";
export type { AlgorithmName } from "./ring/group_channel.ts";
export type { RingCounters } from "./ring/ring.ts";
export type { Action, ActionKind } from "./runtime/schedules/action.ts";
export type { LibraryPaths } from "./runtime/tensorflow/library/library.ts";
export { formatPlan, type Plan, type RoutePlan, type StagePlan } from "./runtime/plan.ts";
export { StageError } from "./runtime/errors.ts";
export type { EngineName, TensorflowOptions } from "./runtime/engines.ts";
export type { ScheduleName } from "./runtime/schedules/schedules.ts";
export { type AvailableDevices, availableDevices } from "./runtime/devices.ts";
export type { PartitionSpec } from "./stages/partition.ts";
export type { OptimizerConfig, OptimizerName } from "./stages/optimizers.ts";
export type { FunctionLike, ModuleFunction } from "./stages/functions.ts";
export type { LossArgs, PerOutput } from "./stages/losses.ts";
export type { LossFunction } from "./stages/tfjs.ts";
export { resnet50, type ResNet50Options } from "./stages/resnet50.ts";
export { unet, UNET_BLOCKS, type UNetBlock, type UNetOptions } from "./stages/unet.ts";
export { bceDiceLoss, binaryCrossentropyFromLogits, dice, diceLoss, iou } from "./stages/segmentation.ts";
export { mnist, type MnistOptions } from "./runtime/data/mnist.ts";
export { imageFolder, type ImageFolderOptions } from "./runtime/data/image_folder.ts";
export { digitMasks, type DigitMasksOptions } from "./runtime/data/digit_masks.ts";
export type { ImageShape } from "./runtime/data/image_files.ts";
export { imageMaskFolder, type ImageMaskFolderOptions } from "./runtime/data/image_mask_folder.ts";
export type { AugmentOptions } from "./runtime/data/augment.ts";
export { inMemory } from "./runtime/data/in_memory.ts";
export { synthetic, type SyntheticOptions } from "./runtime/data/synthetic.ts";
export type { Samples } from "./runtime/data/samples.ts";
export type { DType, TensorSpec } from "./ring/dtype.ts";
