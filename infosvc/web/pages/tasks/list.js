/**
 * All tasks that the reader may see, newest first: filtered and searched by the address, live, ready to be compared.
 */

import { everySecond } from "../../age.js";
import { call, isAbort } from "../../api.js";
import { announce, counted, fill, h, heading, problemBox, setText } from "../../dom.js";
import { watch } from "../../live.js";
import { atMostEvery, latestOnly, settled } from "../../poll.js";
import { moment } from "../jobs.js";
import { addressOf, hasEnded, seesTasks, STATES, stateMark, tookText, whoSeesTasks } from "./state.js";

const MOST = 1_000;
const SETTLE_MS = 700;
const TYPED_MS = 250;
const MOST_COMPARED = 8;
const OPEN = "not ended";
const COLUMNS = ["Compare", "Task", "State", "Owner", "Node", "Asked for", "Took", "Said"];

/**
 * @param {HTMLElement} main
 * @param {{query: URLSearchParams}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { query }, signal) {
  const title = heading("Tasks");
  if (!seesTasks()) return fill(main, title, whoSeesTasks());
  const filter = filterOf(query);
  const problem = problemBox();
  const count = h("p", { class: "quiet", role: "status" }, "Loading\u2026");
  const list = new List(signal);
  const load = latestOnly(async (current) => {
    try {
      const { body, headers } = await call("GET", "/tasks", undefined, { params: filter.asked(), signal });
      if (!current()) return true;
      problem.say(null);
      list.draw(body.tasks);
      tellCount(count, body.tasks, headers.has("Link"), filter.isSet());
      return true;
    } catch (error) {
      if (isAbort(error)) return true;
      problem.say(error);
      return false;
    }
  });
  filter.onChange(settled(load, TYPED_MS, signal));
  fill(main, title, actions(list), filter.element, problem.element, count, list.element);
  everySecond(() => list.tick(), signal);
  watch({ types: ["task"] }, { task: atMostEvery(load, SETTLE_MS, signal), refresh: load }, signal);
}

function actions(list) {
  return h(
    "div",
    { class: "actions" },
    h("a", { class: "button primary", href: "#/tasks/new", "data-role": "user" }, "New task"),
    list.compare,
  );
}

function tellCount(count, tasks, isCut, isFiltered) {
  if (!tasks.length) {
    const none = isFiltered
      ? ["No task is like that."]
      : ["There is no task. ", h("code", null, "nodewise task submit"), " asks for one."];
    fill(count, none);
    return;
  }
  const open = tasks.filter((task) => !hasEnded(task)).length;
  const more = isCut ? " These are the newest; search to find others." : "";
  setText(count, `${counted(tasks.length, "task")}, ${open} not ended.${more}`);
}

/** The fields above the list. What they say stands in the address, so that a link shows the same. */
function filterOf(query) {
  const text = h("input", { id: "task-text", type: "search", value: query.get("q") ?? "", maxlength: "128" });
  const options = ["all", OPEN, ...STATES].map((each) => h("option", { value: each }, each));
  const state = h("select", { id: "task-state" }, options);
  state.value = query.get("state") ?? "all";
  if (state.selectedIndex < 0) state.value = "all";
  const element = h(
    "div",
    { class: "controls", role: "search", "aria-label": "Filter tasks" },
    h("p", null, h("label", { for: text.id }, "Name, id or program"), text),
    h("p", null, h("label", { for: state.id }, "State"), state),
  );
  const states = () =>
    ({ all: [], [OPEN]: STATES.filter((each) => !hasEnded({ state: each })) })[state.value] ?? [state.value];
  const asked = () => ({ q: text.value.trim() || null, state: states(), limit: MOST });
  const isSet = () => text.value.trim() !== "" || state.value !== "all";
  const onChange = (load) => {
    element.addEventListener("input", () => {
      const kept = new URLSearchParams(
        Object.entries({ q: text.value.trim(), state: state.value }).filter(([, value]) => value && value !== "all"),
      );
      history.replaceState(null, "", kept.size ? `#/tasks?${kept}` : "#/tasks");
      load();
    });
  };
  return { element, asked, isSet, onChange };
}

/** The rows, of which only those are drawn anew that have changed. */
class List {
  constructor(signal) {
    this.signal = signal;
    this.rows = new Map();
    this.chosen = new Set();
    this.body = h("tbody", null);
    this.compare = h("a", { class: "button", hidden: true });
    const head = h(
      "tr",
      null,
      COLUMNS.map((column) => h("th", { scope: "col" }, column)),
    );
    this.element = h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Tasks", hidden: true },
      h("table", { class: "list" }, h("caption", null, "Tasks, the newest first"), h("thead", null, head), this.body),
    );
  }

  draw(tasks) {
    const before = this.rows;
    this.rows = new Map(tasks.map((task) => [task.task_id, this.rowOf(task, before.get(task.task_id))]));
    const held = this.body.contains(document.activeElement) ? document.activeElement : null;
    const elements = [...this.rows.values()].map((each) => each.element);
    if (
      elements.some((each, at) => this.body.children[at] !== each) ||
      elements.length !== this.body.childElementCount
    ) {
      this.body.replaceChildren(...elements);
    }
    if (held?.isConnected && held !== document.activeElement) held.focus({ preventScroll: true });
    this.element.hidden = tasks.length === 0;
    for (const id of this.chosen) if (!this.rows.has(id)) this.chosen.delete(id);
    this.drawCompare();
  }

  rowOf(task, before) {
    const said = JSON.stringify([
      task.state,
      task.stop_asked,
      task.idle_since,
      task.node_name,
      task.reason,
      task.started_at,
      task.ended_at,
    ]);
    if (before?.said === said) return before;
    if (before && hasEnded(task) && !hasEnded(before.task)) announce(`${task.name} ${task.state}.`);
    const took = h("td", { class: "number" }, tookText(task));
    const element = before?.element ?? h("tr", null);
    const box = element.querySelector("input") ?? this.boxOf(task);
    const link = element.querySelector("th a") ?? h("a", { href: addressOf(task.task_id) }, task.name);
    const name = h("th", { scope: "row" }, link, " ", h("span", { class: "quiet" }, task.task_id));
    const others = [stateMark(task), task.owner, task.node_name ?? "", moment(task.created_at)].map((cell) =>
      h("td", null, cell),
    );
    fill(element, h("td", null, box), name, others, took, h("td", null, task.reason));
    return { task, said, element, took };
  }

  boxOf(task) {
    const box = h("input", { type: "checkbox", "aria-label": `Compare ${task.name} ${task.task_id}` });
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.add(task.task_id);
      else this.chosen.delete(task.task_id);
      this.drawCompare();
    });
    return box;
  }

  drawCompare() {
    const { size } = this.chosen;
    this.compare.hidden = size < 2;
    setText(this.compare, size > MOST_COMPARED ? `At most ${MOST_COMPARED} can be compared` : `Compare ${size} tasks`);
    const asked = new URLSearchParams([...this.chosen].slice(0, MOST_COMPARED).map((id) => ["task", id]));
    this.compare.setAttribute("href", `#/compare?${asked}`);
  }

  tick() {
    for (const { task, took } of this.rows.values()) if (!hasEnded(task)) setText(took, tookText(task));
  }
}
