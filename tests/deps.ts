/**
 * The npm packages that only tests need, with their versions in full.
 * @module
 */
/** Properties that hold for whatever is drawn. */
export { default as fc } from "npm:fast-check@4.10.2";
