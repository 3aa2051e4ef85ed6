/**
 * What the containers of a job print, as it is printed.
 */

import { get, isAbort, path } from "../api.js";
import { fill, h, problemBox } from "../dom.js";
import { followLog, logView } from "../log_view.js";
import { poll } from "../poll.js";

const EVERY_MS = 2000;
const AFTER_TROUBLE_MS = 5000;

/**
 * A section with a choice of containers and the log of one of them; nothing is asked before somebody opens it.
 *
 * @param {string} id of the job
 * @param {AbortSignal} signal
 * @returns {HTMLElement}
 */
export function logs(id, signal) {
  const where = path("jobs", id, "logs");
  const problem = problemBox();
  const container = h("select", { id: "log-container" });
  const streams = ["stdout", "stderr"].map((name) => h("option", { value: name }, name));
  const stream = h("select", { id: "log-stream" }, streams);
  const view = logView({ label: "Log", saveAs: `${id}.log` }, signal);
  const details = h(
    "details",
    null,
    h("summary", null, "Logs"),
    h("p", null, h("label", { for: "log-container" }, "Container "), container),
    h("p", null, h("label", { for: "log-stream" }, "Stream "), stream),
    problem.element,
    view.element,
  );
  let reading = new AbortController();
  const begin = () => {
    reading.abort();
    reading = new AbortController();
    view.clear();
    view.refuse(null);
    if (!details.open || !container.value) return;
    const current = AbortSignal.any([signal, reading.signal]);
    const asked = { container: container.value, stream: stream.value };
    const ask = (offset) => get(where, { params: { ...asked, offset }, signal: current });
    followLog(view, { ask, isOver: (piece) => piece.ended, everyMs: EVERY_MS }, current);
  };
  let listing = new AbortController();
  details.addEventListener("toggle", () => {
    listing.abort();
    reading.abort();
    if (!details.open) return;
    listing = new AbortController();
    list({ where, container, view, problem, begin }, AbortSignal.any([signal, listing.signal]));
  });
  container.addEventListener("change", begin);
  stream.addEventListener("change", begin);
  return details;
}

/** Keep the choice of containers up to date until the job ends; the first one is read at once. */
async function list({ where, container, view, problem, begin }, signal) {
  let known = "";
  await poll(async () => {
    try {
      const { containers, ended } = await get(where, { signal });
      problem.say(null);
      if (!containers.length) view.tell(ended ? "No container is known any more." : "No container runs yet.");
      const now = JSON.stringify(containers);
      if (now !== known) {
        const chosen = container.value;
        fill(container, containers.map((each) => option(each, chosen)));
        if (container.value !== chosen || !known) begin();
        known = now;
      }
      return ended ? null : EVERY_MS * 2;
    } catch (error) {
      if (isAbort(error)) return null;
      problem.say(error);
      return AFTER_TROUBLE_MS;
    }
  }, signal);
}

function option({ container_id: id, node_name: node, role }, chosen) {
  return h("option", { value: id, selected: id === chosen }, `${node} ${role} (${id})`);
}
