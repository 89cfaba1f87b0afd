import { ConnectionLost, Problem, UnexpectedResponse } from "./errors.js";

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
const reached = new Set<string>();

/** Options of every call. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
  /** Time limit of the response, in milliseconds, in place of that of the client. */
  timeoutMs?: number | undefined;
}

export interface RequestOptions extends CallOptions {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  /** The media type of a response with a body. JSON by default. */
  media?: string;
}

/** Sends a request. An error response is thrown as a `Problem`. */
export async function send(connection: Connection, path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (connection.token !== undefined) headers["Authorization"] = `Bearer ${connection.token}`;
  const init: RequestInit = { method: options.method ?? "GET", headers, credentials: "same-origin" };
  const media = options.media ?? "application/json";
  const limits: AbortSignal[] = options.signal ? [options.signal] : [];
  // A stream has limits of its own.
  if (media !== STREAM) limits.push(AbortSignal.timeout(options.timeoutMs ?? connection.timeoutMs));
  init.signal = AbortSignal.any(limits);
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  let response;
  try {
    response = await connection.fetch(`${connection.url}/v1${path}`, init);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw lost(connection, error);
  }
  if (!response.ok) throw await Problem.of(response);
  if (response.status !== 204) {
    const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase() ?? "";
    if (type !== media) {
      response.body?.cancel().catch(() => {});
      throw new UnexpectedResponse(`${connection.url} is not teamster serve: its response is ${type || "of no type"}, not ${media}`);
    }
  }
  reached.add(connection.url);
  return response;
}

/** The media type of a stream. */
export const STREAM = "text/event-stream";

/** Codes of Node for an address at which there is nothing; browsers give none. */
const NOTHING_THERE = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "ERR_INVALID_URL"];

function codeOf(error: unknown): string | undefined {
  const { code, cause, errors } = (error ?? {}) as { code?: unknown; cause?: unknown; errors?: unknown[] };
  if (typeof code === "string") return code;
  // Node tries several addresses of a name.
  return (cause === undefined ? (errors ?? []) : [cause]).map(codeOf).find((found) => found !== undefined);
}

function lost(connection: Connection, error: unknown): ConnectionLost {
  const code = codeOf(error);
  return new ConnectionLost(`cannot reach ${connection.url}: ${code ?? (error as Error)?.message ?? error}`, { cause: error });
}

/** Returns a random key. `crypto.randomUUID` exists on HTTPS and localhost only. */
export function randomKey(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sends a request and parses the JSON of its response. */
export async function json<T>(connection: Connection, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(connection, path, options);
  if (response.status === 204) return undefined as T;
  try {
    return (await response.json()) as T;
  } catch (error) {
    if (options.signal?.aborted) throw error;
    if (error instanceof SyntaxError) throw new UnexpectedResponse(`${connection.url} is not teamster serve: its response is no JSON`, { cause: error });
    throw lost(connection, error);
  }
}

/** Waits; returns early if the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

/** Delays between attempts to reconnect, until the server was unreachable for too long. */
export class Patience {
  /** When the connection broke; undefined while there is one. */
  private since: number | undefined;
  private delay = 100;

  constructor(
    private readonly connection: Connection,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Resets the delays: data has arrived. */
  reached(): void {
    this.since = undefined;
    this.delay = 100;
  }

  /** Waits before the next attempt after this error. Throws an error that no attempt can resolve. */
  async wait(error: unknown): Promise<void> {
    if (this.signal?.aborted) throw this.signal.reason;
    if ((error instanceof Problem && !error.isTransient) || error instanceof UnexpectedResponse) throw error;
    const code = codeOf(error);
    if (code === "ERR_INVALID_URL" || (!reached.has(this.connection.url) && code !== undefined && NOTHING_THERE.includes(code))) throw error;
    this.since ??= Date.now();
    const limit = this.connection.reconnectMs;
    if (Date.now() - this.since > limit) {
      throw new ConnectionLost(`no connection to the server for ${Math.round(limit / 1000)} s`, { cause: error });
    }
    await sleep(this.delay, this.signal);
    this.delay = Math.min(this.delay * 2, 3000);
  }
}
