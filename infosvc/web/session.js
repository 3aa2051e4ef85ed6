/**
 * Who is logged in, what they may do, and the dialog to log in with a token.
 *
 * Elements with `data-role="admin"` (or user, scheduler, processor) are hidden by style.css unless that role may act, so
 * elements that are made later need no call. The service checks every call again; hiding is only a courtesy.
 */

import { UNAUTHORIZED, del, get, post, setCsrfToken } from "./api.js";
import { announce, fill, h, problemBox } from "./dom.js";

/** Dispatched on `document` when somebody else is logged in, or the role has changed: `detail` is the Session. */
export const SESSION = "nodewise:session";

const WHERE = "/session";
const AGAIN_MS = 5_000;

// Which roles may do what takes one of these; the same as MAY in infosvc/access/roles.py.
const MAY = {
  reader: ["reader", "agent", "processor", "scheduler", "user", "submitter", "task", "admin"],
  processor: ["processor", "scheduler", "admin"],
  scheduler: ["scheduler", "admin"],
  user: ["user", "admin"],
  submitter: ["submitter", "admin"],
  admin: ["admin"],
};

/**
 * @typedef {object} Session
 * @property {string} name "anonymous" when nobody is logged in
 * @property {"reader" | "agent" | "processor" | "scheduler" | "user" | "submitter" | "task" | "admin" | null} role null: reading takes a token, too
 * @property {string | null} csrf_token null when nobody is logged in
 * @property {number | null} [expires_at] Unix seconds
 * @property {boolean} [takes_tickets] whether a ticket of Kerberos logs in
 */

/** @type {Session} */
let current = { name: "anonymous", role: null, csrf_token: null, expires_at: null };

/**
 * The session as last heard from the service.
 *
 * @returns {Session}
 */
export function session() {
  return current;
}

/**
 * Whether who is logged in may do what takes this role; an admin may do everything.
 *
 * @param {"reader" | "processor" | "scheduler" | "user" | "submitter" | "admin"} role
 * @returns {boolean}
 */
export function may(role) {
  return (MAY[role] ?? []).includes(current.role);
}

/**
 * Whether somebody is logged in with a token.
 *
 * @returns {boolean}
 */
export function isLoggedIn() {
  return current.csrf_token !== null && current.csrf_token !== undefined;
}

/**
 * Call `listener(session)` after each change of who is logged in, until `signal` aborts.
 *
 * @param {(session: Session) => void} listener
 * @param {AbortSignal} [signal]
 */
export function onSession(listener, signal) {
  document.addEventListener(SESSION, (event) => listener(event.detail), { signal });
}

/**
 * Ask the service who this is, and show it; throws ApiError when it does not answer.
 *
 * @returns {Promise<Session>}
 */
export async function refresh() {
  const found = await get(WHERE);
  take(found);
  return found;
}

/**
 * Show a button and a name in `place` (the page's header), and watch for sessions that end.
 *
 * @param {Element} place
 * @returns {Promise<void>} settled when it is known who this is
 */
export async function startSession(place) {
  const draw = () => drawHeader(place);
  onSession(draw);
  document.addEventListener(UNAUTHORIZED, sessionEnded);
  draw();
  await firstLook();
}

/** Until it is known who this is; meanwhile the page says what is wrong, and reading may be open to all. */
async function firstLook() {
  try {
    await refresh();
  } catch {
    setTimeout(firstLook, AGAIN_MS);
  }
}

/**
 * Open the dialog that asks for a token; `why` is a sentence above the field.
 *
 * @param {string} [why]
 */
export function openLogin(why = "") {
  const dialog = loginDialog(why);
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}

/**
 * End the session.
 *
 * @returns {Promise<void>} throws ApiError when the service refuses
 */
export async function logOut() {
  await del(WHERE);
  setCsrfToken(null);
  await refresh();
  announce("Logged out.");
}

function take(found) {
  const changed = found.name !== current.name || found.role !== current.role;
  if (found.role !== null) asked = false;
  current = found;
  setCsrfToken(found.csrf_token ?? null);
  for (const role of Object.keys(MAY)) document.documentElement.classList.toggle(`may-${role}`, may(role));
  if (changed) document.dispatchEvent(new CustomEvent(SESSION, { detail: found }));
}

function drawHeader(place) {
  const held = place.contains(document.activeElement);
  drawWho(place);
  if (held) place.querySelector("button").focus(); // the one that was pressed is gone
}

function drawWho(place) {
  const problem = problemBox();
  if (!isLoggedIn()) {
    fill(place, h("button", { type: "button", onclick: () => openLogin() }, "Log in"));
    return;
  }
  const leave = () => logOut().catch(problem.say);
  fill(
    place,
    h("span", { class: "who" }, h("span", null, current.name), `, ${current.role}`),
    h("button", { type: "button", onclick: leave }, "Log out"),
    problem.element,
  );
}

function loginDialog(why) {
  const token = h("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: true });
  const problem = problemBox();
  const dialog = h("dialog", { class: "login", "aria-labelledby": "login-title" });
  const send = async (event) => {
    event.preventDefault();
    await enter(async () => token.value.trim());
  };
  const enter = async (find) => {
    problem.say(null);
    try {
      await logIn(await find());
      dialog.close();
      // What opened the dialog is gone by now, and with it where the focus was to go back to.
      if (document.activeElement === document.body) document.querySelector("#session button")?.focus();
    } catch (error) {
      problem.say(error);
      token.select();
    }
  };
  const form = h(
    "form",
    { onsubmit: send },
    h("h2", { id: "login-title" }, "Log in"),
    why && h("p", null, why),
    h("label", { for: "token" }, "Access token"),
    token,
    problem.element,
    h("div", { class: "actions" }, h("button", { class: "primary" }, "Log in"), byTicket(enter), cancel(dialog)),
  );
  return fill(dialog, form);
}

/** The button for who has a ticket of Kerberos, where the service takes any: the browser shows it by itself. */
function byTicket(enter) {
  const find = async () => (await post(`${WHERE}/ticket`)).token;
  return current.takes_tickets && h("button", { type: "button", onclick: () => enter(find) }, "Use my Kerberos ticket");
}

function cancel(dialog) {
  return h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
}

async function logIn(token) {
  await post(WHERE, { token });
  const found = await refresh();
  announce(`Logged in as ${found.name}, ${found.role}.`);
}

let looking = false;
let asked = false; // for a token, by itself: once is enough for who does not give one

/**
 * A call was refused: find out whether the session has ended, and ask for a token if so.
 *
 * Another tab may have logged in meanwhile; then this one learns here who it is, and what its changes must carry.
 */
async function sessionEnded() {
  if (looking || document.querySelector("dialog.login")) return;
  looking = true;
  const before = isLoggedIn();
  try {
    const found = await refresh();
    if (before && !isLoggedIn()) openLogin("Your session has ended. Log in again to go on.");
    else if (found.role === null && !asked) {
      asked = true;
      openLogin("This service shows its data only to those with a token.");
    }
  } catch {
    // Whatever was pressed shows the refusal; there is nothing to add.
  } finally {
    looking = false;
  }
}
