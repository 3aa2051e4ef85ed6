/**
 * A matrix as a real table whose cells are coloured by size.
 *
 * The number stands in every cell and the legend in the caption, so that the colour only repeats what can be read.
 */

import { h } from "../dom.js";
import { scaleOf, stepOf } from "../scale.js";

/**
 * A table with one row for each of `rows` and one column for each of `columns`.
 *
 * @template R, C
 * @param {object} asked
 * @param {R[]} asked.rows
 * @param {C[]} asked.columns
 * @param {(row: R, column: C) => (number | null | undefined)} asked.value without one, or for NaN, a cell has no colour
 * @param {(value: number, row?: R, column?: C) => string} [asked.text] a value as it is read; the legend asks it, too
 * @param {string} asked.caption what the table shows
 * @param {string} [asked.corner] what the heads of the rows are, for example "Node"
 * @param {(row: R) => (string | Node)} [asked.rowHead] text or link at the head of a row; the row itself if left out
 * @param {(column: C) => (string | Node)} [asked.columnHead] the same for a column
 * @param {number[]} [asked.span] numbers that the colours must reach as well, for example [0, 1] for shares
 * @returns {HTMLElement} a region that scrolls sideways by itself, with the table in it
 */
export function heatMap(asked) {
  const { rows, columns, caption, corner = "", rowHead = String, columnHead = String } = asked;
  const text = asked.text ?? ((value) => value.toLocaleString("en"));
  const values = rows.map((row) => columns.map((column) => numberOrNull(asked.value(row, column))));
  const scale = scaleOf([...values.flat().filter((value) => value !== null), ...(asked.span ?? [])]);
  const cellAt = (at, place) => {
    const value = values[at][place];
    return value === null ? emptyCell() : cell(stepOf(scale, value), text(value, rows[at], columns[place]));
  };
  const body = rows.map((row, at) =>
    h("tr", null, h("th", { scope: "row" }, rowHead(row)), columns.map((_, place) => cellAt(at, place))),
  );
  const heads = columns.map((column) => h("th", { scope: "col" }, columnHead(column)));
  const table = h(
    "table",
    { class: "heat" },
    h("caption", null, caption, scale && legend(scale, text)),
    h("thead", null, h("tr", null, corner ? h("th", { scope: "col" }, corner) : h("td"), heads)),
    h("tbody", null, body),
  );
  // A region that scrolls must be reachable by keyboard.
  return h("div", { class: "scroll", role: "region", "aria-label": caption, tabindex: "0" }, table);
}

/** @returns {number | null} */
function numberOrNull(value) {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

function cell(step, said) {
  return h("td", { class: `step-${step}` }, said);
}

function emptyCell() {
  const said = h("span", { class: "unseen" }, "no value");
  return h("td", { class: "is-none" }, h("span", { "aria-hidden": "true" }, "–"), said);
}

/** Which colour stands for which values. */
function legend(scale, text) {
  const { bounds } = scale;
  const keys = bounds.slice(1).map((upper, at) => {
    const step = stepOf(scale, bounds[at]);
    const range = bounds[at] === upper ? text(upper) : `${text(bounds[at])} to ${text(upper)}`;
    return h("span", { class: "heat-key" }, h("span", { class: `swatch step-${step}`, "aria-hidden": "true" }), range);
  });
  return h("span", { class: "heat-legend" }, keys);
}
