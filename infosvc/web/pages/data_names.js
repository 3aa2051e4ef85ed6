/**
 * All data names: how each is registered, who makes it from what, and on how many nodes it has a value.
 */

import { spanText } from "../age.js";
import { ApiError, get, isAbort, isPassing, path, put } from "../api.js";
import { producerGraph } from "../pictures/dag.js";
import { announce, clear, counted, fill, h, heading, problemBox, row, setText, table } from "../dom.js";
import { form } from "../form.js";
import { watchProducers } from "../live.js";
import { latestOnly } from "../poll.js";

// The same as NAME in infosvc/wire/records.py: another text cannot even be asked for, since it is a part of the address.
const NAME = /^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$/;
const NAMES_PER_CALL = 20; // values of so many names are asked for together
const COLUMNS = [
  "Name",
  "Kind",
  "Scope",
  "Unit",
  "Interval",
  "Timeout",
  "Comes from",
  "Values",
];

const inSlot = ({ kind }) => kind !== "program";

/**
 * The fields that may be changed of a name that another producer emits.
 *
 * @type {import("../form.js").Field[]}
 */
export const WORD_FIELDS = [
  { name: "unit", label: "Unit", kind: "text", hint: "A base unit, for example bytes, seconds or ratio." },
  { name: "help", label: "What the value says", kind: "long" },
  {
    name: "ttl",
    label: "Stale after seconds",
    kind: "number",
    hint: "Older values are marked as stale; three intervals if left empty. Called ttl in messages.",
  },
  {
    name: "keep",
    label: "History in seconds",
    kind: "number",
    hint: "How long values are kept; none are if left empty. Called keep in messages.",
  },
];

/**
 * What can be said of a producer, as fields of a form; the names are those of PUT /producers/{data_name}.
 *
 * @type {import("../form.js").Field[]}
 */
export const REGISTRATION_FIELDS = [
  {
    name: "kind",
    label: "Kind",
    kind: "choice",
    options: ["collector", "processor", "program"],
    hint: "Collectors and processors run in slots on nodes; a program writes when it likes.",
  },
  {
    name: "cmd",
    label: "Command",
    kind: "text",
    hint: "An absolute path, or one below what is pushed to the nodes, and its arguments; a program needs none.",
  },
  {
    name: "time_max",
    label: "Interval in seconds",
    kind: "number",
    required: true,
    hint: "Between two runs; called time_max in messages.",
  },
  {
    name: "scope",
    label: "Scope",
    kind: "choice",
    options: ["node", "cluster"],
    hint: "On every node, or on as many of the cluster as it has replicas.",
  },
  {
    name: "replicas",
    label: "Replicas",
    kind: "number",
    hint: "On how many nodes it runs; 1 if left empty.",
    when: ({ scope }) => scope === "cluster",
  },
  { name: "timeout", label: "Timeout in seconds", kind: "number", hint: "Until a run is killed; 10 if left empty." },
  ...WORD_FIELDS,
  {
    name: "sha256",
    label: "SHA-256",
    kind: "text",
    hint: "Checksum that the command's file must have; any if left empty.",
  },
  {
    name: "emits",
    label: "Emits",
    kind: "names",
    hint: "Names of which a run prints lines, with spaces or line breaks between them.",
    when: inSlot,
  },
  {
    name: "inputs",
    label: "Inputs",
    kind: "names",
    hint: "Names whose changes run it at once, with spaces or line breaks between them.",
    when: inSlot,
  },
];

/**
 * Fill `main` with the table, the graph and, for admins, the form to register a new name.
 *
 * @param {HTMLElement} main
 * @param {object} _params none
 * @param {AbortSignal} signal
 */
export async function show(main, _params, signal) {
  const problem = problemBox();
  const list = nameTable();
  const graph = h("div");
  const load = latestOnly((current) => read({ list, graph, problem, current, signal }));
  const readAgain = async () => {
    await load();
    if (problem.element.hidden && !signal.aborted) announce("Read again; the table is up to date.");
  };
  const again = h("button", { type: "button", onclick: readAgain }, "Read again");
  const register = registering(signal);
  fill(
    main,
    heading("Data names"),
    h("p", null, "What the service knows of each node, and which program brings it."),
    h("div", { class: "data-tools" }, list.filter, again, register.button),
    register.place,
    list.status,
    problem.element,
    list.element,
    h("section", null, h("h2", null, "Who makes what from what"), graph),
  );
  watchProducers(load, signal);
}

/** Read all that is shown; whether that need not be tried again. */
async function read({ list, graph, problem, current, signal }) {
  try {
    const { producers } = await get("/producers", { signal });
    if (!current()) return true;
    // Drawing anew takes the focus away, so it is done only for something new.
    if (list.show(producers)) fill(graph, producerGraph(producers, linkTo));
    await countValues(producers, list.count, current, signal);
    problem.say(null);
    return true;
  } catch (error) {
    if (isAbort(error) || !current()) return true;
    problem.say(error);
    list.missed();
    return !isPassing(error);
  }
}

/**
 * Where the page of one name is.
 *
 * @param {string} name
 * @returns {string}
 */
export function linkTo(name) {
  return `#/data/${encodeURIComponent(name)}`;
}

/** The table with its filter; `show` tells whether the producers are new, `count` says one name's number of values. */
function nameTable() {
  const element = table("Registered data names", COLUMNS, []);
  const body = element.querySelector("tbody");
  const status = h("p", { role: "status" }, "Reading…");
  const input = h("input", { id: "data-filter", type: "search", autocomplete: "off", spellcheck: "false" });
  let entries = [];
  let before = "";
  const narrow = () => {
    if (!before) return;
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const entry of entries) entry.row.hidden = !words.every((word) => entry.text.includes(word));
    const left = entries.filter((entry) => !entry.row.hidden).length;
    setText(status, left === entries.length ? counted(left, "name") : `${left} of ${counted(entries.length, "name")}`);
  };
  input.addEventListener("input", narrow);
  return {
    element,
    status,
    filter: h("div", { class: "data-filter" }, h("label", { for: "data-filter" }, "Show names with"), input),
    show(producers) {
      const now = JSON.stringify(producers);
      if (now === before) return false;
      before = now;
      entries = entriesOf(producers);
      const at = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      fill(body, entries.map((entry) => entry.row));
      if (at) body.querySelector(`a[href="${CSS.escape(at)}"]`)?.focus();
      narrow();
      return true;
    },
    missed() {
      if (!before) setText(status, "");
    },
    count(name, said) {
      const entry = entries.find((each) => each.name === name);
      if (entry) setText(entry.values, said);
    },
  };
}

function entriesOf(producers) {
  const emitters = new Map(producers.flatMap(({ data_name: name, emits }) => emits.map((each) => [each, name])));
  return producers.map((producer) => {
    const { data_name: name, kind, scope, unit, help, inputs } = producer;
    const emitter = emitters.get(name);
    const values = h("span", null, "…");
    const cells = [
      [link(name), h("p", { class: "data-help" }, help)],
      kind,
      scope === "cluster" ? `cluster, ${counted(producer.replicas, "replica")}` : scope,
      unit,
      spanText(producer.time_max),
      spanText(producer.timeout),
      [emitter, ...inputs].filter(Boolean).map((each, at) => [at > 0 && ", ", link(each)]),
      values,
    ];
    const text = [name, kind, scope, unit, help, emitter, ...inputs].join(" ").toLowerCase();
    return { name, values, text, row: row(cells) };
  });
}

function link(name) {
  return h("a", { href: linkTo(name) }, name);
}

/** Ask for the values of a few names at a time, so that a large cluster's first numbers come at once. */
async function countValues(producers, count, current, signal) {
  const names = producers.map((producer) => producer.data_name);
  for (let at = 0; at < names.length && current(); at += NAMES_PER_CALL) {
    const { data } = await get("/data", { params: { name: names.slice(at, at + NAMES_PER_CALL) }, signal });
    for (const { data_name: name, values } of data) count(name, saidOf(values));
  }
}

function saidOf(values) {
  const known = values.filter((value) => value.data_value !== null);
  const parts = ["stale", "failed"].map((state) => [known.filter((value) => value.state === state).length, state]);
  return [String(known.length), ...parts.filter(([number]) => number).map((part) => part.join(" "))].join(", ");
}

/** A button for admins, and the place where it opens the form. */
function registering(signal) {
  const place = h("div", { "data-role": "admin" });
  const button = h("button", { type: "button", "data-role": "admin", "aria-expanded": "false" }, "Register a name");
  const turn = (open) => {
    button.setAttribute("aria-expanded", String(open));
    if (!open) {
      clear(place);
      button.focus();
      return;
    }
    const made = registerForm(() => turn(false), signal);
    fill(place, h("h2", null, "Register a data name"), made);
    made.querySelector("input").focus();
  };
  button.addEventListener("click", () => turn(button.getAttribute("aria-expanded") !== "true"));
  return { button, place };
}

function registerForm(close, signal) {
  const name = {
    name: "data_name",
    label: "Name",
    kind: "text",
    required: true,
    hint: "Letters, digits and _.:- only, starting with a letter or _.",
  };
  const onSubmit = async ({ data_name: dataName = "", ...body }) => {
    if (!NAME.test(dataName)) {
      throw new ApiError(422, "invalid_input", `${JSON.stringify(dataName)} is not a name: ${name.hint}`, name.name);
    }
    await register(dataName, body);
    announce(`${dataName} is registered.`);
    if (!signal.aborted) location.hash = linkTo(dataName);
  };
  const fields = [name, ...REGISTRATION_FIELDS];
  const label = "Register a data name";
  return form({ fields, submit: "Register", label, draft: "register", onSubmit, onCancel: close }).element;
}

/** A name that is taken comes back as a header that did not hold, which is the field of the name here. */
async function register(name, body) {
  try {
    await put(`/producers${path(name)}`, body, { headers: { "If-None-Match": "*" } });
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 412)) throw error;
    throw new ApiError(error.status, error.code, error.message, "data_name");
  }
}
