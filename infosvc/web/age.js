/**
 * How old things are, and what a value of some age is worth.
 *
 * All times are Unix seconds by the service's clock: the one of this machine may be wrong.
 */

let ahead = 0; // seconds that this machine's clock is before the service's

/**
 * Take over the service's clock from an answer that says its `time`.
 *
 * @param {number} time Unix seconds
 */
export function syncClock(time) {
  ahead = Date.now() / 1000 - time;
}

/**
 * Unix seconds by the service's clock, as far as it is known.
 *
 * @returns {number}
 */
export function serverNow() {
  return Date.now() / 1000 - ahead;
}

/**
 * @typedef {object} Reading one value on one node, as a page keeps it
 * @property {string | null} text what the producer printed; null as long as no run has brought one
 * @property {number | null} measured when it was true
 * @property {number} ttl seconds until it is stale
 * @property {string} outcome of the last run
 * @property {string | null} reason what the last run complained
 */

/**
 * A row of /data as a reading; `time` is that of the answer.
 *
 * @param {{data_value: string | null, age: number | null, ttl: number, outcome: string, reason: string | null}} row
 * @param {number} [time]
 * @returns {Reading}
 */
export function reading(row, time = serverNow()) {
  const measured = row.age === null ? null : time - row.age;
  return { text: row.data_value, measured, ttl: row.ttl, outcome: row.outcome, reason: row.reason };
}

/**
 * What a reading becomes by an event of type value; null when the value was forgotten.
 *
 * A run that brought nothing leaves the old value as old as it was: the event's time is that of the run.
 *
 * @param {Reading | null | undefined} before
 * @param {{data_value: string | null, outcome: string | null, time: number | null}} event
 * @param {number} ttl
 * @returns {Reading | null}
 */
export function heard(before, event, ttl) {
  if (event.outcome === null) return null;
  const brought = event.outcome === "ok";
  const measured = brought ? event.time : (before?.measured ?? null);
  const reason = before?.outcome === event.outcome ? before.reason : null;
  return { text: event.data_value, measured, ttl, outcome: event.outcome, reason: brought ? null : reason };
}

/**
 * Of what was heard of one value and what an answer says of it the later one: an event may overtake an answer.
 *
 * @param {Reading | null | undefined} heardOf
 * @param {Reading | null | undefined} answered
 * @param {number} time when the answer was made
 * @returns {Reading | null}
 */
export function later(heardOf, answered, time) {
  const overtaken = heardOf && heardOf.measured > (answered?.measured ?? time) + 0.5; // ages are rounded
  return overtaken ? { ...heardOf, ttl: answered?.ttl ?? heardOf.ttl } : (answered ?? null);
}

/**
 * What a reading is worth now: fresh, stale, failed (its last run went wrong), or none (nothing was ever brought).
 *
 * @param {Reading | null | undefined} found
 * @param {number} [now]
 * @returns {"fresh" | "stale" | "failed" | "none"}
 */
export function stateOf(found, now = serverNow()) {
  if (!found) return "none";
  if (isBad(found.outcome)) return "failed";
  if (found.text === null || found.measured === null) return "none";
  return now - found.measured > found.ttl ? "stale" : "fresh";
}

const OUTCOMES = {
  ok: "ok",
  no_data: "nothing to measure",
  failed: "failed",
  timeout: "timed out",
  refused: "refused",
  quarantined: "in quarantine",
};

/**
 * How a run ended, in words; "not run yet" for null.
 *
 * @param {string | null | undefined} outcome
 * @returns {string}
 */
export function outcomeText(outcome) {
  if (outcome === null || outcome === undefined) return "not run yet";
  return OUTCOMES[outcome] ?? outcome;
}

/**
 * Whether readers must know that a run went wrong.
 *
 * @param {string | null | undefined} outcome
 * @returns {boolean}
 */
export function isBad(outcome) {
  return Boolean(outcome) && outcome !== "ok" && outcome !== "no_data";
}

/**
 * A span of time in one unit: "0.2 s", "45 s", "12 min", "3 h", "2 d"; empty for null.
 *
 * @param {number | null | undefined} seconds
 * @returns {string}
 */
export function spanText(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 10) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/**
 * A span of time as it was set, which must not be rounded: "2.5 s", "150 s (about 3 min)".
 *
 * @param {number} seconds
 * @returns {string}
 */
export function exactSpan(seconds) {
  const exact = `${seconds.toLocaleString("en", { maximumFractionDigits: 6 })} s`;
  return seconds < 120 ? exact : `${exact} (about ${spanText(seconds)})`;
}

/**
 * How long ago, in whole seconds or more, so that it does not flicker: "now", "45 s ago"; "never" for null.
 *
 * @param {number | null | undefined} seconds
 * @returns {string}
 */
export function ageText(seconds) {
  if (seconds === null || seconds === undefined) return "never";
  const whole = Math.max(0, Math.floor(seconds));
  return whole === 0 ? "now" : `${spanText(whole)} ago`;
}

/**
 * Unix seconds as local date and time; "never" for null.
 *
 * @param {number | null | undefined} unix
 * @returns {string}
 */
export function momentText(unix) {
  if (unix === null || unix === undefined) return "never";
  return new Date(unix * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/**
 * Call `step` once a second while the page can be seen, until `signal` aborts.
 *
 * @param {() => void} step
 * @param {AbortSignal} signal
 */
export function everySecond(step, signal) {
  if (signal.aborted) return;
  const timer = setInterval(() => {
    if (!document.hidden) step();
  }, 1000);
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}
