/** The npm packages that only commands need, with their versions in full. @module */
export { default as Table } from "npm:cli-table3@0.6.5";
