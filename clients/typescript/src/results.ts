import { TeamsterError } from "./errors.js";
import { bytes, json, pathOf, type CallOptions, type Connection } from "./http.js";
import { Patience } from "./patience.js";
import type { FileList, FileManifest, WorkspaceDiff } from "./types.js";

/** A selection of changes. */
export interface DiffOptions extends CallOptions {
  /** Only files at these paths of the repository, and below them. */
  paths?: readonly string[];
  /** Only figures, without hunks. */
  stat?: boolean;
}

/** The changes of the workspace of the run or session at this path. */
export function diff(connection: Connection, path: string, { paths = [], stat = false, ...options }: DiffOptions): Promise<WorkspaceDiff> {
  const fields = paths.map((it) => `path=${encodeURIComponent(it)}`);
  if (stat) fields.push("stat=true");
  return json(connection, `${path}/diff${fields.length > 0 ? "?" : ""}${fields.join("&")}`, "filesChanged", options);
}

/** The files of the run or session at this path. */
export function files(connection: Connection, path: string, options: CallOptions): Promise<FileList> {
  return json(connection, `${path}/files`, "files", options);
}

/** The content of a file. A part whose connection breaks is requested again, and each one is checked by its hash. */
export async function read(connection: Connection, path: string, name: string, options: CallOptions): Promise<Uint8Array> {
  const file = `${path}/files${pathOf(...name.split("/"))}`;
  const patience = new Patience(connection, options.signal);
  const patiently = async <T>(work: () => Promise<T>): Promise<T> => {
    for (;;) {
      try {
        const done = await work();
        patience.reached();
        return done;
      } catch (error) {
        await patience.wait(error);
      }
    }
  };
  const manifest = await patiently(() => json<FileManifest>(connection, `${file}?manifest=true`, "parts", options));
  const content = new Uint8Array(manifest.bytes);
  let end = 0;
  for (const [number, hash] of manifest.parts.entries()) {
    const part = await patiently(() => bytes(connection, `${file}?part=${number}`, options));
    if (end + part.length > content.length || (await isOther(part, hash))) throw new TeamsterError(`part ${number} of ${name} arrived damaged`);
    content.set(part, end);
    end += part.length;
  }
  if (end !== content.length) throw new TeamsterError(`${name} is not complete`);
  return content;
}

/** Whether a content has another hash than this one. A page without HTTPS cannot tell. */
async function isOther(content: Uint8Array, hash: string): Promise<boolean> {
  const subtle = (crypto as { subtle?: SubtleCrypto }).subtle;
  if (!subtle) return false;
  const found = new Uint8Array(await subtle.digest("SHA-256", content as Uint8Array<ArrayBuffer>));
  return [...found].map((byte) => byte.toString(16).padStart(2, "0")).join("") !== hash;
}
