/**
 * Tasks in words: their state and how long they take, the same on all pages.
 */

import { serverNow, spanText } from "../../age.js";
import { path } from "../../api.js";
import { h } from "../../dom.js";
import { isLoggedIn, may } from "../../session.js";

export const STATES = ["waiting", "queued", "starting", "running", "succeeded", "failed", "stopped", "lost"];
const FINAL = new Set(["succeeded", "failed", "stopped", "lost"]);

/**
 * Whether who is logged in may see tasks at all.
 *
 * @returns {boolean}
 */
export function seesTasks() {
  return may("user") || may("submitter");
}

/**
 * What stands in the place of tasks for who may not see any.
 *
 * @returns {HTMLElement}
 */
export function whoSeesTasks() {
  const remedy = isLoggedIn() ? "This token may not." : "Log in with one, by the button above.";
  return h("p", null, `Tasks are shown to tokens of role user, which see their own, and admin. ${remedy}`);
}

/**
 * Whether a task has ended.
 *
 * @param {{state: string}} task
 * @returns {boolean}
 */
export function hasEnded(task) {
  return FINAL.has(task.state);
}

/**
 * Whether a task has a node, and so holds what it asked for.
 *
 * @param {{state: string}} task
 * @returns {boolean}
 */
export function hasPlace(task) {
  return task.state === "starting" || task.state === "running";
}

/**
 * The state as a word with its colour.
 *
 * @param {{state: string, stop_asked: boolean, idle_since: number | null}} task
 * @returns {HTMLElement}
 */
export function stateMark(task) {
  const more = [task.stop_asked && !hasEnded(task) && "stopping", task.idle_since !== null && "idle"];
  return h("span", { class: `state state-${task.state}` }, [task.state, ...more.filter(Boolean)].join(", "));
}

/**
 * How long it has run, or how long it has waited if it does not run yet: "3 min", "waits 20 s".
 *
 * @param {{state: string, created_at: number, started_at: number | null, ended_at: number | null}} task
 * @returns {string}
 */
export function tookText(task) {
  const until = task.ended_at ?? serverNow();
  if (task.started_at !== null) return spanText(whole(until - task.started_at));
  return hasEnded(task) ? "" : `waits ${spanText(whole(until - task.created_at))}`;
}

/**
 * What is said of a task beside its state: where it is in line as long as it is queued, and the reason that is known.
 * Where its place says what it waits for, the reason would be the same in YARN's words.
 *
 * @param {{state: string, reason: string}} task
 * @param {import("./in_line.js").Place} [place] in line, if that is known
 * @returns {string}
 */
export function saidOf({ state, reason }, place) {
  if (state !== "queued" || !place) return reason;
  return [place.text, !place.isExplained && reason].filter(Boolean).join("; ");
}

/**
 * The address of a task's page.
 *
 * @param {string} taskId
 * @returns {string}
 */
export function addressOf(taskId) {
  return `#${path("task", taskId)}`;
}

function whole(seconds) {
  return Math.max(0, Math.floor(seconds));
}
