import { TeamsterError } from "./errors.js";
import { follow } from "./follow.js";
import { command, json, pathOf, requestPath, type CallOptions, type Connection } from "./http.js";
import { diff, files, read, type DiffOptions } from "./results.js";
import type { Answer, AppliedChanges, Entry, FileList, KeptSpec, RunResult, RunView, WorkspaceDiff } from "./types.js";

/** A run. Iterating over it yields the entries of its log from the beginning, then as they come, up to its end. */
export class Run implements AsyncIterable<Entry> {
  constructor(
    private readonly connection: Connection,
    /** Its id. */
    readonly id: string,
    /** Warnings of its start, such as of options without effect. None if this object did not start it. */
    readonly warnings: readonly string[] = [],
  ) {}

  [Symbol.asyncIterator](): AsyncGenerator<Entry, void, void> {
    return this.entries();
  }

  /** The entries behind the one with the number `after`. */
  entries({ after = 0, ...options }: { after?: number } & CallOptions = {}): AsyncGenerator<Entry, void, void> {
    return follow(this.connection, pathOf("runs", this.id, "events"), after, options);
  }

  /** Current state, pending requests, cost so far, and the result once it has ended. */
  async view(options: CallOptions = {}): Promise<RunView> {
    return json(this.connection, pathOf("runs", this.id), "runId", options);
  }

  /** Its result, once it has ended. */
  async result(options: CallOptions = {}): Promise<RunResult> {
    let { result, seq } = await this.view(options);
    if (result) return result;
    for await (const entry of this.entries({ ...options, after: seq })) {
      if (entry.type === "done") result = entry.result;
    }
    result ??= (await this.view(options)).result;
    if (!result) throw new TeamsterError(`the log of run ${this.id} has no result`);
    return result;
  }

  /** Answers a request of the run. The id is in a `permission` entry, and in `requests` of `view()`. */
  async answer(requestId: string, answer: Answer, options: CallOptions = {}): Promise<void> {
    await command(this.connection, requestPath(requestId), { ...options, method: "POST", body: answer });
  }

  /** Gives it another title, whether it has ended or not; with `null`, the one that it had at its start. */
  async rename(title: string | null, options: CallOptions = {}): Promise<void> {
    await command(this.connection, pathOf("runs", this.id), { ...options, method: "PATCH", body: { title } });
  }

  /** The body with which it was started, as it is kept, and the names of what was withheld. */
  spec(options: CallOptions = {}): Promise<KeptSpec> {
    return json(this.connection, pathOf("runs", this.id, "spec"), "what", options);
  }

  /** The changes of its workspace, committed or not: so far while it is live, then those that it has left. */
  diff(options: DiffOptions = {}): Promise<WorkspaceDiff> {
    return diff(this.connection, pathOf("runs", this.id), options);
  }

  /** Applies what it has left to the files of its repository, on the server's machine: all of it, or nothing. */
  apply(options: CallOptions = {}): Promise<AppliedChanges> {
    return json(this.connection, pathOf("runs", this.id, "apply"), "filesChanged", { ...options, method: "POST", body: {} });
  }

  /** Discards what it has left: its worktree, its branch and its commits, for good. */
  async discard(options: CallOptions = {}): Promise<void> {
    await command(this.connection, pathOf("runs", this.id, "discard"), { ...options, method: "POST", body: {} });
  }

  /** The files that it brings back, once it has ended: `bundle`, `patch`, and as `files/PATH` those that were collected. */
  files(options: CallOptions = {}): Promise<FileList> {
    return files(this.connection, pathOf("runs", this.id), options);
  }

  /** The content of one of these files, checked by its hashes. A transfer that breaks continues where it was. */
  read(name: string, options: CallOptions = {}): Promise<Uint8Array> {
    return read(this.connection, pathOf("runs", this.id), name, options);
  }

  /** Stops the run; with `kill` it is killed at once. Returns before the run has ended. */
  async cancel({ kill = false, ...options }: { kill?: boolean } & CallOptions = {}): Promise<RunView> {
    return json(this.connection, pathOf("runs", this.id, "cancel"), "runId", { ...options, method: "POST", body: { kill } });
  }
}
