/**
 * Curves by step or by time, drawn by uPlot, with a common crosshair; beside each stands what it says in words.
 */

import { fill, h } from "../dom.js";
import { numberText } from "../scale.js";
import uPlot from "../vendor/uPlot.esm.js";

const HEIGHT = 180;
const GAP = 4; // times the usual distance of two points: farther apart, the line is broken
const DASH = [5, 4];
export const COLOURS = 8;

/**
 * @typedef {object} Series
 * @property {string} label
 * @property {[number, number | null][]} points x and y, by x; of very many, some; null where there is no line
 * @property {number} [least] of all points, and so are `most` and `last`; of `points` if left out
 * @property {number} [most]
 * @property {number} [last]
 *
 * @typedef {object} Curve
 * @property {string} name of what is drawn, which is also its key
 * @property {string} unit "" if it has none
 * @property {Series[]} series
 * @property {boolean} [isStairs] whether amounts hold until they change: all series have the same x, where they change twice
 */

/**
 * A place for curves with a common crosshair; `draw` shows these and forgets others.
 *
 * @param {object} asked
 * @param {"step" | "time"} asked.by what x is; Unix seconds if time
 * @param {boolean} [asked.fromZero] whether y begins at 0, as it should for amounts
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (curves: Curve[]) => void}}
 */
export function curvesPlace({ by, fromZero = false }, signal) {
  const element = h("div", { class: "curves" });
  const crosshair = uPlot.sync(`curves by ${by}`);
  /** @type {Map<string, Figure>} */
  const figures = new Map();
  const draw = (curves) => {
    for (const [name, figure] of figures) {
      if (!curves.some((curve) => curve.name === name)) {
        figure.remove();
        figures.delete(name);
      }
    }
    for (const curve of curves) {
      if (!figures.has(curve.name)) figures.set(curve.name, new Figure(element, { by, fromZero, crosshair }));
      figures.get(curve.name).draw(curve);
    }
  };
  const resize = new ResizeObserver(() => figures.forEach((figure) => figure.fit()));
  resize.observe(element);
  const schemes = matchMedia("(prefers-color-scheme: dark)");
  schemes.addEventListener("change", () => figures.forEach((figure) => figure.remake()), { signal });
  const leave = () => {
    resize.disconnect();
    figures.forEach((figure) => figure.remove()); // else uPlot keeps all of them
    figures.clear();
  };
  signal.addEventListener("abort", leave, { once: true });
  return { element, draw };
}

class Figure {
  constructor(place, look) {
    this.look = look;
    this.caption = h("figcaption", null);
    this.picture = h("div", { class: "curve-picture", role: "img" });
    this.element = h("figure", { class: "curve" }, this.caption, this.picture);
    place.append(this.element);
  }

  draw(curve) {
    const labels = curve.series.map((series) => series.label).join("\n");
    const same = this.curve && labels === this.labels;
    this.curve = curve;
    this.labels = labels;
    fill(
      this.caption,
      h("strong", null, curve.name),
      h(
        "ul",
        null,
        curve.series.map((each, at) => this.key(each, at)),
      ),
    );
    const says = `${curve.name} by ${this.look.by}; the words above say least, most and last`;
    this.picture.setAttribute("aria-label", says);
    if (!same) this.remake();
    else this.take(columns(curve));
  }

  key(series, at) {
    const told = (number) => numberText(number, this.curve.unit);
    const numbers = series.points.map((point) => point[1]).filter((number) => number !== null);
    const { least = Math.min(...numbers), most = Math.max(...numbers), last = numbers.at(-1) } = series;
    const words = numbers.length ? `${told(last)} (${told(least)} to ${told(most)})` : "nothing yet";
    const many = this.curve.series.length > 1;
    const swatch = h("span", { class: ["swatch", `curve-${at % COLOURS}`, isDashed(at) && "curve-dashed"], "aria-hidden": "true" });
    return h("li", null, many && [swatch, " ", series.label, ": "], words);
  }

  /** New points; who has chosen a part of x keeps it. */
  take(data) {
    const { min, max } = this.plot.scales.x;
    const xs = this.plot.data[0];
    const isZoomed = xs.length > 1 && (min > xs[0] || max < xs.at(-1));
    this.plot.setData(data, !isZoomed);
    if (isZoomed) this.plot.redraw();
  }

  fit() {
    const width = this.picture.clientWidth;
    if (this.plot && width && width !== this.plot.width) this.plot.setSize({ width, height: HEIGHT });
  }

  remake() {
    this.plot?.destroy();
    const options = optionsOf(this.curve, this.look, this.picture.clientWidth || 400);
    this.plot = new uPlot(options, columns(this.curve), this.picture);
  }

  remove() {
    this.plot?.destroy(); // leaves the crosshair, too
    this.element.remove();
  }
}

function optionsOf({ unit, series, isStairs }, { by, fromZero, crosshair }, width) {
  const [ink, line] = [colour("--muted"), colour("--line")];
  const axis = { stroke: ink, grid: { stroke: line, width: 0.5 }, ticks: { stroke: line, width: 0.5 } };
  const isAmount = fromZero || isStairs;
  const short = (number) => (number === null ? "" : numberText(number, unit));
  const range = (_plot, low, high) =>
    uPlot.rangeNum(isAmount ? 0 : low, high ?? 1, { min: edge(isAmount), max: edge() });
  return {
    width,
    height: HEIGHT,
    cursor: { sync: { key: crosshair.key }, drag: { x: true, y: false } },
    legend: { show: false },
    scales: { x: { time: by === "time" }, y: { range } },
    axes: [axis, { ...axis, size: 70, values: (_plot, splits) => splits.map(short) }],
    series: [
      {},
      ...series.map((each, at) => ({
        label: each.label,
        stroke: colour(`--curve-${at % COLOURS}`),
        width: 1.5,
        dash: isDashed(at) ? DASH : undefined,
        points: isStairs ? { show: false } : undefined,
      })),
    ],
  };
}

function edge(hard = false) {
  return hard ? { pad: 0, soft: 0, mode: 1 } : { pad: 0.1, soft: null, mode: 0 };
}

/** Where there are more series than colours. */
function isDashed(at) {
  return at >= COLOURS;
}

/** What uPlot draws: all x in order, and for each series its y there; null breaks a line, undefined does not. */
function columns({ series, isStairs }) {
  if (isStairs) return [series[0].points.map(([x]) => x), ...series.map(({ points }) => points.map(([, y]) => y))];
  const tables = series.map(({ points }) => withGaps(points));
  return tables.length > 1
    ? uPlot.join(
        tables,
        tables.map(() => [0, 1]),
      )
    : (tables[0] ?? [[], []]);
}

function withGaps(points) {
  const steps = points
    .slice(1)
    .map((point, at) => point[0] - points[at][0])
    .toSorted((one, other) => one - other);
  const longest = GAP * (steps[Math.floor(steps.length / 2)] ?? Infinity);
  const [xs, ys] = [[], []];
  points.forEach(([x, y], at) => {
    const before = points[at - 1]?.[0];
    if (before !== undefined && x - before > longest) {
      xs.push((before + x) / 2);
      ys.push(null);
    }
    xs.push(x);
    ys.push(y);
  });
  return [xs, ys];
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
