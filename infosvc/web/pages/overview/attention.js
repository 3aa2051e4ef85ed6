/**
 * What needs somebody: found in what the overview knows, the heaviest first, each with what to do.
 */

import { ageText, serverNow, spanText } from "../../age.js";
import { path } from "../../api.js";
import { counted, h } from "../../dom.js";
import { shortageTrouble } from "../../shortage.js";
import { troubleList } from "../../trouble.js";
import { addressOf, hasPlace } from "../tasks/state.js";
import { alarms } from "./alerts.js";
import { waiting } from "./waiting.js";

const MOST = 20;
const MOST_NAMES = 3;
export const DAY_SECONDS = 86_400;

/**
 * All troubles, the heaviest first, at most twenty.
 *
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @param {any[]} tasks those that the reader may see
 * @param {any} queue the answer of GET /queue; null if there is none
 * @param {any[]} alerts
 * @returns {import("../../trouble.js").Trouble[]}
 */
export function troubles(cluster, tasks, queue, alerts) {
  const found = [
    ...nodesAway(cluster, tasks),
    ...full(cluster),
    ...alarms(alerts, cluster),
    ...failed(tasks),
    ...waiting(cluster, tasks, queue),
    ...idle(tasks),
  ];
  return found.sort((one, other) => other.weight - one.weight).slice(0, MOST);
}

/**
 * The troubles as a list under a heading.
 *
 * @param {import("../../trouble.js").Trouble[]} found
 * @returns {HTMLElement[]}
 */
export function attentionOf(found) {
  return [
    h("h2", null, "Needs attention"),
    found.length ? troubleList(found) : h("p", { class: "state state-succeeded" }, "Nothing."),
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
  const trouble = (name, found) => ({ ...shortageTrouble(name, found), address: `#${path("node", name)}` });
  return cluster.ready().flatMap((name) => cluster.shortages(name).map((found) => trouble(name, found)));
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
