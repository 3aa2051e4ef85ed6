/**
 * What a task's program reports and what it uses, as curves that grow.
 */

import { get, isAbort, path } from "../../api.js";
import { curvesPlace } from "../../pictures/curve.js";
import { fill, h, problemBox } from "../../dom.js";
import { poll } from "../../poll.js";
import { hasEnded } from "./state.js";

const EVERY_MS = 5_000;
const POINTS = 500;
const MISSING = 404;
const UNITS = {
  cpu_cores: "cores",
  memory_bytes: "bytes",
  read_bytes_per_second: "bytes/second",
  written_bytes_per_second: "bytes/second",
  received_bytes_per_second: "bytes/second",
  sent_bytes_per_second: "bytes/second",
};

/**
 * A section with the curves of both.
 *
 * @param {string} id of the task
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (task: any) => void}}
 */
export function curves(id, signal) {
  const reported = part(
    id,
    "reported",
    "It reports nothing: a line such as `nodewise: loss=0.31 step=120` would become a curve.",
    signal,
  );
  const used = part(id, "used", "What it uses is noted every 5 s.", signal);
  const element = h(
    "section",
    { "aria-label": "Curves" },
    h("h2", null, "Reported"),
    reported.element,
    h("h2", null, "Used"),
    used.element,
  );
  let begun = false;
  let task = null;
  const draw = (found) => {
    task = found;
    if (begun || task.attempt === null) return;
    begun = true;
    poll(async () => {
      const ended = hasEnded(task); // before it is asked: what came in between is not lost
      const whole = (await Promise.all([reported.load(), used.load()])).every(Boolean);
      return ended && whole ? null : EVERY_MS;
    }, signal);
  };
  return { element, draw };
}

function part(id, of, none, signal) {
  const problem = problemBox();
  const empty = h("p", { class: "quiet" }, none);
  const place = curvesPlace({ by: of === "used" ? "time" : "step", fromZero: of === "used" }, signal);
  const element = h("div", null, problem.element, empty, place.element);
  const load = async () => {
    try {
      const found = await get(path("tasks", id, "values"), { params: { of, points: POINTS }, signal });
      problem.say(null);
      empty.hidden = found.curves.length > 0;
      place.draw(found.curves.map((curve) => asCurve(curve, of)));
      return true;
    } catch (error) {
      if (isAbort(error) || error.status === MISSING) return true;
      problem.say(error);
      return false;
    }
  };
  return { element, load };
}

function asCurve({ name, points, least, most, last }, of) {
  const xy = points.map(([step, at, value]) => [of === "used" ? at : step, value]);
  return { name, unit: UNITS[name] ?? "", series: [{ label: name, points: xy, least, most, last }] };
}
