/**
 * When to ask: again and again for what sends no events, Hadoop's answers; once for what sends many; the last counts.
 */

import { isAbort } from "./api.js";
import { setText } from "./dom.js";

const AFTER_TROUBLE_MS = 10_000;

/**
 * Do `step` now and again after the milliseconds that it resolves to, until it resolves to null or `signal` aborts.
 *
 * While the page is hidden nothing is asked; it goes on as soon as somebody looks.
 *
 * @param {() => Promise<number | null>} step
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export async function poll(step, signal) {
  while (!signal.aborted) {
    const pause = await step();
    if (pause === null) return;
    await wait(pause, signal);
    await shown(signal);
  }
}

/**
 * Ask YARN again and again and draw what it says; what goes wrong is shown, and asked again a little later.
 *
 * @template T
 * @param {() => Promise<any>} ask
 * @param {(found: any, before: T | null) => T} draw `before` is what it came to the last time
 * @param {{everyMs: number, problem: {say: (problem: unknown) => void}, count: Element}} page its line `count` says that
 *   it waits for the first answer
 * @param {AbortSignal} signal
 * @returns {Promise<void>}
 */
export async function followYarn(ask, draw, { everyMs, problem, count }, signal) {
  let before = null;
  await poll(async () => {
    try {
      const found = await ask();
      problem.say(null);
      before = draw(found, before);
      return everyMs;
    } catch (error) {
      if (isAbort(error)) return null;
      problem.say(error);
      if (before === null) setText(count, "");
      return AFTER_TROUBLE_MS;
    }
  }, signal);
}

/**
 * A function that is told whether to ask: from a yes to the next no `step` is done again and again, as by `poll`.
 *
 * @param {() => Promise<number | null>} step
 * @param {AbortSignal} signal
 * @returns {(isWanted: boolean) => void}
 */
export function pollWhile(step, signal) {
  let isWanted = false;
  let polls = false;
  return (is) => {
    isWanted = is;
    if (!isWanted || polls) return;
    polls = true;
    poll(async () => {
      if (isWanted) return step();
      polls = false;
      return null;
    }, signal);
  };
}

/**
 * A function that does `step` once it was not called for so many milliseconds; what waits when `signal` aborts is left.
 *
 * @param {() => void} step
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {() => void}
 */
export function settled(step, milliseconds, signal) {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return () => {
    clearTimeout(timer);
    timer = setTimeout(step, milliseconds);
  };
}

/**
 * A function that does `step` so many milliseconds after the first call, and no more often, however often it is called.
 *
 * @param {() => void} step
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 * @returns {() => void}
 */
export function atMostEvery(step, milliseconds, signal) {
  let timer = 0;
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  return () => {
    if (timer || signal.aborted) return;
    timer = setTimeout(() => {
      timer = 0;
      step();
    }, milliseconds);
  };
}

/**
 * A function that does `step(current)`, where `current()` tells a step that waited whether no later call has begun.
 *
 * @template T
 * @param {(current: () => boolean) => T} step
 * @returns {() => T}
 */
export function latestOnly(step) {
  let calls = 0;
  return () => {
    calls += 1;
    const mine = calls;
    return step(() => mine === calls);
  };
}

/** @returns {Promise<void>} after so many milliseconds, or as soon as `signal` aborts */
export function wait(milliseconds, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done, { once: true });
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
  });
}

function shown(signal) {
  return new Promise((resolve) => {
    if (signal.aborted || !document.hidden) return resolve();
    const look = () => {
      if (!signal.aborted && document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}
