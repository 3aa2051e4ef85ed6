/**
 * Which nodes have the mark of an error of their own on the page of the cluster, whatever value it shows.
 */

import { get, isAbort } from "../api.js";
import { poll } from "../poll.js";
import { SHORTAGE_NAMES, isError } from "../shortage.js";
import { ClusterState } from "./overview/cluster_state.js";

const EVERY_MS = 30_000; // disks fill slowly, and there may be many nodes
const UNKNOWN_MS = 1_000; // until it is known which names are registered

/**
 * Ask for it again and again, in one call for all nodes.
 *
 * @param {(dataName: string) => boolean} isRegistered
 * @param {(errorsOf: (nodeName: string) => import("../shortage.js").Shortage[]) => void} take
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export async function followShortages(isRegistered, take, signal) {
  await poll(async () => {
    const name = SHORTAGE_NAMES.filter(isRegistered);
    if (!name.length) return UNKNOWN_MS;
    try {
      const cluster = new ClusterState();
      cluster.takeColumns((await get("/data", { params: { name }, signal })).data);
      take((nodeName) => cluster.shortages(nodeName).filter(isError));
    } catch (error) {
      if (isAbort(error)) return null;
      // The marks stay as they were; the page says of its values what is wrong.
    }
    return EVERY_MS;
  }, signal);
}
