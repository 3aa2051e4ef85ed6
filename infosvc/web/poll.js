/**
 * Asking again and again, for what sends no events: Hadoop's answers; and asking once, for what sends many.
 */

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
