/**
 * The small form in a slot's row that sets how often the slot runs.
 */

import { h } from "../dom.js";

/**
 * The form; `offer(interval)` says what is stored, which stands in the field unless something else was typed there.
 *
 * @param {string} name of the producer
 * @param {(interval: number) => void} save
 * @returns {{element: HTMLElement, offer: (interval: number) => void}}
 */
export function intervalForm(name, save) {
  const id = `interval-${name}`;
  const input = h("input", { id, type: "number", min: "0", step: "any", required: true });
  const element = h(
    "form",
    { class: "inline" },
    h("label", { for: id, class: "unseen" }, `Seconds between runs of ${name}`),
    input,
    " s ",
    h("button", { "aria-label": `Change the interval of ${name}` }, "Set interval"),
  );
  element.addEventListener("submit", (event) => {
    event.preventDefault();
    save(Number(input.value));
  });
  let stored = null;
  const offer = (interval) => {
    // Slots are read again every few seconds: what is typed must outlive that on its way to the button.
    const typed = stored !== null && Number(input.value) !== stored;
    if (!typed && document.activeElement !== input) input.value = interval;
    stored = interval;
  };
  return { element, offer };
}
