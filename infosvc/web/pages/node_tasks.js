/**
 * The tasks that run on one node, as far as who looks may see them.
 */

import { get, isAbort } from "../api.js";
import { fill, h, problemBox, refill, row } from "../dom.js";
import { watch } from "../live.js";
import { atMostEvery } from "../poll.js";
import { addressOf, seesTasks, stateMark, tookText } from "./tasks/state.js";

const AGAIN_MS = 1_000;
const COLUMNS = ["Task", "State", "Time", "Owner"];

/**
 * @param {string} name of the node
 * @param {AbortSignal} signal
 * @returns {HTMLElement} hidden while nothing runs there
 */
export function nodeTasks(name, signal) {
  const problem = problemBox();
  const body = h("tbody", null);
  const head = h(
    "tr",
    null,
    COLUMNS.map((column) => h("th", { scope: "col" }, column)),
  );
  const list = h(
    "table",
    { class: "list" },
    h("caption", { class: "unseen" }, "Tasks of this node"),
    h("thead", null, head),
    body,
  );
  const element = h("section", { "aria-labelledby": "tasks-title", hidden: true });
  fill(element, h("h2", { id: "tasks-title" }, "Tasks that run here"), problem.element, list);
  if (!seesTasks()) return element;
  const load = async () => {
    try {
      const { tasks } = await get("/tasks", { params: { state: ["starting", "running"] }, signal });
      const here = tasks.filter((task) => task.node_name === name);
      refill(body, here.map(rowOf));
      element.hidden = here.length === 0;
      problem.say(null);
      return true;
    } catch (error) {
      if (isAbort(error)) return true;
      problem.say(error);
      return false;
    }
  };
  watch({ types: ["task"] }, { task: atMostEvery(load, AGAIN_MS, signal), refresh: load }, signal);
  return element;
}

function rowOf(task) {
  return row([h("a", { href: addressOf(task.task_id) }, task.name), stateMark(task), tookText(task), task.owner]);
}
