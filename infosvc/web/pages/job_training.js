/**
 * A training run: its loss, who computes how much and how fast by steps, and what happened to its members.
 *
 * What is drawn is the object `training` of the job's section. The job's owner wrote the program that tells it.
 */

import { path } from "../api.js";
import { counted, fact, fill, h, redraw, table } from "../dom.js";
import { curvesPlace } from "../pictures/curve.js";
import { grouped, numberText } from "../scale.js";

const MOST_MOVED = 4;
const CHANGES = ["From step", "After", "Samples of a batch", "Predicted gain", "Why"];
const GENERATIONS = ["Generation", "From step", "After", "Nodes", "Began from", "Ended"];
const LOSSES = ["Node", "After", "Why", "Cost"];
const NODES = ["Node", "Samples", "A second", "Computing", "Waiting"];

/**
 * A section that is hidden until there is something to draw.
 *
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (told: any) => void}} `told` is the object, or nothing
 */
export function training(signal) {
  const facts = h("dl", { class: "facts" });
  const curves = curvesPlace({ by: "step" }, signal);
  const parts = [changesOf, lossesOf, generationsOf, nodesOf].map((rowsOf) => new Part(rowsOf));
  const element = h(
    "section",
    { "aria-label": "Training", hidden: true },
    h("h2", null, "Training"),
    facts,
    curves.element,
    parts.map((part) => part.element),
  );
  const draw = (told) => {
    element.hidden = !told;
    if (!told) return;
    try {
      fill(facts, factsOf(told).map(fact));
      curves.draw(curvesOf(told));
      parts.forEach((part) => part.draw(told));
    } catch {
      fill(facts, fact(["Curves", "what the run tells cannot be drawn: another version of nodewise may"]));
    }
  };
  return { element, draw };
}

/**
 * A heading and a table, drawn when it says something else than before; nothing without rows.
 *
 * `rowsOf(told)` gives title, caption, columns and rows. A cell {node} is the name of a node, with a link to its page.
 */
class Part {
  constructor(rowsOf) {
    this.rowsOf = rowsOf;
    this.element = h("div", null);
  }

  draw(told) {
    const { title, caption = title, columns, rows } = this.rowsOf(told);
    const look = JSON.stringify(rows);
    if (look === this.look) return;
    this.look = look;
    const place = table(caption, columns, rows.map((row) => row.map(asCell)));
    place.classList.add("tall");
    redraw(this.element, rows.length > 0 && [h("h3", null, title), place]);
  }
}

function asCell(cell) {
  return cell?.node ? h("a", { href: `#${path("node", cell.node)}` }, cell.node) : cell;
}

function factsOf(told) {
  const of = told.steps_in_all ? ` of ${grouped(told.steps_in_all)}` : "";
  const last = told.loss.at(-1);
  const cost = `, which cost ${seconds(told.cost_seconds)}`;
  const lost = told.losses_in_all;
  return [
    ["Steps", grouped(told.steps) + of],
    ["Loss", last ? numberText(last[1], "") : "not known yet"],
    ["Generations", told.generations_in_all],
    ["Lost members", lost ? `${lost}${told.cost_seconds ? cost : ""}` : "none"],
  ];
}

/**
 * The curves: the loss, and for each node its share and its seconds of a step, which hold until they change.
 *
 * @param {any} told
 * @returns {import("../pictures/curve.js").Curve[]}
 */
function curvesOf(told) {
  const changes = standing(told.shares);
  const names = [...new Set(changes.flatMap((one) => Object.keys(one.shares)))].sort();
  const most = Math.max(0, ...changes.map((one) => one.others?.count ?? 0));
  const end = changes.length && told.steps > changes.at(-1).step ? [{ ...changes.at(-1), step: told.steps }] : [];
  const line = (label, value) => ({
    label,
    points: [...changes, ...end].map((one) => [one.step, value(one) ?? null]),
  });
  const shares = names.map((name) => line(name, (one) => ratio(one.shares[name], one.batch)));
  const paces = names.map((name) => line(name, (one) => one.step_seconds[name]));
  if (most) {
    shares.push(line(counted(most, "other"), (one) => ratio(one.others?.samples, one.batch)));
    paces.push(line(`slowest of ${counted(most, "other")}`, (one) => one.others?.step_seconds));
  }
  const isKnown = (lines) => lines.some((each) => each.points.some(([, y]) => y !== null));
  return [
    told.loss.length && { name: "Loss", unit: "", series: [{ label: "loss", points: told.loss }] },
    isKnown(shares) && { name: "Share of a batch", unit: "ratio", series: shares, isStairs: true },
    isKnown(paces) && { name: "Computing for a step", unit: "seconds", series: paces, isStairs: true },
  ].filter(Boolean);
}

/** Without the changes from steps that were computed again, as the run went back to a checkpoint. */
function standing(changes) {
  const kept = [];
  for (const change of changes) {
    while (kept.length && kept.at(-1).step >= change.step) kept.pop();
    kept.push(change);
  }
  return kept;
}

function ratio(samples, batch) {
  return samples === undefined ? null : samples / batch;
}

function changesOf({ shares }) {
  const row = (one, at) => [
    grouped(one.step),
    seconds(one.at_seconds),
    movedText(shares[at - 1], one),
    one.gain === null ? "" : `a step ${numberText(one.gain, "")} times as fast`,
    one.why || "not known yet",
  ];
  const caption = "Changes of shares, the newest first";
  return { title: "Changes of shares", caption, columns: CHANGES, rows: shares.map(row).reverse() };
}

/** What a change gave to whom: all nodes at first or when they are others, else those that it moved the most. */
function movedText(before, now) {
  const names = Object.keys(now.shares).sort();
  const rest = now.others ? `, ${counted(now.others.count, "other")} ${grouped(now.others.samples)}` : "";
  const isSame = before && Object.keys(before.shares).sort().join("\n") === names.join("\n");
  if (!isSame) return names.map((name) => `${name} ${grouped(now.shares[name])}`).join(", ") + rest;
  const moved = names.filter((name) => before.shares[name] !== now.shares[name]);
  const size = (name) => Math.abs(now.shares[name] - before.shares[name]);
  const most = moved.toSorted((one, other) => size(other) - size(one)).slice(0, MOST_MOVED);
  const left = moved.length > most.length ? `, and ${moved.length - most.length} more` : "";
  const change = (name) => `${name} ${grouped(before.shares[name])} \u2192 ${grouped(now.shares[name])}`;
  return most.map(change).join(", ") + left;
}

function lossesOf({ losses }) {
  const row = (one) => [
    { node: one.node },
    seconds(one.at_seconds),
    one.why,
    one.cost_seconds === null ? "nobody has gone on" : seconds(one.cost_seconds),
  ];
  return { title: "Lost members", columns: LOSSES, rows: losses.map(row).reverse() };
}

function generationsOf({ generations, generations_in_all: all }) {
  const row = (one) => [
    one.number,
    grouped(one.first_step),
    seconds(one.at_seconds),
    one.nodes.join(", ") + (one.others ? `, and ${counted(one.others, "other")}` : ""),
    one.from_checkpoint ? "a checkpoint" : one.first_step ? "its members' state" : "the beginning",
    one.ended || "goes on",
  ];
  const some = generations.length < all ? `the newest ${generations.length} of ${all}` : "the newest first";
  const rows = generations.map(row).reverse();
  return { title: "Generations", caption: `Generations, ${some}`, columns: GENERATIONS, rows };
}

function nodesOf({ nodes }) {
  const row = (one) => [
    one.node_name ? { node: one.node_name } : `${counted(one.count, "other")} together`,
    grouped(one.samples),
    one.compute_seconds ? numberText(one.samples / one.compute_seconds, "") : "",
    seconds(one.compute_seconds),
    seconds(one.wait_seconds),
  ];
  return { title: "Work of each node", columns: NODES, rows: nodes.map(row) };
}

function seconds(number) {
  return numberText(number, "seconds");
}
