/**
 * A log on the page: a terminal that follows what is printed, can be searched, wrapped and saved, and has line numbers.
 */

import { isAbort } from "./api.js";
import { counted, fill, h, problemBox, setText } from "./dom.js";
import { poll, settled } from "./poll.js";
import { Terminal, textOf } from "./terminal.js";

const MOST_LINES = 10_000;
const AFTER_TROUBLE_MS = 5_000;
const AT_END = 8; // pixels from the end that still count as the end
const SEARCH_MS = 150;

let made = 0; // views on the page so far, which keeps ids apart

/**
 * @typedef {object} LogView
 * @property {HTMLElement} element
 * @property {(text: string) => void} write
 * @property {() => void} clear
 * @property {(words: string) => void} tell say in one line how it stands
 * @property {(problem: unknown) => void} refuse show what went wrong, or that nothing does
 */

/**
 * A view without any text.
 *
 * @param {object} asked
 * @param {string} asked.label what it is the log of
 * @param {string} asked.saveAs name of the file that a reader saves
 * @param {(line: number) => string} [asked.linkTo] the address of a line; without it, lines have no links
 * @param {number | null} [asked.line] the line to show first, from 1
 * @param {AbortSignal} signal
 * @returns {LogView}
 */
export function logView({ label, saveAs, linkTo, line = null }, signal) {
  made += 1;
  const view = new View({ label, linkTo, line, id: `log-${made}` });
  const state = h("p", { class: "quiet", role: "status" });
  const problem = problemBox();
  const save = h("button", { type: "button", onclick: () => saved(view.text(), saveAs) }, "Save");
  const element = h("div", { class: "log-view" }, view.tools(save, signal), problem.element, state, view.shown);
  return {
    element,
    write: (text) => view.write(text),
    clear: () => view.clear(),
    tell: (words) => setText(state, words),
    refuse: problem.say,
  };
}

/**
 * Write a log into a view as it grows, until it is over or `signal` aborts.
 *
 * @param {LogView} view
 * @param {object} log
 * @param {(offset: number) => Promise<{offset: number, next: number, more: boolean, text: string}>} log.ask
 * @param {(piece: any) => boolean} log.isOver whether nothing comes after this piece
 * @param {number} log.everyMs milliseconds between two questions
 * @param {AbortSignal} signal
 */
export async function followLog(view, { ask, isOver, everyMs }, signal) {
  let offset = 0;
  view.tell("Reading\u2026");
  await poll(async () => {
    try {
      const piece = await ask(offset);
      view.refuse(null);
      if (piece.offset < offset) view.clear();
      if (piece.offset > offset) view.write("\u2026\n");
      view.write(piece.text);
      offset = piece.next;
      if (piece.more) return 0;
      const over = isOver(piece);
      view.tell(over ? (offset ? "This is all of it." : "Nothing was printed.") : "Goes on as it is printed.");
      return over ? null : everyMs;
    } catch (error) {
      if (isAbort(error)) return null;
      view.refuse(error);
      return AFTER_TROUBLE_MS;
    }
  }, signal);
}

class View {
  constructor({ label, linkTo, line, id }) {
    this.terminal = new Terminal(MOST_LINES);
    this.linkTo = linkTo;
    this.wanted = line;
    this.id = id;
    this.shown = h("pre", { class: "log", tabindex: "0", role: "region", "aria-label": label });
    this.follow = h("input", { type: "checkbox", id: `${id}-follow`, checked: line === null });
    this.wrap = h("input", { type: "checkbox", id: `${id}-wrap`, checked: true });
    this.query = h("input", { type: "search", id: `${id}-query`, autocomplete: "off", spellcheck: "false" });
    this.found = h("span", { class: "quiet", role: "status" });
    this.hits = [];
    this.searched = "";
    this.at = -1;
  }

  tools(save, signal) {
    const search = settled(() => this.search(), SEARCH_MS, signal);
    this.query.addEventListener("input", search);
    this.query.addEventListener("keydown", (event) => event.key === "Enter" && this.step(event.shiftKey ? -1 : 1));
    this.wrap.addEventListener("change", () => this.shown.classList.toggle("log-long", !this.wrap.checked));
    this.follow.addEventListener("change", () => this.follow.checked && this.toEnd());
    this.shown.addEventListener("scroll", () => this.scrolled());
    const step = (by, words) => h("button", { type: "button", onclick: () => this.step(by) }, words);
    return h(
      "div",
      { class: "controls log-tools" },
      h("p", null, h("label", { for: this.query.id }, "Search"), this.query),
      h("div", { class: "log-hits" }, step(-1, "Previous"), step(1, "Next"), this.found),
      ticked(this.follow, "Follow"),
      ticked(this.wrap, "Wrap lines"),
      save,
    );
  }

  write(text) {
    if (!text) return;
    const before = this.terminal.dropped;
    const first = this.terminal.write(text);
    for (let gone = this.terminal.dropped - before; gone > 0; gone -= 1) this.shown.firstChild?.remove();
    const lines = this.terminal.lines.slice(first);
    if (lines.at(-1)?.length === 0) lines.pop(); // nothing stands on it yet
    const rows = lines.map((line, at) => this.row(line, first + at));
    while (this.shown.childElementCount > first) this.shown.lastChild.remove();
    this.shown.append(...rows);
    if (this.query.value) this.search();
    this.showWanted();
    if (this.follow.checked) this.toEnd();
  }

  clear() {
    this.terminal.clear();
    fill(this.shown);
    this.search();
  }

  text() {
    return this.terminal.lines.map(textOf).join("\n");
  }

  row(line, at) {
    const number = this.terminal.dropped + at + 1;
    const link = { class: "log-number", href: this.linkTo?.(number), tabindex: "-1", "aria-hidden": "true" };
    const runs = line.runs.map(({ text, look }) => (look ? h("span", { class: look }, text) : text));
    const wanted = number === this.wanted && "log-wanted";
    return h("span", { class: ["log-line", wanted] }, this.linkTo && h("a", link, number), runs, "\n");
  }

  /** Go once to the line that the address names. */
  showWanted() {
    const place = this.wanted === null || this.arrived ? null : this.shown.querySelector(".log-wanted");
    if (!place) return;
    this.arrived = true;
    place.scrollIntoView({ block: "center" });
  }

  toEnd() {
    this.shown.scrollTop = this.shown.scrollHeight;
  }

  /** Who scrolls up does not want to follow, and who comes back to the end does. */
  scrolled() {
    const { scrollTop, clientHeight, scrollHeight } = this.shown;
    this.follow.checked = scrollTop + clientHeight >= scrollHeight - AT_END;
  }

  search() {
    const text = this.query.value.toLowerCase();
    if (text !== this.searched) this.leaveHit();
    this.searched = text;
    const rows = [...this.shown.children];
    const says = (line) => textOf(line).toLowerCase().includes(text);
    this.hits = text ? rows.filter((_, at) => says(this.terminal.lines[at])) : [];
    const hit = new Set(this.hits);
    for (const each of rows) each.classList.toggle("log-hit", hit.has(each));
    if (this.at >= this.hits.length) this.leaveHit();
    this.tellHits(text);
  }

  /** No line is the one that was gone to. */
  leaveHit() {
    this.shown.querySelector(".log-here")?.classList.remove("log-here");
    this.at = -1;
  }

  step(by) {
    if (!this.hits.length) return;
    this.hits[this.at]?.classList.remove("log-here");
    const next = this.at < 0 && by < 0 ? this.hits.length - 1 : this.at + by;
    this.at = (next + this.hits.length) % this.hits.length;
    this.follow.checked = false;
    this.hits[this.at].classList.add("log-here");
    this.hits[this.at].scrollIntoView({ block: "center" });
    this.tellHits(this.query.value);
  }

  tellHits(text) {
    const place = this.at >= 0 ? `, at ${this.at + 1}` : "";
    setText(this.found, text ? `${counted(this.hits.length, "line")}${place}` : "");
  }
}

function ticked(box, label) {
  return h("div", { class: "log-tick" }, box, h("label", { for: box.id }, label));
}

/**
 * Let the browser save this under a name.
 *
 * @param {string | Blob | (Blob | BufferSource)[]} content
 * @param {string} name
 */
export function saved(content, name) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content].flat()));
  h("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
