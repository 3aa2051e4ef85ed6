/**
 * Pools, which keep workers ready for jobs: what each has and does, and its jobs.
 */

import { ageText, spanText } from "../age.js";
import { get, isAbort, path } from "../api.js";
import { announce, counted, fill, h, heading, messageOf, problemBox, refill, setText } from "../dom.js";
import { followYarn } from "../poll.js";
import { stackingRow, stackingTable } from "../stacking.js";

const EVERY_MS = 3000;
const SILENT_SECONDS = 3;
const MOST_ASKED = 20; // own pools whose masters are asked
const MOST_JOBS = 50;
const AT_WORK = ["planning", "running", "storing"];
const COLUMNS = [
  ["Pool"],
  ["State"],
  ["Model"],
  ["Workers"],
  ["Jobs at work"],
  ["Ends"],
  ["Application"],
  ["Said", "wide"],
];
const OF_JOBS = [["Job"], ["Pool"], ["State"], ["Progress"], ["Weight"], ["Output", "wide"], ["Said", "wide"]];

/**
 * @param {HTMLElement} main
 * @param {any} _params
 * @param {AbortSignal} signal
 */
export async function show(main, _params, signal) {
  const problem = problemBox();
  const count = h("p", { class: "quiet" }, "Asking YARN\u2026");
  const list = stackingTable("Pools", "Pools, and what their workers do", COLUMNS);
  const jobs = stackingTable("Jobs in pools", "Jobs of your pools, those at work first", OF_JOBS);
  for (const one of [list, jobs]) one.element.hidden = true;
  fill(main, heading("Pools"), problem.element, count, list.element, jobs.element);
  const draw = (pools, before) => drawn({ pools, before, count, list, jobs });
  await followYarn(() => look(signal), draw, { everyMs: EVERY_MS, problem, count }, signal);
}

/** All pools, each with what is known `more` of it, if it is the caller's, or with the `trouble` that is in the way. */
async function look(signal) {
  const { pools } = await get("/pools", { signal });
  const asked = new Set(pools.filter((pool) => pool.own).slice(0, MOST_ASKED));
  return Promise.all(pools.map((pool) => (asked.has(pool) ? withMore(pool, signal) : pool)));
}

async function withMore(pool, signal) {
  try {
    return { ...pool, more: await get(path("pools", pool.name), { signal }) };
  } catch (error) {
    if (isAbort(error)) throw error;
    return { ...pool, trouble: messageOf(error) };
  }
}

/** Draw the tables, and tell of jobs that ended meanwhile; what was drawn comes back. */
function drawn({ pools, before, count, list, jobs }) {
  const ready = pools.filter((pool) => pool.more?.ready).length;
  setText(count, pools.length ? `${counted(pools.length, "pool")}, ${ready} of them yours and ready for jobs.` : "");
  if (!pools.length) fill(count, "No pool is up. ", h("code", null, "nodewise pool up"), " starts one.");
  list.element.hidden = pools.length === 0;
  refill(
    list.body,
    pools.map((pool) => stackingRow(COLUMNS, cells(pool))),
  );
  const all = jobsOf(pools);
  jobs.element.hidden = all.length === 0;
  refill(
    jobs.body,
    all.slice(0, MOST_JOBS).map((job) => stackingRow(OF_JOBS, jobCells(job))),
  );
  const worked = new Set(jobsOf(before ?? []).filter(isAtWork).map((job) => job.job_id));
  for (const job of all) if (!isAtWork(job) && worked.has(job.job_id)) announce(`${job.job_id} ${job.state}.`);
  return pools;
}

function cells(pool) {
  const { more } = pool;
  return [
    [pool.name, !pool.own && [" ", h("span", { class: "quiet" }, `of ${pool.user}`)]],
    pool.state.toLowerCase(),
    more ? modelText(more) : "",
    more?.wanted ? workersText(more) : "",
    more?.jobs ? more.jobs.filter(isAtWork).length : "",
    more ? endText(more) : "",
    h("a", { href: `#${path("job", pool.job_id)}` }, pool.job_id),
    pool.trouble ?? more?.said ?? "",
  ];
}

/** How many are ready, and how old that is once its application master is silent. */
function workersText({ ready, wanted, silent_seconds: silent }) {
  return `${ready} of ${wanted} ready${silent > SILENT_SECONDS ? `, ${ageText(silent)}` : ""}`;
}

function modelText({ engine, model, model_file: file, batch }) {
  return `${engine}, ${file ?? model}, batch ${batch}`;
}

/** When it ends by itself, unless a job or a picture comes. */
function endText({ idle, idle_seconds: most, ends_in: left }) {
  if (most === null) return "never by itself";
  return left === null ? `${idle} after its last job or picture` : `in ${spanText(left)}`;
}

/** The jobs of all pools, those at work first, and the newest first. */
function jobsOf(pools) {
  const all = pools.flatMap((pool) => (pool.more?.jobs ?? []).map((job) => ({ ...job, pool: pool.name })).toReversed());
  return [...all.filter(isAtWork), ...all.filter((job) => !isAtWork(job))];
}

function isAtWork(job) {
  return AT_WORK.includes(job.state);
}

function jobCells(job) {
  const errors = job.errors ? `${job.errors} with an error` : "";
  const said = [job.said, errors].filter(Boolean).join(", ");
  return [job.job_id, job.pool, job.state, progress(job), job.weight, job.output, said];
}

function progress(job) {
  const label = `Progress of ${job.job_id}`;
  const bar = isAtWork(job) && h("progress", { max: job.of || 1, value: job.done, "aria-label": label });
  return [bar, " ", job.of ? `${job.done} of ${job.of}` : ""];
}
