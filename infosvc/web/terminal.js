/**
 * What a program printed as a terminal shows it: colours, lines that are written over, the cursor moved up.
 *
 * Of the control sequences of ECMA-48 those count that progress bars and coloured logs use; all others are left out.
 */

// A sequence, the end of a line, going back, or text.
const PIECE =
  /\x1b\[([0-9;?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-Z\\^-~]|[\n\r\b]|[^\x1b\n\r\b]+/g;
// A sequence that has begun and may go on in the text that comes next.
const UNFINISHED = /\x1b(?:\[[0-9;?]{0,40}[ -/]*|\][^\x07\x1b]{0,400}\x1b?)?$/;
const WEIGHTS = { 1: "bold", 2: "dim", 3: "italic", 4: "underlined", 7: "reversed" };
const WEIGHTS_END = { 22: ["bold", "dim"], 23: ["italic"], 24: ["underlined"], 27: ["reversed"] };
const LONGEST_LINE = 20_000;
const MOST_RUNS = 500; // of one line

/**
 * @typedef {{text: string, look: string}} Run text of one look: words of class names, empty for plain text
 * @typedef {{runs: Run[], length: number}} Line
 */

/** Lines that grow as text is written; the first are dropped when there are a tenth more than `mostLines`. */
export class Terminal {
  /** @param {number} mostLines */
  constructor(mostLines) {
    this.mostLines = mostLines;
    this.clear();
  }

  /** Forget all that was written. */
  clear() {
    /** @type {Line[]} */
    this.lines = [emptyLine()];
    this.dropped = 0;
    this.row = 0; // of `lines`
    this.column = 0;
    this.colour = "";
    this.weights = new Set();
    this.rest = "";
  }

  /**
   * Write text behind what was written.
   *
   * @param {string} text
   * @returns {number} the place in `lines` of the first line that may look other than before
   */
  write(text) {
    const all = this.rest + text;
    this.rest = UNFINISHED.exec(all)?.[0] ?? "";
    let first = this.row;
    for (const piece of all.slice(0, all.length - this.rest.length).matchAll(PIECE)) {
      this.take(piece);
      first = Math.min(first, this.row);
    }
    const excess = this.lines.length > 1.1 * this.mostLines ? this.lines.length - this.mostLines : 0;
    this.lines.splice(0, excess); // many at once, because all others move
    this.dropped += excess;
    this.row = Math.max(0, this.row - excess);
    return Math.max(0, first - excess);
  }

  take([piece, given, final]) {
    if (final) this.control(final, given);
    else if (piece === "\n") this.goTo(this.row + 1, 0);
    else if (piece === "\r") this.column = 0;
    else if (piece === "\b") this.column = Math.max(0, this.column - 1);
    else if (piece[0] !== "\x1b") this.put(piece);
  }

  control(final, given) {
    const numbers = given.split(";").map((each) => Number.parseInt(each, 10) || 0);
    const many = Math.max(1, numbers[0]);
    if (final === "m") this.dress(numbers);
    else if (final === "K") this.erase(numbers[0]);
    else if (final === "A" || final === "F") this.goTo(this.row - many, final === "F" ? 0 : this.column);
    else if (final === "B" || final === "E") this.goTo(this.row + many, final === "E" ? 0 : this.column);
    else if (final === "C") this.column = Math.min(this.column + many, LONGEST_LINE);
    else if (final === "D") this.column = Math.max(0, this.column - many);
    else if (final === "G") this.column = Math.min(many - 1, LONGEST_LINE);
  }

  goTo(row, column) {
    this.row = Math.min(Math.max(0, row), this.lines.length); // at most one line below the last one
    this.column = column;
    if (this.row === this.lines.length) this.lines.push(emptyLine());
  }

  put(text) {
    const line = this.lines[this.row];
    const fits = text.slice(0, Math.max(0, LONGEST_LINE - this.column));
    if (!fits) return;
    if (this.column > line.length) append(line, " ".repeat(this.column - line.length), "");
    if (this.column < line.length) this.overwrite(line, fits);
    else append(line, fits, this.lookIn(line));
    this.column += fits.length;
  }

  overwrite(line, text) {
    const after = part(line, this.column + text.length, line.length);
    cut(line, this.column);
    append(line, text, this.lookIn(line));
    for (const run of after) append(line, run.text, run.look);
  }

  /** The look of what comes next; a line of very many looks goes on in its last one, for each costs an element. */
  lookIn(line) {
    return line.runs.length < MOST_RUNS ? this.look : line.runs.at(-1).look;
  }

  erase(which) {
    const line = this.lines[this.row];
    const after = which === 1 ? part(line, this.column, line.length) : [];
    cut(line, which === 0 ? this.column : 0);
    if (after.length) append(line, " ".repeat(this.column), "");
    for (const run of after) append(line, run.text, run.look);
  }

  /** Select Graphic Rendition. Colours of the large palettes are shown as plain text, and backgrounds are left out. */
  dress(numbers) {
    for (let at = 0; at < numbers.length; at += 1) {
      const number = numbers[at];
      if (number === 38 || number === 48) {
        const [kind, index] = numbers.slice(at + 1, at + 3);
        if (number === 38) this.colour = kind === 5 && index < 16 ? `ansi-${index}` : "";
        at += kind === 5 ? 2 : 4;
      } else this.dressBy(number);
    }
  }

  dressBy(number) {
    if (number === 0) {
      this.colour = "";
      this.weights.clear();
    } else if (WEIGHTS[number]) this.weights.add(WEIGHTS[number]);
    else if (WEIGHTS_END[number]) WEIGHTS_END[number].forEach((each) => this.weights.delete(each));
    else if (number >= 30 && number <= 37) this.colour = `ansi-${number - 30}`;
    else if (number >= 90 && number <= 97) this.colour = `ansi-${number - 82}`;
    else if (number === 39) this.colour = "";
  }

  get look() {
    return [this.colour, ...[...this.weights].map((each) => `ansi-${each}`)].filter(Boolean).join(" ");
  }
}

/**
 * What a line says, without its looks.
 *
 * @param {Line} line
 * @returns {string}
 */
export function textOf(line) {
  return line.runs.map((run) => run.text).join("");
}

function emptyLine() {
  return { runs: [], length: 0 };
}

function append(line, text, look) {
  if (!text) return;
  const last = line.runs.at(-1);
  if (last && last.look === look) last.text += text;
  else line.runs.push({ text, look });
  line.length += text.length;
}

function cut(line, length) {
  if (length >= line.length) return;
  line.runs = part(line, 0, length);
  line.length = length;
}

/** The runs of a line from one column up to another. */
function part(line, from, to) {
  const found = [];
  let at = 0;
  for (const { text, look } of line.runs) {
    const within = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (within) found.push({ text: within, look });
    at += text.length;
  }
  return found;
}
