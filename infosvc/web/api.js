/**
 * Calls of the service below /api/v1, and what can go wrong with them.
 */

export const PREFIX = "/api/v1";

/** Dispatched on `document` when the service answers 401 or 403: `detail` is the ApiError. */
export const UNAUTHORIZED = "nodewise:unauthorized";

const PATIENCE_MS = 60_000;

/**
 * The service refused a call, or gave no answer (status 0, code "unreachable").
 *
 * `message` is a sentence for people; `field` names the input that was wrong, or is null.
 */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {string} code
   * @param {string} message
   * @param {string | null} [field]
   */
  constructor(status, code, message, field = null) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.field = field;
  }
}

/**
 * @typedef {object} Options
 * @property {Record<string, any>} [params] the query; arrays stand several times, null and undefined are left out
 * @property {AbortSignal} [signal] ends the call, which then rejects with an AbortError (see `isAbort`)
 * @property {Record<string, string>} [headers] for example If-Match
 * @property {number} [timeout] milliseconds until the call is given up; 60 s when left out
 * @property {"blob"} [as] the answer is not JSON but bytes, and comes as a Blob
 */

/**
 * A path below /api/v1 from its parts, each made safe.
 *
 * @example path("nodes", "n1", "slots", "load_1m") // "/nodes/n1/slots/load_1m"
 * @param {...(string | number)} parts
 * @returns {string}
 */
export function path(...parts) {
  return parts.map((part) => `/${encodeURIComponent(part)}`).join("");
}

/**
 * Read; the parsed JSON, or null when the answer is empty. A long answer, which comes in parts, is read to its end.
 *
 * @param {string} where below /api/v1, for example "/nodes"
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function get(where, options) {
  let { headers, body } = await call("GET", where, undefined, options);
  for (let more = following(headers); more; more = following(headers)) {
    const part = await call("GET", where + more, undefined, { ...options, params: undefined });
    headers = part.headers;
    body = joined(body, part.body);
  }
  return body;
}

/** The query of the part that follows, as the header Link names it; undefined behind the last. */
export function following(headers) {
  return /^<([?][^>]*)>; rel="next"$/.exec(headers.get("Link") ?? "")?.[1];
}

/** Two parts as one: lists behind each other, and the rows of a data name that stands in both as one list. */
function joined(body, part) {
  const lists = Object.entries(part).filter(([, rows]) => Array.isArray(rows));
  const all = Object.fromEntries(lists.map(([key, rows]) => [key, [...body[key], ...rows]]));
  const names = all.data && Map.groupBy(all.data, (one) => one.data_name);
  if (names) all.data = [...names.values()].map((same) => same.reduce((first, next) => joined(first, next)));
  return { ...body, ...all };
}

/**
 * Put `body` there; the parsed answer, or null.
 *
 * @param {string} where
 * @param {any} body
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function put(where, body, options) {
  return (await call("PUT", where, body, options)).body;
}

/**
 * Send `body` there; the parsed answer, or null.
 *
 * @param {string} where
 * @param {any} body
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function post(where, body, options) {
  return (await call("POST", where, body, options)).body;
}

/**
 * Remove what is there; the parsed answer, mostly null.
 *
 * @param {string} where
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function del(where, options) {
  return (await call("DELETE", where, undefined, options)).body;
}

/**
 * Any call, for those who need the status or the headers (ETag) as well.
 *
 * Throws ApiError when the service refuses or does not answer, an AbortError when `options.signal` aborts.
 *
 * @param {"GET" | "PUT" | "POST" | "DELETE"} method
 * @param {string} where
 * @param {any} [body] a Blob as it is, anything else as JSON; undefined sends none
 * @param {Options} [options]
 * @returns {Promise<{status: number, headers: Headers, body: any}>}
 */
export async function call(method, where, body, { params, signal, headers, timeout = PATIENCE_MS, as } = {}) {
  const patience = AbortSignal.timeout(timeout);
  const asked = {
    method,
    headers: { Accept: as === "blob" ? "*/*" : "application/json", ...changing(method, body), ...headers },
    body: body === undefined || body instanceof Blob ? body : JSON.stringify(body),
    credentials: "same-origin",
    cache: "no-store", // a kept answer tells an old time and old ages, also where its ETag still holds
    signal: signal ? AbortSignal.any([signal, patience]) : patience,
  };
  try {
    const response = await fetch(PREFIX + where + query(params), asked);
    const said = as === "blob" && response.ok ? await response.blob() : parsed(await response.text());
    if (!response.ok) throw refusal(response, said);
    return { status: response.status, headers: response.headers, body: said };
  } catch (error) {
    throw told(error, signal);
  }
}

/**
 * Whether a thrown thing only means that the page was left.
 *
 * @param {unknown} error
 * @returns {boolean}
 */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/**
 * Whether the same call may go well a little later: the service is away, is busy, or has a fault.
 *
 * @param {any} error
 * @returns {boolean}
 */
export function isPassing(error) {
  return error instanceof ApiError && (error.status === 0 || error.status === 429 || error.status >= 500);
}

let csrfToken = null;

/**
 * Which token shows that a change comes from this page; session.js sets it.
 *
 * @param {string | null} token
 */
export function setCsrfToken(token) {
  csrfToken = token;
}

function changing(method, body) {
  const headers = {};
  if (body instanceof Blob) headers["Content-Type"] = "application/octet-stream";
  else if (body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET" && csrfToken) headers["X-CSRF-Token"] = csrfToken;
  return headers;
}

function query(params) {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    for (const each of [value].flat()) {
      if (each !== null && each !== undefined) given.append(name, each);
    }
  }
  return given.size ? `?${given}` : "";
}

/** The JSON of an answer; null for an empty one, undefined for what is not JSON (a proxy's page). */
function parsed(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function refusal(response, said) {
  const given = said?.error ?? {};
  const message = given.message ?? `The service answered ${response.status} ${response.statusText}`.trim();
  const error = new ApiError(response.status, given.code ?? "fault", message, given.field ?? null);
  const forWant = error.status === 401 || error.status === 403;
  if (forWant) document.dispatchEvent(new CustomEvent(UNAUTHORIZED, { detail: error }));
  return error;
}

/** What to throw for something thrown: a page that was left stays an AbortError, silence gets a sentence. */
function told(error, signal) {
  if (error instanceof ApiError || (signal?.aborted && isAbort(error))) return error;
  if (error?.name === "TimeoutError") return new ApiError(0, "unreachable", "The service took too long to answer");
  return new ApiError(0, "unreachable", "The service does not answer: is it running, and is the network up?");
}
