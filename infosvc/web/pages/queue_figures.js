/**
 * YARN's queues as a table: what each has, what it is guaranteed and may have at most, and which limit is full.
 */

import { h, refill } from "../dom.js";
import { grouped } from "../scale.js";
import { may } from "../session.js";
import { stackingRow, stackingTable } from "../stacking.js";

const COLUMNS = [
  ["Queue"],
  ["Used", "number"],
  ["Guaranteed", "number"],
  ["At most", "number"],
  ["Application masters", "number"],
  ["Running", "number"],
  ["Waiting", "number"],
];
const USERS = ["Users", "number"];
const CAPTION =
  "YARN\u2019s queues. Their shares are percent of the whole cluster, as YARN counts them: of its memory, or of the " +
  "resource that they use most.";
const NO_NEW = "takes no new applications";
const STATES = { STOPPED: `stopped: ${NO_NEW}`, DRAINING: `draining: ${NO_NEW} and ends when its own have ended` };

/**
 * @returns {{element: HTMLElement, draw: (found: {queues: any[]}) => void}}
 */
export function queueFigures() {
  const columns = may("admin") ? [...COLUMNS, USERS] : COLUMNS;
  const { element, body } = stackingTable("Queues", CAPTION, columns);
  element.hidden = true;
  const draw = ({ queues }) => {
    element.hidden = queues.length === 0;
    refill(
      body,
      queues.map((queue) => stackingRow(columns, cells(queue).slice(0, columns.length))),
    );
  };
  return { element, draw };
}

function cells(queue) {
  return [
    [queue.name, stateNote(queue.state)],
    percent(queue.used),
    percent(queue.capacity),
    [percent(queue.maximum), fullMark(isUsedUp(queue))],
    [mastersText(queue.masters), fullMark(queue.masters.is_full)],
    queue.running,
    queue.waiting,
    queue.users.length,
  ];
}

function stateNote(state) {
  if (state === "RUNNING") return null;
  return h("div", { class: "quiet" }, STATES[state] ?? state.toLowerCase());
}

function fullMark(isFull) {
  return isFull && [" ", h("strong", { class: "full" }, "full")];
}

function isUsedUp({ used, maximum }) {
  return maximum > 0 && Math.round(100 * used) >= Math.round(100 * maximum);
}

/** What application masters have of the type of resource whose limit is nearest. */
function mastersText({ resource, used, most }) {
  const unit = resource === "memory-mb" ? "MB" : resource;
  return `${grouped(used)} of at most ${grouped(most)} ${unit}`;
}

function percent(part) {
  return `${Math.round(part * 100)} %`;
}
