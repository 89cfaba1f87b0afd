import type { ProblemCode } from "./types.js";

/** Every error of this client. A call that is aborted by its signal fails with the signal's own reason instead. */
export class TeamsterError extends Error {
  override readonly name: string = "TeamsterError";
}

/** An error of the API: a problem of RFC 9457. */
export class Problem extends TeamsterError {
  override readonly name = "Problem";

  constructor(
    /** The HTTP status. */
    readonly status: number,
    /** The error code; undefined if a proxy replied. */
    readonly code: ProblemCode | undefined,
    detail: string,
    /** The delay before the next attempt that the server asked for (`Retry-After`), in milliseconds. Starts and streams wait for it. */
    readonly retryAfterMs?: number | undefined,
  ) {
    super(detail);
  }

  /** Returns the problem in the body of an error response; of any other body, one without a code. */
  static of(status: number, body: string, retryAfter: string | null = null): Problem {
    let found: { code?: unknown; detail?: unknown } | null = null;
    try {
      found = JSON.parse(body);
    } catch {
      // A page of a proxy.
    }
    const { code, detail } = found ?? {};
    const delay = status === 429 || status === 503 ? delayMs(retryAfter?.trim() ?? "") : undefined;
    if (typeof code === "string" && typeof detail === "string") return new Problem(status, code as ProblemCode, detail, delay);
    return new Problem(status, undefined, `the server replied with status ${status}`, delay);
  }

  /** True if the same request may succeed later: a proxy or the server is not ready. */
  get isTransient(): boolean {
    return this.code === undefined || this.code === "TOO_MANY_CONNECTIONS" ? [408, 429, 500, 502, 503, 504].includes(this.status) : false;
  }
}

/** The delay of a `Retry-After`: a number of seconds, or a date. */
function delayMs(retryAfter: string): number | undefined {
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter) * 1000;
  const at = retryAfter.endsWith("GMT") ? Date.parse(retryAfter) : NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, at - Date.now());
}

/** No response: the server cannot be reached, breaks the connection, or takes longer than `timeoutMs` or `reconnectMs`. */
export class ConnectionLost extends TeamsterError {
  override readonly name = "ConnectionLost";
}

/** The response is not one of `teamster serve`: a redirect, another media type, no JSON, or fields are missing. */
export class UnexpectedResponse extends TeamsterError {
  override readonly name = "UnexpectedResponse";
}
