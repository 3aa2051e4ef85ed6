/**
 * YARN's queues, and what waits in them: for what, and when it is expected to begin.
 */

import { ageText, everySecond } from "../age.js";
import { get, path } from "../api.js";
import { announce, counted, fill, h, heading, problemBox, refill, setText } from "../dom.js";
import { followYarn } from "../poll.js";
import { grouped } from "../scale.js";
import { may } from "../session.js";
import { stackingRow, stackingTable } from "../stacking.js";
import { moment } from "./jobs.js";
import { queueFigures } from "./queue_figures.js";
import { begins } from "./tasks/in_line.js";
import { addressOf } from "./tasks/state.js";

const EVERY_MS = 5000;
const COLUMNS = [
  ["Task or job"],
  ["Place"],
  ["Queue"],
  ["Begins", "wide"],
  ["Waits for", "wide"],
  ["Asks for"],
  ["Since"],
];

/**
 * @param {HTMLElement} main
 * @param {any} _params
 * @param {AbortSignal} signal
 */
export async function show(main, _params, signal) {
  const problem = problemBox();
  const count = h("span", null, "Asking YARN\u2026");
  const age = askedAge(signal);
  const figures = queueFigures();
  const reasons = h("div", null);
  const list = stackingTable("What waits", "What waits, in the order in which YARN takes it", COLUMNS);
  list.element.hidden = true;
  const line = h("p", { class: "quiet" }, count, " ", age.element);
  fill(main, heading("Queue"), problem.element, line, figures.element, reasons, list.element);
  if (!may("user")) {
    fill(count, "Log in with a token of role user or admin to see what waits.");
    return;
  }
  const draw = (found, before) => {
    age.renew();
    figures.draw(found);
    return drawn({ found, before, count, reasons, list });
  };
  await followYarn(() => get("/queue", { signal }), draw, { everyMs: EVERY_MS, problem, count }, signal);
}

/** When YARN was asked last, in words that grow older by themselves. */
function askedAge(signal) {
  const element = h("span", null);
  let asked = null;
  const tell = () => {
    if (asked === null) return;
    const seconds = Date.now() / 1000 - asked;
    setText(element, `Asked ${seconds < 1 ? "just now" : ageText(seconds)}.`);
  };
  const renew = () => {
    asked = Date.now() / 1000;
    tell();
  };
  everySecond(tell, signal);
  return { element, renew };
}

/** Draw what waits, and tell of own tasks that wait no more; what was drawn comes back. */
function drawn({ found, before, count, reasons, list }) {
  const { waiting, time } = found;
  const shared = sharedReasons(waiting);
  setText(count, summary(found));
  refill(
    reasons,
    [...shared].map(([queue, reason]) => h("p", null, sharedText(found, queue, reason))),
  );
  list.element.hidden = waiting.length === 0;
  refill(
    list.body,
    waiting.map((one) => stackingRow(COLUMNS, cells(one, time, shared.has(one.queue)))),
  );
  const still = new Set(waiting.map((one) => one.job_id));
  for (const one of before?.waiting ?? []) {
    if (one.own && !still.has(one.job_id)) announce(`${one.name} waits no more.`);
  }
  return found;
}

/** By queue what several wait for there, where all of whom it is known wait for the same. */
function sharedReasons(waiting) {
  const known = Map.groupBy(
    waiting.filter((one) => one.waits_for),
    (one) => one.queue,
  );
  const isShared = ([, all]) => all.length > 1 && new Set(all.map((one) => one.waits_for)).size === 1;
  return new Map([...known].filter(isShared).map(([queue, all]) => [queue, all[0].waits_for]));
}

function sharedText({ queues, waiting }, queue, reason) {
  const there = waiting.filter((one) => one.queue === queue);
  const known = there.filter((one) => one.waits_for).length;
  const all = queues.find((each) => each.name === queue)?.waiting ?? there.length;
  return `${known < all ? `${known} of ${all}` : `All ${known}`} in ${queue} wait for ${reason}.`;
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

/** The cells of one row; `isSaid` if what it waits for was said above for its queue. */
function cells(one, now, isSaid) {
  const place = [one.position, one.own && " yours"];
  if (one.job_id === null) return ["another\u2019s", place, one.queue, "", "", "", ""];
  const asks = one.memory_mb === null ? "" : asksText(one);
  const since = one.since ? moment(one.since) : "";
  const reason = isSaid ? "the same" : one.waits_for;
  return [nameOf(one), place, one.queue, begins(one, now), reason, asks, since];
}

/** What it asks for of memory, of cores, and of whatever else YARN counts. */
function asksText({ memory_mb: memory, vcores, resources }) {
  const others = Object.entries(resources ?? {}).map(([name, number]) => `${grouped(number)} ${name}`);
  return [`${grouped(memory)} MB`, counted(vcores, "vcore"), ...others].join(", ");
}

function nameOf(one) {
  const address = one.task_id ? addressOf(one.task_id) : one.is_job && `#${path("job", one.job_id)}`;
  const id = one.task_id ?? one.job_id;
  const name = one.name || id;
  const link = address ? h("a", { href: address }, name) : name; // what is not of nodewise has no page
  return [link, name !== id && [" ", h("span", { class: "quiet" }, id)]];
}
