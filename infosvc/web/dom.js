/**
 * Building what is on the page. Text always goes in as text nodes, so no value can become markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {Node | string | number | null | undefined | false | Child[]} Child
 *   what may stand inside an element; null, undefined and false stand for nothing, arrays for their members
 */

/**
 * An HTML element.
 *
 * `attrs`: `onclick: fn` (any `on...` with a function) listens; `class: "a b"` or `class: ["a", wanted && "b"]`;
 * `dataset: {name: "n1"}`; `style: {"--share": "0.4"}` (an object only: the page's policy forbids style text);
 * `value`, `checked`, `selected` and `disabled` set the property; true sets an empty attribute; null, undefined and
 * false leave it out; all else is an attribute.
 *
 * @example h("button", {type: "button", class: "quiet", onclick: stop}, "Stop")
 * @param {string} tag
 * @param {Record<string, any> | null} [attrs]
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function h(tag, attrs, ...children) {
  return built(document.createElement(tag), attrs, children);
}

/**
 * An SVG element; arguments as for `h`.
 *
 * @param {string} tag
 * @param {Record<string, any> | null} [attrs]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(tag, attrs, ...children) {
  return built(document.createElementNS(SVG, tag), attrs, children);
}

/**
 * Empty an element.
 *
 * @template {Element} E
 * @param {E} element
 * @returns {E} the same element
 */
export function clear(element) {
  element.replaceChildren();
  return element;
}

/**
 * Put these children in the place of all that an element held.
 *
 * @template {Element} E
 * @param {E} element
 * @param {...Child} children
 * @returns {E} the same element
 */
export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(isThere).map(asNode));
  return element;
}

const drawn = new WeakMap();

/**
 * As `fill`, but nothing is drawn when it would look the same, and a link or button that has the focus keeps it.
 *
 * @param {Element} element
 * @param {...Child} children
 */
export function refill(element, ...children) {
  const fresh = h("div", null, children);
  const look = fresh.innerHTML;
  if (drawn.get(element) === look) return;
  drawn.set(element, look);
  const held = element.contains(document.activeElement) ? document.activeElement : null;
  const alike = () => [...element.querySelectorAll("a, button")].filter((one) => isAlike(one, held));
  const place = held ? alike().indexOf(held) : -1;
  element.replaceChildren(...fresh.childNodes);
  if (place >= 0) alike()[place]?.focus({ preventScroll: true });
}

/**
 * As `fill`, without taking the keyboard, or the place in its first table, from who is at work there.
 *
 * @param {Element} element
 * @param {...Child} children
 */
export function redraw(element, ...children) {
  const held = element.contains(document.activeElement);
  const { scrollLeft = 0, scrollTop = 0 } = element.querySelector(".scroll") ?? {};
  fill(element, children);
  const region = element.querySelector(".scroll");
  if (region) Object.assign(region, { scrollLeft, scrollTop });
  if (held) region?.focus({ preventScroll: true });
}

/** Whether two links lead to the same page, or two buttons say the same. */
function isAlike(one, other) {
  const address = one.getAttribute("href");
  return address === other.getAttribute("href") && (address !== null || one.textContent === other.textContent);
}

/**
 * Set an element's text, only when it differs, so that a screen reader does not hear the same again.
 *
 * @param {Element} element
 * @param {string | number} text
 */
export function setText(element, text) {
  const wanted = String(text);
  if (element.textContent !== wanted) element.textContent = wanted;
}

/**
 * Say something to who cannot see the change; it goes into the page's one polite live region.
 *
 * What is said twice gets a blank that nobody hears, because a region is only read out when its text is another one.
 *
 * @param {string} text
 */
export function announce(text) {
  const region = document.getElementById("live");
  if (region) region.textContent = region.textContent === text ? `${text}\u00a0` : text;
}

/**
 * The page's only h1, which takes the focus when a page opens (the router does that).
 *
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function heading(...children) {
  return h("h1", { tabindex: "-1" }, ...children);
}

/**
 * A box for what went wrong beside the thing that was pressed: `say(error)` shows it, `say(null)` hides it.
 *
 * The box has role alert, so it is read out. Give `say` a string or anything that was thrown.
 *
 * @returns {{element: HTMLElement, say: (problem: unknown) => void}}
 */
export function problemBox() {
  const element = h("p", { class: "problem", role: "alert", hidden: true });
  const say = (problem) => {
    element.hidden = !problem;
    setText(element, problem ? messageOf(problem) : "");
  };
  return { element, say };
}

/**
 * A table with a caption and a header row; cells may be text or elements.
 *
 * The first cell of a row is its header (`th scope=row`). It scrolls sideways on a narrow screen.
 *
 * @param {string} caption
 * @param {Child[]} columns
 * @param {Child[][]} rows
 * @returns {HTMLElement}
 */
export function table(caption, columns, rows) {
  const head = h("tr", null, columns.map((column) => h("th", { scope: "col" }, column)));
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", null, h("caption", null, caption), h("thead", null, head), h("tbody", null, rows.map(row))),
  );
}

/**
 * One row as `table` makes it, for those who add rows later.
 *
 * @param {Child[]} cells
 * @returns {HTMLElement}
 */
export function row([first, ...others]) {
  return h("tr", null, h("th", { scope: "row" }, first), others.map((cell) => h("td", null, cell)));
}

/**
 * A name and what is known under it, for a list of facts (`dl`).
 *
 * @param {[Child, Child]} fact
 * @returns {HTMLElement}
 */
export function fact([name, value]) {
  return h("div", null, h("dt", null, name), h("dd", null, value));
}

/**
 * "1 node", "2 nodes".
 *
 * @param {number} count
 * @param {string} one
 * @param {string} [many] the plural when it is not `one` and an s
 * @returns {string}
 */
export function counted(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

/**
 * What a thrown thing says, as it says it: a sentence may begin with a name, which a capital would make another one.
 *
 * @param {unknown} problem an ApiError, any other error, or text
 * @returns {string}
 */
export function messageOf(problem) {
  if (typeof problem === "string") return problem;
  return problem instanceof Error && problem.message ? problem.message : "Something went wrong";
}

function built(element, attrs, children) {
  for (const [name, value] of Object.entries(attrs ?? {})) setAttr(element, name, value);
  element.append(...children.flat(Infinity).filter(isThere).map(asNode));
  return element;
}

const PROPERTIES = new Set(["value", "checked", "selected", "disabled"]);

function setAttr(element, name, value) {
  if (!isThere(value)) return;
  if (name.startsWith("on")) {
    element.addEventListener(name.slice(2), value);
  } else if (name === "class") {
    element.setAttribute("class", [value].flat().filter(Boolean).join(" "));
  } else if (name === "dataset") {
    Object.assign(element.dataset, value);
  } else if (name === "style") {
    for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
  } else if (PROPERTIES.has(name) && name in element) {
    element[name] = value;
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function isThere(child) {
  return child !== null && child !== undefined && child !== false;
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}
