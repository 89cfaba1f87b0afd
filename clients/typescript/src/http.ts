import { ConnectionLost, Problem, TeamsterError, UnexpectedResponse } from "./errors.js";
import { Limit, Silence } from "./limit.js";
import { SseParser, type SseEvent } from "./sse.js";

/** Options shared by all requests. */
export interface Connection {
  readonly url: string;
  readonly token: string | undefined;
  readonly fetch: typeof fetch;
  readonly reconnectMs: number;
  readonly silenceMs: number;
  readonly timeoutMs: number;
}

/** Addresses at which a server has responded: it is only away for a while if it cannot be reached. */
export const reached = new Set<string>();

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call, which then fails with the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Time limit of a response, in milliseconds, in place of that of the client. Of a stream, of its beginning. */
  timeoutMs?: number | undefined;
}

interface RequestOptions extends CallOptions {
  method?: string;
  body?: unknown;
  headers?: Record<string, string> | undefined;
}

export const JSON_TYPE = "application/json";
export const BYTES_TYPE = "application/octet-stream";
const STREAM_TYPE = "text/event-stream";

/** Runs `work`. What it throws becomes an error of this client, or the reason of the caller's signal. */
async function guard<T>(connection: Connection, limit: Limit, work: () => Promise<T>): Promise<T> {
  try {
    return await limit.race(work());
  } catch (error) {
    if (limit.caller?.aborted) throw limit.caller.reason;
    const cause = limit.signal.aborted ? limit.signal.reason : error;
    const code = codeOf(cause);
    const message = messageOf(cause);
    // Node, Bun, Deno.
    if (/^(Z_DATA_ERROR|Zlib|Invalid gzip)/.test(code ?? message)) throw new UnexpectedResponse(`${connection.url} is not teamster serve: its response cannot be decompressed`, { cause });
    throw new ConnectionLost(`cannot reach ${connection.url}: ${message || code}`, { cause });
  }
}

/** The code of an error of Node; browsers give none. */
export function codeOf(error: unknown): string | undefined {
  const { code, cause, errors } = (error ?? {}) as { code?: unknown; cause?: unknown; errors?: unknown[] };
  if (typeof code === "string") return code;
  // Node tries several addresses of a name.
  return (cause === undefined ? (errors ?? []) : [cause]).map(codeOf).find((found) => found !== undefined);
}

/** The message of an error, or of its cause: that of `fetch` is "fetch failed". */
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? messageOf(error.cause) : error.message;
}

/** Sends a request and returns its response, of this media type, when its head has arrived. An error response is thrown. */
async function open(connection: Connection, path: string, media: string, limit: Limit, options: RequestOptions): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (media === STREAM_TYPE) headers["Accept"] = media;
  if (connection.token !== undefined) headers["Authorization"] = `Bearer ${connection.token}`;
  // A redirect would make a GET of a POST, and may lead to another server.
  const init: RequestInit = { method: options.method ?? "GET", headers, credentials: "same-origin", redirect: "manual", signal: limit.signal };
  if (options.body !== undefined) {
    headers["Content-Type"] = JSON_TYPE;
    init.body = JSON.stringify(options.body);
  }
  const timeoutMs = options.timeoutMs ?? connection.timeoutMs;
  limit.within(timeoutMs, `no response within ${timeoutMs / 1000} s`);
  const response = await guard(connection, limit, () => connection.fetch(`${connection.url}/v1${path}`, init));
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
    throw new UnexpectedResponse(`${connection.url} redirects to ${response.headers.get("location") ?? "another address"}: give the client the address of the server itself`);
  }
  if (!response.ok) {
    const body = await guard(connection, limit, () => response.text()).catch((error) => {
      if (limit.caller?.aborted) throw error;
      return "";
    });
    throw Problem.of(response.status, body, response.headers.get("retry-after"));
  }
  if (response.status !== 204) {
    const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
    if (type !== media) throw new UnexpectedResponse(`${connection.url} is not teamster serve: its response is ${type || "of no type"}, not ${media}`);
  }
  reached.add(connection.url);
  return response;
}

/** Sends a request and returns what `read` reads of its response; undefined for a response without a body. */
async function body<T>(connection: Connection, path: string, media: string, options: RequestOptions, read: (response: Response) => Promise<T>): Promise<T | undefined> {
  const limit = new Limit(options.signal);
  try {
    const response = await open(connection, path, media, limit, options);
    return response.status === 204 ? undefined : await guard(connection, limit, () => read(response));
  } finally {
    limit.close();
  }
}

/** Sends a request and returns the text of its response; undefined for a response without a body. */
export async function text(connection: Connection, path: string, media: string, options: RequestOptions): Promise<string | undefined> {
  return body(connection, path, media, options, (response) => response.text());
}

/** Sends a request and returns the bytes of its response. */
export async function bytes(connection: Connection, path: string, options: RequestOptions): Promise<Uint8Array> {
  return new Uint8Array((await body(connection, path, BYTES_TYPE, options, (response) => response.arrayBuffer())) ?? []);
}

/** Sends a request and returns the object of its response, which has the field `has`. */
export async function json<T extends object>(connection: Connection, path: string, has: keyof T & string, options: RequestOptions = {}): Promise<T> {
  return parse<T>(connection, (await text(connection, path, JSON_TYPE, options)) ?? "null", has);
}

/** The same, or undefined for a response without a body. */
export async function optional<T extends object>(connection: Connection, path: string, has: keyof T & string, options: RequestOptions = {}): Promise<T | undefined> {
  const found = await text(connection, path, JSON_TYPE, options);
  return found === undefined ? undefined : parse<T>(connection, found, has);
}

/** Sends a command, whose response does not matter. */
export async function command(connection: Connection, path: string, options: RequestOptions): Promise<void> {
  await text(connection, path, JSON_TYPE, options);
}

/** Parses an object that has the field `has`. */
export function parse<T extends object>(connection: Connection, body: string, has: keyof T & string): T {
  let found: unknown;
  try {
    found = JSON.parse(body);
  } catch (cause) {
    throw new UnexpectedResponse(`${connection.url} is not teamster serve: its response is no JSON`, { cause });
  }
  if (typeof found === "object" && found !== null && has in found) return found as T;
  throw new UnexpectedResponse(`${connection.url} is not teamster serve: its response has no \`${has}\``);
}

/**
 * The events of a stream, and "alive" for each piece that arrives. It ends where the stream ends, and its connection is
 * closed when it is left. A response without a stream is the event `end`.
 */
export async function* stream(connection: Connection, path: string, options: CallOptions): AsyncGenerator<SseEvent | "alive", void, void> {
  const limit = new Limit(options.signal);
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  try {
    const response = await open(connection, path, STREAM_TYPE, limit, options);
    if (response.status === 204) {
      yield { event: "end", data: "" };
      return;
    }
    reader = response.body?.getReader();
    if (!reader) throw new ConnectionLost("streams cannot be read here", { cause: new Silence() });
    const source = reader;
    const decoder = new TextDecoder();
    const parser = new SseParser();
    for (;;) {
      limit.within(connection.silenceMs, `the stream was silent for ${connection.silenceMs / 1000} s`);
      const { done, value } = await guard(connection, limit, () => source.read());
      // The time that the consumer takes does not count.
      limit.pause();
      if (done) return;
      yield "alive";
      yield* parser.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    limit.close();
    // Without waiting: a connection that is broken never responds.
    reader?.cancel().catch(() => {});
  }
}

/** Returns a random key. `crypto.randomUUID` exists on HTTPS and localhost only. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Headers with which a repeated request has no effect. */
export function once(key: string = randomKey()): Record<string, string> {
  return { "Idempotency-Key": ascii("the idempotency key", key) };
}

/** Returns this value of a header. The error does not show it: it may be a secret. */
export function ascii(name: string, value: string): string {
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)) return value;
  throw new TeamsterError(`${name} is empty or has characters that a header cannot have: use printable ASCII`);
}

/** Returns a path of these segments. */
export function pathOf(...ids: string[]): string {
  return ids.map((id) => {
    // No escape keeps a URL from resolving dots, and none exists for half of a surrogate pair.
    if (id === "" || id === "." || id === ".." || /\p{Surrogate}/u.test(id)) throw new TeamsterError(`${JSON.stringify(id)} is not an id`);
    return `/${encodeURIComponent(id)}`;
  }).join("");
}

/** Returns the path of a request with this id: that of its run, a slash and a number. */
export function requestPath(id: string): string {
  const slash = id.lastIndexOf("/");
  if (slash < 0) throw new TeamsterError(`${JSON.stringify(id)} is not an id of a request, which is RUN/NUMBER`);
  return pathOf("requests", id.slice(0, slash), id.slice(slash + 1));
}
