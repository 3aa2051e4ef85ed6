/**
 * Tasks that YARN has not begun, in words: their place in line, when they are expected to begin, what they wait for.
 */

import { h } from "../../dom.js";

const UNITS = [
  [1, "s"],
  [60, "min"],
  [3_600, "h"],
  [86_400, "d"],
];
const MOST_OF_A_UNIT = 120;

/**
 * @typedef {object} Place
 * @property {number} rank from 1 on: by queue, and in each queue as YARN takes them
 * @property {string} text "place 1 of 3, begins in 2 to 9 min, waits for its turn: 1 before it"
 * @property {boolean} isExplained whether the text says what it waits for
 */

/**
 * The places of all tasks in line, by id.
 *
 * @param {any} queue the answer of GET /queue; null if there is none
 * @returns {Map<string, Place>}
 */
export function placesOf(queue) {
  const tasks = (queue?.waiting ?? [])
    .filter((one) => one.task_id)
    .toSorted((one, other) => one.queue.localeCompare(other.queue) || one.position - other.position);
  const place = (one, at) => ({ rank: at + 1, text: shortText(one, queue), isExplained: Boolean(one.waits_for) });
  return new Map(tasks.map((one, at) => [one.task_id, place(one, at)]));
}

/**
 * Its place among all that wait in its queue: "place 1 of 3".
 *
 * @param {{queue: string, position: number}} one that waits
 * @param {any[]} queues of the same answer
 * @returns {string}
 */
export function placeText({ queue, position }, queues) {
  const all = queues.find((each) => each.name === queue)?.waiting;
  return all ? `place ${position} of ${all}` : `place ${position}`;
}

/** With the name of its queue where there is another in which something waits. */
function shortText(one, { queues, waiting, time }) {
  const place = placeText(one, queues);
  const isOneOfMany = waiting.some((each) => each.queue !== one.queue);
  const begin = one.start ? `begins ${startText(one.start, time)}` : "begin not known";
  const parts = [isOneOfMany ? `${place} in ${one.queue}` : place, begin, one.waits_for && `waits for ${one.waits_for}`];
  return parts.filter(Boolean).join(", ");
}

/**
 * When it is expected to begin, the moments themselves on hover; or why that is not known.
 *
 * @param {{start: {earliest: number, latest: number} | null, no_start: string | null}} one that waits
 * @param {number} now Unix seconds of the answer
 * @returns {HTMLElement | string}
 */
export function begins({ start, no_start: reason }, now) {
  if (!start) return reason ?? "";
  const title = [start.earliest, start.latest].map((at) => new Date(at * 1000).toLocaleString()).join(" to ");
  return h("span", { title }, startText(start, now));
}

function startText({ earliest, latest }, now) {
  return interval(Math.max(0, earliest - now), Math.max(0, latest - now));
}

/**
 * Seconds from now in the unit of their end, rounded so that the interval grows no narrower: "in 2 to 9 min".
 *
 * @param {number} earliest
 * @param {number} latest
 * @returns {string}
 */
function interval(earliest, latest) {
  const [unit, name] = UNITS.find(([size]) => latest <= MOST_OF_A_UNIT * size) ?? UNITS.at(-1);
  const [first, last] = [Math.floor(earliest / unit), Math.ceil(latest / unit)];
  return first ? `in ${first} to ${last} ${name}` : `in at most ${last} ${name}`;
}
