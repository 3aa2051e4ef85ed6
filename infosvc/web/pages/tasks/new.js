/**
 * The form for a new task.
 */

import { get, post } from "../../api.js";
import { announce, fill, h, heading } from "../../dom.js";
import { form } from "../../form.js";
import { may } from "../../session.js";
import { fieldsOf } from "./fields.js";
import { sent } from "./folder.js";
import { addressOf } from "./state.js";

/**
 * @param {HTMLElement} main
 * @param {{name: string}} params
 * @param {AbortSignal} signal
 */
export async function show(main, { name }, signal) {
  if (name !== "new") throw new Error(`There is no page at ${location.hash}: #/tasks lists the tasks`);
  const title = heading("New task");
  if (!may("user"))
    return fill(main, title, h("p", null, "Tasks are asked for with a token of role user: log in with one."));
  const place = h("div", null, h("p", { class: "quiet", role: "status" }, "Loading\u2026"));
  fill(main, title, h("p", null, h("a", { href: "#/tasks" }, "All tasks")), place);
  const { definitions } = await get("/swagger.json", { signal });
  const asked = form({
    fields: fieldsOf(definitions.TaskSpec),
    submit: "Ask for it",
    label: "New task",
    draft: "new task",
    onSubmit: (values) => submitted(values, signal),
  });
  fill(place, asked.element);
  return undefined;
}

async function submitted({ files, ...spec }, signal) {
  const body = files ? { ...spec, files: await sent(files, signal) } : spec;
  const task = await post("/tasks", body, { signal });
  announce(`${task.name} was asked for.`);
  location.hash = addressOf(task.task_id);
}
