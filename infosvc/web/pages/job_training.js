/**
 * A training run: its loss, who computes how much and how fast by steps, and what happened to its members.
 *
 * What is drawn is the object `training` of the job's section. The job's owner wrote the program that tells it.
 */

import { path } from "../api.js";
import { counted, fact, fill, h, redraw } from "../dom.js";
import { curvesPlace } from "../pictures/curve.js";
import { grouped, numberText } from "../scale.js";
import { stackingRow, stackingTable } from "../stacking.js";

const MOST_MOVED = 4;
const CHANGES = [["From"], ["After", "number"], ["Samples of a batch", "wide"], ["Predicted gain"], ["Why", "wide"]];
const GENERATIONS = [
  ["Generation"],
  ["From step", "number"],
  ["After", "number"],
  ["Nodes", "wide"],
  ["Began from"],
  ["Ended"],
];
const LOSSES = [["Node"], ["After", "number"], ["Cost", "number"], ["Why", "wide"]];
const NODES = [["Node"], ["Samples", "number"], ["A second", "number"], ["Computing", "number"], ["Waiting", "number"]];

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
 * `rowsOf(told)` gives title, columns and rows. A cell {node} is the name of a node, with a link to its page.
 */
class Part {
  constructor(rowsOf) {
    this.rowsOf = rowsOf;
    this.element = h("div", null);
  }

  draw(told) {
    const { title, columns, rows } = this.rowsOf(told);
    const look = JSON.stringify([title, rows]);
    if (look === this.look) return;
    this.look = look;
    const { element, body } = stackingTable(title, h("span", { class: "unseen" }, title), columns);
    element.classList.add("tall");
    fill(body, rows.map((row) => stackingRow(columns, row.map(asCell))));
    redraw(this.element, rows.length > 0 && [h("h3", null, title), element]);
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
  const until = (at) => changes[at + 1]?.step ?? Math.max(told.steps, changes[at].step);
  const line = (label, value) => ({
    label,
    points: changes.flatMap((one, at) => [one.step, until(at)].map((step) => [step, value(one) ?? null])),
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
    `step ${grouped(one.step)}`,
    seconds(one.at_seconds),
    movedText(shares[at - 1], one),
    one.gain === null ? "" : `a step ${numberText(one.gain, "")} times as fast`,
    one.why || "not known yet",
  ];
  return { title: "Changes of shares, the newest first", columns: CHANGES, rows: shares.map(row).reverse() };
}

/** What a change gave to whom: all nodes at first or when they are others, else those that it moved the most. */
function movedText(before, now) {
  const [were, are] = [sharesOf(before), sharesOf(now)];
  const names = Object.keys(are);
  if (Object.keys(were).join("\n") !== names.join("\n")) {
    return names.map((name) => `${name} ${grouped(are[name])}`).join(", ");
  }
  const moved = names.filter((name) => were[name] !== are[name]);
  if (!moved.length) return "of the others alone";
  const size = (name) => Math.abs(are[name] - were[name]);
  const most = moved.toSorted((one, other) => size(other) - size(one)).slice(0, MOST_MOVED);
  const left = moved.length > most.length ? `, and ${moved.length - most.length} more` : "";
  const change = (name) => `${name} ${grouped(were[name])} \u2192 ${grouped(are[name])}`;
  return most.map(change).join(", ") + left;
}

/** By name, and in its order; the others, if there are any, at the end. */
function sharesOf(change) {
  const { shares = {}, others = null } = change ?? {};
  const rest = others && [`${counted(others.count, "other")} together`, others.samples];
  const named = Object.entries(shares).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(rest ? [...named, rest] : named);
}

function lossesOf({ losses, losses_in_all: all }) {
  const row = (one) => [
    { node: one.node },
    seconds(one.at_seconds),
    one.cost_seconds === null ? "nobody has gone on" : seconds(one.cost_seconds),
    one.why,
  ];
  const some = losses.length < all ? `Lost members, the newest ${losses.length} of ${all}` : "Lost members";
  return { title: some, columns: LOSSES, rows: losses.map(row).reverse() };
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
  return { title: `Generations, ${some}`, columns: GENERATIONS, rows: generations.map(row).reverse() };
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
