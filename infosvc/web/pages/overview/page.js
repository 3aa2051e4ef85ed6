/**
 * The cluster at a glance: is all well, what is free, what runs, what waits, and what needs somebody.
 */

import { serverNow } from "../../age.js";
import { call, get, isAbort, path } from "../../api.js";
import { counted, fill, h, heading, problemBox, refill, row } from "../../dom.js";
import { watch } from "../../live.js";
import { atMostEvery, poll } from "../../poll.js";
import { numberParts, scaleOf, stepOf } from "../../scale.js";
import { stateText } from "../jobs.js";
import { STATES, addressOf, hasEnded, hasPlace, seesTasks, stateMark, tookText } from "../tasks/state.js";
import { DAY_SECONDS, troubles } from "./attention.js";
import { ClusterState, NAMES } from "./cluster_state.js";
import { Hours } from "./hours.js";

const DRAW_MS = 1_000;
const TASKS_MS = 1_000;
const JOBS_MS = 5_000;
const HOURS_MS = 30_000;
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
  fill(main, heading("Overview"), page.problem.element, page.tiles, page.body);
  const draw = atMostEvery(() => page.draw(), DRAW_MS, signal);
  const after = (loaded) => {
    page.draw();
    return loaded;
  };
  const tasks = async () => after(await loadTasks(page, signal));
  const handlers = {
    value: (event) => draw(page.cluster.takeValue(event)),
    node: (event) => draw(page.cluster.takeNode(event)),
    task: atMostEvery(tasks, TASKS_MS, signal),
    refresh: async () => {
      const loads = [loadCluster(page, signal), seesTasks() ? loadTasks(page, signal) : true];
      return after((await Promise.all(loads)).every(Boolean));
    },
  };
  watch({ types: ["node", "value", ...(seesTasks() ? ["task"] : [])], names: NAMES }, handlers, signal);
  poll(async () => after(await loadHours(page, signal)), signal);
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

class Overview {
  constructor() {
    this.problem = problemBox();
    this.cluster = new ClusterState();
    this.hours = new Hours();
    this.tasks = null; // not known, or not to be seen
    this.isCut = false;
    this.jobs = null;
    this.hadoop = "";
    this.known = null; // the names that are registered; null until the cluster was loaded
    this.tiles = h("ul", { class: "tiles", "aria-label": "The cluster in numbers" });
    this.map = h("section", { "aria-label": "Nodes" });
    this.attention = h("section", { "aria-label": "Needs attention" });
    this.work = h("section", { "aria-label": "Running" });
    this.ended = h("section", { "aria-label": "Ended last" });
    this.body = h("div", { class: "overview" }, this.map, this.attention, this.work, this.ended);
  }

  draw() {
    if (!this.known) return;
    refill(this.tiles, this.tileList());
    refill(this.map, mapOf(this.cluster, this.tasks ?? []));
    refill(this.attention, attentionOf(troubles(this.cluster, this.tasks ?? [])));
    refill(this.work, this.workList());
    refill(this.ended, this.endedList());
  }

  tileList() {
    const { cluster, hours } = this;
    const [cores, memory, disk] = ["cores", "memory", "disk"].map((what) => cluster.sum((node) => cluster[what](node)));
    const away = [
      ["silent", "stale"],
      ["lost", "lost"],
    ].map(([word, state]) => cluster.count(state) && `${cluster.count(state)} ${word}`);
    const received = cluster
      .ready()
      .map((node) => cluster.number("network_receive_bytes_per_second", node))
      .filter((each) => each !== null);
    return [
      tile(
        "Nodes ready",
        String(cluster.count("ready")),
        away.filter(Boolean).join(", ") || "all that are enrolled",
        "#/cluster",
        { isBad: away.some(Boolean) },
      ),
      used(
        "CPU",
        cores,
        (free) => `${free.toFixed(1)} of ${counted(Math.round(cores.all), "core")} free`,
        hours.line("cpu"),
      ),
      used("Memory", memory, (free) => `${bytes(free)} of ${bytes(memory.all)} free`, hours.line("memory")),
      used("Disks", disk, (free) => `${bytes(free)} of ${bytes(disk.all)} free`, hours.line("disk")),
      received.length > 0 &&
        tile(
          "Network",
          bytes(
            received.reduce((sum, each) => sum + each, 0),
            "bytes/second",
          ),
          "received by all nodes",
          "#/cluster?name=network_receive_bytes_per_second",
          { line: hours.line("network") },
        ),
      ...this.taskTiles(),
      this.jobs &&
        tile(
          "Jobs running",
          String(this.jobs.filter((job) => !job.ended).length),
          `${this.jobs.length} known to YARN`,
          "#/jobs",
        ),
    ];
  }

  taskTiles() {
    if (!this.tasks?.length) return [];
    const of = (...states) => this.tasks.filter((task) => states.includes(task.state)).length;
    const since = serverNow() - DAY_SECONDS;
    const failed = this.tasks.filter((task) => ["failed", "lost"].includes(task.state) && task.ended_at > since).length;
    return [
      tile(
        "Tasks running",
        String(of("starting", "running")),
        `${of("waiting", "queued")} waiting`,
        "#/tasks?state=not+ended",
      ),
      tile("Failed in 24 h", String(failed), failed ? "tasks" : "no task", "#/tasks?state=failed", {
        isBad: failed > 0,
      }),
    ];
  }

  workList() {
    const open = (this.tasks ?? []).filter((task) => !hasEnded(task)).toReversed();
    const running = open.toSorted((one, other) => Number(hasPlace(other)) - Number(hasPlace(one)));
    const jobs = (this.jobs ?? []).filter((job) => !job.ended);
    const rows = [...jobs.map(jobRow), ...running.map(taskRow)];
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
    return ended.length > 0 && [h("h2", null, "Ended last"), list(ended.map(taskRow))];
  }
}

function tile(label, number, words, address, { isBad = false, line = false } = {}) {
  return h(
    "li",
    null,
    h(
      "a",
      { class: ["tile", isBad && "is-bad"], href: address },
      h("span", { class: "tile-label" }, label),
      " ",
      h("span", { class: "tile-number" }, number),
      " ",
      h("span", { class: "tile-words" }, words),
      line,
    ),
  );
}

function used(label, { all, free, nodes }, words, line) {
  return (
    nodes > 0 &&
    all > 0 &&
    tile(`${label} used`, numberParts(1 - free / all, "ratio").join(" "), words(free), "#/cluster", { line })
  );
}

function bytes(number, unit = "bytes") {
  return numberParts(number, unit).join(" ");
}

/** A cell for each node, coloured by how busy its CPU is, with what runs there. */
function mapOf(cluster, tasks) {
  const names = [...cluster.nodes.keys()].toSorted((one, other) => one.localeCompare(other, "en", { numeric: true }));
  if (!names.length)
    return [
      h("h2", null, "Nodes"),
      h("p", null, "No node is enrolled: ", h("code", null, "nodewise node add"), " enrols one."),
    ];
  const runs = Map.groupBy(tasks.filter(hasPlace), (task) => task.node_name);
  const scale = scaleOf([0, 1]);
  return [
    h("h2", null, "Nodes by CPU in use"),
    h(
      "ul",
      { class: "node-map" },
      names.map((name) => h("li", null, nodeCell(name, cluster, runs.get(name)?.length ?? 0, scale))),
    ),
  ];
}

function nodeCell(name, cluster, running, scale) {
  const state = cluster.nodes.get(name);
  const free = cluster.number("cpu_free_ratio", name);
  const step = free === null ? "no-step" : `step-${stepOf(scale, 1 - free)}`;
  const words =
    state === "ready" ? (free === null ? "no data" : bytes(1 - free, "ratio")) : state === "stale" ? "silent" : state;
  const look = ["cell", "node-cell", state === "ready" ? step : "is-failed"];
  const work = running > 0 && h("span", { class: "cell-note" }, counted(running, "task"));
  return h(
    "a",
    { class: look, href: `#${path("node", name)}` },
    h("span", { class: "cell-name" }, name),
    " ",
    h("span", null, words),
    " ",
    work,
  );
}

function attentionOf(found) {
  const words = { 3: "Error", 2: "Warning", 1: "Note" };
  const item = ({ weight, what, remedy, address }) =>
    h(
      "li",
      { class: `trouble trouble-${weight}` },
      h("strong", null, words[weight]),
      " ",
      h("a", { href: address }, what),
      h("div", { class: "quiet" }, remedy),
    );
  return [
    h("h2", null, "Needs attention"),
    found.length
      ? h("ul", { class: "troubles" }, found.map(item))
      : h("p", { class: "state state-succeeded" }, "Nothing."),
  ];
}

function taskRow(task) {
  return [
    h("a", { href: addressOf(task.task_id) }, task.name),
    stateMark(task),
    task.node_name ?? "",
    tookText(task),
    hasEnded(task) || task.state !== "running" ? task.reason : "",
  ];
}

function jobRow(job) {
  return [
    h("a", { href: `#${path("job", job.job_id)}` }, job.job_id),
    stateText(job),
    "",
    `${Math.round(100 * job.progress)} %`,
    job.said,
  ];
}

function list(rows) {
  const head = h(
    "tr",
    { class: "unseen" },
    ["Name", "State", "Node", "Took", "Said"].map((each) => h("th", { scope: "col" }, each)),
  );
  return h(
    "div",
    { class: "scroll" },
    h("table", { class: "list" }, h("thead", null, head), h("tbody", null, rows.map(row))),
  );
}
