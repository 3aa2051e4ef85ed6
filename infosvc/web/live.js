/**
 * What happens in the cluster as it happens: few streams of events, shared by all that is on the page.
 *
 * A browser keeps about six connections to one service, for all its tabs together. So those who ask for like things
 * share a stream, and a page that nobody sees lets go of its streams until it is seen again.
 */

import { PREFIX } from "./api.js";
import { setText } from "./dom.js";
import { settled } from "./poll.js";
import { SESSION } from "./session.js";

const PATIENCE_MS = 400; // a page is not kept waiting for the stream any longer than this
const HIDDEN_MS = 30_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 30_000;
const AWAY_MS = 2_000; // a shorter break is not worth a word
const AGAIN_MS = 5_000; // until what could not be loaded is loaded again
const SETTLE_MS = 500; // a catalog comes as many events, one for each name
const TYPES = ["value", "node", "slot", "producer"];

/**
 * @typedef {object} Datum an event of type value; with outcome null the value was forgotten
 * @property {string} data_name
 * @property {string} node_name
 * @property {string | null} data_value after a run that went wrong still the old value
 * @property {string | null} outcome
 * @property {number | null} time Unix seconds when the run ended (not when the value was true, unless outcome is ok)
 */

/**
 * @typedef {object} Handlers
 * @property {(datum: Datum) => void} [value]
 * @property {(event: {node_name: string, state: string}) => void} [node] ready, stale, lost or forgotten
 * @property {(event: {node_name: string, data_name: string, change: string, running?: boolean}) => void} [slot]
 * @property {(event: {data_name: string, change: string, version?: number}) => void} [producer]
 * @property {() => (void | boolean | Promise<void | boolean>)} [refresh] load what is shown: called once at the start,
 *   whenever events were missed, and again a little later when it comes to false
 */

/**
 * Hear events that pass a filter, until `signal` aborts; what is left out or empty filters nothing.
 *
 * Events of type node have no data name: they pass a filter of names if `types` asks for them.
 *
 * @param {{types?: string[], names?: string[], nodes?: string[]}} filter
 * @param {Handlers} handlers
 * @param {AbortSignal} signal
 */
export function watch({ types = [], names = [], nodes = [] }, handlers, signal) {
  if (signal.aborted) return;
  const key = JSON.stringify([types.toSorted(), nodes.toSorted(), names.length > 0]);
  if (!streams.has(key)) streams.set(key, new Stream(key, types, nodes));
  const stream = streams.get(key);
  const listener = { names: new Set(names), handlers, timer: 0 };
  stream.add(listener);
  signal.addEventListener("abort", () => stream.remove(listener), { once: true });
}

/**
 * Do `load` as a `refresh`, and once whenever names are registered, changed or deleted, until `signal` aborts.
 *
 * @param {NonNullable<Handlers["refresh"]>} load
 * @param {AbortSignal} signal
 */
export function watchProducers(load, signal) {
  watch({ types: ["producer"] }, { producer: settled(load, SETTLE_MS, signal), refresh: load }, signal);
}

/**
 * Say in `place` whether events come; give it role status in the page.
 *
 * @param {Element} place
 */
export function startLive(place) {
  shown = place;
  document.addEventListener("visibilitychange", seen);
  document.addEventListener(SESSION, () => streams.forEach((stream) => stream.open()));
  window.addEventListener("pagehide", () => streams.forEach((stream) => stream.close()));
  window.addEventListener("pageshow", (event) => event.persisted && streams.forEach((stream) => stream.open()));
}

/** @type {Map<string, Stream>} */
const streams = new Map();
let shown = null;
let hiding = 0;
let telling = 0;

class Stream {
  constructor(key, types, nodes) {
    this.key = key;
    this.types = types;
    this.nodes = nodes;
    this.listeners = new Set();
    this.source = null;
    this.asked = new Set(); // the names that the open stream filters by
    this.first = true; // nothing has come since it was opened anew
    this.attempt = 0;
    this.timer = 0;
  }

  add(listener) {
    this.listeners.add(listener);
    listener.timer = setTimeout(() => this.refresh(listener), PATIENCE_MS);
    const covered = this.source !== null && [...listener.names].every((name) => this.asked.has(name));
    if (!covered) this.openIn(0);
    else if (!this.first) queueMicrotask(() => this.refresh(listener));
  }

  remove(listener) {
    clearTimeout(listener.timer);
    this.listeners.delete(listener);
    if (this.listeners.size) return;
    this.close();
    streams.delete(this.key);
    tell();
  }

  get isAway() {
    return this.source === null || this.source.readyState !== EventSource.OPEN;
  }

  openIn(pause) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), pause);
  }

  open() {
    this.close();
    this.asked = new Set([...this.listeners].flatMap((listener) => [...listener.names]));
    this.first = true;
    this.source = new EventSource(PREFIX + "/events" + this.query());
    this.source.addEventListener("open", () => this.opened());
    this.source.addEventListener("error", () => this.broke());
    this.source.addEventListener("gap", () => this.refreshAll());
    for (const type of this.types.length ? this.types : TYPES) {
      this.source.addEventListener(type, (event) => this.pass(type, JSON.parse(event.data)));
    }
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  query() {
    const params = new URLSearchParams();
    for (const type of this.types) params.append("type", type);
    for (const name of this.asked) params.append("name", name);
    for (const node of this.nodes) params.append("node", node);
    return params.size ? `?${params}` : "";
  }

  /** A stream that the browser itself opened again goes on where it broke off, so only a new one misses things. */
  opened() {
    this.attempt = 0;
    if (this.first) this.refreshAll();
    this.first = false;
    tell();
  }

  /** The browser tries again by itself, but not after a refusal such as "too many watch". */
  broke() {
    if (this.source?.readyState === EventSource.CLOSED) {
      this.close();
      this.openIn(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.attempt));
      this.attempt += 1;
    }
    tell();
  }

  pass(type, data) {
    for (const { names, handlers } of this.listeners) {
      const named = data.data_name === undefined || names.has(data.data_name);
      if (names.size === 0 || named) handlers[type]?.(data);
    }
  }

  refreshAll() {
    this.listeners.forEach((listener) => this.refresh(listener));
  }

  /** An open stream does not load again what could not be loaded, so that is tried until it comes. */
  async refresh(listener) {
    clearTimeout(listener.timer);
    if (!this.listeners.has(listener)) return;
    const loaded = await listener.handlers.refresh?.();
    if (loaded !== false || !this.listeners.has(listener)) return;
    clearTimeout(listener.timer);
    listener.timer = setTimeout(() => this.refresh(listener), AGAIN_MS);
  }
}

function seen() {
  clearTimeout(hiding);
  if (document.hidden) {
    hiding = setTimeout(() => streams.forEach((stream) => stream.close()), HIDDEN_MS);
  } else {
    streams.forEach((stream) => stream.source === null && stream.open());
  }
}

/** Say whether all streams are open; that one is not, or that there is none, only when it has been so for a while. */
function tell() {
  clearTimeout(telling);
  const away = [...streams.values()].some((stream) => stream.isAway);
  if (away) telling = setTimeout(() => say("Connection away: trying again", true), AWAY_MS);
  else if (streams.size) say("Live", false);
  else telling = setTimeout(() => say("", false), AWAY_MS); // the next page mostly opens one at once
}

function say(text, away) {
  if (!shown) return;
  setText(shown, text);
  shown.classList.toggle("away", away);
}
