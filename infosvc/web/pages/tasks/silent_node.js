/**
 * A warning while nobody hears of the node that a task is said to run on.
 */

import { ageText, serverNow } from "../../age.js";
import { get, isAbort, path } from "../../api.js";
import { h, refill } from "../../dom.js";
import { awayWord } from "../../node_state.js";
import { pollWhile } from "../../poll.js";
import { hasPlace } from "./state.js";

const EVERY_MS = 10_000;

/**
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (task: any) => void}}
 */
export function silentNode(signal) {
  const element = h("p", { class: "trouble trouble-3", role: "status" });
  let name = null;
  const show = (node) => {
    const word = node && node.node_name === name && awayWord(node.state);
    element.hidden = !word;
    refill(element, word && said(node, word));
  };
  const look = async () => {
    try {
      show(await get(path("nodes", name), { signal }));
    } catch (error) {
      if (isAbort(error)) return null;
      show(null); // it may not be enrolled, or the service is away, which the page says
    }
    return EVERY_MS;
  };
  const ask = pollWhile(look, signal);
  const draw = (task) => {
    name = hasPlace(task) ? task.node_name : null;
    if (name === null) show(null);
    ask(name !== null);
  };
  show(null);
  return { element, draw };
}

function said({ node_name: name, last_seen: seen }, word) {
  const link = h("a", { href: `#${path("node", name)}` }, name);
  const heard = seen === null ? "has not reported yet" : `was last heard of ${ageText(serverNow() - seen)}`;
  const rest = ` is ${word}: its agent ${heard}. If the log goes on, the task still runs there.`;
  return [h("strong", null, "Not sure"), " ", link, rest];
}
