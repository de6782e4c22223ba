/**
 * Losses and metrics of segmentation. Each takes masks of 0 and 1 and the model's logits, both `[batch, height,
 * width, classes]`, and gives one value per sample, `[batch]`.
 *
 * Workers get a function by its source: each stands alone, so what two have in common is written twice.
 * @module
 */
import { tf } from "../deps.ts";

/**
 * Binary cross-entropy of the sigmoid of logits, the mean over pixels and classes: PyTorch's
 * `BCEWithLogitsLoss`. Computed from the logits as `max(x, 0) - x z + log(1 + exp(-|x|))`, which neither
 * overflows nor loses small values (TensorFlow, `sigmoid_cross_entropy_with_logits`).
 *
 * @param masks `[batch, ...]`, from 0 to 1
 * @param logits of the same shape
 * @returns `[batch]`
 */
export function binaryCrossentropyFromLogits(masks: tf.Tensor, logits: tf.Tensor): tf.Tensor {
  const linear = tf.sub(tf.relu(logits), tf.mul(logits, masks));
  const losses = tf.add(linear, tf.log1p(tf.exp(tf.neg(tf.abs(logits)))));
  return tf.mean(tf.reshape(losses, [logits.shape[0]!, -1]), 1);
}

/**
 * One less the soft Dice coefficient, `1 - (2 Σ p g + 1) / (Σ p² + Σ g² + 1)`, over the pixels of each image
 * and class, p the sigmoid of the logits and g the mask; then the mean over classes. The 1 makes it 0 where both
 * are empty.
 *
 * Source: Milletari et al., "V-Net: Fully Convolutional Neural Networks for Volumetric Medical Image
 * Segmentation", 2016, section 3, without the 1.
 *
 * @param masks `[batch, ..., classes]`
 * @param logits of the same shape
 * @returns `[batch]`
 */
export function diceLoss(masks: tf.Tensor, logits: tf.Tensor): tf.Tensor {
  const pixels = [logits.shape[0]!, -1, logits.shape[logits.rank - 1]!];
  const g = tf.reshape(masks, pixels);
  const p = tf.sigmoid(tf.reshape(logits, pixels));
  const both = tf.sum(tf.mul(p, g), 1);
  const squares = tf.add(tf.sum(tf.square(p), 1), tf.sum(tf.square(g), 1));
  return tf.mean(tf.sub(1, tf.div(tf.add(tf.mul(both, 2), 1), tf.add(squares, 1))), 1);
}

/**
 * The sum of {@linkcode binaryCrossentropyFromLogits} and {@linkcode diceLoss}.
 *
 * @param masks `[batch, ..., classes]`
 * @param logits of the same shape
 * @returns `[batch]`
 */
export function bceDiceLoss(masks: tf.Tensor, logits: tf.Tensor): tf.Tensor {
  const pixels = [logits.shape[0]!, -1, logits.shape[logits.rank - 1]!];
  const g = tf.reshape(masks, pixels);
  const x = tf.reshape(logits, pixels);
  const losses = tf.add(tf.sub(tf.relu(x), tf.mul(x, g)), tf.log1p(tf.exp(tf.neg(tf.abs(x)))));
  const p = tf.sigmoid(x);
  const both = tf.sum(tf.mul(p, g), 1);
  const squares = tf.add(tf.sum(tf.square(p), 1), tf.sum(tf.square(g), 1));
  const dice = tf.sub(1, tf.div(tf.add(tf.mul(both, 2), 1), tf.add(squares, 1)));
  return tf.add(tf.mean(losses, [1, 2]), tf.mean(dice, 1));
}

/**
 * Intersection over union of the predicted mask, where the logit is above 0 (probability above 1/2), and the
 * true one, where the mask is above 1/2: of each image and class, then the mean over classes. Two empty masks
 * count 1.
 *
 * @param masks `[batch, ..., classes]`
 * @param logits of the same shape
 * @returns `[batch]`
 */
export function iou(masks: tf.Tensor, logits: tf.Tensor): tf.Tensor {
  const pixels = [logits.shape[0]!, -1, logits.shape[logits.rank - 1]!];
  const truth = tf.cast(tf.greater(tf.reshape(masks, pixels), 0.5), "float32");
  const found = tf.cast(tf.greater(tf.reshape(logits, pixels), 0), "float32");
  const both = tf.sum(tf.mul(truth, found), 1);
  const either = tf.sum(tf.maximum(truth, found), 1);
  const empty = tf.cast(tf.equal(either, 0), "float32");
  return tf.mean(tf.div(tf.add(both, empty), tf.add(either, empty)), 1);
}

/**
 * Dice coefficient, twice the intersection over the sum of both sizes, of the masks that {@linkcode iou}
 * compares. Two empty masks count 1.
 *
 * @param masks `[batch, ..., classes]`
 * @param logits of the same shape
 * @returns `[batch]`
 */
export function dice(masks: tf.Tensor, logits: tf.Tensor): tf.Tensor {
  const pixels = [logits.shape[0]!, -1, logits.shape[logits.rank - 1]!];
  const truth = tf.cast(tf.greater(tf.reshape(masks, pixels), 0.5), "float32");
  const found = tf.cast(tf.greater(tf.reshape(logits, pixels), 0), "float32");
  const both = tf.sum(tf.mul(truth, found), 1);
  const sizes = tf.add(tf.sum(truth, 1), tf.sum(found, 1));
  const empty = tf.cast(tf.equal(sizes, 0), "float32");
  return tf.mean(tf.div(tf.add(tf.mul(both, 2), empty), tf.add(sizes, empty)), 1);
}
