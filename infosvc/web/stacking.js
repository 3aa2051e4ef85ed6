/**
 * A table whose rows become blocks where the window is narrow: each value stands there with the label of its column.
 *
 * The look is that of the class `stacks`. CSS that makes blocks of rows takes away what they are to a screen reader,
 * so that their roles are said as well.
 */

import { h } from "./dom.js";

/**
 * @typedef {[string, string?]} Column its head and its class: `number` stands to the right; in a block, `wide` has a line
 *   of its own, `bare` has no label, and `choice` stands before the name
 */

/**
 * A table that has no rows yet, in a region that scrolls sideways.
 *
 * @param {string} name of the region
 * @param {string} caption
 * @param {Column[]} columns
 * @returns {{element: HTMLElement, body: HTMLElement}}
 */
export function stackingTable(name, caption, columns) {
  const head = columns.map(([text, look]) => h("th", { scope: "col", role: "columnheader", class: look }, text));
  const body = h("tbody", { role: "rowgroup" });
  const table = h(
    "table",
    { class: "stacks", role: "table" },
    h("caption", null, caption),
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, head)),
    body,
  );
  return { element: h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table), body };
}

/**
 * The cells of one row, which belong into a `tr` of role row.
 *
 * @param {Column[]} columns
 * @param {import("./dom.js").Child[]} cells
 * @param {number} [named] which of them is the row's name
 * @returns {HTMLElement[]}
 */
export function stackingCells(columns, cells, named = 0) {
  return cells.map((cell, at) => {
    const [label, look] = columns[at];
    if (at === named) return h("th", { scope: "row", role: "rowheader", class: look }, cell);
    return h("td", { role: "cell", class: look, "data-label": label }, cell);
  });
}

/**
 * One row.
 *
 * @param {Column[]} columns
 * @param {import("./dom.js").Child[]} cells of which the first is the row's name
 * @returns {HTMLElement}
 */
export function stackingRow(columns, cells) {
  return h("tr", { role: "row" }, stackingCells(columns, cells));
}
