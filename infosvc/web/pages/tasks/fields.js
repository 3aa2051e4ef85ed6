/**
 * The fields of the form for a new task, made from the schema by which the service judges it.
 */

const MORE = "More";
const LISTS = { nodes: "names", not_nodes: "names", after: "names", data: "lines", devices: "names", argv: "words" };
/** What programs set for each other: no person types it. */
const NOT_TYPED = new Set(["array", "at_once", "commit", "changes"]);
const FIRST = ["argv", "name", "files", "memory_mb", "vcores", "output"];
const LABELS = {
  argv: "Program and arguments",
  files: "Folder",
  memory_mb: "Memory in MB",
  vcores: "Cores",
  gpus: "GPUs",
  gpu_model: "GPU model",
  gpu_memory_mb: "GPU memory in MB",
  gpu_capability: "GPU compute capability",
  not_nodes: "Not on nodes",
};
const HINTS = {
  argv: "as one types it: python3 train.py --epochs 5. No shell reads it; quotes keep blanks together",
  files: "that the program finds beside it. It is sent when you press the button",
  variables: "environment variables of the program, a line NAME=VALUE each",
};

/**
 * A field for all that one may ask for, the usual ones first, all others in a part that opens.
 *
 * @param {Record<string, any>} definition the schema of a task: its properties with description, type and limits
 * @returns {import("../../form.js").Field[]}
 */
export function fieldsOf({ properties, required }) {
  const names = Object.keys(properties).filter((name) => !NOT_TYPED.has(name));
  const others = names.filter((name) => !FIRST.includes(name));
  return [...FIRST.filter((name) => name in properties), ...others].map((name) => ({
    name,
    label: LABELS[name] ?? labelOf(name),
    kind: kindOf(name, properties[name]),
    hint: HINTS[name] ?? hintOf(properties[name]),
    required: required.includes(name),
    group: FIRST.includes(name) ? undefined : MORE,
  }));
}

function kindOf(name, { type }) {
  if (name === "files") return "folder";
  if (type === "integer" || type === "number") return "number";
  if (type === "object") return "pairs";
  if (type === "boolean") return "flag";
  return type === "array" ? (LISTS[name] ?? "lines") : "text";
}

function labelOf(name) {
  const words = name.replaceAll("_", " ");
  return words[0].toUpperCase() + words.slice(1);
}

/** The description, and what holds if the field stays empty. */
function hintOf({ description, default: usual }) {
  const isPlain = ["string", "number"].includes(typeof usual) && usual !== "";
  return isPlain ? `${description}; ${usual} if left out` : description;
}
