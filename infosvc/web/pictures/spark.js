/**
 * A small line of what a value was, as SVG; its text says the same to who cannot see it.
 */

import { svg } from "../dom.js";

const WIDTH = 160;
const HEIGHT = 36;
const SIZE = { width: WIDTH, height: HEIGHT };
const EDGE = 3;

/**
 * The line of some points, oldest first.
 *
 * @param {[number, number][]} points Unix seconds and number
 * @param {string} label what it shows, for a screen reader and as a tooltip
 * @param {[number, number]} span Unix seconds at the left and the right edge
 * @param {number} longest seconds that two points may lie apart; farther apart, the line is broken between them
 * @param {[number, number]} [range] numbers at the lower and the upper edge; the least and the largest if left out
 * @returns {SVGElement}
 */
export function sparkline(points, label, span, longest, range) {
  const drawn = thinned(points, WIDTH);
  const place = placer(span, range ?? rangeOf(drawn));
  const last = drawn.length ? place(drawn[drawn.length - 1]) : null;
  return svg(
    "svg",
    { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, ...SIZE, role: "img", "aria-label": label },
    svg("title", null, label),
    svg("path", { d: line(drawn, place, Math.max(longest, (2 * (span[1] - span[0])) / WIDTH)), fill: "none" }),
    last && svg("circle", { cx: last[0], cy: last[1], r: 2.5 }),
  );
}

/**
 * The points of steps that follow each other, without those that have no number.
 *
 * @param {number} since when the first began, in Unix seconds
 * @param {number} step seconds
 * @param {(number | null)[]} numbers
 * @returns {[number, number][]}
 */
export function pointsOf(since, step, numbers) {
  return numbers.map((number, at) => [since + at * step, number]).filter(([, number]) => number !== null);
}

/**
 * At most `2 * most` of the points: the lowest and the highest of each slice, so that no peak is lost.
 *
 * @param {[number, number][]} points
 * @param {number} most
 * @returns {[number, number][]}
 */
export function thinned(points, most) {
  if (points.length <= 2 * most) return points;
  const size = points.length / most;
  return Array.from({ length: most }, (_, at) => {
    const slice = points.slice(Math.floor(at * size), Math.floor((at + 1) * size));
    const low = slice.reduce((best, point) => (point[1] < best[1] ? point : best));
    const high = slice.reduce((best, point) => (point[1] > best[1] ? point : best));
    if (low === high) return [low];
    return low[0] < high[0] ? [low, high] : [high, low];
  }).flat();
}

function rangeOf(points) {
  const numbers = points.map((point) => point[1]);
  return [Math.min(...numbers), Math.max(...numbers)];
}

function placer([first, last], [low, high]) {
  // Halves, because the ends may lie farther apart than the largest number.
  const share = (value, from, to) => (to > from ? (value / 2 - from / 2) / (to / 2 - from / 2) : 0.5);
  const x = (at) => EDGE + share(at, first, last) * (WIDTH - 2 * EDGE);
  const y = (number) => HEIGHT - EDGE - share(number, low, high) * (HEIGHT - 2 * EDGE);
  return ([at, number]) => [x(at).toFixed(1), y(number).toFixed(1)];
}

/** A point that stands alone is a dot, which a path of no length makes. */
function line(points, place, longest) {
  const begins = (at) => at === 0 || points[at][0] - points[at - 1][0] > longest;
  const parts = points.map((point, at) => {
    const to = place(point).join(" ");
    return begins(at) ? `M${to}h0` : `L${to}`;
  });
  return parts.join("");
}
