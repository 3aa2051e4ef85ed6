/**
 * All nodes at a glance: one cell for each, coloured by one value that the reader chooses.
 */

import { everySecond, heard, later, reading, serverNow, stateOf, syncClock } from "../age.js";
import { get, isAbort, isPassing } from "../api.js";
import { announce, counted, fill, h, heading, problemBox, setText } from "../dom.js";
import { watch, watchProducers } from "../live.js";
import { latestOnly, settled } from "../poll.js";
import { isBeyond, isFree, legend, numberOf, scaleOf } from "../scale.js";
import { COMPARE, Cell } from "./cluster_cell.js";
import { followShortages } from "./cluster_shortage.js";

const CHOOSING_MS = 250; // who goes through the names by keyboard must not open a stream for each
const TIDY_SECONDS = 5; // how often colours and order follow values that have moved
const FIRST_CHOICES = ["cpu_free_ratio", "load_1m", "perf_history"];
const NO_NAMES = "No data name is registered yet: register one on the page Data names.";
const NODE_STATES = { ready: "ready", stale: "silent", lost: "lost", unknown: "not enrolled" };
const VALUE_STATES = { fresh: "fresh", stale: "stale", failed: "with a failed last run", none: "without data" };
const SORTS = { name: "Name", value: "Value, largest first", age: "Age, oldest first" };

/**
 * Show the page; `name`, `sort` and `filter` of the address's query say what is shown and how.
 *
 * @param {HTMLElement} main
 * @param {import("../main.js").Params} params
 * @param {AbortSignal} signal
 */
export async function show(main, params, signal) {
  const problem = problemBox();
  const wanted = { name: params.query.get("name") ?? "", ...orderOf(params.query) };
  const grid = new Grid(signal);
  const tools = controls(wanted, (changed) => changeView(grid, wanted, changed));
  fill(main, heading("Cluster"), tools.element, problem.element, grid.summary, grid.legend, grid.element);
  grid.arrange(wanted);
  const follow = follower(grid, problem, signal);
  const chosen = settled(() => follow(wanted.name), CHOOSING_MS, signal);
  tools.name.addEventListener("change", () => {
    wanted.name = tools.name.value;
    remember(wanted);
    chosen();
  });
  // A name from the address need not wait for the list of names.
  if (wanted.name) follow(wanted.name);
  followNames({ grid, tools, wanted, problem, follow }, signal);
  followShortages(
    (dataName) => grid.producers.has(dataName),
    (errorsOf) => grid.takeErrors(errorsOf),
    signal,
  );
}

/** Offer the names that are registered, now and later; where none was chosen, one is as soon as there are any. */
function followNames({ grid, tools, wanted, problem, follow }, signal) {
  let failed = false;
  const load = latestOnly(async (current) => {
    try {
      const { producers } = await get("/producers", { signal });
      if (signal.aborted || !current()) return true;
      if (failed) problem.say(null);
      failed = false;
      wanted.name ||= firstChoice(producers);
      tools.offer(producers, wanted.name);
      grid.describe(producers);
      follow(wanted.name);
      if (!wanted.name) setText(grid.summary, NO_NAMES);
      return true;
    } catch (error) {
      if (isAbort(error) || !current()) return true;
      failed = true;
      problem.say(error);
      return !isPassing(error);
    }
  });
  watchProducers(load, signal);
}

/** Everything but the name: which nodes, in which order. */
function changeView(grid, wanted, changed) {
  Object.assign(wanted, changed);
  remember(wanted);
  grid.arrange(wanted);
  if ("filter" in changed) announce(`${counted(grid.shown, "node")} shown`);
}

function orderOf(query) {
  const sort = query.get("sort") ?? "";
  return { sort: Object.hasOwn(SORTS, sort) ? sort : "name", filter: query.get("filter") ?? "" };
}

/** The address says what is seen, so that it can be sent to somebody; no new entry in the history for each key. */
function remember({ name, sort, filter }) {
  const query = new URLSearchParams();
  if (name) query.set("name", name);
  if (sort !== "name") query.set("sort", sort);
  if (filter) query.set("filter", filter);
  history.replaceState(history.state, "", `#/cluster${query.size ? `?${query}` : ""}`);
}

function firstChoice(producers) {
  const names = new Set(producers.map((producer) => producer.data_name));
  const numeric = producers.find((producer) => producer.unit !== "json");
  return FIRST_CHOICES.find((name) => names.has(name)) ?? numeric?.data_name ?? producers[0]?.data_name ?? "";
}

/** A function that loads the nodes and one name's values, "" for none, and follows both until it is called again. */
function follower(grid, problem, signal) {
  let leaving = null;
  let followed = null;
  return (name) => {
    if (name === followed) return;
    followed = name;
    leaving?.abort();
    leaving = new AbortController();
    const until = AbortSignal.any([signal, leaving.signal]);
    grid.begin(name);
    const filter = name ? { types: ["node", "value"], names: [name] } : { types: ["node"] };
    const handlers = {
      node: (event) => grid.takeNode(event),
      value: (datum) => grid.takeValue(datum),
      refresh: () => load(grid, name, problem, until),
    };
    watch(filter, handlers, until);
  };
}

/** Whether that need not be tried again. */
async function load(grid, name, problem, signal) {
  try {
    const [{ nodes }, values] = await Promise.all([
      get("/nodes", { signal }),
      name ? get("/data", { params: { name }, signal }) : null,
    ]);
    if (signal.aborted) return true;
    problem.say(null);
    if (values) grid.takeColumn(values.data[0]);
    grid.takeNodes(nodes);
    return true;
  } catch (error) {
    if (isAbort(error)) return true;
    problem.say(error);
    grid.missed();
    return !isPassing(error);
  }
}

function controls(wanted, change) {
  const name = h("select", { id: "cluster-name" }, wanted.name && h("option", null, wanted.name));
  const filter = h("input", { id: "cluster-filter", type: "search", value: wanted.filter, autocomplete: "off" });
  const sort = h(
    "select",
    { id: "cluster-sort" },
    Object.entries(SORTS).map(([value, text]) => h("option", { value, selected: value === wanted.sort }, text)),
  );
  filter.addEventListener("input", () => change({ filter: filter.value.trim() }));
  sort.addEventListener("change", () => change({ sort: sort.value }));
  let offered = "";
  const offer = (producers, chosen) => {
    const names = producers.map((producer) => producer.data_name);
    if (chosen && !names.includes(chosen)) names.unshift(chosen);
    if (names.join("\n") === offered) return; // an open list would close
    offered = names.join("\n");
    fill(
      name,
      names.map((each) => h("option", { value: each, selected: each === chosen }, each)),
    );
  };
  const element = h(
    "form",
    { class: "controls", onsubmit: (event) => event.preventDefault() },
    labelled("Value", name),
    labelled("Nodes whose name has", filter),
    labelled("Order", sort),
  );
  return { element, name, offer };
}

function labelled(text, input) {
  return h("p", null, h("label", { for: input.id }, text), input);
}

/** The cells, what they know, and when they are drawn: at most once per frame, and only those that have changed. */
class Grid {
  constructor(signal) {
    this.element = h("ul", { class: "grid", "aria-label": "Nodes" });
    this.legend = h("div", { class: "legends" });
    this.summary = h("p", { class: "summary" }, "Loading\u2026");
    /** @type {Map<string, Cell>} */
    this.cells = new Map();
    this.errorsOf = (_nodeName) => [];
    this.dirty = new Set();
    this.order = { sort: "name", filter: "" };
    this.column = { name: "", unit: "", ttl: 0, loaded: false };
    this.producers = new Map();
    this.scale = null;
    this.frame = 0;
    this.seconds = 0;
    everySecond(() => this.step(), signal);
    signal.addEventListener("abort", () => cancelAnimationFrame(this.frame), { once: true });
  }

  /** How many cells pass the filter. */
  get shown() {
    return [...this.cells.values()].filter((cell) => !cell.element.hidden).length;
  }

  describe(producers) {
    this.producers = new Map(producers.map((producer) => [producer.data_name, producer]));
  }

  begin(name) {
    const known = this.producers.get(name);
    this.column = { name, unit: known?.unit ?? "", ttl: known?.ttl ?? 0, loaded: false };
    this.scale = null;
    for (const cell of this.cells.values()) cell.reading = null;
    if (name) setText(this.summary, `Loading ${name}\u2026`);
    this.touchAll();
  }

  /** Nothing could be loaded; what was there before stays, and grows old. */
  missed() {
    const { name, loaded } = this.column;
    if (name && !loaded) setText(this.summary, `The values of ${name} could not be loaded.`);
  }

  takeColumn({ data_name, unit, time, values }) {
    syncClock(time);
    const ttl = values[0]?.ttl ?? this.producers.get(data_name)?.ttl ?? 0;
    this.column = { name: data_name, unit, ttl, loaded: true };
    const found = new Map(values.map((row) => [row.node_name, row]));
    this.ensure(found.keys());
    for (const [name, cell] of this.cells) {
      const row = found.get(name);
      cell.reading = later(cell.reading, row && reading(row, time), time);
      if (cell.reading) cell.reading.ttl = ttl;
    }
    this.rescale();
    this.arrange(this.order);
  }

  takeValue(event) {
    this.ensure([event.node_name]);
    const cell = this.cells.get(event.node_name);
    const ttl = this.column.ttl || (this.producers.get(event.data_name)?.ttl ?? Infinity);
    cell.reading = heard(cell.reading, event, ttl);
    this.touch(cell);
  }

  takeNodes(nodes) {
    this.ensure(nodes.map((node) => node.node_name));
    const states = new Map(nodes.map((node) => [node.node_name, node.state]));
    for (const [name, cell] of this.cells) {
      this.setState(cell, states.get(name) ?? "unknown");
      if (!states.has(name) && this.column.loaded && !cell.reading) this.drop(cell);
    }
  }

  takeNode({ node_name, state }) {
    const known = this.cells.get(node_name);
    if (state !== "forgotten") {
      this.ensure([node_name]);
      this.setState(this.cells.get(node_name), state);
    } else if (known?.reading) {
      this.setState(known, "unknown");
    } else if (known) {
      this.drop(known);
    }
  }

  takeErrors(errorsOf) {
    this.errorsOf = errorsOf;
    for (const cell of this.cells.values()) cell.errors = errorsOf(cell.name);
    this.touchAll();
  }

  /** A node that was forgotten and has no value is no longer part of the cluster. */
  drop(cell) {
    this.cells.delete(cell.name);
    this.dirty.delete(cell);
    cell.element.remove();
  }

  setState(cell, state) {
    cell.nodeState = state;
    this.touch(cell);
  }

  /** Make the cells that are missing, all in one go. */
  ensure(names) {
    const missing = [...names].filter((name) => !this.cells.has(name));
    if (!missing.length) return;
    for (const name of missing) this.cells.set(name, new Cell(name, this.errorsOf(name)));
    this.arrange(this.order);
  }

  touch(cell) {
    this.dirty.add(cell);
    this.drawSoon();
  }

  touchAll() {
    for (const cell of this.cells.values()) this.dirty.add(cell);
    this.drawSoon(); // without cells, too: the sentence above them says so
  }

  drawSoon() {
    this.frame ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.frame = 0;
    const now = serverNow();
    for (const cell of this.dirty) cell.draw(this.column, this.scale, now);
    this.dirty.clear();
    this.summarize(now);
  }

  /** Ages grow by themselves; colours and order follow more slowly, and not under somebody's hand. */
  step() {
    this.touchAll();
    this.seconds += 1;
    if (this.seconds % TIDY_SECONDS) return;
    const numbers = this.numbers();
    if (!this.scale || numbers.some((number) => isBeyond(this.scale, number))) this.rescale();
    const inUse = this.element.contains(document.activeElement) || this.element.matches(":hover");
    if (this.order.sort !== "name" && !inUse) this.arrange(this.order);
  }

  numbers() {
    return [...this.cells.values()].map((cell) => numberOf(cell.reading?.text)).filter((number) => number !== null);
  }

  rescale() {
    this.scale = scaleOf(this.numbers(), this.column.unit, isFree(this.column.name));
    fill(this.legend, legend(this.scale, this.column.unit));
    this.touchAll();
  }

  /** Put the cells in order, moving them only when the order is another one, and hide those that are filtered out. */
  arrange({ sort, filter }) {
    this.order = { sort, filter };
    const part = filter.toLowerCase();
    const cells = [...this.cells.values()].sort(COMPARE[sort]);
    for (const cell of cells) cell.element.hidden = !cell.name.toLowerCase().includes(part);
    const there = this.element.children;
    const same = there.length === cells.length && cells.every((cell, at) => there[at] === cell.element);
    if (!same) {
      const held = this.element.contains(document.activeElement) ? document.activeElement : null;
      this.element.replaceChildren(...cells.map((cell) => cell.element));
      held?.focus({ preventScroll: true }); // what is moved loses the focus
    }
    this.touchAll();
  }

  summarize(now) {
    if (!this.column.loaded) return;
    if (!this.cells.size) {
      setText(this.summary, "No node is enrolled, and none has this value: `nodewise node add` enrols one.");
      return;
    }
    const cells = [...this.cells.values()];
    const nodes = tally(
      NODE_STATES,
      cells.map((cell) => cell.nodeState),
    );
    const values = tally(
      VALUE_STATES,
      cells.map((cell) => stateOf(cell.reading, now)),
    );
    setText(this.summary, `${counted(cells.length, "node")}${nodes && `: ${nodes}`}. Values: ${values}.`);
  }
}

/** How many there are of each: "5 ready, 1 lost". */
function tally(words, found) {
  return Object.entries(words)
    .map(([state, word]) => [found.filter((each) => each === state).length, word])
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(", ");
}
