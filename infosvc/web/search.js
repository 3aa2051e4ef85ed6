/**
 * The search in the header: nodes, data names, tasks, jobs and paths of HDFS by a part of their name.
 */

import { get, path } from "./api.js";
import { announce, clear, counted, h } from "./dom.js";
import { addressOf, seesTasks } from "./pages/tasks/state.js";
import { latestOnly, settled } from "./poll.js";

const SETTLE_MS = 150;
const KEPT_MS = 10_000; // names that were asked for so lately are not asked for again
const JOBS_MS = 2_000; // YARN may not answer
const MOST = 12;
const MOST_TASKS = 6;
const KEY_OFF = "nodewise: / does not go to the search";

/**
 * @typedef {object} Found
 * @property {string} kind what it is: node, data name, task, job or path
 * @property {string} name
 * @property {string} address
 * @property {string} [more] what tells it from others of the same name
 */

/**
 * Begin: `place` gets the field. `/` anywhere on the page goes to it, unless somebody types or has switched it off.
 *
 * @param {HTMLElement} place
 */
export function startSearch(place) {
  const search = new Search();
  const key = keySwitch();
  place.append(search.field, key, search.list);
  document.addEventListener("keydown", (event) => {
    if (key.getAttribute("aria-pressed") !== "true") return;
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    search.field.focus();
    search.field.select();
  });
}

/** Who speaks to the browser says words of which none may be taken for a key, so this one can be switched off. */
function keySwitch() {
  const key = h(
    "button",
    { type: "button", title: "Whether / goes to the search", "aria-label": "Key / goes to the search" },
    "/",
  );
  const show = (on) => key.setAttribute("aria-pressed", String(on));
  show(!isKeyOff());
  key.addEventListener("click", () => {
    const on = key.getAttribute("aria-pressed") !== "true";
    show(on);
    keepKeyOff(!on);
  });
  return key;
}

/** As this browser was told before; some browsers keep nothing. */
function isKeyOff() {
  try {
    return localStorage.getItem(KEY_OFF) !== null;
  } catch {
    return false;
  }
}

function keepKeyOff(off) {
  try {
    if (off) localStorage.setItem(KEY_OFF, "");
    else localStorage.removeItem(KEY_OFF);
  } catch {
    // then it holds until the page is loaded again
  }
}

function isTyping(target) {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** A combobox as ARIA describes it: the focus stays in the field, which names the option that is chosen. */
class Search {
  constructor() {
    this.field = h("input", {
      type: "search",
      role: "combobox",
      placeholder: "Search",
      "aria-label": "Search everything",
      "aria-expanded": "false",
      "aria-controls": "search-found",
      "aria-autocomplete": "list",
      autocomplete: "off",
      spellcheck: "false",
      maxlength: "128",
    });
    this.list = h("ul", { id: "search-found", role: "listbox", "aria-label": "Found", hidden: true });
    this.found = [];
    this.at = -1;
    this.opensFirst = false; // Enter was pressed before anything was found
    this.names = null;
    const never = new AbortController().signal; // the search lives as long as the page
    const look = settled(
      latestOnly((current) => this.look(current)),
      SETTLE_MS,
      never,
    );
    this.field.addEventListener("input", () => {
      this.close(); // what an older text found is not meant any more
      look();
    });
    this.field.addEventListener("focus", look);
    this.field.addEventListener("blur", () => this.close());
    this.field.addEventListener("keydown", (event) => this.press(event));
    this.list.addEventListener("mousedown", (event) => event.preventDefault()); // the field keeps the focus
  }

  async look(current) {
    const text = this.field.value.trim();
    if (!text || document.activeElement !== this.field) return this.close();
    const found = await this.all(text);
    if (current() && document.activeElement === this.field) this.draw(found, text);
  }

  async all(text) {
    const [known, tasks] = await Promise.all([this.known(), tasksLike(text).catch(() => [])]);
    const paths = text.startsWith("/")
      ? [{ kind: "path", name: text, address: `#/path?${new URLSearchParams({ path: text })}` }]
      : [];
    return [...paths, ...ranked(known, text).slice(0, MOST - paths.length - tasks.length), ...tasks];
  }

  /** All nodes, data names and jobs; what cannot be asked for now is left out. */
  async known() {
    if (this.names && Date.now() - this.names.at < KEPT_MS) return this.names.found;
    const asked = await Promise.all([nodes(), dataNames(), jobs()].map((each) => each.catch(() => [])));
    this.names = { at: Date.now(), found: asked.flat() };
    return this.names.found;
  }

  draw(found, text) {
    this.found = found;
    this.at = found.length ? 0 : -1;
    clear(this.list);
    const none = `Nothing has ${text} in its name. A path of HDFS begins with /.`;
    if (!found.length) this.list.append(h("li", { role: "option", "aria-disabled": "true", class: "quiet" }, none));
    found.forEach((each, at) => {
      const more = h("span", { class: "quiet" }, each.more ? `${each.kind} ${each.more}` : each.kind);
      const option = h("li", { role: "option", id: `search-${at}` }, h("span", null, each.name), " ", more);
      option.addEventListener("click", () => this.open(at));
      this.list.append(option);
    });
    this.list.hidden = false;
    this.field.setAttribute("aria-expanded", "true");
    this.mark();
    if (this.opensFirst && found.length) return this.open(0);
    announce(found.length ? `${counted(found.length, "result")}.` : none);
  }

  mark() {
    [...this.list.children].forEach((option, at) => {
      if (this.found.length) option.setAttribute("aria-selected", String(at === this.at));
    });
    if (this.at < 0) this.field.removeAttribute("aria-activedescendant");
    else this.field.setAttribute("aria-activedescendant", `search-${this.at}`);
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
  }

  press(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (Object.hasOwn(steps, event.key) && this.found.length) {
      event.preventDefault();
      this.at = (this.at + steps[event.key] + this.found.length) % this.found.length;
      this.mark();
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (this.at >= 0) this.open(this.at);
      else this.opensFirst = true;
    } else if (event.key === "Escape") {
      this.close();
    }
  }

  open(at) {
    const { address } = this.found[at];
    this.field.value = "";
    this.close();
    this.field.blur();
    location.hash = address;
  }

  close() {
    this.found = [];
    this.opensFirst = false;
    this.at = -1;
    this.list.hidden = true;
    clear(this.list);
    this.field.setAttribute("aria-expanded", "false");
    this.field.removeAttribute("aria-activedescendant");
  }
}

async function nodes() {
  const found = (await get("/nodes")).nodes;
  return found.map(({ node_name: name, state }) => {
    return { kind: "node", name, address: `#${path("node", name)}`, more: state };
  });
}

async function dataNames() {
  const found = (await get("/producers")).producers;
  return found.map(({ data_name: name }) => ({ kind: "data name", name, address: `#${path("data", name)}` }));
}

async function jobs() {
  const found = (await get("/jobs", { timeout: JOBS_MS })).jobs.filter((job) => job.kind !== "task");
  return found.map(({ job_id: name, kind }) => ({ kind: "job", name, address: `#${path("job", name)}`, more: kind }));
}

/** Tasks that the service finds by their name, id or program: there may be too many to know them all. */
async function tasksLike(text) {
  if (!seesTasks()) return [];
  const { tasks } = await get("/tasks", { params: { q: text, limit: MOST_TASKS } });
  return tasks.slice(0, MOST_TASKS).map(({ task_id: id, name, state }) => {
    return { kind: "task", name, address: addressOf(id), more: `${id}, ${state}` };
  });
}

/**
 * Those in whose name a text stands: the name itself first, then what begins with it, then the shortest.
 *
 * @param {Found[]} known
 * @param {string} text
 * @returns {Found[]}
 */
function ranked(known, text) {
  const wanted = text.toLowerCase();
  const rank = (name) => [name !== wanted, !name.startsWith(wanted), name.length].map(Number);
  return known
    .map((each) => ({ each, name: each.name.toLowerCase() }))
    .filter(({ name }) => name.includes(wanted))
    .toSorted((one, other) => compare([...rank(one.name), one.name], [...rank(other.name), other.name]))
    .map(({ each }) => each);
}

function compare(one, other) {
  const at = one.findIndex((part, index) => part !== other[index]);
  if (at < 0) return 0;
  return one[at] < other[at] ? -1 : 1;
}
