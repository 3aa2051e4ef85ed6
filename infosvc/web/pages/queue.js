/**
 * YARN's queues, and what waits in them: for what, and when it is expected to begin.
 */

import { get, path } from "../api.js";
import { announce, clear, counted, fill, h, heading, problemBox, row, setText } from "../dom.js";
import { followYarn } from "../poll.js";
import { may } from "../session.js";
import { moment } from "./jobs.js";
import { addressOf } from "./tasks/state.js";

const EVERY_MS = 5000;
const COLUMNS = ["Place", "Queue", "Task or job", "Asks for", "Since", "Begins", "Waits for"];
const UNITS = [
  [1, "s"],
  [60, "min"],
  [3_600, "h"],
  [86_400, "d"],
];
const MOST_OF_A_UNIT = 120;

/**
 * @param {HTMLElement} main
 * @param {any} _params
 * @param {AbortSignal} signal
 */
export async function show(main, _params, signal) {
  const problem = problemBox();
  const count = h("p", { class: "quiet" }, "Asking YARN\u2026");
  const queues = h("ul", { "aria-label": "Queues" });
  const body = h("tbody", null);
  const head = h(
    "tr",
    null,
    COLUMNS.map((column) => h("th", { scope: "col" }, column)),
  );
  const caption = h("caption", null, "What waits, in the order in which YARN takes it");
  const list = h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "What waits", hidden: true },
    h("table", null, caption, h("thead", null, head), body),
  );
  fill(main, heading("Queue"), problem.element, count, queues, list);
  if (!may("user")) {
    fill(count, "Log in with a token of role user or admin to see what waits.");
    return;
  }
  const draw = (found, before) => drawn({ found, before, count, queues, list, body });
  await followYarn(() => get("/queue", { signal }), draw, { everyMs: EVERY_MS, problem, count }, signal);
}

/** Draw all of it anew, and tell of own tasks that wait no more; what was drawn comes back. */
function drawn({ found, before, count, queues, list, body }) {
  const { waiting, time } = found;
  setText(count, summary(found));
  if (JSON.stringify(found.queues) !== JSON.stringify(before?.queues)) {
    fill(
      queues,
      found.queues.map((queue) => h("li", null, figures(queue))),
    );
  }
  list.hidden = waiting.length === 0;
  const at = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  fill(
    clear(body),
    waiting.map((one) => row(cells(one, time))),
  );
  if (at) body.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
  const still = new Set(waiting.map((one) => one.job_id));
  for (const one of before?.waiting ?? []) {
    if (one.own && !still.has(one.job_id)) announce(`${one.name} waits no more.`);
  }
  return found;
}

function summary({ said, waiting, whole, held_back: held }) {
  if (said) return said;
  const own = waiting.filter((one) => one.own).length;
  const all = counted(waiting.length, "application");
  const wait = waiting.length ? `${all}, ${own} of them yours, in line.` : "Nothing waits.";
  const more = whole ? "" : " More wait than are shown.";
  const tasks = counted(held, "task");
  const yet = held ? ` YARN does not have ${tasks} of yours yet: others or the submitter come first.` : "";
  return wait + more + yet;
}

/** One line about a queue. */
function figures(queue) {
  const state = queue.state === "RUNNING" ? "" : ` (${queue.state.toLowerCase()})`;
  return [
    h("strong", null, queue.name),
    `${state}: has ${percent(queue.used)} of the cluster, is sure of ${percent(queue.capacity)}, may have `,
    `${percent(queue.maximum)}; application masters have ${number(queue.masters_mb)} of at most `,
    `${number(queue.masters_most_mb)} MB; ${queue.running} running, ${queue.waiting} waiting`,
    may("admin") && `; ${counted(queue.users.length, "user")} of YARN`,
  ];
}

function cells(one, now) {
  const place = [String(one.position), one.own && " yours"];
  if (one.job_id === null) return [place, one.queue, "another\u2019s", "", "", "", ""];
  const address = one.task_id ? addressOf(one.task_id) : one.is_job && `#${path("job", one.job_id)}`;
  const id = one.task_id ?? one.job_id;
  const name = address ? h("a", { href: address }, id) : id; // what is not of nodewise has no page
  const asks = one.memory_mb === null ? "" : `${number(one.memory_mb)} MB, ${counted(one.vcores, "vcore")}`;
  const since = one.since ? moment(one.since) : "";
  return [place, one.queue, [name, " ", one.name], asks, since, begins(one, now), one.waits_for];
}

/** When it is expected to begin, the moments themselves on hover; or why that is not known. */
function begins({ start, no_start: reason }, now) {
  if (!start) return reason ?? "";
  const title = [start.earliest, start.latest].map((at) => new Date(at * 1000).toLocaleString()).join(" to ");
  return h("span", { title }, interval(Math.max(0, start.earliest - now), Math.max(0, start.latest - now)));
}

/**
 * Seconds from now in the unit of their end, rounded so that the interval grows no narrower: "in 2 to 9 min".
 *
 * @param {number} earliest
 * @param {number} latest
 * @returns {string}
 */
export function interval(earliest, latest) {
  const [unit, name] = UNITS.find(([size]) => latest <= MOST_OF_A_UNIT * size) ?? UNITS.at(-1);
  const [first, last] = [Math.floor(earliest / unit), Math.ceil(latest / unit)];
  return first ? `in ${first} to ${last} ${name}` : `in at most ${last} ${name}`;
}

function percent(part) {
  return `${Math.round(part * 100)} %`;
}

function number(count) {
  return count.toLocaleString("en");
}
