/**
 * What needs somebody: found in what the overview knows, the heaviest first, each with what to do.
 */

import { ageText, serverNow, spanText } from "../../age.js";
import { path } from "../../api.js";
import { counted, h } from "../../dom.js";
import { numberText } from "../../scale.js";
import { addressOf, hasPlace } from "../tasks/state.js";
import { shortages } from "./shortage.js";
import { waiting } from "./waiting.js";

const MOST = 20;
const MOST_NAMES = 3;
const WORDS = { 3: "Error", 2: "Warning", 1: "Note" };
const ROOM = {
  disk: "make room, or add a disk",
  memory: "end what holds it, or give YARN less of this node",
};
export const DAY_SECONDS = 86_400;

/**
 * @typedef {object} Trouble
 * @property {number} weight 3: something does not work; 2: it soon will not, or work fails or waits; 1: to be known
 * @property {string} what
 * @property {import("../../dom.js").Child} remedy
 * @property {string} address of the page that shows more
 */

/**
 * All troubles, the heaviest first, at most twenty.
 *
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @param {any[]} tasks those that the reader may see
 * @param {any} queue the answer of GET /queue; null if there is none
 * @returns {Trouble[]}
 */
export function troubles(cluster, tasks, queue) {
  const found = [
    ...nodesAway(cluster, tasks),
    ...full(cluster),
    ...failed(tasks),
    ...waiting(cluster, tasks, queue),
    ...idle(tasks),
  ];
  return found.sort((one, other) => other.weight - one.weight).slice(0, MOST);
}

/**
 * The troubles as a list under a heading.
 *
 * @param {Trouble[]} found
 * @returns {HTMLElement[]}
 */
export function attentionOf(found) {
  const item = ({ weight, what, remedy, address }) =>
    h(
      "li",
      { class: `trouble trouble-${weight}` },
      h("strong", null, WORDS[weight]),
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

function nodesAway(cluster, tasks) {
  const ran = Map.groupBy(tasks.filter(hasPlace), (task) => task.node_name);
  return [...cluster.nodes.keys()]
    .filter((name) => cluster.away(name))
    .map((name) => ({
      weight: cluster.away(name) === "lost" ? 3 : 2,
      what: `${name} is ${cluster.away(name)}: its agent ${heardText(cluster.seen.get(name))}`,
      remedy: [
        ran.has(name) && `${namesText(ran.get(name))} ran there; `,
        h("code", null, "nodewise doctor"),
        " on the machine of the operator says what is wrong",
      ],
      address: `#${path("node", name)}`,
    }));
}

function heardText(seen) {
  if (seen === undefined) return "does not report"; // since when is still to be loaded
  return seen === null ? "was never heard" : `was last heard ${ageText(serverNow() - seen)}`;
}

/** "a", "a and b", "a, b, c and 4 more". */
function namesText(tasks) {
  const names = tasks
    .map((task) => task.name)
    .toSorted((one, other) => one.localeCompare(other, "en", { numeric: true }));
  const more = names.length - MOST_NAMES;
  const told = more > 0 ? [...names.slice(0, MOST_NAMES), `${more} more`] : names;
  return told.length > 1 ? `${told.slice(0, -1).join(", ")} and ${told.at(-1)}` : told[0];
}

function full(cluster) {
  return cluster.ready().flatMap((name) => shortages(cluster, name).map((found) => scarce(name, found)));
}

function scarce(name, { what, free, share, weight }) {
  const left = numberText(free, "bytes");
  return {
    weight,
    what: `${name} has ${left} of its ${what} left, ${numberText(share, "ratio")}`,
    remedy: ROOM[what],
    address: `#${path("node", name)}`,
  };
}

function failed(tasks) {
  const since = serverNow() - DAY_SECONDS;
  const recent = tasks.filter((task) => (task.ended_at ?? 0) > since);
  const of = (state) => recent.filter((task) => task.state === state);
  return [
    of("lost").length && {
      weight: 3,
      what: `${counted(of("lost").length, "task")} lost in 24 hours`,
      remedy: "YARN does not know what became of them: run them again",
      address: "#/tasks?state=lost",
    },
    of("failed").length && failures(of("failed")),
  ].filter(Boolean);
}

function failures(tasks) {
  const [last] = tasks.toSorted(
    (one, other) => other.ended_at - one.ended_at || one.task_id.localeCompare(other.task_id),
  );
  const why = tasks.length > 1 ? "their logs say why" : "its log says why";
  return {
    weight: 2,
    what: `${counted(tasks.length, "task")} failed in 24 hours, at last ${last.name}: ${last.reason || "no reason is known"}`,
    remedy: last.reason ? "its log says more" : why,
    address: "#/tasks?state=failed",
  };
}

function idle(tasks) {
  return tasks
    .filter((task) => task.idle_since !== null)
    .map((task) => ({
      weight: 1,
      what: `${task.name} has used none of its ${counted(task.spec.vcores, "core")} for ${spanText(serverNow() - task.idle_since)}`,
      remedy: "others could have its place: look at its log, and stop it if it waits for nobody",
      address: addressOf(task.task_id),
    }));
}
