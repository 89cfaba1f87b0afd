import type { ProblemCode } from "./types.js";

/** An error of the API: a problem of RFC 9457. */
export class Problem extends Error {
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
    return this.code === undefined ? [408, 429, 500, 502, 503, 504].includes(this.status) : false;
  }
}

/** The server could not be reached for longer than `reconnectMs`. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}
