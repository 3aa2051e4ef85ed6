/**
 * Why a task runs where it runs.
 */

import { ageText } from "../../age.js";
import { get, isAbort, path } from "../../api.js";
import { fill, h, problemBox, table } from "../../dom.js";

const COLUMNS = ["Node", "May run it", "Had room", "Free memory", "Free cores", "Score"];

/**
 * A section that asks for the decision when somebody opens it, and again when the task has begun anew.
 *
 * @param {string} id of the task
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (task: any) => void}}
 */
export function decision(id, signal) {
  const problem = problemBox();
  const place = h("div", null);
  const element = h("details", { hidden: true }, h("summary", null, "Why there"), problem.element, place);
  let shown = null;
  let attempt = null;
  const load = async () => {
    if (!element.open || attempt === shown) return;
    const wanted = attempt;
    try {
      const found = await get(path("tasks", id, "decision"), { params: { attempt: wanted }, signal });
      problem.say(null);
      shown = wanted;
      fill(place, explained(found));
    } catch (error) {
      if (!isAbort(error)) problem.say(error);
    }
  };
  element.addEventListener("toggle", load);
  const draw = (task) => {
    element.hidden = task.attempt === null;
    attempt = task.attempt;
    load();
  };
  return { element, draw };
}

function explained(found) {
  const age = found.age_seconds === null ? "" : ` from values of ${ageText(found.age_seconds)}`;
  const order = found.order === null ? "YARN's own order" : `the order ${found.order}${age}`;
  return [
    h("p", null, `${found.said} It runs on ${found.node_name}, by ${order}.`),
    table("The nodes as they were then", COLUMNS, found.nodes.map(cells)),
  ];
}

function cells(node) {
  const yes = (is) => (is ? "yes" : "no");
  const score = node.score === null ? "" : Number(node.score.toPrecision(4));
  return [node.node_name, yes(node.allowed), yes(node.has_room), `${node.free_mb} MB`, node.free_vcores, score];
}
