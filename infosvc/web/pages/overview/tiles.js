/**
 * The cluster in numbers: a tile for each, which leads to the page that shows more.
 */

import { serverNow } from "../../age.js";
import { counted, h } from "../../dom.js";
import { AWAY_WORDS } from "../../node_state.js";
import { numberText } from "../../scale.js";
import { hasPlace } from "../tasks/state.js";
import { DAY_SECONDS } from "./attention.js";

/**
 * @param {{cluster: import("./cluster_state.js").ClusterState, hours: import("./hours.js").Hours, tasks: any[] | null,
 *   jobs: any[] | null}} page what is not known is null
 * @returns {import("../../dom.js").Child[]}
 */
export function tilesOf({ cluster, hours, tasks, jobs }) {
  return [
    readyTile(cluster),
    ...usedTiles(cluster, hours),
    networkTile(cluster, hours),
    ...taskTiles(cluster, tasks ?? []),
    jobs && jobsTile(jobs),
  ];
}

function readyTile(cluster) {
  const found = [...cluster.nodes.keys()].map((name) => cluster.away(name));
  const count = (word) => found.filter((each) => each === word).length;
  const away = AWAY_WORDS.filter(count).map((word) => `${count(word)} ${word}`);
  const words = away.join(", ") || "all that are enrolled";
  const number = `${cluster.count("ready")} of ${cluster.nodes.size}`;
  return tile("Nodes ready", number, words, "#/cluster", { isBad: away.length > 0 });
}

function usedTiles(cluster, hours) {
  const [cores, memory, disk] = ["cores", "memory", "disk"].map((what) => cluster.sum((node) => cluster[what](node)));
  const words = (sum, free) => `${bytes(sum.free)} of ${bytes(sum.all)} ${free}`;
  return [
    used("CPU", cores, `${cores.free.toFixed(1)} of ${counted(Math.round(cores.all), "core")} idle`, hours.line("cpu")),
    used("Memory", memory, words(memory, "idle"), hours.line("memory")),
    used("Disks", disk, words(disk, "free"), hours.line("disk")),
  ];
}

function used(label, { all, free, nodes }, words, line) {
  return (
    nodes > 0 &&
    all > 0 &&
    tile(`${label} used`, numberText(1 - free / all, "ratio"), words, "#/cluster", { line })
  );
}

function networkTile(cluster, hours) {
  const name = "network_receive_bytes_per_second";
  const received = cluster
    .ready()
    .map((node) => cluster.number(name, node))
    .filter((each) => each !== null);
  if (!received.length) return false;
  const all = received.reduce((sum, each) => sum + each, 0);
  const more = { line: hours.line("network") };
  return tile("Network", bytes(all, "bytes/second"), "received by all nodes", `#/cluster?name=${name}`, more);
}

function taskTiles(cluster, tasks) {
  if (!tasks.length) return [];
  const since = serverNow() - DAY_SECONDS;
  const failed = tasks.filter((task) => ["failed", "lost"].includes(task.state) && task.ended_at > since).length;
  return [
    runningTile(cluster, tasks),
    tile("Failed in 24 h", String(failed), failed ? "tasks" : "no task", "#/tasks?state=failed", { isBad: failed > 0 }),
  ];
}

/** Those on nodes that are away are counted apart: nobody knows whether they still run. */
function runningTile(cluster, tasks) {
  const placed = tasks.filter(hasPlace);
  const waiting = tasks.filter((task) => ["waiting", "queued"].includes(task.state)).length;
  const on = (word) => placed.filter((task) => cluster.away(task.node_name) === word);
  const apart = AWAY_WORDS.toReversed().map((word) => apartText(on(word), word));
  const words = [...apart, `${waiting} waiting`].filter(Boolean).join(", ");
  return tile("Tasks running", String(on(null).length), words, "#/tasks?state=not+ended");
}

function apartText(tasks, word) {
  const nodes = new Set(tasks.map((task) => task.node_name)).size;
  return nodes > 0 && `${tasks.length} on ${nodes > 1 ? `${word} nodes` : `a ${word} node`}`;
}

function jobsTile(jobs) {
  const words = jobs.length > 0 && `YARN remembers ${jobs.length}`;
  return tile("Jobs running", String(jobs.filter((job) => !job.ended).length), words, "#/jobs");
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
      words && h("span", { class: "tile-words" }, words),
      line,
    ),
  );
}

function bytes(number, unit = "bytes") {
  return numberText(number, unit);
}
