/**
 * Every npm package that Stagger imports, with its version in full: an import map does not travel with a
 * module that is imported by URL. Packages that not every run needs are loaded on first use.
 * @module
 */
/** TensorFlow.js. */
export * as tf from "npm:@tensorflow/tfjs@4.22.0";
/** Calls between threads. */
export * as Comlink from "npm:comlink@4.4.2";
