import { ConnectionLost, Problem } from "./errors.js";

/** Options shared by all requests. */
export interface Connection {
  readonly url: string;
  readonly token: string | undefined;
  readonly fetch: typeof fetch;
  readonly reconnectMs: number;
  readonly silenceMs: number;
}

export interface RequestOptions {
  method?: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

/** Sends a request. An error response is thrown as a `Problem`. */
export async function send(connection: Connection, path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { ...options.headers };
  if (connection.token !== undefined) headers["Authorization"] = `Bearer ${connection.token}`;
  const init: RequestInit = { method: options.method ?? "GET", headers, credentials: "same-origin" };
  if (options.signal) init.signal = options.signal;
  if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  const response = await connection.fetch(`${connection.url}/v1${path}`, init);
  if (!response.ok) throw await Problem.of(response);
  return response;
}

/** Sends a request and parses the JSON of its response. */
export async function json<T>(connection: Connection, path: string, options: RequestOptions = {}): Promise<T> {
  const response = await send(connection, path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
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
  private since = Date.now();
  private delay = 100;

  constructor(
    private readonly limit: number,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /** Resets the delays: data has arrived. */
  reached(): void {
    this.since = Date.now();
    this.delay = 100;
  }

  /** Waits before the next attempt after this error. Throws an error that no attempt can resolve. */
  async wait(error: unknown): Promise<void> {
    if (this.signal?.aborted) throw this.signal.reason;
    if (error instanceof Problem && !error.isTransient) throw error;
    if (Date.now() - this.since > this.limit) {
      throw new ConnectionLost(`no connection to the server for ${Math.round(this.limit / 1000)} s`, { cause: error });
    }
    await sleep(this.delay, this.signal);
    this.delay = Math.min(this.delay * 2, 3000);
  }
}
