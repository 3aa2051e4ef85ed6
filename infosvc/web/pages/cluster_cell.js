/**
 * One node's cell on the page of the cluster, and how cells are sorted.
 */

import { ageText, isBad, outcomeText, stateOf } from "../age.js";
import { path } from "../api.js";
import { h } from "../dom.js";
import { awayWord } from "../node_state.js";
import { numberOf, stepOf, valueText } from "../scale.js";
import { shortageNote } from "../shortage.js";

const NODE_NOTES = { stale: "agent is silent", unknown: "not enrolled" };

/** One node: its name, the value with its unit, and what is to be known about them. */
export class Cell {
  /**
   * @param {string} name
   * @param {import("../shortage.js").Shortage[]} errors what it is out of
   */
  constructor(name, errors) {
    this.name = name;
    this.reading = null;
    this.nodeState = "";
    this.errors = errors;
    this.value = h("span", { class: "cell-value" });
    this.note = h("span", { class: "cell-note" });
    this.link = h(
      "a",
      { class: "cell", href: `#${path("node", name)}` },
      h("span", { class: "cell-name" }, name),
      " ",
      this.value,
      " ",
      this.note,
    );
    this.element = h("li", null, this.link);
    this.look = "";
    this.said = ["", ""];
  }

  /** Write only what differs: most seconds change nothing but some ages. */
  draw({ unit, loaded }, scale, now) {
    const state = loaded ? stateOf(this.reading, now) : "loading";
    const look = `cell ${this.lookOf(scale, state)}`;
    if (look !== this.look) this.link.className = this.look = look;
    const value = loaded ? valueText(this.reading?.text ?? null, unit) : "\u2026";
    const said = this.isLost ? ["lost", this.lastText(value, now)] : [value, this.noteText(state, now)];
    if (said[0] !== this.said[0]) this.value.textContent = said[0];
    if (said[1] !== this.said[1]) this.note.textContent = said[1];
    this.said = said;
  }

  get isLost() {
    return this.nodeState === "lost";
  }

  /** What it is out of; of a node that is away nobody knows it. */
  get ownErrors() {
    return awayWord(this.nodeState) ? [] : this.errors;
  }

  /** A lost node has no colour by its value, which may be true no more. */
  lookOf(scale, state) {
    if (this.isLost) return "no-step is-failed is-lost";
    const number = numberOf(this.reading?.text);
    const step = scale && number !== null ? `step-${stepOf(scale, number)}` : "no-step";
    const away = Object.hasOwn(NODE_NOTES, this.nodeState) ? " is-away" : "";
    const failed = this.ownErrors.length > 0 && state !== "failed" ? " is-failed" : "";
    return `${step} is-${state}${away}${failed}`;
  }

  /** What a lost node had at last. */
  lastText(value, now) {
    const measured = this.reading?.measured ?? null;
    return measured === null ? "" : `was ${value}, ${ageText(now - measured)}`;
  }

  noteText(state, now) {
    const { measured, outcome } = this.reading ?? { measured: null, outcome: null };
    const notes = [
      measured !== null && ageText(now - measured),
      state === "stale" && "stale",
      isBad(outcome) && outcomeText(outcome),
      NODE_NOTES[this.nodeState],
      ...this.ownErrors.map(shortageNote),
    ];
    return notes.filter(Boolean).join(", ");
  }
}

const alphabet = new Intl.Collator("en", { numeric: true });
const byName = (one, other) => alphabet.compare(one.name, other.name);

/** Cells that have nothing to compare come last. */
function byNumber(of) {
  return (one, other) => {
    const [first, second] = [of(one), of(other)];
    if (first === null || second === null) {
      return first === second ? byName(one, other) : Number(first === null) - Number(second === null);
    }
    return second - first || byName(one, other);
  };
}

/** How cells are sorted, by what the reader chooses. */
export const COMPARE = {
  name: byName,
  value: byNumber((cell) => numberOf(cell.reading?.text)),
  age: byNumber((cell) => (cell.reading?.measured ? -cell.reading.measured : null)),
};
