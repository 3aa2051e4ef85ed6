/**
 * What the overview knows of nodes and their values, and the sums that it shows.
 */

import { heard, reading, serverNow, stateOf, syncClock } from "../../age.js";
import { awayWord } from "../../node_state.js";
import { numberOf } from "../../scale.js";
import { shortages } from "../../shortage.js";

/** The names that the overview asks for; without one of them, what is made of it is left out. */
export const NAMES = [
  "cpu_free_ratio",
  "cpu_count",
  "memory_total_bytes",
  "memory_available_bytes",
  "disk_total_bytes",
  "disk_free_bytes",
  "network_receive_bytes_per_second",
];

/** Nodes by name with their state, and the latest reading of each name on each of them. */
export class ClusterState {
  constructor() {
    /** @type {Map<string, string>} */
    this.nodes = new Map();
    /** @type {Map<string, number | null>} when each agent was last heard; null: never; left out: not known yet */
    this.seen = new Map();
    /** @type {Map<string, Map<string, import("../../age.js").Reading>>} */
    this.readings = new Map(NAMES.map((name) => [name, new Map()]));
    this.ttl = new Map();
  }

  takeNodes(nodes) {
    this.nodes = new Map(nodes.map((node) => [node.node_name, node.state]));
    this.seen = new Map(nodes.map((node) => [node.node_name, node.last_seen]));
  }

  /** An event does not tell when the agent was last heard. */
  takeNode({ node_name: name, state }) {
    this.seen.delete(name);
    if (state === "forgotten") this.nodes.delete(name);
    else this.nodes.set(name, state);
  }

  takeColumns(columns) {
    for (const { data_name: name, time, values } of columns) {
      syncClock(time);
      this.ttl.set(name, values[0]?.ttl ?? Infinity);
      this.readings.set(name, new Map(values.map((row) => [row.node_name, reading(row, time)])));
    }
  }

  takeValue(event) {
    const column = this.readings.get(event.data_name);
    const found = heard(column.get(event.node_name), event, this.ttl.get(event.data_name) ?? Infinity);
    if (found) column.set(event.node_name, found);
    else column.delete(event.node_name);
  }

  /**
   * A number that is fresh enough to count; null otherwise.
   *
   * @param {string} dataName
   * @param {string} nodeName
   * @returns {number | null}
   */
  number(dataName, nodeName) {
    const found = this.readings.get(dataName)?.get(nodeName);
    return stateOf(found, serverNow()) === "fresh" ? numberOf(found.text) : null;
  }

  /**
   * How much of something the nodes that can be counted on have, and how much of it is free.
   *
   * @param {(nodeName: string) => [number | null, number | null]} amounts all and free of one node
   * @returns {{all: number, free: number, nodes: number}} sums over the nodes of which both are known
   */
  sum(amounts) {
    const known = this.ready()
      .map(amounts)
      .filter(([all, free]) => all !== null && free !== null);
    return {
      all: known.reduce((total, [all]) => total + all, 0),
      free: known.reduce((total, [, free]) => total + free, 0),
      nodes: known.length,
    };
  }

  ready() {
    return [...this.nodes].filter(([, state]) => state === "ready").map(([name]) => name);
  }

  /**
   * The word for a node of which nobody hears; null for any other.
   *
   * @param {string | null} nodeName
   * @returns {"silent" | "lost" | null}
   */
  away(nodeName) {
    return awayWord(this.nodes.get(nodeName));
  }

  count(state) {
    return [...this.nodes.values()].filter((each) => each === state).length;
  }

  /** What this node has too little of. */
  shortages(nodeName) {
    return shortages((dataName) => this.number(dataName, nodeName));
  }

  cores(nodeName) {
    const [count, free] = [this.number("cpu_count", nodeName), this.number("cpu_free_ratio", nodeName)];
    return [count, count === null || free === null ? null : count * free];
  }

  memory(nodeName) {
    return [this.number("memory_total_bytes", nodeName), this.number("memory_available_bytes", nodeName)];
  }

  disk(nodeName) {
    return [this.number("disk_total_bytes", nodeName), this.number("disk_free_bytes", nodeName)];
  }
}
