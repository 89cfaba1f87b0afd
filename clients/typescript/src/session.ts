import { Problem, TeamsterError } from "./errors.js";
import { follow } from "./follow.js";
import { command, json, once, pathOf, requestPath, type CallOptions, type Connection } from "./http.js";
import { Patience } from "./patience.js";
import { diff, files, read, type DiffOptions } from "./results.js";
import type { Answer, ChangeSession, Entry, FileList, RunResult, RunView, TurnView, WorkspaceDiff } from "./types.js";

/** A live session, which takes one prompt after the other. */
export class Session {
  private readonly path: string;

  constructor(
    private readonly connection: Connection,
    /** Its id. */
    readonly id: string,
    /** Warnings of its start, such as of options without effect. None if this object did not start it. */
    readonly warnings: readonly string[] = [],
  ) {
    this.path = pathOf("sessions", id);
  }

  /**
   * Sends a prompt, which begins a turn. During another turn it is a `Problem` with the code `SESSION_BUSY`, or, with
   * `queue`, waits for its end; of several prompts that wait, any may be the next. A connection that breaks meanwhile
   * is made again, and the turn is begun once only.
   */
  async send(prompt: string, options: { from?: string; queue?: boolean; idempotencyKey?: string } & CallOptions = {}): Promise<Turn> {
    const { from, queue = false, signal, timeoutMs } = options;
    const headers = once(options.idempotencyKey);
    const body = { prompt, ...(from === undefined ? {} : { from }), ...(queue ? { queue } : {}) };
    const patience = new Patience(this.connection, signal);
    for (;;) {
      try {
        const turn = await json<TurnView>(this.connection, `${this.path}/turns`, "seq", { method: "POST", body, headers, signal, timeoutMs });
        return new Turn(this.connection, this.id, turn.runId, turn.seq);
      } catch (error) {
        // The server has waited for a while.
        if (queue && error instanceof Problem && error.code === "SESSION_BUSY") await patience.pause();
        else await patience.wait(error);
      }
    }
  }

  /** The entries of its log behind the one with the number `after`: all turns, up to the end of the session. */
  entries({ after = 0, ...options }: { after?: number } & CallOptions = {}): AsyncGenerator<Entry, void, void> {
    return follow(this.connection, `${this.path}/events`, after, options);
  }

  /** Current state; `live` is its activity. */
  view(options: CallOptions = {}): Promise<RunView> {
    return json(this.connection, this.path, "runId", options);
  }

  /** The changes of its workspace, committed or not: so far while it is live, then those that it has left. */
  diff(options: DiffOptions = {}): Promise<WorkspaceDiff> {
    return diff(this.connection, this.path, options);
  }

  /** The files that it brings back, once it has ended: `bundle`, `patch`, and as `files/PATH` those that were collected. */
  files(options: CallOptions = {}): Promise<FileList> {
    return files(this.connection, this.path, options);
  }

  /** The content of one of these files, checked by its hashes. A transfer that breaks continues where it was. */
  read(name: string, options: CallOptions = {}): Promise<Uint8Array> {
    return read(this.connection, this.path, name, options);
  }

  /** Answers a request of the turn in progress. */
  async answer(requestId: string, answer: Answer, options: CallOptions = {}): Promise<void> {
    await command(this.connection, requestPath(requestId), { ...options, method: "POST", body: answer });
  }

  /** Sends text to the turn in progress, if the agent's CLI supports it. */
  async steer(text: string, { from, ...options }: { from?: string } & CallOptions = {}): Promise<void> {
    await command(this.connection, `${this.path}/steer`, { ...options, method: "POST", body: from === undefined ? { text } : { text, from } });
  }

  /** Ends the turn in progress; the session continues. */
  async interrupt({ kill = false, ...options }: { kill?: boolean } & CallOptions = {}): Promise<void> {
    await command(this.connection, `${this.path}/interrupt`, { ...options, method: "POST", body: { kill } });
  }

  /** Clears the context and continues. */
  async clear(options: CallOptions = {}): Promise<void> {
    await command(this.connection, `${this.path}/clear`, { ...options, method: "POST" });
  }

  /** Changes the model or the permission, from the next turn on. */
  change(changes: ChangeSession, options: CallOptions = {}): Promise<RunView> {
    return json(this.connection, this.path, "runId", { ...options, method: "PATCH", body: changes });
  }

  /** Ends the session; its log stays. */
  end({ kill = false, ...options }: { kill?: boolean } & CallOptions = {}): Promise<RunView> {
    return json(this.connection, `${this.path}?kill=${kill}`, "runId", { ...options, method: "DELETE" });
  }
}

/** A turn of a session. Iterating over it yields its entries up to its `done`. */
export class Turn implements AsyncIterable<Entry> {
  constructor(
    private readonly connection: Connection,
    private readonly sessionId: string,
    /** Its id: that of the session, a dot and a number. */
    readonly id: string,
    /** The number of the log's entry with the prompt. */
    readonly seq: number,
  ) {}

  [Symbol.asyncIterator](): AsyncGenerator<Entry, void, void> {
    return this.entries();
  }

  /** Its entries behind the one with the number `after`. */
  entries({ after = this.seq, ...options }: { after?: number } & CallOptions = {}): AsyncGenerator<Entry, void, void> {
    const last = (entry: Entry) => entry.type === "done" && entry.runId === this.id;
    return follow(this.connection, pathOf("sessions", this.sessionId, "events"), after, options, last);
  }

  /** Its result, once it has ended. */
  async result(options: CallOptions = {}): Promise<RunResult> {
    for await (const entry of this.entries(options)) {
      if (entry.type === "done" && entry.runId === this.id) return entry.result;
    }
    throw new TeamsterError(`the log of session ${this.sessionId} has no end of turn ${this.id}`);
  }
}
