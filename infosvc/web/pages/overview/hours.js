/**
 * The last hour of what the tiles tell, over all nodes together, as small lines.
 */

import { get, isAbort, path } from "../../api.js";
import { pointsOf, sparkline } from "../../pictures/spark.js";
import { numberText } from "../../scale.js";

/** Per tile: the data name, of what it is the free share, and the unit of its line. */
const ASKED = {
  cpu: { name: "cpu_free_ratio", of: "cpu_count", unit: "ratio" },
  memory: { name: "memory_available_bytes", of: "memory_total_bytes", unit: "ratio" },
  disk: { name: "disk_free_bytes", of: "disk_total_bytes", unit: "ratio" },
  network: { name: "network_receive_bytes_per_second", of: null, unit: "bytes/second" },
};

/** The last hours by tile; those that cannot be had are left out. */
export class Hours {
  constructor() {
    this.lines = new Map();
  }

  /**
   * Ask for those whose names are registered.
   *
   * @param {Set<string>} known
   * @param {AbortSignal} signal
   */
  async load(known, signal) {
    const asked = Object.entries(ASKED).filter(([, { name, of }]) => known.has(name) && (!of || known.has(of)));
    await Promise.all(asked.map(([what, one]) => this.loadOne(what, one, signal)));
  }

  async loadOne(what, { name, of, unit }, signal) {
    try {
      const hour = await get(`${path("data", name, "*")}/hour`, { params: { of }, signal });
      const points = pointsOf(hour.since, hour.step, hour.numbers).map(([at, number]) => [
        at,
        of ? 1 - number : number,
      ]);
      this.lines.set(what, {
        points,
        unit,
        step: hour.step,
        span: [hour.since, hour.since + hour.numbers.length * hour.step],
      });
    } catch (error) {
      if (!isAbort(error)) this.lines.delete(what); // the tile does without
    }
  }

  /**
   * The line of a tile, false where nothing is known yet. It begins at 0, and a share ends at 1.
   *
   * @param {string} what
   * @returns {SVGElement | false}
   */
  line(what) {
    const { points = [], unit, step, span } = this.lines.get(what) ?? {};
    if (points.length < 2) return false;
    const numbers = points.map(([, number]) => number);
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const told = (number) => numberText(number, unit);
    const label = `Last hour: from ${told(low)} to ${told(high)}`;
    return sparkline(points, label, span, step, [0, unit === "ratio" ? 1 : high]);
  }
}
