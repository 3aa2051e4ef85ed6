/**
 * The frame of all pages: which one the address names, and the header above it.
 */

import { isAbort } from "./api.js";
import { fill, h, messageOf } from "./dom.js";
import { startLive } from "./live.js";
import { startSearch } from "./search.js";
import { onSession, startSession } from "./session.js";

/**
 * @typedef {object} Params what the address says behind the page's name, as `#/data/NAME?sort=age`
 * @property {string | null} name the decoded part behind the page's name, here NAME; null when there is none
 * @property {string | null} id the same, for pages that call it so
 * @property {URLSearchParams} query here sort=age
 */

// Per first part of the address: the page without a name behind it, the page with one, and which link is lit.
const PAGES = {
  overview: { list: () => import("./pages/overview/page.js"), title: "Overview", lit: "overview" },
  cluster: { list: () => import("./pages/cluster.js"), title: "Cluster", lit: "cluster" },
  node: { one: () => import("./pages/node.js"), title: "Node", lit: "cluster" },
  data: {
    list: () => import("./pages/data_names.js"),
    one: () => import("./pages/data_name.js"),
    title: "Data names",
    lit: "data",
  },
  path: { list: () => import("./pages/path.js"), title: "HDFS path", lit: "path" },
  tasks: {
    list: () => import("./pages/tasks/list.js"),
    one: () => import("./pages/tasks/new.js"),
    title: "Tasks",
    lit: "tasks",
  },
  task: { one: () => import("./pages/tasks/one.js"), title: "Task", lit: "tasks" },
  compare: { list: () => import("./pages/tasks/compare.js"), title: "Compare tasks", lit: "tasks" },
  jobs: { list: () => import("./pages/jobs.js"), title: "Jobs", lit: "jobs" },
  job: { one: () => import("./pages/job.js"), title: "Job", lit: "jobs" },
  pools: { list: () => import("./pages/pools.js"), title: "Pools", lit: "pools" },
  queue: { list: () => import("./pages/queue.js"), title: "Queue", lit: "queue" },
};

const SETTLED_MS = 3_000; // by then the first page has all that it asks for

const main = document.getElementById("main");
let leaving = new AbortController();

/**
 * What an address names; the overview when it names nothing.
 *
 * @param {string} hash for example "#/node/n1?x=y"
 * @returns {{load: (() => Promise<any>) | undefined, title: string, lit: string, params: Params}}
 */
export function parseHash(hash) {
  const [place, query = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [first, ...others] = place.split("/");
  const name = others.length ? decoded(others.join("/")) : "";
  const known = first || "overview";
  const page = Object.hasOwn(PAGES, known) ? PAGES[known] : { title: "No such page", lit: "" };
  const title = name ? `${name} \u2013 ${page.title}` : page.title;
  const params = { name: name || null, id: name || null, query: new URLSearchParams(query) };
  return { load: name ? (page.one ?? page.list) : page.list, title, lit: page.lit, params };
}

async function route({ focus = true } = {}) {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const { load, title, lit, params } = parseHash(location.hash);
  document.title = `${title} \u2013 nodewise`;
  light(lit);
  // A page that was left may still hold on to its element; what it writes there is seen by nobody.
  const place = h("div");
  fill(main, place);
  let again = () => location.reload(); // the only way to a module that once did not come
  try {
    if (!load) throw new Error(`There is no page at ${location.hash}: choose one above`);
    const page = await load();
    again = () => route();
    if (signal.aborted) return;
    const shown = page.show(place, params, signal);
    if (focus) takeFocus(place); // a page makes its heading before it waits for anything
    await shown;
  } catch (error) {
    if (signal.aborted || isAbort(error)) return;
    broken(place, error, again);
    if (focus) takeFocus(place);
  }
}

/** Tell a screen reader that another page is there, unless somebody is at work in it already. */
function takeFocus(place) {
  const at = document.activeElement;
  if (at && at !== document.body && at !== main && main.contains(at)) return;
  if (at?.closest("dialog")) return;
  (place.querySelector("h1[tabindex]") ?? main).focus({ preventScroll: true });
}

function broken(place, error, tryAgain) {
  const again = h("button", { type: "button", onclick: tryAgain }, "Try again");
  const heading = place.querySelector("h1") ? null : h("h1", { tabindex: "-1" }, "This page cannot be shown");
  place.append(...[heading, h("p", { class: "problem", role: "alert" }, messageOf(error)), again].filter(Boolean));
}

function light(lit) {
  for (const link of document.querySelectorAll("header nav a")) {
    if (link.dataset.page === lit) {
      link.setAttribute("aria-current", "page");
      bringIntoSight(link);
    } else link.removeAttribute("aria-current");
  }
}

/** Scroll the line of links, which is longer than a narrow window, and nothing else. */
function bringIntoSight(link) {
  const line = link.closest("nav");
  line.scrollLeft = link.offsetLeft - (line.clientWidth - link.offsetWidth) / 2;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function start() {
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault(); // the address names the page, not a place in it
    main.focus();
  });
  document.querySelector("header nav").addEventListener("focusin", ({ target }) => {
    if (target.matches(":focus-visible")) bringIntoSight(target); // but nothing moves under a pointer that presses it
  });
  const opened = location.hash;
  startLive(document.getElementById("connection"));
  startSearch(document.getElementById("search"));
  await startSession(document.getElementById("session"));
  onSession(() => route({ focus: false }));
  window.addEventListener("hashchange", () => route());
  setTimeout(loadOthers, SETTLED_MS);
  await route({ focus: location.hash !== opened }); // somebody may have gone on before it was known who it is
}

/** Load pages before they are asked for, so that they open also while the service is away. */
function loadOthers() {
  const loads = Object.values(PAGES).flatMap(({ list, one }) => [list, one]);
  for (const load of loads) load?.().catch(() => {}); // opening the page tells why
}

start();
