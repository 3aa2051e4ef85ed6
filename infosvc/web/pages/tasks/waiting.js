/**
 * What a task waits for that YARN has not begun, its place in line, and when it is expected to begin.
 */

import { get, isAbort } from "../../api.js";
import { fact, h, refill } from "../../dom.js";
import { pollWhile } from "../../poll.js";
import { begins, placeText } from "./in_line.js";

const EVERY_MS = 5_000;
const AGAIN_MS = 15_000; // after a failure

/**
 * Facts that are there while the task is queued and YARN's queue is known.
 *
 * @param {string} id of the task
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (task: any) => void}}
 */
export function waiting(id, signal) {
  const element = h("dl", { class: "facts", "aria-label": "What it waits for" });
  let isQueued = false;
  const show = (found) => {
    const one = isQueued && found?.waiting.find((each) => each.task_id === id);
    element.hidden = !one;
    refill(element, one && factsOf(one, found).map(fact));
  };
  const look = async () => {
    try {
      show(await get("/queue", { signal }));
    } catch (error) {
      if (isAbort(error)) return null;
      show(null); // the page of the queue says what is wrong
      return AGAIN_MS;
    }
    return EVERY_MS;
  };
  const ask = pollWhile(look, signal);
  const draw = (task) => {
    isQueued = task.state === "queued";
    if (!isQueued) show(null);
    ask(isQueued);
  };
  show(null);
  return { element, draw };
}

function factsOf(one, { time, queues }) {
  return [
    ["Waits for", one.waits_for],
    ["Begins", begins(one, time)],
    ["In line", [`${placeText(one, queues)} in `, h("a", { href: "#/queue" }, one.queue)]],
  ];
}
