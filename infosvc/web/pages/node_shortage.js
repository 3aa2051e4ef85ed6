/**
 * What one node is nearly out of, above all else on its page.
 */

import { h, refill } from "../dom.js";
import { shortageTrouble, shortages } from "../shortage.js";
import { troubleList } from "../trouble.js";

/**
 * @param {string} nodeName
 * @returns {{element: HTMLElement, draw: (number: (dataName: string) => number | null) => void}} `number` is one that is
 *   fresh enough to count
 */
export function nodeShortage(nodeName) {
  const element = h("section", { "aria-label": "Needs attention", hidden: true });
  const draw = (number) => {
    const found = shortages(number).map((each) => shortageTrouble(nodeName, each));
    element.hidden = !found.length;
    refill(element, found.length > 0 && troubleList(found));
  };
  return { element, draw };
}
