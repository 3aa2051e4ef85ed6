/**
 * How a value is spread over the nodes: a histogram, with a sentence and a table that say the same in words.
 */

import { counted, fill, h, setText, svg } from "../dom.js";

const WIDTH = 560;
const HEIGHT = 180;
const LEFT = 44; // the first edge's number, too
const RIGHT = 44; // the last edge's number is as wide to both sides
const TOP = 18;
const BOTTOM = 26; // room for the values
const GAP = 2;
const MOST_BINS = 12;
const MOST_LABELS = 6;
const LETTER = 6.6; // about the width of one at the 12 px of pages.css
const LONGEST = 13; // letters of a number and its unit below an edge, as many as its place in the corner takes

/**
 * @typedef {object} Bin
 * @property {number} from
 * @property {number} to the last bin takes this value, too
 * @property {number} count
 */

/**
 * Numbers counted into ranges of equal width whose edges are round; none without numbers.
 *
 * About as many ranges as Sturges' rule asks for, log2(n) + 1.
 *
 * @param {number[]} numbers finite ones
 * @returns {Bin[]}
 */
export function binsOf(numbers) {
  if (!numbers.length) return [];
  const { low, high } = ends(numbers);
  if (low === high) return [{ from: low, to: high, count: numbers.length }];
  const wanted = Math.min(MOST_BINS, Math.ceil(Math.log2(numbers.length)) + 1);
  const width = roundWidth((high - low) / Math.max(2, wanted));
  // Beyond what a number can hold there are no edges between the ends.
  if (!(width > 0 && width < Infinity)) return [{ from: low, to: high, count: numbers.length }];
  const first = Math.floor(low / width);
  const last = Math.max(first + 1, Math.ceil(high / width));
  const bins = Array.from({ length: last - first }, (_, at) => ({
    from: (first + at) * width,
    to: (first + at + 1) * width,
    count: 0,
  }));
  for (const number of numbers) bins[placeOf(number, first, width, bins.length)].count += 1;
  return bins;
}

/**
 * The middle one of some numbers, of two middle ones their mean; NaN without any.
 *
 * @param {number[]} numbers
 * @returns {number}
 */
export function median(numbers) {
  const sorted = [...numbers].sort((one, other) => one - other);
  const half = sorted.length / 2;
  return Number.isInteger(half) ? (sorted[half - 1] + sorted[half]) / 2 : sorted[Math.floor(half)];
}

/**
 * A figure: the histogram, a sentence with the ends and the median, and the counts as a table that opens.
 *
 * `show(numbers)` draws it anew, one number for each node, all finite; what is open and focused in it stays so.
 *
 * @param {object} asked
 * @param {(number: number) => string} asked.text a number with its unit, as people read it
 * @param {string} asked.title what is counted, for example "load_1m over nodes"
 * @returns {{element: HTMLElement, show: (numbers: number[]) => void}}
 */
export function histogram({ text, title }) {
  const drawing = h("div");
  const said = h("figcaption");
  const counts = h("div");
  const details = h("details", null, h("summary", null, "The same as a table"), counts);
  const element = h("figure", { class: "bars" }, drawing, said, details);
  const show = (numbers) => {
    const bins = binsOf(numbers);
    details.hidden = bins.length === 0;
    setText(said, bins.length ? sentence(numbers, text) : "No node has a number to draw.");
    fill(drawing, bins.length > 0 && picture(bins, text, `${title}: ${said.textContent}`));
    fill(counts, bins.length > 0 && asTable(bins, text, title));
  };
  return { element, show };
}

function ends(numbers) {
  return {
    low: numbers.reduce((least, number) => Math.min(least, number), Infinity),
    high: numbers.reduce((most, number) => Math.max(most, number), -Infinity),
  };
}

/** The next 1, 2 or 5 times a power of ten that is not narrower than `width`. */
function roundWidth(width) {
  const power = 10 ** Math.floor(Math.log10(width));
  const factor = [1, 2, 5, 10].find((each) => each * power >= width * (1 - 1e-9)) ?? 10;
  return factor * power;
}

function placeOf(number, first, width, length) {
  return Math.min(length - 1, Math.max(0, Math.floor(number / width) - first));
}

function sentence(numbers, text) {
  const { low, high } = ends(numbers);
  const nodes = counted(numbers.length, "node");
  if (low === high) return `${nodes}, ${numbers.length === 1 ? "with" : "all with"} ${text(low)}.`;
  return `${nodes}, from ${text(low)} to ${text(high)}, half of them at most ${text(median(numbers))}.`;
}

function picture(bins, text, label) {
  const most = bins.reduce((found, bin) => Math.max(found, bin.count), 0);
  const step = (WIDTH - LEFT - RIGHT) / bins.length;
  const floor = HEIGHT - BOTTOM;
  const bars = bins.map((bin, at) => bar(bin, LEFT + at * step, step, ((floor - TOP) * bin.count) / most));
  return svg(
    "svg",
    { class: "bars-picture", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    svg("line", { class: "bars-axis", x1: LEFT, x2: WIDTH - RIGHT, y1: floor, y2: floor }),
    svg("text", { class: "bars-axis-text", x: 0, y: 12 }, "nodes"),
    bars,
    edgeLabels(bins, step, text),
  );
}

function bar(bin, left, width, height) {
  if (!bin.count) return null;
  const top = HEIGHT - BOTTOM - height;
  return [
    svg("rect", { class: "bars-bar", x: left + GAP / 2, y: top, width: width - GAP, height }),
    svg("text", { class: "bars-count", x: left + width / 2, y: top - 4 }, bin.count),
  ];
}

/** The numbers below the edges, as many as fit beside each other. */
function edgeLabels(bins, step, text) {
  const baseline = HEIGHT - 8;
  if (bins[0].from === bins[0].to) {
    return svg("text", { class: "bars-edge", x: LEFT + step / 2, y: baseline }, text(bins[0].from));
  }
  const edges = [...bins.map((bin) => bin.from), bins.at(-1).to];
  const texts = edges.map((edge) => shortened(text(edge)));
  const longest = Math.max(...texts.map((each) => each.length)) + 2;
  const fitting = Math.floor((WIDTH - LEFT - RIGHT) / (longest * LETTER));
  const every = Math.ceil(edges.length / Math.min(MOST_LABELS, fitting));
  return texts
    .map((said, at) => ({ said, at }))
    .filter(({ at }) => at % every === 0)
    .map(({ said, at }) => svg("text", { class: "bars-edge", x: LEFT + at * step, y: baseline }, said));
}

/** The whole stands in the table. */
function shortened(said) {
  return said.length > LONGEST ? `${said.slice(0, LONGEST - 1)}\u2026` : said;
}

function asTable(bins, text, title) {
  const rows = bins.map((bin, at) =>
    h("tr", null, h("th", { scope: "row" }, range(bin, at === bins.length - 1, text)), h("td", null, bin.count)),
  );
  const head = h("tr", null, h("th", { scope: "col" }, "Value"), h("th", { scope: "col" }, "Nodes"));
  return h("table", null, h("caption", null, title), h("thead", null, head), h("tbody", null, rows));
}

function range(bin, isLast, text) {
  if (bin.from === bin.to) return text(bin.from);
  return `${text(bin.from)} ${isLast ? "to" : "to below"} ${text(bin.to)}`;
}
