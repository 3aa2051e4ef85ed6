/**
 * One task on one screen: how far it is, its log and its curves as they grow, why it runs where it runs, what it leaves.
 */

import { everySecond, spanText } from "../../age.js";
import { del, get, isAbort, path, post } from "../../api.js";
import { confirmed } from "../../confirm.js";
import { announce, counted, fact, fill, h, heading, problemBox, refill, setText } from "../../dom.js";
import { watch } from "../../live.js";
import { atMostEvery, latestOnly } from "../../poll.js";
import { asTyped } from "../../words.js";
import { moment } from "../jobs.js";
import { curves } from "./curves.js";
import { decision } from "./decision.js";
import { log } from "./log.js";
import { outputs } from "./outputs.js";
import { silentNode } from "./silent_node.js";
import { addressOf, hasEnded, seesTasks, stateMark, tookText, whoSeesTasks } from "./state.js";
import { waiting } from "./waiting.js";

const SETTLE_MS = 200;
const GONE = 404;

/**
 * @param {HTMLElement} main
 * @param {{id: string, query: URLSearchParams}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { id, query }, signal) {
  const title = heading("Task");
  if (!seesTasks()) return fill(main, title, whoSeesTasks());
  const problem = problemBox();
  const state = h("p", { class: "headline" }, "Loading\u2026");
  const facts = h("dl", { class: "facts" });
  const made = h("dl", { class: "data-facts" });
  const buttons = actions(id, problem, signal);
  const parts = [log(id, query, signal), curves(id, signal), decision(id, signal), outputs(id, signal)];
  const [logPart, curvesPart, decisionPart, outputsPart] = parts;
  const news = [waiting(id, signal), silentNode(signal)];
  const beside = h("div", { class: "columns" }, logPart.element, curvesPart.element);
  const origin = h("details", null, h("summary", null, "What was asked for"), made);
  const rest = h("div", null, beside, decisionPart.element, outputsPart.element, origin);
  rest.hidden = true;
  fill(
    main,
    title,
    problem.element,
    h("div", { class: "task-head" }, state, buttons.element),
    news.map((part) => part.element),
    facts,
    rest,
  );
  let task = null;
  const draw = (found) => {
    const before = task;
    task = found;
    setText(title, task.name);
    document.title = `${task.name} \u2013 Task \u2013 nodewise`;
    refill(state, stateMark(task), task.reason && ` ${task.reason}`);
    if (before && before.state !== task.state) announce(`${task.name}: ${task.state}.`);
    refill(facts, factsOf(task).map(fact));
    buttons.draw(task, title);
    refill(made, askedFor(task).map(fact));
    rest.hidden = false;
    for (const part of [...news, ...parts]) part.draw(task);
  };
  const load = latestOnly(async (current) => {
    try {
      const found = await get(path("tasks", id), { signal });
      if (!current()) return true;
      draw(found);
      problem.say(null);
      return true;
    } catch (error) {
      if (isAbort(error) || !current()) return true;
      if (!task) setText(state, "");
      problem.say(error);
      return error.status === GONE;
    }
  });
  const tick = () => task && !hasEnded(task) && setText(facts.querySelector(".took"), tookText(task));
  everySecond(tick, signal);
  const again = atMostEvery(load, SETTLE_MS, signal);
  watch({ types: ["task"] }, { task: (event) => event.task_id === id && again(), refresh: load }, signal);
  return undefined;
}

function factsOf(task) {
  const { spec } = task;
  const found = [
    ["Id", task.task_id],
    ["Owner", task.owner],
    ["Node", task.node_name && h("a", { href: `#${path("node", task.node_name)}` }, task.node_name)],
    ["Took", h("span", { class: "took" }, tookText(task))],
    ["Asked for", moment(task.created_at)],
    ["Began", task.started_at !== null && moment(task.started_at)],
    ["Idle since", task.idle_since !== null && moment(task.idle_since)],
    ["Ended", task.ended_at !== null && moment(task.ended_at)],
    ["Start", task.attempt && `${task.attempt} of ${spec.attempts}`],
    ["Exit code", task.exit_code !== null && String(task.exit_code)],
    ["Queue", spec.queue],
    ["Priority", spec.priority > 0 && String(spec.priority)],
    ["Room", `${spec.memory_mb} MB, ${counted(spec.vcores, "core")}`],
    ["GPUs", spec.gpus > 0 && gpusText(spec)],
    ["Application", task.application_id],
  ];
  return found.filter(([, value]) => value);
}

function gpusText(spec) {
  const memory = spec.gpu_memory_mb && `${spec.gpu_memory_mb} MB`;
  const capability = spec.gpu_capability && `compute capability ${spec.gpu_capability}`;
  const said = [spec.gpu_model, memory, capability].filter(Boolean).join(", ");
  return said ? `${spec.gpus} (${said})` : String(spec.gpus);
}

/** What the user has asked for, which `again` asks for once more. */
function askedFor({ spec, again_of: first }) {
  const links = (ids) => ids.map((id, at) => [at > 0 && ", ", h("a", { href: addressOf(id) }, id)]);
  const found = [
    ["Program", h("code", null, asTyped(spec.argv))],
    [
      "Variables",
      Object.entries(spec.variables).map(([name, value]) => h("div", null, h("code", null, `${name}=${value}`))),
    ],
    ["Image", spec.image],
    ["Box", spec.box],
    ["Order of nodes", spec.program],
    ["Environment", spec.env],
    ["Devices", spec.devices.join(", ")],
    ["Nodes", spec.nodes.join(", ")],
    ["Not on", spec.not_nodes.join(", ")],
    ["After", links(spec.after)],
    ["Again of", first && links([first])],
    ["Time at most", spec.seconds_at_most && spanText(spec.seconds_at_most)],
    ["Data", spec.data.map((each) => h("div", null, each))],
    ["Checkpoint", spec.checkpoint],
    ["Moves", spec.move && "to a node that is faster, when one has room"],
    ["Output", spec.output],
    ["Array", spec.array],
    ["Folder", spec.files && h("code", null, spec.files)],
    ["Commit", spec.commit && h("code", null, spec.commit)],
    ["Changes since", spec.changes && h("pre", { class: "diff" }, spec.changes)],
  ];
  return found.filter(([, value]) => value && value.length !== 0);
}

/** Stop, again, remove: what can be done to a task in its state. */
function actions(id, problem, signal) {
  const act = async (step) => {
    if (element.getAttribute("aria-busy")) return;
    element.setAttribute("aria-busy", "true");
    problem.say(null);
    try {
      await step();
    } catch (error) {
      if (!isAbort(error)) problem.say(error);
    } finally {
      element.removeAttribute("aria-busy");
    }
  };
  const stop = h("button", { type: "button", class: "danger" }, "Stop");
  const again = h("button", { type: "button" }, "Run again");
  const remove = h("button", { type: "button", class: "danger" }, "Remove");
  const element = h("div", { class: "actions", "data-role": "user", hidden: true }, stop, again, remove);
  const ask = (title, text, yes, step) => confirmed({ title, text, yes, no: "Leave it" }, () => act(step), signal);
  const stopped = () => post(path("tasks", id, "stop"), undefined, { signal });
  stop.addEventListener("click", () => {
    if (stop.getAttribute("aria-disabled")) return;
    ask(
      "Stop this task?",
      `${id} hears SIGTERM, and SIGKILL 30 s later. It will not run again by itself.`,
      "Stop it",
      stopped,
    );
  });
  again.addEventListener("click", () =>
    act(async () => {
      const made = await post(path("tasks", id, "again"), undefined, { signal });
      announce(`${made.name} was asked for again.`);
      location.hash = addressOf(made.task_id);
    }),
  );
  const removed = async () => {
    await del(path("tasks", id), { signal });
    announce("The task was removed.");
    location.hash = "#/tasks";
  };
  remove.addEventListener("click", () => {
    ask("Remove this task?", `${id} and its record are forgotten; its output in HDFS stays.`, "Remove it", removed);
  });
  const draw = (task, title) => {
    element.hidden = false;
    if (hasEnded(task) && stop === document.activeElement) title.focus({ preventScroll: true });
    stop.hidden = hasEnded(task);
    if (task.stop_asked) stop.setAttribute("aria-disabled", "true"); // not `disabled`, which would lose the focus
    remove.hidden = !hasEnded(task);
  };
  return { element, draw };
}
