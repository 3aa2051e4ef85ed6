/**
 * From a value to what is shown: a number with its unit, and one of five steps of colour.
 */

import { h } from "./dom.js";

export const STEPS = 5;

// Units whose numbers span many powers of ten, and what stands behind the prefix.
const PREFIXED = { __proto__: null, bytes: "B", "bytes/second": "B/s", "bits/second": "bit/s", hertz: "Hz" };
const PREFIXES = ["", "k", "M", "G", "T", "P", "E"];
const SHORT = { __proto__: null, seconds: "s", celsius: "\u00b0C" };
const LONGEST = 80;
const FREE = /(^|_)(free|available)(_|$)/;

/**
 * A value as a finite number; null when it is not a number.
 *
 * @param {string | null | undefined} text
 * @returns {number | null}
 */
export function numberOf(text) {
  const bare = (text ?? "").trim();
  if (!/^[+-]?(\d|\.\d)/.test(bare) || /^[+-]?0[xob]/i.test(bare)) return null;
  const number = Number(bare);
  return Number.isFinite(number) ? number : null;
}

/**
 * A number and its unit as people read them: (1.5e9, "bytes") is ["1.5", "GB"], (0.1289, "ratio") is ["12.9", "%"].
 *
 * @param {number} number
 * @param {string} unit
 * @returns {[string, string]}
 */
export function numberParts(number, unit) {
  if (unit === "ratio") return [percent(100 * number), "%"];
  const base = PREFIXED[unit];
  if (!base) return [digits(number), SHORT[unit] ?? unit];
  const size = Math.abs(number);
  const power = size < 1000 ? 0 : Math.min(PREFIXES.length - 1, Math.floor(Math.log10(size) / 3));
  return [digits(number / 1000 ** power), PREFIXES[power] + base];
}

/**
 * A number with its unit as text: "1.5 GB", "12.9 %".
 *
 * @param {number} number
 * @param {string} unit
 * @returns {string}
 */
export function numberText(number, unit) {
  return numberParts(number, unit).join(" ").trim();
}

/**
 * A value with its unit as text: "1.5 GB", "0.93 processes"; what is not a number as it is, cut off when it is long.
 *
 * @param {string | null} text
 * @param {string} unit
 * @returns {string} "no data" for null
 */
export function valueText(text, unit) {
  if (text === null || text === undefined) return "no data";
  const number = numberOf(text);
  if (number !== null) return numberText(number, unit);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}\u2026` : text;
}

/**
 * @typedef {object} Scale five steps of equal width with round bounds, or one when all numbers are equal
 * @property {number[]} bounds one more than there are steps; [n, n] for a single step
 * @property {boolean} isFree whether the numbers tell what is free: little of it has the colours of much in use
 */

/**
 * Whether a data name tells what is free of something, such as cpu_free_ratio or memory_available_bytes.
 *
 * @param {string} dataName
 * @returns {boolean}
 */
export function isFree(dataName) {
  return FREE.test(dataName) && !/:|[.]confidence$/.test(dataName); // names of programs, and how sure a value is
}

/**
 * The scale of some numbers; null when there is none. Ratios within 0 to 1 always have the scale 0 to 100 %.
 *
 * @param {number[]} numbers
 * @param {string} [unit]
 * @param {boolean} [areFree] whether they tell what is free
 * @returns {Scale | null}
 */
export function scaleOf(numbers, unit = "", areFree = false) {
  if (!numbers.length) return null;
  let low = Infinity;
  let high = -Infinity;
  for (const number of numbers) {
    if (number < low) low = number;
    if (number > high) high = number;
  }
  if (unit === "ratio" && low >= 0 && high <= 1) return { bounds: roundBounds(0, 1), isFree: areFree };
  const span = high - low;
  // Numbers that differ by no more than rounding would get bounds that read the same.
  const least = Math.max(1e-300, Math.abs(low) * 1e-9, Math.abs(high) * 1e-9);
  if (!(span > least) || !Number.isFinite(span)) return { bounds: [low, high], isFree: areFree };
  return { bounds: roundBounds(low, high), isFree: areFree };
}

/**
 * The step of a number, 1 to 5; numbers beyond the ends belong to the last steps, a single step is the middle one.
 *
 * The more is in use, the higher is the step, so that of what is free the least has the highest.
 *
 * @param {Scale} scale
 * @param {number} number
 * @returns {number}
 */
export function stepOf({ bounds, isFree: areFree }, number) {
  if (bounds.length === 2) return Math.ceil(STEPS / 2);
  const inner = bounds.slice(1, -1);
  const beyond = inner.filter((bound) => number >= bound).length;
  return areFree ? STEPS - beyond : 1 + beyond;
}

/**
 * Whether a number lies beyond the ends of a scale.
 *
 * @param {Scale} scale
 * @param {number} number
 * @returns {boolean}
 */
export function isBeyond({ bounds }, number) {
  return number < bounds[0] || number > bounds[bounds.length - 1];
}

/**
 * What the colours mean: a list with the numbers of each step, and what stale and missing values look like.
 *
 * @param {Scale | null} scale
 * @param {string} unit
 * @returns {HTMLElement}
 */
export function legend(scale, unit) {
  const keys = (scale ? ranges(scale, unit) : []).map(([step, text]) => key(`step-${step}`, text));
  return h(
    "ul",
    { class: "legend", "aria-label": "What the colours mean" },
    keys.length ? keys : key("no-step", "no numbers, so no colours"),
    key("is-stale", "stale: older than it may be"),
    key("is-failed", "failed: the last run went wrong, or the node is lost or out of room"),
    key("is-none", "no data"),
  );
}

function key(look, text) {
  return h("li", null, h("span", { class: ["swatch", look], "aria-hidden": "true" }), text);
}

function ranges(scale, unit) {
  const { bounds } = scale;
  const told = (number) => numberText(number, unit);
  if (bounds.length === 2) return [[stepOf(scale, bounds[0]), told(bounds[0])]];
  return bounds.slice(1).map((upper, at) => [stepOf(scale, bounds[at]), `${lowerText(bounds[at], upper, unit)} to ${told(upper)}`]);
}

/** The lower end of a range, without its unit where the upper end says the same. */
function lowerText(lower, upper, unit) {
  const [number, its] = numberParts(lower, unit);
  return its === numberParts(upper, unit)[1] ? number : `${number} ${its}`;
}

/** Bounds of five steps whose width is 1, 2, 2.5 or 5 times a power of ten and that hold both numbers. */
function roundBounds(low, high) {
  let power = 10 ** Math.floor(Math.log10((high - low) / STEPS));
  for (;;) {
    for (const factor of [1, 2, 2.5, 5]) {
      const width = factor * power;
      const first = Math.floor(low / width);
      if ((first + STEPS) * width >= high) {
        return Array.from({ length: STEPS + 1 }, (_, at) => Number(((first + at) * width).toPrecision(12)));
      }
    }
    power *= 10;
  }
}

function percent(number) {
  return Math.abs(number) < 1 ? digits(number) : number.toLocaleString("en", { maximumFractionDigits: 1 });
}

function digits(number) {
  const size = Math.abs(number);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return number.toExponential(2);
  const fraction = size < 1 ? 4 : size < 10 ? 3 : size < 1000 ? 2 : 0;
  return number.toLocaleString("en", { maximumFractionDigits: fraction });
}

/**
 * A count with its thousands apart: "16,384".
 *
 * @param {number} count
 * @returns {string}
 */
export function grouped(count) {
  return count.toLocaleString("en");
}
