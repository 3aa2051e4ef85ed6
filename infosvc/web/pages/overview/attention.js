/**
 * What needs somebody: found in what the overview knows, the heaviest first, each with what to do.
 */

import { serverNow, spanText } from "../../age.js";
import { path } from "../../api.js";
import { counted } from "../../dom.js";
import { numberParts } from "../../scale.js";
import { addressOf, hasEnded } from "../tasks/state.js";

const FULL = 0.1; // of a disk or of memory that is free
const VERY_FULL = 0.03;
const LONG_SECONDS = 600;
const MOST = 20;
export const DAY_SECONDS = 86_400;

/**
 * @typedef {object} Trouble
 * @property {number} weight 3: something does not work; 2: it soon will not; 1: to be known
 * @property {string} what
 * @property {string} remedy
 * @property {string} address of the page that shows more
 */

/**
 * All troubles, the heaviest first, at most twenty.
 *
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @param {any[]} tasks those that the reader may see
 * @returns {Trouble[]}
 */
export function troubles(cluster, tasks) {
  const found = [...nodesAway(cluster), ...full(cluster), ...failed(tasks), ...waiting(tasks), ...idle(tasks)];
  return found.sort((one, other) => other.weight - one.weight).slice(0, MOST);
}

function nodesAway(cluster) {
  const away = {
    stale: [2, "is silent: its agent has missed three heartbeats"],
    lost: [3, "is lost: its agent has not reported for a while"],
  };
  return [...cluster.nodes]
    .filter(([, state]) => Object.hasOwn(away, state))
    .map(([name, state]) => {
      const [weight, what] = away[state];
      return {
        weight,
        what: `${name} ${what}`,
        remedy: "`nodewise doctor` says what is wrong there",
        address: `#${path("node", name)}`,
      };
    });
}

function full(cluster) {
  return cluster
    .ready()
    .flatMap((name) => [
      scarce(name, "disk", cluster.disk(name), "make room, or add a disk"),
      scarce(name, "memory", cluster.memory(name), "end what holds it, or give YARN less of this node"),
    ])
    .filter(Boolean);
}

function scarce(name, what, [all, free], remedy) {
  if (!all || free === null || free / all >= FULL) return null;
  const left = numberParts(free, "bytes").join(" ");
  const weight = free / all < VERY_FULL ? 3 : 2;
  return {
    weight,
    what: `${name} has ${left} of its ${what} left, ${share(free / all)}`,
    remedy,
    address: `#${path("node", name)}`,
  };
}

function failed(tasks) {
  const since = serverNow() - DAY_SECONDS;
  const recent = tasks.filter((task) => (task.ended_at ?? 0) > since);
  const of = (state) =>
    recent.filter((task) => task.state === state).toSorted((one, other) => other.ended_at - one.ended_at);
  return [
    of("lost").length && {
      weight: 3,
      what: `${counted(of("lost").length, "task")} lost in 24 hours`,
      remedy: "YARN does not know what became of them: run them again",
      address: "#/tasks?state=lost",
    },
    of("failed").length && {
      weight: 1,
      what: `${counted(of("failed").length, "task")} failed in 24 hours, at last ${of("failed")[0].name}: ${of("failed")[0].reason || "no reason is known"}`,
      remedy: "their logs say why",
      address: "#/tasks?state=failed",
    },
  ].filter(Boolean);
}

function waiting(tasks) {
  const late = tasks.filter(
    (task) => !hasEnded(task) && task.state === "queued" && serverNow() - task.created_at > LONG_SECONDS,
  );
  if (!late.length) return [];
  const oldest = late.at(-1); // tasks come newest first
  const others = late.length > 1 ? `, as ${counted(late.length - 1, "other")}` : "";
  const what = `${oldest.name} has no node yet, ${spanText(serverNow() - oldest.created_at)} after it was asked for${others}`;
  return [
    {
      weight: 1,
      what,
      remedy: oldest.reason || "the queue says what it waits for",
      address: addressOf(oldest.task_id),
    },
  ];
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

function share(ratio) {
  return numberParts(ratio, "ratio").join(" ");
}
