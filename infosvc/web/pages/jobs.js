/**
 * The jobs that YARN knows, running ones and those that ended.
 */

import { get } from "../api.js";
import { announce, clear, counted, fill, h, heading, problemBox, row, setText } from "../dom.js";
import { followYarn } from "../poll.js";

const EVERY_MS = 3000;
const COLUMNS = ["Job", "State", "Progress", "Started", "Took", "Output", "Said"];

/**
 * @param {HTMLElement} main
 * @param {any} _params
 * @param {AbortSignal} signal
 */
export async function show(main, _params, signal) {
  const problem = problemBox();
  const count = h("p", { class: "quiet" }, "Asking YARN\u2026");
  const body = h("tbody", null);
  const head = h("tr", null, COLUMNS.map((column) => h("th", { scope: "col" }, column)));
  const list = h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Jobs", hidden: true },
    h("table", null, h("caption", null, "Jobs, the newest first"), h("thead", null, head), body),
  );
  fill(main, heading("Jobs"), problem.element, count, list);
  const draw = ({ jobs }, before) => drawn({ jobs, before, count, list, body });
  await followYarn(() => get("/jobs", { signal }), draw, { everyMs: EVERY_MS, problem, count }, signal);
}

/** Draw the list anew if something changed, and tell of jobs that ended meanwhile; what was drawn comes back. */
function drawn({ jobs, before, count, list, body }) {
  const running = jobs.filter((job) => !job.ended).length;
  setText(count, jobs.length ? `${counted(jobs.length, "job")}, ${running} running.` : "");
  list.hidden = jobs.length === 0;
  if (!jobs.length) {
    fill(count, "YARN knows no job of nodewise. ", h("code", null, "nodewise job submit"), " starts one.");
  }
  const now = JSON.stringify(jobs);
  if (now === before) return now;
  const at = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  fill(clear(body), jobs.map((job) => row(cells(job))));
  if (at) body.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
  for (const job of ended(before, jobs)) announce(`${job.job_id} ${job.final.toLowerCase()}.`);
  return now;
}

function ended(before, jobs) {
  const ran = new Set(JSON.parse(before ?? "[]").filter((job) => !job.ended).map((job) => job.job_id));
  return jobs.filter((job) => job.ended && ran.has(job.job_id));
}

function cells(job) {
  return [
    h("a", { href: `#/job/${encodeURIComponent(job.job_id)}` }, job.job_id),
    stateText(job),
    job.ended ? "" : progress(job),
    job.started_at ? moment(job.started_at) : "",
    duration(job),
    job.output ?? "",
    job.said,
  ];
}

function progress(job) {
  const percent = `${Math.round(job.progress * 100)} %`;
  return [h("progress", { max: 1, value: job.progress, "aria-label": `Progress of ${job.job_id}` }), " ", percent];
}

/**
 * What YARN says a job does, or how it ended.
 *
 * @param {{ended: boolean, state: string, final: string}} job
 * @returns {string}
 */
export function stateText(job) {
  return (job.ended ? job.final : job.state).toLowerCase().replaceAll("_", " ");
}

/**
 * A moment as this machine writes it.
 *
 * @param {number} seconds Unix seconds
 * @returns {HTMLElement}
 */
export function moment(seconds) {
  const at = new Date(seconds * 1000);
  return h("time", { datetime: at.toISOString() }, at.toLocaleString());
}

function duration(job) {
  if (!job.started_at || !job.finished_at) return "";
  const seconds = Math.max(0, job.finished_at - job.started_at);
  return seconds < 120 ? `${seconds.toFixed(0)} s` : `${(seconds / 60).toFixed(1)} min`;
}
