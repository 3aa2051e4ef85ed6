/**
 * A folder that somebody has chosen as the tar archive that `nodewise task submit --folder` would make of it.
 */

import { call, path } from "../../api.js";

const BLOCK = 512;
const LONGEST_NAME = 100;

/**
 * Send the files of a folder, unless the service has them already.
 *
 * @param {File[]} files as a browser gives them, each with its path below the folder that was chosen
 * @param {AbortSignal} signal
 * @returns {Promise<string>} SHA-256 of the archive, by which a task names it
 */
export async function sent(files, signal) {
  if (!globalThis.crypto?.subtle) {
    throw new Error("This browser sends folders only over HTTPS or to localhost: use `nodewise task submit --folder`");
  }
  const archive = await (await archived(files)).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", archive));
  const sha256 = [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  await call("PUT", path("tasks", "files", sha256), new Blob([archive]), { signal, timeout: 600_000 });
  return sha256;
}

/**
 * The archive: ustar, by name, without times and owners, so that the same files make the same bytes.
 *
 * @param {File[]} files
 * @returns {Promise<Blob>}
 */
export async function archived(files) {
  const named = files.map((file) => [file.webkitRelativePath.split("/").slice(1).join("/") || file.name, file]);
  const sorted = named.toSorted(([one], [other]) => (one < other ? -1 : 1));
  const parts = sorted.flatMap(([name, file]) => [...heads(name, file.size), file, padding(file.size)]);
  return new Blob([...parts, new Uint8Array(2 * BLOCK)]);
}

/** The head of a file; a name that has no room there stands in a head of its own before it, as pax has it. */
function heads(name, size) {
  const bytes = new TextEncoder().encode(name);
  if (bytes.length <= LONGEST_NAME) return [head(bytes, size, "0")];
  const record = paxRecord("path", name);
  return [
    head(new TextEncoder().encode("pax"), record.length, "x"),
    record,
    padding(record.length),
    head(bytes.slice(0, LONGEST_NAME), size, "0"),
  ];
}

/** "LENGTH KEY=VALUE\n", where the length counts its own digits. */
function paxRecord(key, value) {
  const rest = new TextEncoder().encode(` ${key}=${value}\n`);
  let length = rest.length;
  while (String(length).length + rest.length !== length) length = String(length).length + rest.length;
  const record = new Uint8Array(length);
  record.set(new TextEncoder().encode(String(length)));
  record.set(rest, length - rest.length);
  return record;
}

function head(name, size, kind) {
  const block = new Uint8Array(BLOCK);
  const put = (text, at) => block.set(new TextEncoder().encode(text), at);
  const octal = (number, width) => number.toString(8).padStart(width, "0");
  block.set(name, 0);
  put(`${octal(0o755, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100); // every file may be a program
  put(`${octal(size, 11)}\0${octal(0, 11)}\0${" ".repeat(8)}${kind}`, 124);
  put("ustar\x0000", 257);
  put(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  );
  return block;
}

function padding(size) {
  return new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK);
}
