/**
 * Words as one types them into a shell, and back.
 */

const SAFE_WORD = /^[A-Za-z0-9_@%+=:,./-]+$/;

/**
 * Words as one types them into a shell.
 *
 * @param {string[]} words
 * @returns {string}
 */
export function asTyped(words) {
  return words.map((word) => (SAFE_WORD.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(" ");
}

/**
 * The inverse of `asTyped`: blanks part words, quotes and a backslash keep what a shell would keep; nothing is expanded.
 *
 * @param {string} text
 * @returns {string[] | null} null if a quote is not closed
 */
export function wordsOf(text) {
  const words = [];
  let word = null;
  let rest = text;
  while (rest) {
    const found = /^(?:(\s+)|'([^']*)'|"((?:[^"\\]|\\[^])*)"|\\([^])|([^\s'"\\]+))/.exec(rest);
    if (!found) return null;
    const [all, blank, single, double, escaped, plain] = found;
    if (blank === undefined)
      word = (word ?? "") + (single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? plain);
    else if (word !== null) {
      words.push(word);
      word = null;
    }
    rest = rest.slice(all.length);
  }
  return word === null ? words : [...words, word];
}
