/**
 * What the containers of a job print, as it is printed.
 */

import { get, isAbort, path } from "../api.js";
import { fill, h, problemBox, setText } from "../dom.js";
import { poll } from "../poll.js";

const EVERY_MS = 2000;
const AFTER_TROUBLE_MS = 5000;
const MOST_CHARACTERS = 400_000;

/**
 * A section with a choice of containers and the log of one of them; nothing is asked before somebody opens it.
 *
 * @param {string} id of the job
 * @param {AbortSignal} signal
 * @returns {HTMLElement}
 */
export function logs(id, signal) {
  const where = path("jobs", id, "logs");
  const [listProblem, problem] = [problemBox(), problemBox()]; // each question has its own, and clears no other's
  const container = h("select", { id: "log-container" });
  const streams = ["stdout", "stderr"].map((name) => h("option", { value: name }, name));
  const stream = h("select", { id: "log-stream" }, streams);
  const state = h("p", { class: "quiet", role: "status" });
  const shown = h("pre", { class: "log", tabindex: "0", role: "region", "aria-label": "Log" });
  const details = h(
    "details",
    null,
    h("summary", null, "Logs"),
    h("p", null, h("label", { for: "log-container" }, "Container "), container),
    h("p", null, h("label", { for: "log-stream" }, "Stream "), stream),
    listProblem.element,
    problem.element,
    state,
    shown,
  );
  let reading = new AbortController();
  const begin = () => {
    reading.abort();
    reading = new AbortController();
    shown.replaceChildren();
    problem.say(null);
    if (!details.open || !container.value) return;
    const asked = { where, container: container.value, stream: stream.value, shown, state, problem };
    read(asked, AbortSignal.any([signal, reading.signal]));
  };
  let listing = new AbortController();
  details.addEventListener("toggle", () => {
    listing.abort();
    reading.abort();
    if (!details.open) return;
    listing = new AbortController();
    list({ where, container, state, problem: listProblem, begin }, AbortSignal.any([signal, listing.signal]));
  });
  container.addEventListener("change", begin);
  stream.addEventListener("change", begin);
  return details;
}

/** Keep the choice of containers up to date until the job ends; the first one is read at once. */
async function list({ where, container, state, problem, begin }, signal) {
  let known = "";
  await poll(async () => {
    try {
      const { containers, ended } = await get(where, { signal });
      problem.say(null);
      if (!containers.length) setText(state, ended ? "No container is known any more." : "No container runs yet.");
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

async function read({ where, container, stream, shown, state, problem }, signal) {
  let offset = 0;
  setText(state, "Reading\u2026");
  await poll(async () => {
    try {
      const piece = await get(where, { params: { container, stream, offset }, signal });
      problem.say(null);
      append(shown, piece, offset);
      offset = piece.next;
      if (piece.more) return 0;
      setText(state, piece.ended ? "This is all of it." : "Goes on as it is printed.");
      return piece.ended ? null : EVERY_MS;
    } catch (error) {
      if (isAbort(error)) return null;
      problem.say(error);
      return AFTER_TROUBLE_MS;
    }
  }, signal);
}

/** Add what is new; who has scrolled to the end stays there. The beginning goes when the page would grow too large. */
function append(shown, piece, asked) {
  if (piece.offset < asked) shown.replaceChildren();
  if (!piece.text) return;
  const atEnd = shown.scrollTop + shown.clientHeight >= shown.scrollHeight - 8;
  shown.append(piece.offset > asked ? `\u2026\n${piece.text}` : piece.text);
  let length = shown.textContent.length;
  while (length > MOST_CHARACTERS && shown.childNodes.length > 1) {
    length -= shown.firstChild.textContent.length;
    shown.firstChild.remove();
  }
  if (atEnd) shown.scrollTop = shown.scrollHeight;
}
