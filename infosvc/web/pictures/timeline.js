/**
 * The time line of a job: what each node worked on and when, as a picture and as a table that says the same.
 */

import { h, svg, table } from "../dom.js";

const WIDTH = 900;
const LEFT = 160;
const LANE = 26;
const BAR = 16;
const BOTTOM = 24;
const MOST_TICKS = 6;
const LONGEST_NAME = 22;

/**
 * @typedef {{begin: number, end: number, kind: string, said: string}} Bar seconds since the work began
 * @typedef {{node_name: string, said: string, bars: Bar[], refused: Bar[], failures: any[]}} Lane
 */

/**
 * Round numbers from 0 to `most`, in steps of 1, 2 or 5 times a power of ten.
 *
 * @param {number} most above 0
 * @returns {number[]}
 */
export function ticks(most) {
  const power = 10 ** Math.floor(Math.log10(most / (MOST_TICKS - 1)));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((each) => most / each <= MOST_TICKS - 1) ?? most;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, at) => at * step);
}

/**
 * A figure with a lane for each node.
 *
 * @param {{seconds: number, kinds: Record<string, string>, lanes: Lane[]}} line as GET /jobs/ID has it
 * @returns {HTMLElement}
 */
export function timeline({ seconds, kinds, lanes }) {
  if (!(seconds > 0)) return h("p", null, "No lease is in the report, so there is no time line.");
  const keys = Object.entries(kinds).map(([kind, words]) =>
    h("li", null, h("span", { class: `swatch timeline-${kind}`, "aria-hidden": "true" }), words),
  );
  const rows = lanes.map((lane) => [lane.node_name, lane.said, lane.failures.map(failure).join("; ") || "none"]);
  return h(
    "figure",
    { class: "timeline" },
    h(
      "div",
      { class: "scroll", role: "region", "aria-label": "Picture of the time line", tabindex: "0" },
      picture(seconds, lanes),
    ),
    h("ul", { class: "legend", "aria-label": "What the bars are" }, keys),
    h(
      "details",
      null,
      h("summary", null, "The same as a table"),
      table("Leases and failures of each node", ["Node", "Leases", "Failures"], rows),
    ),
  );
}

function picture(seconds, lanes) {
  const height = lanes.length * LANE + BOTTOM;
  const x = (second) => LEFT + ((WIDTH - LEFT - 20) * second) / seconds;
  const span = `over ${seconds.toFixed(1)} seconds; the table below says it in words`;
  const label = `When each of ${lanes.length} nodes worked, ${span}`;
  return svg(
    "svg",
    { class: "timeline-picture", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label },
    ticks(seconds).map((second) => tick(second, x(second), height)),
    lanes.map((lane, at) => laneOf(lane, at * LANE, x)),
  );
}

function tick(second, left, height) {
  const bottom = height - BOTTOM;
  return [
    svg("line", { class: "timeline-tick", x1: left, x2: left, y1: 0, y2: bottom }),
    svg("text", { class: "timeline-text", x: left, y: height - 8, "text-anchor": "middle" }, `${number(second)} s`),
  ];
}

function laneOf(lane, top, x) {
  const cut = lane.node_name.length > LONGEST_NAME;
  const name = cut ? `${lane.node_name.slice(0, LONGEST_NAME - 1)}\u2026` : lane.node_name;
  const middle = top + LANE / 2;
  return [
    svg("text", { class: "timeline-text", x: LEFT - 8, y: middle + 4, "text-anchor": "end" }, name),
    lane.bars.map((bar) => rect(bar, `timeline-${bar.kind}`, top + (LANE - BAR) / 2, BAR, x)),
    lane.refused.map((bar) => rect(bar, "timeline-refused", top + LANE - 6, 4, x)),
    lane.failures.map((one) => cross(one, x(one.seconds), middle)),
  ];
}

function rect(bar, look, y, height, x) {
  const width = Math.max(1, x(bar.end) - x(bar.begin));
  return svg("rect", { class: look, x: x(bar.begin), y, width, height }, svg("title", null, bar.said));
}

function cross(one, x, y) {
  const d = `M${x - 5} ${y - 5}L${x + 5} ${y + 5}M${x - 5} ${y + 5}L${x + 5} ${y - 5}`;
  return svg("path", { class: "timeline-failure", d }, svg("title", null, failure(one)));
}

function failure(one) {
  return `${one.seconds.toFixed(1)} s: ${one.kind}${one.said ? `: ${one.said}` : ""}`;
}

function number(second) {
  return second.toLocaleString("en", { maximumFractionDigits: 2 });
}
