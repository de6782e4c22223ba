/** What the trainer's tests need to run. */
import { findTensorflow } from "../../runtime/tensorflow/library/find.ts";

/** Whether libtensorflow is there; without it, tests that need it are left out. */
export const hasTensorflow = findTensorflow() !== undefined;

/** Options of tests that need the engine "tensorflow". */
export const needsTensorflow = { ignore: !hasTensorflow, sanitizeResources: false, sanitizeOps: false };
