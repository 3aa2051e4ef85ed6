/**
 * One job: live while it runs, its report after that; why it was divided so, its logs, and a button to end it.
 */

import { del, get, isAbort, path } from "../api.js";
import { confirmed } from "../confirm.js";
import { announce, fact, fill, h, heading, problemBox, redraw, setText, table } from "../dom.js";
import { poll } from "../poll.js";
import { numberText } from "../scale.js";
import { timeline } from "../pictures/timeline.js";
import { decision } from "./job_decision.js";
import { logs } from "./job_logs.js";
import { training } from "./job_training.js";
import { moment, stateText } from "./jobs.js";

const EVERY_MS = 1500;
const AFTER_TROUBLE_MS = 5000;
const REPORT_AGAIN_MS = 20_000; // HDFS may be away for a while just when a job ends
const NOW = ["Node", "State", "Planned", "Done", "Beyond its part", "Own disk", "Errors"];
const DONE = ["Node", "Capability", "Planned", "Done", "Stolen", "Own disk", "Seconds", "Images/s"];

/**
 * @param {HTMLElement} main
 * @param {{id: string}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { id }, signal) {
  const problem = problemBox();
  const said = h("p", { class: "headline" }, "Asking YARN\u2026");
  const facts = h("dl", { class: "facts" });
  const live = h("section", { "aria-label": "Progress", hidden: true });
  const report = h("section", { "aria-label": "Report", hidden: true });
  const end = ending(id, signal);
  const trained = training(signal);
  const parts = { said, facts, live, report, trained, end };
  const more = [decision(id, signal), logs(id, signal)];
  fill(main, heading(`Job ${id}`), problem.element, said, end.element, facts, trained.element, live, report, more);
  let before = null;
  await poll(async () => {
    try {
      const job = await get(path("jobs", id), { signal });
      problem.say(null);
      draw(parts, job, before);
      before = job;
      return pauseAfter(job);
    } catch (error) {
      if (isAbort(error)) return null;
      if (before === null) setText(said, "");
      problem.say(error);
      return error.status === 404 || error.status === 422 ? null : AFTER_TROUBLE_MS;
    }
  }, signal);
}

function pauseAfter(job) {
  if (!job.ended || job.ending?.state === "asked") return EVERY_MS;
  return job.final === "SUCCEEDED" && !job.report ? REPORT_AGAIN_MS : null;
}

function draw({ said, facts, live, report, trained, end }, job, before) {
  const state = stateText(job);
  setText(said, job.headline === state ? state : `${state}: ${job.headline}`);
  if (before && before.headline !== job.headline && (job.ended || !before.status)) announce(job.headline);
  fill(facts, factsOf(job));
  end.draw(job);
  trained.draw((job.status ?? job.record)?.section?.training);
  live.hidden = !job.status;
  if (job.status) redraw(live, liveOf(job.status));
  report.hidden = !job.ended;
  // A report does not change; drawn again, it would close what somebody has opened.
  if (job.ended && !(before?.ended && before.no_report === job.no_report)) fill(report, reportOf(job));
}

function factsOf(job) {
  const found = [
    ["Name", job.name],
    ["Queue", job.queue],
    ["User", job.user],
    ["Started", job.started_at && moment(job.started_at)],
    ["Ended", job.finished_at && moment(job.finished_at)],
    ["Output", job.output],
    ["Said", job.said],
  ];
  return found.filter(([, value]) => value).map(fact);
}

function capital(word) {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

function liveOf(status, title = "Progress") {
  const units = status.unit;
  const left = status.seconds_left === null ? "" : `, about ${status.seconds_left.toFixed(0)} s left`;
  const errors = status.errors ? `, ${status.errors} with an error` : "";
  return [
    h("h2", null, title),
    h(
      "p",
      null,
      h("progress", { max: status.of || 1, value: status.done, "aria-label": `All ${units}` }),
      ` ${status.done} of ${status.of} ${units} after ${status.seconds.toFixed(0)} s${errors}${left}`,
    ),
    table("Progress of each node", [...NOW, `${capital(units)}/s`, "Said"], status.nodes.map((node) => nodeNow(node, units))),
    status.section && h("dl", { class: "facts" }, Object.entries(status.section).filter(isPlain).map(fact)),
    status.news.length > 0 && [h("h3", null, "News"), h("ul", null, status.news.map((news) => h("li", null, news)))],
  ];
}

/** Whether it is a word or a number: what a kind tells as a list or an object is drawn by a page of its own. */
function isPlain([, value]) {
  return typeof value !== "object";
}

function nodeNow(node, units) {
  const label = `${capital(units)} done by ${node.node_name}`;
  const bar = h("progress", { max: Math.max(node.planned, node.images, 1), value: node.images, "aria-label": label });
  return [
    node.node_name,
    node.state,
    node.planned,
    [bar, ` ${node.images}`],
    node.beyond_plan,
    node.local_images,
    node.errors,
    node.images_per_second.toFixed(1),
    node.said,
  ];
}

function reportOf({ report, no_report: none, record }) {
  if (record) return liveOf(record, "What became of it");
  if (!report) return [h("h2", null, "Report"), h("p", null, none ?? "There is no report.")];
  return [
    h("h2", null, "Report"),
    h("dl", { class: "facts" }, figuresOf(report).map(fact)),
    h("ul", null, report.remarks.map((remark) => h("li", null, remark))),
    report.note && h("p", null, report.note),
    table("What each node did", DONE, report.nodes.map(nodeDone)),
    h("h3", null, "Time line"),
    timeline(report.timeline),
  ];
}

function figuresOf(report) {
  const over = report.makespan_over_bound;
  return [
    ["Engine", report.engine],
    ["Divided by", report.policy],
    ["Judged by", report.capability],
    ["Images", report.errors ? `${report.images}, ${report.errors} with an error` : report.images],
    ["Makespan", `${report.makespan_seconds.toFixed(1)} s`],
    ["Lower bound", `${report.lower_bound_seconds.toFixed(1)} s`],
    ["Over the bound", over === null ? "unknown" : over.toFixed(2)],
    ["Whole time", `${report.wall_seconds.toFixed(1)} s`],
    ["Moved", bytes(report.bytes_moved)],
    ["Fewest that could move", bytes(report.bytes_moved_optimal)],
    ["From own disks", `${(100 * report.locality_ratio).toFixed(1)} %`],
    ["Stolen", report.stolen_images],
    ["Attempts", report.attempts],
  ];
}

function nodeDone(node) {
  return [
    node.node_name,
    Number(node.capability.toPrecision(4)),
    node.planned_images,
    node.images,
    node.stolen_images,
    node.local_images,
    node.seconds.toFixed(1),
    node.images_per_second.toFixed(1),
  ];
}

function bytes(count) {
  return numberText(count, "bytes");
}

/** The button that ends a job, which asks once more, and what came of it. */
function ending(id, signal) {
  const problem = problemBox();
  const state = h("span", { role: "status" });
  const button = h("button", { type: "button", class: "danger" }, "End this job");
  const send = async () => {
    try {
      await del(path("jobs", id), { signal });
      problem.say(null);
      setText(state, "Being ended\u2026");
    } catch (error) {
      if (!isAbort(error)) problem.say(error);
    }
  };
  const question = {
    title: "End this job?",
    text: `${id} and all its containers are ended, and nothing is left at its output.`,
    yes: "End it",
    no: "Let it run",
  };
  button.addEventListener("click", () => confirmed(question, send, signal));
  const element = h("div", { "data-role": "admin", hidden: true }, button, " ", state, problem.element);
  const draw = (job) => {
    element.hidden = job.ended && !job.ending;
    const asked = job.ending?.state === "asked";
    button.hidden = job.ended;
    button.disabled = asked;
    const words = { asked: "Being ended\u2026", done: job.ending?.said, failed: "" };
    setText(state, words[job.ending?.state] ?? "");
    if (job.ending?.state === "failed") problem.say(job.ending.said);
  };
  return { element, draw };
}
