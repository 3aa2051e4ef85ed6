/**
 * Tasks that have waited for a node for too long, and what stands in their way.
 */

import { serverNow, spanText } from "../../age.js";
import { counted } from "../../dom.js";
import { addressOf } from "../tasks/state.js";

const LONG_SECONDS = 600;

/**
 * Those that have waited for more than ten minutes, the oldest first.
 *
 * @param {any[]} tasks
 * @returns {any[]}
 */
function waitingLong(tasks) {
  return tasks
    .filter((task) => task.state === "queued" && serverNow() - task.created_at > LONG_SECONDS)
    .toSorted((one, other) => one.created_at - other.created_at || one.task_id.localeCompare(other.task_id));
}

/**
 * At most one trouble: why they wait as far as the queue tells, else that they do.
 *
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @param {any[]} tasks
 * @param {any} queue the answer of GET /queue; null if there is none
 * @returns {import("../../trouble.js").Trouble[]}
 */
export function waiting(cluster, tasks, queue) {
  const late = waitingLong(tasks);
  if (!late.length) return [];
  const first = firstInLine(queue?.waiting ?? [], new Set(late.map((task) => task.task_id)));
  return [first?.waits_for ? explained(cluster, late, first) : unexplained(late)];
}

/** Of these tasks the one that YARN takes next, the reader's own before those of others. */
function firstInLine(line, taskIds) {
  return line
    .filter((one) => taskIds.has(one.task_id))
    .toSorted((one, other) => other.own - one.own || one.position - other.position || one.since - other.since)
    .at(0);
}

function explained(cluster, late, first) {
  const task = late.find((each) => each.task_id === first.task_id);
  const span = spanText(serverNow() - task.created_at);
  const who =
    late.length > 1 ? `${late.length} tasks wait, the first for ${span}` : `${task.name} has waited for ${span}`;
  return {
    weight: 2,
    what: `${who}: ${first.waits_for}${idleCores(cluster)}`,
    remedy: "the queue shows the order, and when each task is expected to begin",
    address: "#/queue",
  };
}

function idleCores(cluster) {
  const { free } = cluster.sum((node) => cluster.cores(node));
  return free < 1 ? "" : `, though ${free.toFixed(1)} cores are idle`;
}

function unexplained(late) {
  const [oldest] = late;
  const others = late.length > 1 ? `, as ${counted(late.length - 1, "other")}` : "";
  return {
    weight: 1,
    what: `${oldest.name} has no node yet, ${spanText(serverNow() - oldest.created_at)} after it was asked for${others}`,
    remedy: oldest.reason || "the queue says what it waits for",
    address: addressOf(oldest.task_id),
  };
}
