/**
 * Which data name comes from which: producers drawn from left to right by what they emit and read, and the same as a
 * nested list.
 *
 * A name stands one column to the right of the last one that it needs (layers by longest path). The service refuses
 * circles; one that came all the same is cut where it closes.
 */

import { counted, h, svg } from "../dom.js";

const ROW = 34;
const BOX = 24; // height of a box
const COLUMN_GAP = 64;
const BAND_GAP = 14; // between parts of the graph that do not touch
const MARGIN = 8;
const LETTER = 7.3; // width of a letter at the 12 px of styles/pages.css, a fixed-width font
const LONGEST = 36; // letters of a name that are drawn

const WORDS = { first: "", emits: "emits ", inputs: "is read by " };
const LEGEND =
  "A solid line leads from a producer to what it emits, a dashed one from a name to who reads it. " +
  "Boxes with a thick edge are processors, dashed ones programs, round ones emitted names.";

/**
 * @typedef {object} Producer as GET /producers tells: data_name, kind, emits, inputs
 * @typedef {{from: string, to: string, how: "emits" | "inputs"}} Edge
 * @typedef {{names: string[], edges: Edge[], kinds: Map<string, string>}} Graph
 * @typedef {{name: string, x: number, y: number, width: number}} Box
 */

/**
 * The names and what flows between them: from a producer to what it emits, and from an input to who reads it.
 *
 * @param {Producer[]} producers
 * @returns {Graph}
 */
export function graphOf(producers) {
  const kinds = new Map(producers.map((producer) => [producer.data_name, producer.kind]));
  const edges = producers.flatMap(({ data_name: name, emits, inputs }) => [
    ...emits.map((to) => ({ from: name, to, how: "emits" })),
    ...inputs.map((from) => ({ from, to: name, how: "inputs" })),
  ]);
  const known = edges.filter(({ from, to }) => kinds.has(from) && kinds.has(to));
  return { names: [...kinds.keys()].sort(), edges: known, kinds };
}

/**
 * The column of each name: 0 without anything that it needs, else one more than the largest of those.
 *
 * @param {Graph} graph
 * @returns {Map<string, number>}
 */
export function layersOf({ names, edges }) {
  const needs = grouped(edges, "to", "from");
  const layers = new Map();
  const look = (name) => {
    if (layers.has(name)) return layers.get(name);
    layers.set(name, 0); // what a circle finds when it comes back here
    const layer = (needs.get(name) ?? []).reduce((most, other) => Math.max(most, look(other) + 1), 0);
    layers.set(name, layer);
    return layer;
  };
  names.forEach(look);
  return layers;
}

/**
 * Names that hang together, the largest group first, those that touch no other left out.
 *
 * @param {Graph} graph
 * @returns {string[][]}
 */
export function groupsOf({ names, edges }) {
  const near = grouped([...edges, ...edges.map(({ from, to }) => ({ from: to, to: from }))], "from", "to");
  const seen = new Set();
  const groups = [];
  for (const start of names) {
    if (seen.has(start) || !near.has(start)) continue;
    const group = [];
    const ahead = [start];
    seen.add(start);
    while (ahead.length) {
      const name = ahead.pop();
      group.push(name);
      for (const other of near.get(name)) {
        if (!seen.has(other)) ahead.push(other);
        seen.add(other);
      }
    }
    groups.push(group.sort());
  }
  return groups.sort((one, other) => other.length - one.length);
}

/**
 * Where each box stands; groups lie below each other, their columns in line.
 *
 * @param {Graph} graph
 * @returns {{boxes: Box[], width: number, height: number}}
 */
export function layOut(graph) {
  const layers = layersOf(graph);
  const groups = groupsOf(graph);
  const columns = columnsOf(groups.flat(), layers);
  const needs = grouped(graph.edges, "to", "from");
  const boxes = [];
  let top = MARGIN;
  for (const group of groups) {
    const filled = columns.map((_, layer) => group.filter((name) => layers.get(name) === layer));
    const rows = Math.max(...filled.map((names) => names.length));
    const places = new Map();
    filled.forEach((names, layer) => {
      const first = top + ((rows - names.length) * ROW) / 2;
      ordered(names, needs, places).forEach((name, at) => {
        places.set(name, first + at * ROW);
        boxes.push({ name, x: columns[layer].x, y: first + at * ROW, width: widthOf(name) });
      });
    });
    top += rows * ROW + BAND_GAP;
  }
  const last = columns.at(-1);
  return { boxes, width: last ? last.x + last.width + MARGIN : 0, height: top };
}

/**
 * The picture, what its lines mean, and the nested list.
 *
 * @param {Producer[]} producers
 * @param {(name: string) => string} linkOf where a name leads
 * @returns {HTMLElement}
 */
export function producerGraph(producers, linkOf) {
  const graph = graphOf(producers);
  const { boxes, width, height } = layOut(graph);
  const alone = graph.names.length - boxes.length;
  if (!boxes.length) return h("p", null, "No name is emitted or read by another one yet.");
  const said = alone ? ` ${counted(alone, "name")} that neither reads, emits nor is read: see the table.` : "";
  return h(
    "figure",
    { class: "dag" },
    h(
      "div",
      { class: "scroll", role: "region", "aria-label": "Picture of who makes what", tabindex: "0" },
      picture(graph, boxes, { width, height, linkOf }),
    ),
    h("figcaption", null, LEGEND, said),
    h("details", null, h("summary", null, "The same as a list"), nestedList(graph, linkOf)),
  );
}

/** The edges as a map of one end -> the other ends, or the edges themselves without `value`. */
function grouped(edges, key, value) {
  const found = new Map();
  for (const edge of edges) {
    if (!found.has(edge[key])) found.set(edge[key], []);
    found.get(edge[key]).push(value ? edge[value] : edge);
  }
  return found;
}

function shown(name) {
  return name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
}

function widthOf(name) {
  return shown(name).length * LETTER + 16;
}

function columnsOf(names, layers) {
  const columns = [];
  for (const name of names) {
    const layer = layers.get(name);
    while (columns.length <= layer) columns.push({ x: 0, width: 0 });
    columns[layer].width = Math.max(columns[layer].width, widthOf(name));
  }
  let x = MARGIN;
  for (const column of columns) {
    column.x = x;
    x += column.width + COLUMN_GAP;
  }
  return columns;
}

/** The names of one column at the height of what they need, so that few lines cross. */
function ordered(names, needs, places) {
  const heights = new Map(names.map((name) => [name, meanPlace(needs.get(name) ?? [], places)]));
  return [...names].sort((one, other) => heights.get(one) - heights.get(other) || (one < other ? -1 : 1));
}

function meanPlace(names, places) {
  const known = names.filter((name) => places.has(name));
  return known.length ? known.reduce((sum, name) => sum + places.get(name), 0) / known.length : 0;
}

function picture(graph, boxes, { width, height, linkOf }) {
  const byName = new Map(boxes.map((box) => [box.name, box]));
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  return svg(
    "svg",
    { ...size, class: "dag-picture", role: "group", "aria-label": "Producers, with a link to each" },
    svg("defs", null, arrowHead()),
    graph.edges.map((edge) => line(byName.get(edge.from), byName.get(edge.to), edge.how)),
    boxes.map((box) => link(box, graph.kinds.get(box.name), linkOf(box.name))),
  );
}

function arrowHead() {
  const size = { viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  return svg("marker", { ...size, id: "dag-arrow" }, svg("path", { class: "dag-arrow", d: "M0 0 L8 4 L0 8 z" }));
}

function line(from, to, how) {
  const [x1, y1] = [from.x + from.width, from.y + BOX / 2];
  const [x2, y2] = [to.x, to.y + BOX / 2];
  const bend = COLUMN_GAP / 2;
  const d = `M${x1} ${y1} C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
  return svg("path", { class: `dag-line dag-${how}`, d, "marker-end": "url(#dag-arrow)", "aria-hidden": "true" });
}

function link({ name, x, y, width }, kind, href) {
  return svg(
    "a",
    { class: `dag-link dag-kind-${kind}`, href, "aria-label": `${name}, ${kind}` },
    svg("title", null, `${name}, ${kind}`),
    svg("rect", { x, y, width, height: BOX, rx: kind === "emitted" ? BOX / 2 : 3 }),
    svg("text", { x: x + 8, y: y + 16 }, shown(name)),
  );
}

/** Each name below what it comes from; one that comes from several is spelt out below the first of them. */
function nestedList(graph, linkOf) {
  const sources = new Set(graph.edges.map(({ to }) => to));
  const next = grouped(graph.edges, "from");
  const told = new Set();
  const item = (name, how) => {
    const again = told.has(name) && next.has(name);
    told.add(name);
    const below = again ? [] : (next.get(name) ?? []);
    return h(
      "li",
      null,
      WORDS[how],
      h("a", { href: linkOf(name) }, name),
      `, ${graph.kinds.get(name)}${again ? " (see above)" : ""}`,
      below.length > 0 && h("ul", null, below.map((edge) => item(edge.to, edge.how))),
    );
  };
  const firsts = graph.names.filter((name) => next.has(name) && !sources.has(name));
  return h("ul", { class: "dag-list" }, firsts.map((name) => item(name, "first")));
}
