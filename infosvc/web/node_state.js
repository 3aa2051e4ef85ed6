/**
 * The states of a node in words, the same on all pages.
 */

const AWAY = { __proto__: null, stale: "silent", lost: "lost" };

/** The words for nodes of which nobody hears. */
export const AWAY_WORDS = Object.values(AWAY);

/**
 * The word for a node of which nobody hears, by its state; null for any other state.
 *
 * @param {string | null | undefined} state
 * @returns {"silent" | "lost" | null}
 */
export function awayWord(state) {
  return AWAY[state] ?? null;
}
