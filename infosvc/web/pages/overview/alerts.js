/**
 * What the alerts of the cluster are on for, and which of their messages do not arrive.
 */

import { serverNow, spanText } from "../../age.js";
import { path } from "../../api.js";
import { counted } from "../../dom.js";

const TASK = /^task_/;
const SHOWN_OTHERWISE = new Set(["node lost", "job failed"]);

/**
 * As troubles; nodes that are lost and tasks that failed are shown for themselves.
 *
 * @param {any[]} alerts
 * @param {import("./cluster_state.js").ClusterState} cluster
 * @returns {import("../../trouble.js").Trouble[]}
 */
export function alarms(alerts, cluster) {
  const shown = ({ condition }, { about }) =>
    SHOWN_OTHERWISE.has(condition) && (cluster.away(about) !== null || TASK.test(about));
  return alerts.flatMap((alert) => [
    ...alert.on.filter((on) => !shown(alert, on)).map((on) => alarm(alert, on)),
    ...(alert.trouble ? [silence(alert)] : []),
  ]);
}

function alarm({ condition, notify, alert_id: id }, { about, since, said }) {
  const told = notify ? `, told to ${hostOf(notify)}` : "";
  return {
    weight: 2,
    what: `${about}: ${condition}, for ${spanText(serverNow() - since)}: ${said}`,
    remedy: `${id}${told}`,
    address: addressOf(condition, about),
  };
}

function silence({ alert_id: id, condition, notify, undelivered, trouble }) {
  return {
    weight: 2,
    what: `${counted(undelivered, "message")} of the alert ${condition} wait for ${hostOf(notify)}: ${trouble}`,
    remedy: `nodewise alert test ${id} tries the way`,
  };
}

/** Of an address only the host: the rest may be secret, and somebody may look over a shoulder. */
function hostOf(notify) {
  return new URL(notify).host;
}

function addressOf(condition, about) {
  if (condition === "queue stuck") return "#/queue";
  if (condition === "job failed") return `#${path("job", about)}`;
  return `#${path("node", about)}`;
}
