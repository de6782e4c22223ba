/** The functions of Stagger's WebAssembly module. @module */

/** What the module exports; `../assembly/` says what the arguments mean. Addresses are in bytes. */
export interface SimdExports {
  multiply(job: number): void;
  workspaceBytes(): number;
  batchNorm(
    x: number,
    rows: number,
    channels: number,
    scale: number,
    offset: number,
    epsilon: number,
    y: number,
    mean: number,
    variance: number,
    inverse: number,
    partial: number,
  ): void;
  batchNormGradient(
    dy: number,
    x: number,
    rows: number,
    channels: number,
    scale: number,
    mean: number,
    inverse: number,
    dx: number,
    dScale: number,
    dOffset: number,
    partial: number,
  ): void;
  reluGradient(dy: number, y: number, length: number, dx: number): void;
  maxPoolGradient(
    dy: number,
    x: number,
    y: number,
    dx: number,
    batch: number,
    height: number,
    width: number,
    channels: number,
    rows: number,
    columns: number,
    filterHeight: number,
    filterWidth: number,
    strideY: number,
    strideX: number,
    top: number,
    left: number,
  ): void;
  depthwiseFilterGradient(
    x: number,
    dy: number,
    gradient: number,
    partial: number,
    batch: number,
    height: number,
    width: number,
    channels: number,
    rows: number,
    columns: number,
    filterHeight: number,
    filterWidth: number,
    strideY: number,
    strideX: number,
    dilationY: number,
    dilationX: number,
    top: number,
    left: number,
  ): void;
  nearestGradient(
    dy: number,
    rows: number,
    columns: number,
    rowOf: number,
    columnOf: number,
    dx: number,
    width: number,
    pixel: number,
  ): void;
  bilinearGradient: SimdExports["nearestGradient"];
  copyRows(
    from: number,
    fromStride: number,
    to: number,
    toStride: number,
    bytes: number,
    rows: number,
  ): void;
  gatherRows(from: number, indices: number, count: number, to: number, bytes: number): void;
  addRows(from: number, indices: number, count: number, to: number, rows: number, bytes: number): void;
  compare(
    op: number,
    a: number,
    aStep: number,
    b: number,
    bStep: number,
    length: number,
    to: number,
  ): void;
  extreme: SimdExports["compare"];
  select(condition: number, a: number, b: number, length: number, to: number): void;
  truthToFloat(from: number, length: number, to: number): void;
  tanh(x: number, length: number, y: number): void;
  momentumUpdate(
    weight: number,
    gradient: number,
    velocity: number,
    length: number,
    rate: number,
    momentum: number,
    nesterov: number,
    decay: number,
    newWeight: number,
    newVelocity: number,
  ): void;
  adamUpdate(
    weight: number,
    gradient: number,
    first: number,
    second: number,
    length: number,
    rate: number,
    beta1: number,
    rest1: number,
    beta2: number,
    rest2: number,
    correction1: number,
    correction2: number,
    epsilon: number,
    decay: number,
    keep: number,
    newWeight: number,
    newFirst: number,
    newSecond: number,
  ): void;
  philoxUniform(to: number, count: number, key: bigint, low: bigint, high: bigint): void;
}
