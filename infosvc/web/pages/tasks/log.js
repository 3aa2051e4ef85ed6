/**
 * What the program of a task prints, as it prints it.
 */

import { get, path } from "../../api.js";
import { h } from "../../dom.js";
import { followLog, logView } from "../../log_view.js";
import { addressOf, hasEnded } from "./state.js";

const EVERY_MS = 500;
const STREAMS = ["stdout", "stderr"];

/**
 * A section with the log of one stream of one start; the address names both, and a line if it leads to one.
 *
 * @param {string} id of the task
 * @param {URLSearchParams} query
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (task: any) => void}}
 */
export function log(id, query, signal) {
  const stream = h(
    "select",
    { id: "log-stream" },
    STREAMS.map((name) => h("option", { value: name }, name)),
  );
  const start = h("select", { id: "log-start" });
  const attempt = h("p", null, h("label", { for: "log-start" }, "Start"), start);
  if (STREAMS.includes(query.get("stream"))) stream.value = query.get("stream");
  const linkTo = (line) =>
    `${addressOf(id)}?${new URLSearchParams({ stream: stream.value, attempt: start.value, line })}`;
  const line = Number.parseInt(query.get("line") ?? "", 10) || null;
  const view = logView({ label: "Log", saveAs: `${id}.log`, linkTo, line }, signal);
  const element = h(
    "section",
    { "aria-label": "Log of the program" },
    h("h2", null, "Log"),
    h("div", { class: "controls" }, h("p", null, h("label", { for: "log-stream" }, "Stream"), stream), attempt),
    view.element,
  );
  let reading = new AbortController();
  let ended = false;
  const begin = () => {
    reading.abort();
    reading = new AbortController();
    view.clear();
    view.refuse(null);
    const current = AbortSignal.any([signal, reading.signal]);
    const asked = { stream: stream.value, attempt: start.value };
    const ask = (offset) => get(path("tasks", id, "log"), { params: { ...asked, offset }, signal: current });
    const isOver = (piece) => hasEnded(piece) || Number(asked.attempt) < start.options.length;
    followLog(view, { ask, isOver, everyMs: EVERY_MS }, current);
  };
  stream.addEventListener("change", begin);
  start.addEventListener("change", begin);
  const draw = (task) => {
    ended ||= hasEnded(task);
    if (task.attempt === null) return view.tell(ended ? "It never began." : "It has not begun.");
    attempt.hidden = task.attempt === 1;
    if (task.attempt === start.options.length) return undefined;
    for (let number = start.options.length + 1; number <= task.attempt; number += 1) {
      start.append(h("option", { value: number }, number));
    }
    const wanted = query.get("attempt") ?? String(task.attempt);
    query.delete("attempt"); // the address counts once; a later start is shown when it begins
    start.value = wanted;
    if (start.selectedIndex < 0) start.value = String(task.attempt);
    return begin();
  };
  return { element, draw };
}
