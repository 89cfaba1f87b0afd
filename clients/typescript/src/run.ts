import { follow } from "./follow.js";
import { json, type CallOptions, type Connection } from "./http.js";
import type { Answer, Entry, RunResult, RunView } from "./types.js";

/** A run. Iterating over it yields the entries of its log from the beginning, then as they come, up to its end. */
export class Run implements AsyncIterable<Entry> {
  constructor(
    private readonly connection: Connection,
    /** Its id. */
    readonly id: string,
  ) {}

  [Symbol.asyncIterator](): AsyncGenerator<Entry, void, void> {
    return this.entries();
  }

  /** The entries behind the one with the number `after`. */
  entries({ after = 0, signal }: { after?: number; signal?: AbortSignal } = {}): AsyncGenerator<Entry, void, void> {
    return follow(this.connection, `/runs/${encodeURIComponent(this.id)}/events`, after, signal);
  }

  /** Current state, pending requests, cost so far, and the result once it has ended. */
  view(options: CallOptions = {}): Promise<RunView> {
    return json(this.connection, `/runs/${encodeURIComponent(this.id)}`, options);
  }

  /** Its result, once it has ended. */
  async result(options: { signal?: AbortSignal } = {}): Promise<RunResult> {
    let { result, seq } = await this.view(options);
    if (result) return result;
    for await (const entry of this.entries({ ...options, after: seq })) {
      if (entry.type === "done") result = entry.result;
    }
    result ??= (await this.view(options)).result;
    if (!result) throw new Error(`the log of run ${this.id} has no result`);
    return result;
  }

  /** Answers a request of the run. The id is in a `permission` entry, and in `requests` of `view()`. */
  async answer(requestId: string, answer: Answer, options: CallOptions = {}): Promise<void> {
    const number = requestId.slice(requestId.lastIndexOf("/") + 1);
    await json(this.connection, `/requests/${encodeURIComponent(this.id)}/${encodeURIComponent(number)}`, { ...options, method: "POST", body: answer });
  }

  /** Stops the run; with `kill` it is killed at once. Returns before the run has ended. */
  cancel({ kill = false, ...options }: { kill?: boolean } & CallOptions = {}): Promise<RunView> {
    return json(this.connection, `/runs/${encodeURIComponent(this.id)}/cancel`, { ...options, method: "POST", body: { kill } });
  }
}
