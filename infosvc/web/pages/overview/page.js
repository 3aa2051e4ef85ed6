/**
 * The cluster at a glance: is all well, what is free, what runs, what waits, and what needs somebody.
 */

import { call, get, isAbort } from "../../api.js";
import { fill, h, heading, problemBox, refill } from "../../dom.js";
import { watch } from "../../live.js";
import { atMostEvery, poll } from "../../poll.js";
import { may } from "../../session.js";
import { placesOf } from "../tasks/in_line.js";
import { STATES, hasEnded, hasPlace, seesTasks } from "../tasks/state.js";
import { attentionOf, troubles } from "./attention.js";
import { ClusterState, NAMES } from "./cluster_state.js";
import { Hours } from "./hours.js";
import { mapOf } from "./node_map.js";
import { jobRow, list, taskRow } from "./rows.js";
import { tilesOf } from "./tiles.js";

const DRAW_MS = 1_000;
const NODES_MS = 2_000;
const TASKS_MS = 1_000;
const JOBS_MS = 5_000;
const HOURS_MS = 30_000;
const ALERTS_MS = 5_000;
const AFTER_TROUBLE_MS = 15_000;
const MOST_TASKS = 1_000;
const MOST_ROWS = 8;
const NO_ANSWER = 503;

/**
 * @param {HTMLElement} main
 * @param {any} _params
 * @param {AbortSignal} signal
 */
export async function show(main, _params, signal) {
  const page = new Overview();
  fill(main, heading("Overview"), page.problem.element, page.body);
  const draw = atMostEvery(() => page.draw(), DRAW_MS, signal);
  const after = (loaded) => {
    page.draw();
    return loaded;
  };
  const tasks = async () => after(await loadTasks(page, signal));
  const nodes = atMostEvery(async () => after(await loadNodes(page, signal)), NODES_MS, signal);
  const handlers = {
    value: (event) => draw(page.cluster.takeValue(event)),
    node: (event) => {
      page.cluster.takeNode(event);
      draw();
      nodes();
    },
    task: atMostEvery(tasks, TASKS_MS, signal),
    refresh: async () => {
      const loads = [loadCluster(page, signal), seesTasks() ? loadTasks(page, signal) : true];
      return after((await Promise.all(loads)).every(Boolean));
    },
  };
  watch({ types: ["node", "value", ...(seesTasks() ? ["task"] : [])], names: NAMES }, handlers, signal);
  poll(async () => after(await loadHours(page, signal)), signal);
  poll(async () => after(await loadAlerts(page, signal)), signal);
  if (may("user")) poll(async () => after(await loadQueue(page, signal)), signal);
  await poll(async () => after(await loadJobs(page, signal)), signal); // ages grow also while nothing is heard
}

async function loadCluster(page, signal) {
  try {
    const [{ nodes }, { producers }] = await Promise.all([get("/nodes", { signal }), get("/producers", { signal })]);
    const known = new Set(producers.map((producer) => producer.data_name));
    const name = NAMES.filter((each) => known.has(each));
    page.cluster.takeNodes(nodes);
    if (name.length) page.cluster.takeColumns((await get("/data", { params: { name }, signal })).data);
    page.known = known;
    page.problem.say(null);
    return true;
  } catch (error) {
    if (isAbort(error)) return true;
    page.problem.say(error);
    return false;
  }
}

/** What an event about a node does not tell; where this fails, the page does without. */
async function loadNodes(page, signal) {
  try {
    page.cluster.takeNodes((await get("/nodes", { signal })).nodes);
    return true;
  } catch {
    return false;
  }
}

async function loadHours(page, signal) {
  if (!page.known) return DRAW_MS;
  await page.hours.load(page.known, signal);
  return HOURS_MS;
}

/** All tasks that have not ended, and those that were asked for last of the others. */
async function loadTasks(page, signal) {
  const ask = (states) => call("GET", "/tasks", undefined, { params: { limit: MOST_TASKS, state: states }, signal });
  const isOpen = (state) => !hasEnded({ state });
  try {
    const [open, ended] = await Promise.all([
      ask(STATES.filter(isOpen)),
      ask(STATES.filter((state) => !isOpen(state))),
    ]);
    page.tasks = [...open.body.tasks, ...ended.body.tasks];
    page.isCut = open.headers.has("Link");
    return true;
  } catch (error) {
    if (isAbort(error)) return true;
    page.problem.say(error);
    return false;
  }
}

async function loadJobs(page, signal) {
  try {
    page.jobs = (await get("/jobs", { signal })).jobs.filter((job) => job.kind !== "task");
    return JOBS_MS;
  } catch (error) {
    if (isAbort(error)) return null;
    page.jobs = null;
    page.hadoop = error.status === NO_ANSWER ? error.message : "";
    return AFTER_TROUBLE_MS;
  }
}

/** What cannot be had is not shown; the problem is said of what the page cannot do without. */
async function loadAlerts(page, signal) {
  try {
    page.alerts = (await get("/alerts", { signal })).alerts;
    return ALERTS_MS;
  } catch (error) {
    if (isAbort(error)) return null;
    page.alerts = [];
    return AFTER_TROUBLE_MS;
  }
}

/** Where tasks are in line and why they wait, as long as any is queued; not every cluster tells. */
async function loadQueue(page, signal) {
  if (!page.tasks) return DRAW_MS;
  if (!page.tasks.some((task) => task.state === "queued")) return JOBS_MS;
  try {
    page.queue = await get("/queue", { signal });
    return JOBS_MS;
  } catch (error) {
    if (isAbort(error)) return null;
    page.queue = null;
    return AFTER_TROUBLE_MS;
  }
}

class Overview {
  constructor() {
    this.problem = problemBox();
    this.cluster = new ClusterState();
    this.hours = new Hours();
    this.tasks = null; // not known, or not to be seen
    this.isCut = false;
    this.jobs = null;
    this.hadoop = "";
    this.alerts = [];
    this.queue = null; // not known, or nothing was queued yet
    this.known = null; // the names that are registered; null until the cluster was loaded
    this.tiles = h("ul", { class: "tiles", "aria-label": "The cluster in numbers" });
    this.map = h("section", { class: "at-map", "aria-label": "Nodes" });
    this.attention = h("section", { class: "at-attention", "aria-label": "Needs attention" });
    this.work = h("section", { class: "at-work", "aria-label": "Running" });
    this.ended = h("section", { class: "at-ended", "aria-label": "Ended last" });
    this.body = h("div", { class: "overview" }, this.attention, this.tiles, this.map, this.work, this.ended);
  }

  draw() {
    if (!this.known) return;
    refill(this.tiles, tilesOf(this));
    refill(this.map, mapOf(this.cluster, this.tasks ?? []));
    refill(this.attention, attentionOf(troubles(this.cluster, this.tasks ?? [], this.queue, this.alerts)));
    refill(this.work, this.workList());
    refill(this.ended, this.endedList());
  }

  workList() {
    const places = placesOf(this.queue);
    const open = (this.tasks ?? []).filter((task) => !hasEnded(task));
    const taskRows = inOrder(open, places).map((task) => taskRow(task, this.cluster, places.get(task.task_id)));
    const jobs = (this.jobs ?? []).filter((job) => !job.ended);
    const rows = [...jobs.map(jobRow), ...taskRows];
    const many = this.isCut ? "more than " : "";
    const more = rows.length > MOST_ROWS && h("p", { class: "quiet" }, `and ${many}${rows.length - MOST_ROWS} more`);
    const submit = ["Nothing runs or waits. ", h("code", null, "nodewise task submit"), " asks for a task."];
    const hidden = "No job runs. Tasks are shown to tokens of role user and admin.";
    const idle = h("p", { class: "quiet" }, this.tasks === null ? hidden : submit);
    const hadoop = this.hadoop && h("p", { class: "quiet" }, `Jobs are not known: ${this.hadoop}`);
    return [h("h2", null, "Runs and waits"), rows.length ? [list(rows.slice(0, MOST_ROWS)), more] : idle, hadoop];
  }

  endedList() {
    const ended = (this.tasks ?? [])
      .filter(hasEnded)
      .toSorted((one, other) => other.ended_at - one.ended_at)
      .slice(0, MOST_ROWS);
    const rows = ended.map((task) => taskRow(task, this.cluster));
    return rows.length > 0 && [h("h2", null, "Ended last"), list(rows)];
  }
}

/** Those that run, then those in line by queue and as YARN takes them, then all others; where equal the oldest first. */
function inOrder(tasks, places) {
  const rank = (task) => (hasPlace(task) ? 0 : (places.get(task.task_id)?.rank ?? Number.MAX_SAFE_INTEGER));
  return tasks.toReversed().toSorted((one, other) => rank(one) - rank(other));
}
