/**
 * What a node is nearly out of, disk or memory, and how pages say it.
 */

import { numberText } from "./scale.js";

const LITTLE = 0.1; // of all that the node has is free
const VERY_LITTLE = 0.03;
/** The names of all that a node has of something, and of what is free of it. */
const AMOUNTS = {
  disk: ["disk_total_bytes", "disk_free_bytes"],
  memory: ["memory_total_bytes", "memory_available_bytes"],
};
const ROOM = {
  disk: "make room, or add a disk",
  memory: "end what holds it, or give YARN less of this node",
};

/** The data names that this is judged by. */
export const SHORTAGE_NAMES = Object.values(AMOUNTS).flat();

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
 * @param {(dataName: string) => number | null} number that is fresh enough to count, of this node
 * @returns {Shortage[]}
 */
export function shortages(number) {
  return Object.entries(AMOUNTS)
    .map(([what, names]) => shortage(what, names.map(number)))
    .filter(Boolean);
}

/**
 * Whether programs fail for it already, so that the node has the mark of an error.
 *
 * @param {Shortage} found
 * @returns {boolean}
 */
export function isError({ weight }) {
  return weight === 3;
}

/**
 * In short, for the cell of a node: "disk 0.7 % free".
 *
 * @param {Shortage} found
 * @returns {string}
 */
export function shortageNote({ what, share }) {
  return `${what} ${numberText(share, "ratio")} free`;
}

/**
 * As a trouble, with what to do.
 *
 * @param {string} nodeName
 * @param {Shortage} found
 * @returns {import("./trouble.js").Trouble} without an address
 */
export function shortageTrouble(nodeName, { what, free, share, weight }) {
  const left = numberText(free, "bytes");
  return {
    weight,
    what: `${nodeName} has ${left} of its ${what} left, ${numberText(share, "ratio")}`,
    remedy: ROOM[what],
  };
}

function shortage(what, [all, free]) {
  if (!all || free === null) return null;
  const share = free / all;
  return share < LITTLE && { what, free, share, weight: share < VERY_LITTLE ? 3 : 2 };
}
