/**
 * A form made from a description of its fields, which shows what the service refuses beside the field it names.
 *
 * The service is the only judge of what may stand in a field: text that is not a number is sent as it was typed, so
 * that its sentence about them is the one that is read. What was typed always stays.
 */

import { fill, h, messageOf, problemBox } from "./dom.js";
import { asTyped as asWords, wordsOf } from "./words.js";

/**
 * @typedef {object} Field
 * @property {string} name as the service calls it, in the body and in its errors
 * @property {string} label
 * @property {"text" | "long" | "number" | "names" | "lines" | "words" | "pairs" | "choice" | "flag" | "folder"} kind `long`
 *   is text of several lines, `names` a list, `lines` a list that may hold blanks, `words` a list as one types it into a
 *   shell, `pairs` NAME=VALUE lines, `flag` yes or no, `folder` a list of files
 * @property {string} [hint] what may stand there and what happens without it
 * @property {string[]} [options] of a choice
 * @property {boolean} [required]
 * @property {string} [group] what is not always needed stands in a part of that name, which is closed at first
 * @property {(values: Record<string, any>) => boolean} [when] whether it applies, by the other values; always if left
 *   out. What does not apply is hidden and not sent
 */

/**
 * @typedef {object} Form
 * @property {HTMLFormElement} element
 * @property {() => Record<string, any>} values what is typed now, empty and hidden fields left out
 * @property {(problem: unknown) => void} refuse show an error beside its field or, without one, below the form
 */

let made = 0; // forms on the page so far, which keeps ids apart

// What was typed and is not sent yet, by the key of its form: a page is drawn anew when a session ends.
const drafts = new Map();

/**
 * A form; `onSubmit` gets the values and may throw, which is then shown.
 *
 * @param {object} asked
 * @param {Field[]} asked.fields
 * @param {Record<string, any>} [asked.values] what stands in the fields at first
 * @param {string} asked.submit what the button says
 * @param {(values: Record<string, any>) => Promise<void>} asked.onSubmit
 * @param {() => void} [asked.onCancel] adds a button that calls it
 * @param {string} [asked.label] what the form is for, read out when it is entered
 * @param {string} [asked.draft] key under which what is typed is kept until it is sent or cancelled
 * @returns {Form}
 */
export function form({ fields, values = {}, submit, onSubmit, onCancel, label, draft }) {
  made += 1;
  const parts = fields.map((field) => part(field, values[field.name], `form-${made}-${field.name}`));
  const problem = problemBox();
  const element = h("form", { class: "form", novalidate: true, "aria-label": label });
  const found = () => valuesOf(parts);
  const refuse = (thrown) => showRefusal(parts, problem, thrown);
  restore(parts, draft);
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (element.getAttribute("aria-busy") === "true") return;
    await send({ element, parts, problem, refuse, onSubmit, draft, values: found() });
  });
  element.addEventListener("input", () => {
    showWhatApplies(parts);
    if (draft) drafts.set(draft, new Map(parts.map((each) => [each.field.name, each.control.value])));
  });
  const leave = () => {
    drafts.delete(draft);
    onCancel();
  };
  const cancel = onCancel && h("button", { type: "button", onclick: leave }, "Cancel");
  const buttons = h("div", { class: "actions" }, h("button", { class: "primary" }, submit), cancel);
  fill(element, grouped(parts), problem.element, buttons);
  showWhatApplies(parts);
  return { element, values: found, refuse };
}

function restore(parts, draft) {
  const typed = drafts.get(draft);
  for (const { field, control } of parts) {
    if (field.kind !== "folder") control.value = typed?.get(field.name) ?? control.value; // no page may choose files
  }
}

/** The fields in their order, those of a group together in a part that opens. */
function grouped(parts) {
  return [...Map.groupBy(parts, ({ field }) => field.group ?? "")].map(([group, members]) => {
    const elements = members.map((each) => each.element);
    if (!group) return elements;
    const open = members.some(({ field, control }) => !CHOSEN.has(field.kind) && control.value);
    return h("details", { class: "form-group", open }, h("summary", null, group), h("div", { class: "form" }, elements));
  });
}

async function send({ element, parts, problem, refuse, onSubmit, draft, values }) {
  problem.say(null);
  parts.forEach((each) => sayBeside(each, null));
  // Not `disabled`: the button would lose the focus, and with it the place of who works by keyboard.
  element.setAttribute("aria-busy", "true");
  try {
    await onSubmit(values);
    drafts.delete(draft);
  } catch (thrown) {
    refuse(thrown);
  } finally {
    element.removeAttribute("aria-busy");
  }
}

/** One field with its label, hint, control and the place for what is wrong with it. */
function part(field, value, id) {
  const hintId = field.hint ? `${id}-hint` : null;
  const error = h("p", { class: "form-error", id: `${id}-error`, hidden: true });
  const control = controlOf(field, value, { id, name: field.name, "aria-describedby": hintId });
  const mark = field.required && h("span", { class: "form-required" }, " (required)");
  const element = h(
    "div",
    { class: "form-field" },
    h("label", { for: id }, field.label, mark),
    field.hint && h("p", { class: "form-hint", id: hintId }, field.hint),
    control,
    error,
  );
  return { field, element, control, error, hintId };
}

function controlOf(field, value, attrs) {
  const given = { ...attrs, required: field.required };
  const typed = asTyped(field, value);
  if (CHOSEN.has(field.kind)) {
    const options = optionsOf(field).map((each) => h("option", { value: each, selected: each === typed }, each));
    return h("select", given, options);
  }
  if (field.kind === "folder") return h("input", { ...given, type: "file", webkitdirectory: true });
  const plain = { ...given, autocomplete: "off", spellcheck: field.kind === "long" ? null : "false" };
  if (SEVERAL_LINES.has(field.kind)) return h("textarea", { ...plain, rows: "3", value: typed });
  return h("input", { ...plain, type: "text", inputmode: field.kind === "number" ? "decimal" : null, value: typed });
}

const CHOSEN = new Set(["choice", "flag"]);
const SEVERAL_LINES = new Set(["long", "names", "lines", "pairs"]);

const optionsOf = (field) => (field.kind === "flag" ? ["no", "yes"] : field.options);

function asTyped(field, value) {
  if (value === null || value === undefined) return CHOSEN.has(field.kind) ? optionsOf(field)[0] : "";
  if (field.kind === "flag") return value ? "yes" : "no";
  if (field.kind === "words") return asWords(value);
  if (field.kind === "pairs") return Object.entries(value).map((pair) => pair.join("=")).join("\n");
  return Array.isArray(value) ? value.join("\n") : String(value);
}

function valuesOf(parts) {
  const found = parts.filter((each) => !each.element.hidden).map((each) => [each.field.name, valueOf(each)]);
  return Object.fromEntries(found.filter(([, value]) => value !== undefined));
}

/** What is typed as JSON has it; undefined for nothing, so that the service's default holds. */
function valueOf({ field, control }) {
  if (field.kind === "folder") return control.files.length ? [...control.files] : undefined;
  const typed = control.value.trim();
  return typed ? AS_JSON[field.kind](typed) : undefined;
}

const lines = (typed) => typed.split("\n").map((line) => line.trim()).filter(Boolean);

/** By kind; what cannot be read stays as it was typed, and the service refuses it. */
const AS_JSON = {
  text: (typed) => typed,
  long: (typed) => typed,
  choice: (typed) => typed,
  flag: (typed) => typed === "yes",
  number: (typed) => (Number.isFinite(Number(typed)) ? Number(typed) : typed),
  names: (typed) => typed.split(/[\s,]+/).filter(Boolean),
  lines,
  words: (typed) => wordsOf(typed) ?? typed,
  pairs: (typed) => Object.fromEntries(lines(typed).map((line) => /^([^=]*)=?([^]*)$/.exec(line).slice(1))),
};

function showWhatApplies(parts) {
  const values = Object.fromEntries(parts.map((each) => [each.field.name, valueOf(each)]));
  for (const { field, element } of parts) element.hidden = field.when ? !field.when(values) : false;
}

/** An error names a field as `inputs[2]`, too: its list is what stands in the form. */
function showRefusal(parts, problem, thrown) {
  const name = thrown?.field?.split("[")[0];
  const wrong = parts.find((each) => each.field.name === name && !each.element.hidden);
  if (!wrong) {
    problem.say(thrown);
    return;
  }
  sayBeside(wrong, thrown);
  const group = wrong.element.closest("details");
  if (group) group.open = true;
  wrong.control.focus();
}

function sayBeside({ control, error, hintId }, thrown) {
  error.hidden = !thrown;
  error.textContent = thrown ? messageOf(thrown) : "";
  if (thrown) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
  const described = [hintId, thrown && error.id].filter(Boolean).join(" ");
  if (described) control.setAttribute("aria-describedby", described);
  else control.removeAttribute("aria-describedby");
}
