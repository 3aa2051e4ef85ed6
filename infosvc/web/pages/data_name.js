/**
 * One data name: what it is on each node now, how it is registered, and what it comes from and goes into.
 */

import { ageText, everySecond, exactSpan, heard, later, outcomeText, reading } from "../age.js";
import { serverNow, stateOf, syncClock } from "../age.js";
import { ApiError, del, get, isAbort, isPassing, path, put } from "../api.js";
import { histogram } from "../pictures/bars.js";
import { announce, clear, counted, fill, h, heading, problemBox, row, setText, table } from "../dom.js";
import { form } from "../form.js";
import { watch } from "../live.js";
import { numberOf, numberText, valueText } from "../scale.js";
import { REGISTRATION_FIELDS, WORD_FIELDS, linkTo } from "./data_names.js";

const MOST_TEXTS = 50; // different texts that are counted

/**
 * Fill `main` with all that is known of one name, and keep its values as they come.
 *
 * @param {HTMLElement} main
 * @param {{name: string}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { name }, signal) {
  const page = { name, signal, producer: null, readings: new Map(), problem: problemBox(), help: h("p") };
  Object.assign(page, { asked: 0, taken: 0 }); // loads so far, and which of them is shown
  const parts = [values(page), registration(page), relations(page)];
  fill(main, heading(name), page.help, page.problem.element, parts.map((part) => part.element));
  page.load = async () => {
    try {
      if (await load(page)) parts.forEach((part) => part.show());
      return true;
    } catch (error) {
      if (isAbort(error)) return true;
      page.problem.say(error);
      return !isPassing(error);
    }
  };
  const value = (event) => {
    const now = heard(page.readings.get(event.node_name), event, page.producer?.ttl ?? Infinity);
    if (now) page.readings.set(event.node_name, now);
    else page.readings.delete(event.node_name);
    page.changed = true;
  };
  // What was deleted cannot be loaded any more; what is shown stays, and is said to be over.
  const producer = ({ change }) => {
    if (change === "deleted") page.problem.say(`The name ${name} was deleted.`);
    else page.load();
  };
  watch({ types: ["value", "producer"], names: [name] }, { value, producer, refresh: page.load }, signal);
  everySecond(() => page.producer && parts[0].step(), signal);
}

/** Whether there is something new to show: a slow answer must not take the place of a later one. */
async function load(page) {
  const { name, signal } = page;
  page.asked += 1;
  const mine = page.asked;
  const where = path(name);
  const [producer, { producers }, said] = await Promise.all([
    get(`/producers${where}`, { signal }),
    get("/producers", { signal }),
    get(`/data${where}`, { signal }),
  ]);
  if (mine < page.taken) return false;
  page.taken = mine;
  syncClock(said.time);
  Object.assign(page, { producer, producers, readings: merged(page.readings, said, producer.ttl), changed: true });
  page.problem.say(null);
  setText(page.help, producer.help);
  return true;
}

function merged(before, { time, values }, ttl) {
  const answered = new Map(values.map((each) => [each.node_name, reading(each, time)]));
  const nodes = [...new Set([...before.keys(), ...answered.keys()])];
  const now = nodes.map((node) => [node, later(before.get(node), answered.get(node), time)]);
  return new Map(now.filter(([, found]) => found).map(([node, found]) => [node, { ...found, ttl }]));
}

/** The values over nodes: a picture of how they are spread, and a table with their ages. */
function values(page) {
  const text = (number) => numberText(number, page.producer.unit);
  const bars = histogram({ text, title: `${page.name} over nodes` });
  const texts = h("div");
  const note = h("p", { class: "data-note" });
  const list = table(`${page.name} on each node`, ["Node", "Value", "Age", "State", "Last run"], []);
  const body = list.querySelector("tbody");
  const rows = new Map();
  const step = () => {
    if (page.changed) {
      page.changed = false;
      arrange(rows, body, [...page.readings.keys()].sort());
      spread(page, bars, texts);
    }
    tellOld(page, note); // values grow old also while none comes
    const now = serverNow();
    for (const [node, cells] of rows) tell(cells, page.readings.get(node), page.producer.unit, now);
  };
  const element = h("section", null, h("h2", null, "Values over nodes"), bars.element, texts, note, list);
  return { element, show: step, step };
}

/** Rows for these nodes and no others; those that are there already stay, with the focus that may be in them. */
function arrange(rows, body, nodes) {
  const wanted = new Set(nodes);
  for (const [node, cells] of rows) {
    if (wanted.has(node)) continue;
    cells.row.remove();
    rows.delete(node);
  }
  nodes.forEach((node, at) => {
    if (rows.has(node)) return;
    const cells = { value: h("span"), age: h("span"), state: h("span"), run: h("span") };
    const link = h("a", { href: `#/node/${encodeURIComponent(node)}` }, node);
    cells.row = row([link, cells.value, cells.age, cells.state, cells.run]);
    body.insertBefore(cells.row, body.children[at] ?? null);
    rows.set(node, cells);
  });
}

function tell(cells, found, unit, now) {
  const state = stateOf(found, now);
  setText(cells.value, valueText(found.text, unit));
  setText(cells.age, ageText(found.measured === null ? null : now - found.measured));
  setText(cells.state, state === "none" ? "no data" : state);
  cells.state.className = `data-state data-state-${state}`;
  setText(cells.run, [outcomeText(found.outcome), found.reason].filter(Boolean).join(": "));
}

/** Numbers as bars; texts as counts, for there is no order in them. */
function spread(page, bars, texts) {
  const known = knownOf(page);
  const numbers = known.map((each) => numberOf(each.text)).filter((number) => number !== null);
  const words = known.filter((each) => numberOf(each.text) === null).map((each) => valueText(each.text, ""));
  bars.element.hidden = words.length > 0 && numbers.length === 0;
  bars.show(numbers);
  fill(texts, words.length > 0 && countsOf(words));
}

function knownOf(page) {
  return [...page.readings.values()].filter((each) => each.text !== null);
}

function tellOld(page, note) {
  const known = knownOf(page);
  const old = known.filter((each) => stateOf(each) !== "fresh").length;
  setText(note, old ? `${old} of ${counted(known.length, "value")} stale or failed, drawn as they were last.` : "");
}

function countsOf(words) {
  const counts = new Map();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const sorted = [...counts].sort(([, one], [, other]) => other - one);
  const left = sorted.length - MOST_TEXTS;
  return [
    table("Texts, and how many nodes have each", ["Text", "Nodes"], sorted.slice(0, MOST_TEXTS)),
    left > 0 && h("p", null, `And ${counted(left, "other text")}.`),
  ];
}

/** How it is registered; admins may change and delete it here. */
function registration(page) {
  const said = h("dl", { class: "data-facts" });
  const place = h("div", { "data-role": "admin" });
  const open = (make) => {
    const close = () => {
      clear(place);
      edit.focus();
    };
    fill(place, make(page, close));
    place.querySelector("input, select, textarea, button").focus();
  };
  // Nothing can be changed before it is known what is stored.
  const edit = h("button", { type: "button", disabled: true, onclick: () => open(editForm) }, "Edit");
  const remove = h("button", { type: "button", disabled: true, onclick: () => open(removal) }, "Delete");
  const tools = h("div", { class: "actions", "data-role": "admin" }, edit, remove);
  const element = h("section", null, h("h2", null, "Registration"), said, tools, place);
  const show = () => {
    fill(said, facts(page.producer));
    edit.disabled = remove.disabled = false;
  };
  return { element, show };
}

function facts(producer) {
  const { kind, scope, replicas, cmd, unit, sha256, keep } = producer;
  const found = {
    Kind: kind,
    Scope: scope === "cluster" ? `cluster, ${counted(replicas, "replica")}` : scope,
    Command: cmd && h("code", null, cmd),
    Unit: unit,
    Interval: exactSpan(producer.time_max),
    Timeout: exactSpan(producer.timeout),
    "Stale after": exactSpan(producer.ttl),
    History: keep ? exactSpan(keep) : "none",
    "SHA-256": sha256 && h("code", null, sha256),
    Version: producer.version,
  };
  const given = Object.entries(found).filter(([, value]) => value !== "" && value !== null);
  return given.map(([term, value]) => [h("dt", null, term), h("dd", null, value)]);
}

/** The form that changes the registration, guarded by the version that it was opened with. */
function editForm(page, close) {
  const stored = page.producer;
  const fields = stored.kind === "emitted" ? WORD_FIELDS : REGISTRATION_FIELDS;
  const mine = new Set(fields.map((field) => field.name));
  const others = Object.fromEntries(Object.entries(stored).filter(([name]) => !mine.has(name)));
  let { version } = stored;
  const onSubmit = async (values) => {
    try {
      await put(`/producers${path(page.name)}`, { ...others, ...values }, { headers: ifMatch(version) });
    } catch (error) {
      if (error.status === 412) version = await newerVersion(page, version);
      throw explained(error, "saving again replaces it");
    }
    close();
    announce(`${page.name} is saved.`);
    await page.load();
  };
  const label = `Edit ${page.name}`;
  const draft = `${label}, version ${version}`;
  const made = form({ fields, values: stored, submit: "Save", label, draft, onSubmit, onCancel: close });
  return [h("h3", null, label), made.element];
}

/** The question before a name is forgotten. */
function removal(page, close) {
  const { name } = page;
  const problem = problemBox();
  let { version } = page.producer;
  const remove = async () => {
    problem.say(null);
    try {
      await del(`/producers${path(name)}`, { headers: ifMatch(version) });
    } catch (error) {
      if (error.status === 412) version = await newerVersion(page, version);
      problem.say(explained(error, "pressing again deletes it"));
      return;
    }
    announce(`${name} is deleted.`);
    if (!page.signal.aborted) location.hash = "#/data";
  };
  const values = counted(page.readings.size, "node");
  return [
    h("h3", null, `Delete ${name}?`),
    h("p", null, `Its registration, what it emits, its slots and its values on ${values} are forgotten, for good.`),
    problem.element,
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", onclick: close }, "Keep it"),
      h("button", { type: "button", class: "danger", onclick: remove }, `Delete ${name}`),
    ),
  ];
}

function ifMatch(version) {
  return { "If-Match": String(version) };
}

/** Show what somebody else has stored meanwhile; the version that the next try names. */
async function newerVersion(page, version) {
  await page.load();
  return page.producer?.version ?? version;
}

function explained(error, again) {
  if (error.status !== 412) return error;
  const message = `Somebody has changed it meanwhile: what is stored now stands above, and ${again}`;
  return new ApiError(error.status, error.code, message);
}

/** What it comes from and goes into, each a link. */
function relations(page) {
  const said = h("dl", { class: "data-facts" });
  const show = () => {
    const { producers, producer, name } = page;
    const naming = (list) => producers.filter((each) => each[list].includes(name)).map((each) => each.data_name);
    const found = {
      "Emitted by": naming("emits"),
      Emits: producer.emits,
      Reads: producer.inputs,
      "Read by": naming("inputs"),
    };
    const terms = Object.entries(found).map(([term, names]) => [h("dt", null, term), h("dd", null, links(names))]);
    fill(said, terms);
  };
  return { element: h("section", null, h("h2", null, "Comes from and goes into"), said), show };
}

function links(names) {
  if (!names.length) return "none";
  return h("ul", { class: "data-links" }, names.map((name) => h("li", null, h("a", { href: linkTo(name) }, name))));
}
