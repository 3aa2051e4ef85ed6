/**
 * A cell for each node, coloured by how busy its CPU is, with what runs there and what is wrong with it.
 */

import { path } from "../../api.js";
import { counted, h } from "../../dom.js";
import { numberText, scaleOf, stepOf } from "../../scale.js";
import { isError, shortageNote } from "../../shortage.js";
import { hasPlace } from "../tasks/state.js";

/**
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @param {any[]} tasks
 * @returns {HTMLElement[]}
 */
export function mapOf(cluster, tasks) {
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
  const away = cluster.away(name);
  const errors = away ? [] : cluster.shortages(name).filter(isError);
  const free = away ? null : cluster.number("cpu_free_ratio", name);
  const step = free === null ? "no-step" : `step-${stepOf(scale, 1 - free)}`;
  const words = away ?? (free === null ? "no data" : ratio(1 - free));
  const note = (text) => [" ", h("span", { class: "cell-note" }, text)];
  return h(
    "a",
    {
      class: ["cell", "node-cell", !away && step, (away || errors.length > 0) && "is-failed"],
      href: `#${path("node", name)}`,
    },
    h("span", { class: "cell-name" }, name),
    " ",
    h("span", null, words),
    errors.map((found) => note(shortageNote(found))),
    running > 0 && note(counted(running, "task")),
  );
}

function ratio(number) {
  return numberText(number, "ratio");
}
