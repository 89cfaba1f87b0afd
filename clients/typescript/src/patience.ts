import { ConnectionLost, Problem } from "./errors.js";
import { codeOf, reached, type Connection } from "./http.js";
import { Limit, LONGEST_MS } from "./limit.js";

/** Time in which a server that has never responded may break connections, in milliseconds: it may be another one. */
const STRANGER_MS = 5000;
/** Codes of Node for a connection that was made and broke. */
const BREAKS = ["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"];

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

  /** Waits before the next attempt after this error, at least as long as the server asked for. Throws an error that no attempt can resolve. */
  async wait(error: unknown): Promise<void> {
    if (this.signal?.aborted) throw this.signal.reason;
    const isLost = error instanceof ConnectionLost;
    if (!isLost && !(error instanceof Problem && error.isTransient)) throw error;
    const { url, reconnectMs } = this.connection;
    const code = codeOf(error);
    const isStranger = isLost && !reached.has(url);
    if (code === "ERR_INVALID_URL" || (isStranger && !(code !== undefined && BREAKS.includes(code)))) throw error;
    this.since ??= performance.now();
    const limit = isStranger ? Math.min(reconnectMs, STRANGER_MS) : reconnectMs;
    const elapsed = performance.now() - this.since;
    if (elapsed > limit) {
      throw new ConnectionLost(`no connection to ${url} for ${limit / 1000} s: ${error.message}`, { cause: error });
    }
    const asked = error instanceof Problem ? (error.retryAfterMs ?? 0) : 0;
    // That late, no attempt is made.
    if (elapsed + asked > limit) throw error;
    await this.sleep(Math.min(Math.max(this.delay, asked), LONGEST_MS));
    this.delay = Math.min(this.delay * 2, 3000);
  }

  /** Waits a moment, before a request that the server has refused for now is repeated. */
  async pause(): Promise<void> {
    this.reached();
    await this.sleep(this.delay);
  }

  private async sleep(ms: number): Promise<void> {
    const limit = new Limit(this.signal);
    const timers: ReturnType<typeof setTimeout>[] = [];
    try {
      await limit.race(new Promise<void>((resolve) => timers.push(setTimeout(resolve, ms))));
    } finally {
      timers.forEach(clearTimeout);
      limit.close();
    }
  }
}
