/**
 * What a node is nearly out of: disk or memory.
 */

const LITTLE = 0.1; // of all that the node has is free
const VERY_LITTLE = 0.03;

/**
 * @typedef {object} Shortage
 * @property {"disk" | "memory"} what
 * @property {number} free bytes
 * @property {number} share of all that the node has, 0 to 1
 * @property {2 | 3} weight 3: programs fail for it already; 2: they soon will
 */

/**
 * What a node has too little of; nothing where its values are not known.
 *
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @param {string} nodeName
 * @returns {Shortage[]}
 */
export function shortages(cluster, nodeName) {
  return ["disk", "memory"].map((what) => shortage(what, cluster[what](nodeName))).filter(Boolean);
}

function shortage(what, [all, free]) {
  if (!all || free === null) return null;
  const share = free / all;
  return share < LITTLE && { what, free, share, weight: share < VERY_LITTLE ? 3 : 2 };
}
