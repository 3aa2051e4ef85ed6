/**
 * Which of these tasks was better: the curves that they report over each other, and what differs in how they were asked for.
 */

import { get, isAbort, path } from "../../api.js";
import { curvesPlace } from "../../pictures/curve.js";
import { fill, h, heading, problemBox, refill, table } from "../../dom.js";
import { poll } from "../../poll.js";
import { asTyped } from "../../words.js";
import { addressOf, hasEnded, seesTasks, stateMark, tookText, whoSeesTasks } from "./state.js";

const EVERY_MS = 5_000;
const POINTS = 500;
const MOST = 8;
const OF_NO_INTEREST = new Set(["files", "changes", "array", "at_once", "name"]);

/**
 * @param {HTMLElement} main
 * @param {{query: URLSearchParams}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { query }, signal) {
  if (!seesTasks()) return fill(main, heading("Compare tasks"), whoSeesTasks());
  const ids = [...new Set(query.getAll("task"))].slice(0, MOST);
  if (ids.length < 2) return fill(main, heading("Compare tasks"), howTo());
  const problem = problemBox();
  const head = h("div", null, h("p", { class: "quiet", role: "status" }, "Loading\u2026"));
  const place = curvesPlace({ by: "step" }, signal);
  const differ = h("div", null);
  fill(main, heading("Compare tasks"), problem.element, head, place.element, differ);
  await poll(async () => {
    try {
      const runs = await Promise.all(ids.map((id) => runOf(id, signal)));
      problem.say(null);
      refill(
        head,
        table(
          "The tasks and their last values",
          ["Task", "State", "Took", ...namesOf(runs)],
          runs.map((run) => lastValues(run, namesOf(runs))),
        ),
      );
      place.draw(namesOf(runs).map((name) => overlaid(name, runs)));
      refill(differ, differences(runs));
      return runs.every(({ task }) => hasEnded(task)) ? null : EVERY_MS;
    } catch (error) {
      if (isAbort(error)) return null;
      problem.say(error);
      return error.status === 404 ? null : EVERY_MS;
    }
  }, signal);
  return undefined;
}

function howTo() {
  return h("p", null, "Choose two tasks or more in ", h("a", { href: "#/tasks" }, "the list of tasks"), ".");
}

async function runOf(id, signal) {
  const task = await get(path("tasks", id), { signal });
  const curves = task.attempt === null ? [] : await curvesOf(id, signal);
  return { task, curves };
}

async function curvesOf(id, signal) {
  try {
    return (await get(path("tasks", id, "values"), { params: { points: POINTS }, signal })).curves;
  } catch (error) {
    if (error.status === 404) return []; // it has begun and noted nothing yet
    throw error;
  }
}

function namesOf(runs) {
  return [...new Set(runs.flatMap(({ curves }) => curves.map((curve) => curve.name)))].toSorted();
}

function lastValues({ task, curves }, names) {
  const last = new Map(curves.map((curve) => [curve.name, Number(curve.last.toPrecision(4))]));
  const link = h("a", { href: addressOf(task.task_id) }, labelOf(task));
  return [link, stateMark(task), tookText(task), ...names.map((name) => last.get(name) ?? "")];
}

function labelOf(task) {
  return `${task.name} ${task.task_id.slice(-4)}`;
}

function overlaid(name, runs) {
  const series = runs.map(({ task, curves }) => {
    const { points = [], least, most, last } = curves.find((curve) => curve.name === name) ?? {};
    return { label: labelOf(task), points: points.map(([step, , value]) => [step, value]), least, most, last };
  });
  return { name, unit: "", series };
}

/** What was asked for otherwise, a row for each field. */
function differences(runs) {
  const rows = Object.keys(runs[0].task.spec)
    .filter((field) => !OF_NO_INTEREST.has(field))
    .map((field) => [field.replaceAll("_", " "), ...runs.map(({ task }) => asText(task.spec[field]))])
    .filter(([, first, ...others]) => others.some((text) => text !== first));
  const same = h("p", null, "All were asked for alike.");
  const columns = ["Asked for", ...runs.map(({ task }) => labelOf(task))];
  return [h("h2", null, "What differs"), rows.length ? table("What was asked for otherwise", columns, rows) : same];
}

function asText(value) {
  if (Array.isArray(value)) return asTyped(value);
  if (value !== null && typeof value === "object")
    return Object.entries(value)
      .map((pair) => pair.join("="))
      .join(" ");
  return value === null ? "" : String(value);
}
