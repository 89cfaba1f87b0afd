import type { ProblemCode } from "./types.js";

/** Every error of this client, but that of an aborted signal. */
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
  ) {
    super(detail);
  }

  static async of(response: Response): Promise<Problem> {
    const body = (await response.json().catch(() => undefined)) as { code?: ProblemCode; detail?: string } | undefined;
    return new Problem(response.status, body?.code, body?.detail ?? `the server replied with status ${response.status}`);
  }

  /** True if the same request may succeed later: a proxy or the server is not ready. */
  get isTransient(): boolean {
    return this.code === undefined || this.code === "TOO_MANY_CONNECTIONS" ? [408, 429, 500, 502, 503, 504].includes(this.status) : false;
  }
}

/** The server cannot be reached: there is none at this address, or it has not been there for longer than `reconnectMs`. */
export class ConnectionLost extends TeamsterError {
  override readonly name = "ConnectionLost";
}

/** The server at this address is not `teamster serve`: its response has another media type. */
export class UnexpectedResponse extends TeamsterError {
  override readonly name = "UnexpectedResponse";
}
