/**
 * A question before something is done that cannot be taken back.
 */

import { fill, h } from "./dom.js";

/**
 * Ask, and do it once somebody says yes; the answer that changes nothing has the focus.
 *
 * @param {object} question
 * @param {string} question.title
 * @param {string} question.text what will be done, and to what
 * @param {string} question.yes what the button says that does it
 * @param {string} question.no
 * @param {() => void} act
 * @param {AbortSignal} signal takes the question away
 */
export function confirmed({ title, text, yes, no }, act, signal) {
  const dialog = h("dialog", { "aria-labelledby": "question-title" });
  const agreed = () => {
    dialog.close();
    act();
  };
  fill(
    dialog,
    h("h2", { id: "question-title" }, title),
    h("p", null, text),
    h(
      "div",
      { class: "actions" },
      h("button", { type: "button", class: "danger", onclick: agreed }, yes),
      h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, no),
    ),
  );
  dialog.addEventListener("close", () => dialog.remove());
  signal.addEventListener("abort", () => dialog.close(), { once: true });
  document.body.append(dialog);
  dialog.showModal();
}
