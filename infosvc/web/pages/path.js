/**
 * An HDFS path: which nodes hold its blocks, what reading costs, and what each policy would do, before anything runs.
 */

import { get, isAbort, isPassing } from "../api.js";
import { counted, fill, h, heading, problemBox, setText, table } from "../dom.js";
import { heatMap } from "../pictures/heat.js";
import { poll } from "../poll.js";
import { numberText } from "../scale.js";

const AGAIN_MS = 1000;
const AFTER_TROUBLE_MS = 5000;
const HELD = ["Node", "Rack", "Takes work", "Blocks", "Bytes", "Of all", "Files"];
const PLANS = ["Policy", "Makespan", "Over the bound", "Moves", "Over the fewest", "Stays", "Reading", "Planned in"];
const HINT = "Nodes are judged by a data name such as perf_cpu; without one nothing is planned.";
const CAPABILITY_KINDS = ["processor", "program"];

/**
 * @param {HTMLElement} main
 * @param {{query: URLSearchParams}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { query }, signal) {
  const asked = { path: query.get("path") ?? "", capability: query.get("capability") ?? "" };
  const problem = problemBox();
  const state = h("p", { role: "status" });
  const found = h("div", null);
  fill(main, heading("HDFS path"), form(asked, signal), problem.element, state, found);
  if (!asked.path) return;
  setText(state, `Listing ${asked.path}\u2026`);
  await poll(async () => {
    try {
      const params = { path: asked.path, capability: asked.capability || null };
      const view = await get("/path", { params, signal });
      problem.say(null);
      if (view.state === "listing") {
        setText(state, `Listing ${view.path}${far(view)}\u2026`);
        return AGAIN_MS;
      }
      setText(state, summary(view));
      fill(found, ...sectionsOf(view));
      return null;
    } catch (error) {
      if (isAbort(error)) return null;
      setText(state, "");
      problem.say(error);
      return isPassing(error) ? AFTER_TROUBLE_MS : null;
    }
  }, signal);
}

function far({ files, listed }) {
  return files ? `: the blocks of ${listed} of ${counted(files, "file")} are known` : "";
}

/** What to look at; it goes into the address, so that a link shows the same. */
function form(asked, signal) {
  const path = h("input", { id: "path", type: "text", required: true, value: asked.path, spellcheck: "false" });
  const capability = h("input", {
    id: "capability",
    type: "text",
    value: asked.capability,
    list: "capabilities",
    spellcheck: "false",
    "aria-describedby": "capability-hint",
  });
  const names = h("datalist", { id: "capabilities" });
  suggest(names, signal);
  const go = (event) => {
    event.preventDefault();
    const query = new URLSearchParams({ path: path.value.trim() });
    if (capability.value.trim()) query.set("capability", capability.value.trim());
    const hash = `#/path?${query}`;
    if (location.hash === hash) window.dispatchEvent(new HashChangeEvent("hashchange"));
    else location.hash = hash;
  };
  return h(
    "form",
    { onsubmit: go },
    h(
      "div",
      { class: "controls" },
      h("p", { class: "path-field" }, h("label", { for: "path" }, "Path"), path),
      h("p", null, h("label", { for: "capability" }, "Judged by"), capability),
      h("button", { class: "primary" }, "Show"),
    ),
    h("p", { class: "quiet", id: "capability-hint" }, HINT),
    names,
  );
}

async function suggest(names, signal) {
  try {
    const { producers } = await get("/producers", { signal });
    const capabilities = producers.filter((one) => CAPABILITY_KINDS.includes(one.kind)).map((one) => one.data_name);
    fill(names, capabilities.map((name) => h("option", { value: name })));
  } catch {
    // Names can be typed without suggestions.
  }
}

function summary(view) {
  const files = `${counted(view.files, "file")}, ${counted(view.blocks, "block")}, ${bytes(view.size_bytes)}`;
  const open = view.open_files ? `, ${view.open_files} being written` : "";
  const coded = view.erasure_coded_files ? `, ${view.erasure_coded_files} erasure-coded` : "";
  return `${view.path}: ${files}${open}${coded}; listed ${view.listed_age_seconds.toFixed(0)} s ago.`;
}

function sectionsOf(view) {
  const holders = view.replicas.map((one) => [one.replicas, one.blocks]);
  return [
    missing(view),
    h("h2", null, "Where the blocks are"),
    h(
      "div",
      { class: "beside" },
      table("What each node holds", HELD, view.nodes.map((node) => held(node))),
      table("Live holders of the blocks", ["Holders", "Blocks"], holders),
    ),
    h("h2", null, "What reading costs"),
    cost(view.access_cost, view.nodes.length),
    h("h2", null, "What each policy would do"),
    planned(view),
  ];
}

function missing(view) {
  if (!view.missing_files) return null;
  const rest = view.missing_files - view.missing.length;
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", null, `Blocks that no live node holds, in ${counted(view.missing_files, "file")}:`),
    h("ul", null, view.missing.map((name) => h("li", null, name)), rest > 0 && h("li", null, `and ${rest} more`)),
  );
}

function held(node) {
  const percent = `${(100 * node.held_ratio).toFixed(1)} %`;
  const label = `Share of the bytes that ${node.node_name} holds`;
  return [
    node.node_name,
    node.rack ?? "unknown",
    node.takes_work ? "yes" : "no",
    node.blocks,
    bytes(node.bytes),
    [h("progress", { max: 1, value: Math.min(1, node.held_ratio), "aria-label": label }), ` ${percent}`],
    node.files,
  ];
}

function cost({ measured, nodes, entries, most_nodes: most, said }, count) {
  if (!count) return h("p", null, "No node takes work, and none holds anything of it.");
  if (!entries.length) return h("p", null, `The matrix is shown for up to ${most} nodes.`);
  const known = new Map(entries.map((entry) => [`${entry.reader}\n${entry.holder}`, entry]));
  const entryOf = (reader, holder) => known.get(`${reader}\n${holder}`);
  const map = heatMap({
    rows: nodes,
    columns: nodes,
    value: (reader, holder) => entryOf(reader, holder).seconds_per_byte * 1e9,
    text: (value, reader, holder) => {
      const number = value.toLocaleString("en", { maximumSignificantDigits: 3 });
      return holder === undefined ? number : `${number} ${basis(entryOf(reader, holder))}`;
    },
    caption: "Seconds per GB, of what a holder (column) has, for a reader (row)",
    corner: "Reader",
  });
  const none = "Nothing was measured yet, so all of it is assumed: start the producer access_cost to have it measured.";
  return [!measured && h("p", null, none), said.map((sentence) => h("p", null, sentence)), map];
}

function basis(entry) {
  const age = entry.age_seconds;
  if (age === null) return entry.basis;
  return `${entry.basis}, ${age < 120 ? `${age.toFixed(0)} s` : `${(age / 60).toFixed(0)} min`} old`;
}

function planned(view) {
  if (view.no_plans) return h("p", null, view.no_plans);
  const good = view.plans.filter((plan) => !plan.error);
  const bad = view.plans.filter((plan) => plan.error);
  const nodes = Object.keys(view.values).sort();
  const heads = ["Node", "Capability", ...good.map((plan) => plan.policy)];
  const shares = nodes.map((name) => [name, valueOf(view.values[name]), ...good.map((plan) => shareOf(plan, name))]);
  return [
    h(
      "p",
      null,
      "Makespans are in seconds where the capability is in images per second; the ratios hold in any unit. ",
      "A file counts as one image.",
    ),
    table("The policies side by side", PLANS, good.map(planCells)),
    table("What each node gets: files, bytes, and bytes that it fetches", heads, shares),
    bad.map((plan) => h("p", null, `${plan.policy} cannot: ${plan.error}`)),
  ];
}

function planCells(plan) {
  const over = plan.bytes_moved_over_optimal;
  return [
    plan.policy,
    plan.makespan_seconds.toFixed(1),
    plan.makespan_over_bound.toFixed(2),
    bytes(plan.bytes_moved),
    over === null ? "\u221e, as nothing had to move" : over.toFixed(2),
    `${(100 * plan.locality_ratio).toFixed(1)} %`,
    `${plan.access_seconds.toFixed(2)} s`,
    `${(1000 * plan.planning_seconds).toFixed(1)} ms`,
  ];
}

function valueOf(value) {
  const number = numberText(value.value, value.unit);
  const trust = value.confidence === null ? "" : `, confidence ${value.confidence.toFixed(2)}`;
  return `${number} (${value.age_seconds.toFixed(0)} s old${trust})`;
}

function shareOf(plan, name) {
  const share = plan.nodes.find((node) => node.node_name === name);
  if (!share?.images) return "none";
  const fetched = share.moved_bytes ? `, fetches ${bytes(share.moved_bytes)}` : "";
  return `${counted(share.images, "file")}, ${bytes(share.size_bytes)}${fetched}`;
}

function bytes(count) {
  return numberText(count, "bytes");
}
