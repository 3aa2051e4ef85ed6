/**
 * Why each node got its share, from the record of the job's decision.
 */

import { get, isAbort, path } from "../api.js";
import { fill, h, problemBox, table } from "../dom.js";
import { numberText } from "../scale.js";

const COLUMNS = ["Node", "Value", "Age", "Confidence", "Formula", "Gets", "Own disk", "Fetches"];

/**
 * A section that asks for the decision when somebody opens it.
 *
 * @param {string} id of the job
 * @param {AbortSignal} signal
 * @returns {HTMLElement}
 */
export function decision(id, signal) {
  const problem = problemBox();
  const place = h("div", null);
  const details = h("details", null, h("summary", null, "Why each node got its share"), problem.element, place);
  let asked = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || asked) return;
    asked = true;
    fill(place, h("p", { role: "status" }, "Reading the record\u2026"));
    try {
      const found = await get(path("jobs", id, "decision"), { signal });
      problem.say(null);
      fill(place, explained(found));
    } catch (error) {
      asked = false;
      fill(place);
      if (!isAbort(error)) problem.say(error);
    }
  });
  return details;
}

function explained(found) {
  return [
    found.heading.map((sentence) => h("p", null, sentence)),
    table("Shares by the decision", COLUMNS, found.nodes.map(cells)),
    h("dl", { class: "data-facts" }, found.nodes.map(reasons)),
  ];
}

function reasons(node) {
  return [h("dt", null, node.node_name), h("dd", null, node.why.join(" "))];
}

function cells(node) {
  return [
    node.node_name,
    Number(node.value.toPrecision(4)),
    `${node.age_seconds.toFixed(0)} s`,
    node.confidence === null ? "unknown" : node.confidence.toFixed(2),
    node.target_images,
    node.images,
    node.local_images,
    numberText(node.size_bytes - node.local_bytes, "bytes"),
  ];
}
