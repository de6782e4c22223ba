/** Cases by the kernel whose gradient they check. @module */
import type { GradientCase } from "../differences.ts";

/** By name of the kernel. */
export type Cases = Readonly<Record<string, readonly GradientCase[]>>;
