/**
 * Tasks and jobs of the overview as rows, each on one line.
 */

import { path } from "../../api.js";
import { h, row } from "../../dom.js";
import { stateText } from "../jobs.js";
import { addressOf, hasPlace, saidOf, stateMark, tookText } from "../tasks/state.js";

/**
 * A task; of one that has a place on a node that is away it says so.
 *
 * @param {any} task
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @param {import("../tasks/in_line.js").Place} [place] in line, if that is known
 * @returns {import("../../dom.js").Child[]}
 */
export function taskRow(task, cluster, place) {
  const away = hasPlace(task) && cluster.away(task.node_name);
  const reason = task.state === "running" ? "" : saidOf(task, place);
  return [
    h("a", { href: addressOf(task.task_id) }, task.name),
    stateMark(task),
    task.node_name ?? "",
    tookText(task),
    away ? h("strong", { class: "is-away" }, `${task.node_name} is ${away}`) : whole(reason),
  ];
}

/**
 * A job.
 *
 * @param {any} job
 * @returns {import("../../dom.js").Child[]}
 */
export function jobRow(job) {
  return [
    h("a", { href: `#${path("job", job.job_id)}` }, job.job_id),
    stateText(job),
    "",
    `${Math.round(100 * job.progress)} %`,
    whole(job.said),
  ];
}

/**
 * A table without a visible head.
 *
 * @param {import("../../dom.js").Child[][]} rows
 * @returns {HTMLElement}
 */
export function list(rows) {
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

/** Text that may be cut off where there is no room, and is whole on hover. */
function whole(text) {
  return text ? h("span", { title: text }, text) : "";
}
