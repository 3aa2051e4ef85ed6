/**
 * All tasks that the reader may see, newest first: filtered and searched by the address, live, ready to be compared.
 */

import { everySecond } from "../../age.js";
import { call, get, isAbort, path } from "../../api.js";
import { announce, counted, fill, h, heading, problemBox, setText } from "../../dom.js";
import { watch } from "../../live.js";
import { atMostEvery, latestOnly, pollWhile, settled } from "../../poll.js";
import { may } from "../../session.js";
import { stackingCells, stackingTable } from "../../stacking.js";
import { moment } from "../jobs.js";
import { placesOf } from "./in_line.js";
import { addressOf, hasEnded, saidOf, seesTasks, STATES, stateMark, tookText, whoSeesTasks } from "./state.js";

const MOST = 1_000;
const SETTLE_MS = 700;
const TYPED_MS = 250;
const LINE_MS = 5_000;
const LINE_AGAIN_MS = 15_000; // after a failure
const MOST_COMPARED = 8;
const OPEN = "not ended";
const COLUMNS = [
  ["Compare", "choice"],
  ["Task"],
  ["State", "bare"],
  ["Node", "late"],
  ["Time", "late number"],
  ["Owner", "late"],
  ["Asked for", "late"],
  ["Why", "wide bare"],
];
const NAME = 1;

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
  const askLine = pollWhile(() => loadLine(list, signal), signal);
  const load = latestOnly(async (current) => {
    try {
      const { body, headers } = await call("GET", "/tasks", undefined, { params: filter.asked(), signal });
      if (!current()) return true;
      problem.say(null);
      list.draw(body.tasks);
      askLine(may("user") && body.tasks.some((task) => task.state === "queued"));
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

/** Where all queued tasks are in line, in one call; where it is not known, the list does without. */
async function loadLine(list, signal) {
  try {
    list.takePlaces(placesOf(await get("/queue", { signal })));
  } catch (error) {
    if (isAbort(error)) return null;
    list.takePlaces(new Map());
    return LINE_AGAIN_MS;
  }
  return LINE_MS;
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
    this.tasks = [];
    this.places = new Map();
    this.rows = new Map();
    this.chosen = new Set();
    this.compare = h("a", { class: "button", hidden: true });
    const { element, body } = stackingTable("Tasks", "Tasks, the newest first", COLUMNS);
    element.hidden = true;
    element.firstElementChild.classList.add("list");
    Object.assign(this, { element, body });
  }

  takePlaces(places) {
    this.places = places;
    this.draw(this.tasks);
  }

  draw(tasks) {
    this.tasks = tasks;
    const before = this.rows;
    const held = this.body.contains(document.activeElement) ? document.activeElement : null;
    this.rows = new Map(tasks.map((task) => [task.task_id, this.rowOf(task, before.get(task.task_id))]));
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
    const why = saidOf(task, this.places.get(task.task_id));
    const said = JSON.stringify([
      task.state,
      task.stop_asked,
      task.idle_since,
      task.node_name,
      why,
      task.started_at,
      task.ended_at,
    ]);
    if (before?.said === said) return before;
    if (before && hasEnded(task) && !hasEnded(before.task)) announce(`${task.name} ${task.state}.`);
    const element = before?.element ?? h("tr", { role: "row" });
    const box = element.querySelector("input") ?? this.boxOf(task);
    const name = [
      linkIn(element, addressOf(task.task_id), task.name),
      " ",
      h("span", { class: "quiet" }, task.task_id),
    ];
    const node = task.node_name && linkIn(element, `#${path("node", task.node_name)}`, task.node_name);
    const others = [stateMark(task), node, tookText(task), task.owner, moment(task.created_at), why];
    fill(element, stackingCells(COLUMNS, [box, name, ...others], NAME));
    return { task, said, element, took: element.querySelector("td.number") };
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

/** The link that a row already has, so that it can keep the focus, or a new one. */
function linkIn(row, address, text) {
  return row.querySelector(`a[href="${CSS.escape(address)}"]`) ?? h("a", { href: address }, text);
}
