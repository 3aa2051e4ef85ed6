/**
 * The slots of one node: what is wanted, how it went, the last runs on demand, and buttons for those who may.
 */

import { ageText, everySecond, exactSpan, momentText, outcomeText, serverNow, spanText } from "../age.js";
import { get, isAbort, path, put } from "../api.js";
import { announce, counted, fill, h, problemBox, setText, table } from "../dom.js";
import { valueText } from "../scale.js";
import { intervalForm } from "./slot_interval.js";

const ANYWHERE = "*"; // in place of a node's name: wherever the service runs a producer of scope cluster
const RELOAD_SECONDS = 10; // how often durations and missed ticks follow, which events do not tell
const COLUMNS = ["Producer", "State", "Interval", "Last run", "Next run", "Missed ticks", "Log"];

/**
 * The section with the table; `take` gives it what was loaded, `hear` an event of type value, `reload` asks anew.
 *
 * @param {string} nodeName
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, take: (slots: any[], producers: any[]) => void, hear: (datum: any) => void,
 *   reload: () => Promise<void>}}
 */
export function slotsSection(nodeName, signal) {
  const slots = new Slots(nodeName, signal);
  return {
    element: slots.element,
    take: (found, producers) => slots.take(found, producers),
    hear: (datum) => slots.hear(datum),
    reload: () => slots.reload(),
  };
}

class Slots {
  constructor(nodeName, signal) {
    this.nodeName = nodeName;
    this.signal = signal;
    /** @type {Map<string, SlotRow>} */
    this.rows = new Map();
    this.producers = new Map();
    this.loadedAt = 0;
    this.behind = false;
    this.asking = this.next = null;
    this.body = h("tbody");
    this.empty = h("p", { class: "quiet" }, "Loading\u2026");
    this.problem = problemBox();
    this.starter = starter((name, interval) => this.start(name, interval));
    this.table = slotTable(this.body);
    this.element = h(
      "section",
      { "aria-labelledby": "slots-title" },
      h("h2", { id: "slots-title" }, "Slots"),
      this.empty,
      this.problem.element,
      this.table,
      this.starter.element,
    );
    everySecond(() => this.step(), signal);
  }

  take(slots, producers) {
    if (producers) this.producers = new Map(producers.map((producer) => [producer.data_name, producer]));
    this.loadedAt = serverNow();
    this.behind = false;
    const names = new Set(slots.map((slot) => slot.data_name));
    for (const [name, row] of this.rows) {
      if (!names.has(name)) this.drop(row);
    }
    for (const slot of slots) this.row(slot.data_name).take(slot);
    setText(this.empty, "No slot: nothing was started on this node.");
    this.empty.hidden = slots.length > 0;
    this.table.hidden = slots.length === 0;
    this.starter.offer([...this.producers.values()].filter((each) => canStart(each) && !names.has(each.data_name)));
  }

  /** Ask anew; whoever wants that while an answer is awaited shares the one question after it. */
  reload() {
    if (!this.asking) return (this.asking = this.ask().finally(() => (this.asking = null)));
    this.next ??= this.asking.then(() => {
      this.next = null;
      return this.reload();
    });
    return this.next;
  }

  async ask() {
    this.loadedAt = serverNow();
    try {
      const { slots } = await get(path("nodes", this.nodeName, "slots"), { signal: this.signal });
      if (this.signal.aborted) return;
      this.problem.say(null);
      this.take(slots);
    } catch (error) {
      if (!isAbort(error)) this.problem.say(error);
    }
  }

  hear(datum) {
    const row = this.rows.get(datum.data_name);
    if (!row || datum.outcome === null) return;
    row.ran(datum.outcome, datum.time);
    this.behind = true;
  }

  step() {
    for (const row of this.rows.values()) row.draw();
    if (this.behind && serverNow() - this.loadedAt > RELOAD_SECONDS) this.reload();
  }

  async start(name, interval) {
    await put(path("nodes", this.nodeName, "slots", name), { running: true, interval });
    announce(`${name} is started on ${this.nodeName}.`);
    await this.reload();
  }

  /** The service lists slots by name, so a new row belongs behind those that come before it. */
  row(name) {
    const known = this.rows.get(name);
    if (known) return known;
    const made = new SlotRow(this.nodeName, name, this.signal, () => this.reload());
    this.rows.set(name, made);
    const next = [...this.rows.keys()].sort().find((other) => other > name);
    this.body.insertBefore(made.element, next ? this.rows.get(next).element : null);
    made.element.after(made.more);
    return made;
  }

  drop(row) {
    this.rows.delete(row.name);
    row.element.remove();
    row.more.remove();
  }
}

function canStart(producer) {
  return producer.kind === "collector" || producer.kind === "processor";
}

function slotTable(body) {
  const heads = COLUMNS.map((column) => h("th", { scope: "col" }, column));
  const actions = h("th", { scope: "col", dataset: { role: "scheduler" } }, "Change");
  return h(
    "div",
    { class: "scroll", role: "region", "aria-label": "Table of slots", tabindex: "0", hidden: true },
    h(
      "table",
      null,
      h("caption", { class: "unseen" }, "Slots of this node"),
      h("thead", null, h("tr", null, heads, actions)),
      body,
    ),
  );
}

/** One slot: its row, and below it a second one for the log and for what went wrong. */
class SlotRow {
  constructor(nodeName, name, signal, reload) {
    Object.assign(this, { nodeName, name, signal, reload });
    this.slot = null;
    this.lastRun = null;
    this.placement = null;
    this.problem = problemBox();
    this.log = h("div", { hidden: true });
    const below = h("td", { colspan: COLUMNS.length + 1 }, this.problem.element, this.log);
    this.more = h("tr", { class: "more", hidden: true }, below);
    this.cells = COLUMNS.slice(1, -1).map(() => h("td"));
    this.reason = h("p", { class: "reason" });
    this.ended = h("span");
    fill(this.cells[2], this.ended, this.reason);
    this.logButton = h("button", { type: "button", "aria-expanded": "false", onclick: () => this.toggleLog() }, "Log");
    this.logButton.setAttribute("aria-label", `Log of ${name}`);
    this.actions = h("td", { class: "slot-actions", dataset: { role: "scheduler" } });
    this.buildActions();
    const head = h("th", { scope: "row" }, h("a", { href: `#${path("data", name)}` }, name));
    this.element = h("tr", null, head, this.cells, h("td", null, this.logButton), this.actions);
  }

  buildActions() {
    const act = (text, body) => h("button", { type: "button", onclick: () => this.change(body) }, text);
    this.startButton = act("Start", async () => ({ running: true, interval: await this.ownInterval() }));
    this.stopButton = act("Stop", async () => ({ running: false, interval: await this.ownInterval() }));
    this.liftButton = act("Lift quarantine", () => ({ running: true, lift: true }));
    this.interval = intervalForm(this.name, (interval) =>
      this.change(() => ({ running: this.slot.running, interval })),
    );
    fill(this.actions, this.startButton, this.stopButton, this.liftButton, this.interval.element);
    for (const button of [this.startButton, this.stopButton, this.liftButton]) {
      button.setAttribute("aria-label", `${button.textContent}: ${this.name}`);
    }
  }

  /**
   * The interval that was set for this slot; undefined leaves it to the producer's time_max.
   *
   * Both are asked for now: one that follows a registration changed meanwhile must not be taken for one that was set.
   */
  async ownInterval() {
    const { signal } = this;
    const [slot, producer] = await Promise.all([
      get(path("nodes", this.nodeName, "slots", this.name), { signal }),
      get(path("producers", this.name), { signal }),
    ]);
    return slot.interval === producer.time_max ? undefined : slot.interval;
  }

  take(slot) {
    const first = this.slot === null;
    this.slot = slot;
    this.lastRun = slot.age === null ? null : serverNow() - slot.age;
    this.interval.offer(slot.interval);
    if (first && slot.scope === "cluster") this.findPlacement().catch(() => {});
    this.draw();
  }

  ran(outcome, time) {
    const reason = outcome === this.slot.outcome && outcome !== "ok" ? this.slot.reason : null;
    this.slot = { ...this.slot, outcome, reason, duration: null };
    this.lastRun = time;
    this.draw();
  }

  draw() {
    const { slot } = this;
    const [state, interval, , next, skipped] = this.cells;
    const resting = slot.outcome === "quarantined";
    setText(state, this.stateText(resting));
    setText(interval, exactSpan(slot.interval));
    setText(this.ended, this.endedText());
    setText(this.reason, slot.reason ?? "");
    this.reason.hidden = !slot.reason;
    setText(next, this.nextText(resting));
    setText(skipped, slot.skipped);
    this.startButton.hidden = slot.running;
    this.stopButton.hidden = !slot.running;
    this.liftButton.hidden = !resting;
    this.element.className = resting ? "is-failed" : "";
  }

  stateText(resting) {
    const state = !this.slot.running ? "stopped" : resting ? "in quarantine" : "running";
    return this.placement ? `${state}, placed by the service` : state;
  }

  endedText() {
    const { outcome, duration } = this.slot;
    if (outcome === null) return outcomeText(null);
    const took = duration === null ? "" : `, took ${spanText(duration)}`;
    return `${outcomeText(outcome)}, ${ageText(serverNow() - this.lastRun)}${took}`;
  }

  nextText(resting) {
    const { slot } = this;
    if (!slot.running) return "none while stopped";
    if (resting) return "none until the quarantine is lifted";
    if (this.lastRun === null) return "soon";
    const left = this.lastRun + slot.interval - serverNow();
    const when = left > 1 ? `in about ${spanText(Math.ceil(left))}` : "due";
    return slot.inputs.length ? `${when}, or on a change` : when;
  }

  /** Where the service runs the producer, when this slot is one of those that it placed. */
  async findPlacement() {
    this.placement = null;
    if (this.slot.scope !== "cluster") return;
    try {
      const found = await get(path("nodes", ANYWHERE, "slots", this.name), { signal: this.signal });
      if (found.nodes.includes(this.nodeName)) this.placement = found;
    } catch (error) {
      if (error.status !== 404) throw error;
    }
    this.draw();
  }

  /** A slot that is put by its node's name stays there for good, so one that the service placed is put by `*`. */
  async change(bodyOf) {
    const pressed = document.activeElement;
    this.busy(true);
    this.problem.say(null);
    try {
      await this.findPlacement();
      const where = this.placement ? ANYWHERE : this.nodeName;
      await put(path("nodes", where, "slots", this.name), await bodyOf(), { signal: this.signal });
      const on = this.placement ? counted(this.placement.nodes.length, "node") : this.nodeName;
      announce(`${this.name} was changed on ${on}.`);
      await this.reload();
    } catch (error) {
      if (!isAbort(error)) this.problem.say(error);
    } finally {
      this.busy(false);
      this.showMore();
      this.keepFocus(pressed);
    }
  }

  busy(is) {
    for (const button of this.actions.querySelectorAll("button")) button.disabled = is;
  }

  /** The button that was pressed may be gone; the one in its place takes the focus, or a keyboard is lost. */
  keepFocus(pressed) {
    const at = document.activeElement;
    if (!this.actions.contains(pressed) || (at !== document.body && at !== pressed)) return;
    (pressed.hidden ? this.actions.querySelector("button:not([hidden])") : pressed)?.focus();
  }

  showMore() {
    this.more.hidden = this.log.hidden && this.problem.element.hidden;
  }

  async toggleLog() {
    const opening = this.log.hidden;
    this.logButton.setAttribute("aria-expanded", String(opening));
    this.log.hidden = !opening;
    this.problem.say(null);
    if (opening) await this.loadLog();
    this.showMore();
  }

  async loadLog() {
    fill(this.log, h("p", null, `Asking the agent of ${this.nodeName}\u2026`));
    this.showMore();
    try {
      const { runs } = await get(path("nodes", this.nodeName, "slots", this.name, "log"), { signal: this.signal });
      fill(this.log, runs.length ? logTable(this.name, runs) : h("p", null, `${this.name} has not run here yet.`));
    } catch (error) {
      fill(this.log);
      if (!isAbort(error)) this.problem.say(error);
    }
  }
}

function logTable(name, runs) {
  const rows = runs.map((run) => [
    momentText(run.ended_at),
    outcomeText(run.outcome),
    spanText(run.duration),
    run.exit_status ?? "never started",
    run.value === null ? "" : valueText(run.value, ""),
    run.stderr && h("pre", null, run.stderr),
  ]);
  const columns = ["Ended, by the node's clock", "Outcome", "Took", "Exit status", "Printed", "Complained"];
  return table(`Last runs of ${name}, newest first`, columns, rows);
}

/** The form that starts one more producer; `begin` is given its name and its interval or null. */
function starter(begin) {
  const name = h("select", { id: "start-name" });
  const interval = h("input", { id: "start-interval", type: "number", min: "0", step: "any" });
  const problem = problemBox();
  const form = h(
    "form",
    { class: "controls" },
    h("p", null, h("label", { for: "start-name" }, "Producer"), name),
    h("p", null, h("label", { for: "start-interval" }, "Seconds between runs (as registered if empty)"), interval),
    h("button", null, "Start"),
    problem.element,
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    problem.say(null);
    try {
      await begin(name.value, interval.value === "" ? null : Number(interval.value));
      interval.value = "";
    } catch (error) {
      if (!isAbort(error)) problem.say(error);
    }
  });
  const element = h(
    "section",
    { dataset: { role: "scheduler" }, hidden: true },
    h("h3", null, "Start another producer here"),
    h("p", { class: "quiet" }, "It stays on this node, also when its scope is cluster."),
    form,
  );
  return { element, offer: (producers) => offer(element, name, producers) };
}

/** Keep what was chosen, and do not touch the list when it is the same: it may be open. */
function offer(element, select, producers) {
  const names = producers.map((producer) => producer.data_name);
  element.hidden = names.length === 0;
  if (names.join(" ") === [...select.options].map((option) => option.value).join(" ")) return;
  const chosen = select.value;
  fill(select, names.map((name) => h("option", { value: name, selected: name === chosen }, name)));
}
