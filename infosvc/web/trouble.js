/**
 * What needs somebody, with what to do, the same on all pages.
 */

import { h } from "./dom.js";

const WORDS = { 3: "Error", 2: "Warning", 1: "Note" };

/**
 * @typedef {object} Trouble
 * @property {number} weight 3: something does not work; 2: it soon will not, or work fails or waits; 1: to be known
 * @property {string} what
 * @property {import("./dom.js").Child} remedy
 * @property {string} [address] of the page that shows more
 */

/**
 * Troubles as a list, in this order.
 *
 * @param {Trouble[]} found
 * @returns {HTMLElement}
 */
export function troubleList(found) {
  return h("ul", { class: "troubles" }, found.map(item));
}

function item({ weight, what, remedy, address }) {
  return h(
    "li",
    { class: `trouble trouble-${weight}` },
    h("strong", null, WORDS[weight]),
    " ",
    address ? h("a", { href: address }, what) : what,
    h("div", { class: "quiet" }, remedy),
  );
}
