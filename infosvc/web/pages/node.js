/**
 * One node: how its agent is, all its values with what they were lately, and its slots.
 */

import { ageText, everySecond, heard, isBad, later, momentText, outcomeText, reading } from "../age.js";
import { serverNow, stateOf, syncClock } from "../age.js";
import { get, isAbort, isPassing, path } from "../api.js";
import { counted, fact, fill, h, heading, problemBox, setText } from "../dom.js";
import { watch } from "../live.js";
import { awayWord } from "../node_state.js";
import { poll, wait } from "../poll.js";
import { numberOf, valueText } from "../scale.js";
import { pointsOf, sparkline } from "../pictures/spark.js";
import { nodeShortage } from "./node_shortage.js";
import { slotsSection } from "./node_slots.js";
import { nodeTasks } from "./node_tasks.js";

const NAMES_PER_CALL = 60; // an address must not grow too long
const FACTS_MS = 10_000;
const UNKNOWN_MS = 2_000; // between two loads for names that were registered after the page was opened
const HOUR_SECONDS = 3_600;
const HISTORY_AGAIN_SECONDS = 60;
const HOUR_AGAIN_SECONDS = 30;
const STATES = {
  ready: "ready: its agent reports",
  stale: "silent: its agent has missed three heartbeats",
  lost: "lost: its agent does not report any more, and values are those from before",
  forgotten: "not enrolled any more",
};

/**
 * Show the page of the node `params.name`.
 *
 * @param {HTMLElement} main
 * @param {import("../main.js").Params} params
 * @param {AbortSignal} signal
 */
export async function show(main, params, signal) {
  const name = params.name;
  const problem = problemBox();
  const facts = factsOf(name, signal);
  const values = new Values(name, signal);
  const slots = slotsSection(name, signal);
  const back = h("p", null, h("a", { href: "#/cluster" }, "All nodes"));
  const tasks = nodeTasks(name, signal);
  const short = nodeShortage(name);
  const parts = [problem, short, facts].map((part) => part.element);
  fill(main, back, heading(`Node ${name}`), parts, tasks, values.element, slots.element);
  everySecond(() => short.draw((dataName) => (facts.isAway() ? null : values.number(dataName))), signal);
  const load = async () => {
    try {
      const found = await loadNode(name, signal);
      if (signal.aborted) return true;
      problem.say(null);
      facts.take(found.node);
      values.take(found.producers, found.slots, found.data);
      slots.take(found.slots, found.producers);
      return true;
    } catch (error) {
      if (isAbort(error)) return true;
      problem.say(error);
      return !isPassing(error);
    }
  };
  const value = (datum) => {
    if (values.isNews(datum)) load();
    values.hear(datum);
    slots.hear(datum);
  };
  const node = (event) => (facts.isEnrolled() ? facts.turn(event.state) : load());
  watch({ nodes: [name] }, { value, node, slot: slots.reload, refresh: load }, signal);
  await facts.follow();
}

/** What is said of the node itself; asked for anew every few seconds, because no event tells that its agent reports. */
function factsOf(name, signal) {
  const element = h("dl", { class: "facts" });
  let node = null;
  const isEnrolled = () => node !== null && node.state !== "forgotten";
  const isAway = () => awayWord(node?.state) !== null;
  const take = (found) => showFacts(element, (node = found));
  const turn = (state) => take({ ...node, state });
  const missed = (error) => error.status === 404 && turn("forgotten");
  const follow = async () => {
    await wait(FACTS_MS, signal);
    await poll(async () => {
      if (isEnrolled()) await get(path("nodes", name), { signal }).then(take, missed);
      return FACTS_MS;
    }, signal);
  };
  return { element, isEnrolled, isAway, take, turn, follow };
}

/** All that the page shows, in as few calls as there can be; a node that is not enrolled may still have values. */
async function loadNode(name, signal) {
  const orNull = (error) => {
    if (error.status === 404) return null;
    throw error;
  };
  const [{ producers }, node, wanted] = await Promise.all([
    get("/producers", { signal }),
    get(path("nodes", name), { signal }).catch(orNull),
    get(path("nodes", name, "slots"), { signal }).catch(orNull),
  ]);
  const names = producers.map((producer) => producer.data_name);
  const parts = [];
  for (let at = 0; at < names.length; at += NAMES_PER_CALL) parts.push(names.slice(at, at + NAMES_PER_CALL));
  const answers = await Promise.all(parts.map((part) => get("/data", { params: { name: part, node: name }, signal })));
  return { producers, node, slots: wanted?.slots ?? [], data: answers.flatMap((answer) => answer.data) };
}

function showFacts(list, node) {
  const facts = node
    ? {
        State: stateWords(node.state),
        "Agent listens at": node.address,
        "Agent's version": node.agent_version || "not told yet",
        "Last heard of": heardText(node),
        "Runs lost by its agent": node.dropped,
      }
    : { State: "not enrolled: values about it come from programs" };
  fill(list, Object.entries(facts).map(fact));
}

function stateWords(state) {
  const words = STATES[state] ?? state;
  return awayWord(state) ? h("span", { class: "trouble-3" }, h("strong", null, words)) : words;
}

function heardText({ state, last_seen: seen }) {
  const at = momentText(seen);
  return awayWord(state) && seen !== null ? `${at}, ${ageText(serverNow() - seen)}` : at;
}

/** The table of all values; rows are made once, and their texts follow. */
class Values {
  constructor(nodeName, signal) {
    this.nodeName = nodeName;
    this.signal = signal;
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    this.producers = new Map();
    this.loadedAt = Infinity; // not yet
    this.body = h("tbody");
    this.empty = h("p", { class: "quiet" }, "Loading\u2026");
    this.frame = 0;
    this.hourAsked = 0;
    this.sight = new IntersectionObserver((entries) => this.seen(entries), { rootMargin: "100px" });
    const columns = ["Data name", "Value", "Age", "Last run", "Last hour"];
    this.table = h(
      "div",
      { class: "scroll", role: "region", "aria-label": "Table of values", tabindex: "0", hidden: true },
      h(
        "table",
        null,
        h("caption", { class: "unseen" }, "Values of this node"),
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            columns.map((column) => h("th", { scope: "col" }, column)),
          ),
        ),
        this.body,
      ),
    );
    this.element = h(
      "section",
      { "aria-labelledby": "values-title" },
      h("h2", { id: "values-title" }, "Values"),
      this.empty,
      this.table,
    );
    everySecond(() => this.drawSoon(), signal);
    signal.addEventListener("abort", () => this.end(), { once: true });
  }

  end() {
    this.sight.disconnect();
    cancelAnimationFrame(this.frame);
  }

  take(producers, slots, data) {
    this.loadedAt = Date.now();
    this.producers = new Map(producers.map((producer) => [producer.data_name, producer]));
    const running = slots.filter((slot) => slot.running);
    const awaited = new Set(running.flatMap((slot) => [slot.data_name, ...slot.emits]));
    const readings = new Map();
    for (const { data_name, time, values } of data) {
      syncClock(time);
      const found = later(this.rows.get(data_name)?.reading, values.length ? reading(values[0], time) : null, time);
      if (found) readings.set(data_name, found);
    }
    for (const [name, producer] of this.producers) {
      if (!readings.has(name) && !awaited.has(name)) continue;
      Object.assign(this.row(name), { producer, reading: readings.get(name) ?? null });
    }
    for (const [name, row] of this.rows) {
      if (!readings.has(name) && !awaited.has(name)) this.drop(row);
    }
    setText(this.empty, "No value yet: no slot runs here, and no program has written one.");
    this.arrange();
  }

  /** Whether an event is of a name that was registered after the last load; not too often, for events are many. */
  isNews({ data_name: name, outcome }) {
    const isKnown = outcome === null || this.producers.has(name);
    if (isKnown || Date.now() - this.loadedAt < UNKNOWN_MS) return false;
    this.loadedAt = Date.now();
    return true;
  }

  hear(event) {
    const producer = this.producers.get(event.data_name);
    if (!producer) return;
    const isNew = !this.rows.has(event.data_name);
    const row = this.row(event.data_name);
    const turned = row.reading?.outcome !== event.outcome;
    row.reading = heard(row.reading, event, producer.ttl);
    if (isNew) this.arrange();
    if (turned && isBad(event.outcome)) this.askReason(row);
    this.drawSoon();
  }

  /** Events do not say what a run complained. */
  async askReason(row) {
    try {
      const datum = await get(path("data", row.name, this.nodeName), { signal: this.signal });
      row.reading = reading(datum);
      this.drawSoon();
    } catch {
      // The outcome itself is shown already; the next load brings the reason.
    }
  }

  /** A number that is fresh enough to count; null otherwise. */
  number(dataName) {
    const found = this.rows.get(dataName)?.reading;
    return stateOf(found, serverNow()) === "fresh" ? numberOf(found.text) : null;
  }

  row(name) {
    const known = this.rows.get(name);
    if (known) return known;
    const made = new Row(this.producers.get(name));
    this.rows.set(name, made);
    this.hourAsked = 0;
    this.sight.observe(made.element);
    return made;
  }

  drop(row) {
    this.rows.delete(row.name);
    this.sight.unobserve(row.element);
    row.element.remove();
  }

  arrange() {
    const rows = [...this.rows.values()].sort((one, other) => (one.name < other.name ? -1 : 1));
    const there = this.body.children;
    const same = there.length === rows.length && rows.every((row, at) => there[at] === row.element);
    if (!same) this.body.replaceChildren(...rows.map((row) => row.element));
    this.table.hidden = rows.length === 0;
    this.empty.hidden = rows.length > 0;
    this.drawSoon();
  }

  drawSoon() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      const now = serverNow();
      for (const row of this.rows.values()) {
        row.draw(now);
        if (row.inSight && row.isDue(now)) this.loadHistory(row, now);
      }
      if (this.rows.size && now - this.hourAsked > HOUR_AGAIN_SECONDS) this.loadHour(now);
    });
  }

  seen(entries) {
    const rows = new Map([...this.rows.values()].map((row) => [row.element, row]));
    for (const { target, isIntersecting } of entries) {
      const row = rows.get(target);
      if (row) row.inSight = isIntersecting;
    }
    this.drawSoon();
  }

  async loadHistory(row, now) {
    row.asked = now;
    const params = { since: Math.max(0, now - HOUR_SECONDS) };
    try {
      const where = path("data", row.name, this.nodeName, "history");
      row.showHistory(await get(where, { params, signal: this.signal }));
    } catch (error) {
      if (!isAbort(error)) setText(row.history, `history not available: ${error.message}`);
    }
  }

  /** The last hour of all values whose history is not kept as long, in one call. */
  async loadHour(now) {
    this.hourAsked = now;
    try {
      const hour = await get(path("nodes", this.nodeName, "hour"), { signal: this.signal });
      const curves = new Map(hour.curves.map((curve) => [curve.data_name, curve.numbers]));
      for (const row of this.rows.values()) {
        if (!row.isKept) row.showHour(hour, curves.get(row.name) ?? []);
      }
    } catch (error) {
      if (isAbort(error)) return;
      for (const row of this.rows.values()) {
        if (!row.isKept) setText(row.history, `last hour not available: ${error.message}`);
      }
    }
  }
}

/** One value. */
class Row {
  constructor(producer) {
    this.producer = producer;
    this.name = producer.data_name;
    this.reading = null;
    this.inSight = false;
    this.asked = 0;
    [this.value, this.age, this.outcome, this.history] = ["value", "age", "outcome", "history"].map((look) =>
      h("td", { class: look }),
    );
    this.reason = h("p", { class: "reason" });
    this.ended = h("span");
    fill(this.outcome, this.ended, this.reason);
    const link = h("a", { href: `#${path("data", this.name)}`, title: producer.help || null }, this.name);
    const head = h("th", { scope: "row" }, link);
    this.element = h("tr", null, head, this.value, this.age, this.outcome, this.history);
  }

  draw(now) {
    const state = stateOf(this.reading, now);
    const { text = null, measured = null, outcome = null, reason = null } = this.reading ?? {};
    setText(this.value, valueText(text, this.producer.unit));
    setText(this.age, measured === null ? "" : `${ageText(now - measured)}${state === "stale" ? ", stale" : ""}`);
    setText(this.ended, outcomeText(outcome));
    setText(this.reason, reason ?? "");
    this.reason.hidden = !reason;
    this.element.className = `is-${state}`;
  }

  /** Whether the database keeps its last hour, which then outlives the service. */
  get isKept() {
    return this.producer.keep >= HOUR_SECONDS;
  }

  /** Whether the history should be loaded, for the first time or again. */
  isDue(now) {
    return this.isKept && now - this.asked > HISTORY_AGAIN_SECONDS;
  }

  showHistory({ points, until }) {
    const numbers = points.map(([at, text]) => [at, numberOf(text)]).filter(([, number]) => number !== null);
    const why = points.length ? "no line: not a number" : "nothing kept yet";
    this.drawLine(numbers, [until - HOUR_SECONDS, until], this.producer.ttl, why);
  }

  showHour({ since, step, full }, numbers) {
    const points = pointsOf(since, step, numbers);
    const isText = this.reading?.text && numberOf(this.reading.text) === null;
    const why = isText ? "no line: not a number" : full ? "no line: the service holds no more" : "nothing yet";
    // Two numbers may have come a step less apart than their steps are.
    const longest = step * Math.ceil(Math.max(this.producer.ttl, step) / step);
    this.drawLine(points, [since, since + HOUR_SECONDS], longest, why);
  }

  drawLine(numbers, span, longest, why) {
    if (!numbers.length) {
      fill(this.history, h("span", { class: "quiet" }, why));
      return;
    }
    const all = numbers.map(([, number]) => number);
    const [low, high] = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
    const told = (number) => valueText(String(number), this.producer.unit);
    const label = `${this.name}: from ${told(low)} to ${told(high)}, ${counted(numbers.length, "point")}`;
    fill(this.history, sparkline(numbers, label, span, longest));
  }
}
