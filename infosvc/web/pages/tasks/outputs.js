/**
 * The files that a task left, each of which can be saved.
 */

import { call, following, get, isAbort, path } from "../../api.js";
import { counted, fill, h, problemBox, setText, table } from "../../dom.js";
import { saved } from "../../log_view.js";
import { numberText } from "../../scale.js";
import { moment } from "../jobs.js";

/**
 * A section with the files, once the task has succeeded; it is hidden if the task names no output.
 *
 * @param {string} id of the task
 * @param {AbortSignal} signal
 * @returns {{element: HTMLElement, draw: (task: any) => void}}
 */
export function outputs(id, signal) {
  const problem = problemBox();
  const place = h("div", null);
  const element = h(
    "section",
    { "aria-label": "Outputs", hidden: true },
    h("h2", null, "Outputs"),
    problem.element,
    place,
  );
  let asked = false;
  const draw = async (task) => {
    element.hidden = task.spec.output === null || task.state !== "succeeded";
    if (element.hidden || asked) return;
    asked = true;
    try {
      fill(place, listed(await get(path("tasks", id, "outputs"), { signal }), id, problem, signal));
    } catch (error) {
      asked = false;
      if (!isAbort(error)) problem.say(error);
    }
  };
  return { element, draw };
}

function listed({ output, files, whole }, id, problem, signal) {
  const more = whole ? "" : " There are more; `nodewise task outputs get` fetches any of them.";
  const words = h("p", null, `${counted(files.length, "file")} below ${output}.${more}`);
  const rows = files.map((file) => [
    file.path,
    numberText(file.size_bytes, "bytes"),
    moment(file.modified_at),
    saveButton(file, id, problem, signal),
  ]);
  return files.length ? [words, table("Files that the task left", ["File", "Size", "Written", "Save"], rows)] : words;
}

function saveButton(file, id, problem, signal) {
  const button = h("button", { type: "button", "aria-label": `Save ${file.path}` }, "Save");
  button.addEventListener("click", async () => {
    if (button.getAttribute("aria-busy")) return;
    button.setAttribute("aria-busy", "true");
    problem.say(null);
    try {
      const tell = (share) => setText(button, `${Math.floor(100 * share)} %`);
      saved(await fetched(file, id, tell, signal), file.path.split("/").at(-1));
    } catch (error) {
      if (!isAbort(error)) problem.say(error);
    } finally {
      button.removeAttribute("aria-busy");
      setText(button, "Save");
    }
  });
  return button;
}

/** The pieces of a file one after the other, as the header Link names them. */
async function fetched(file, id, tell, signal) {
  const where = path("tasks", id, "outputs", "file");
  const pieces = [];
  let got = 0;
  for (let query = `?${new URLSearchParams({ path: file.path })}`; query;) {
    const { headers, body } = await call("GET", where + query, undefined, { signal, as: "blob" });
    pieces.push(body);
    got += body.size;
    tell(got / Math.max(file.size_bytes, 1));
    query = following(headers);
  }
  return new Blob(pieces);
}
