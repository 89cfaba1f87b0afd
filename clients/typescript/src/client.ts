import { watch } from "./follow.js";
import { Patience, json, send, type Connection } from "./http.js";
import { Run } from "./run.js";
import type { AgentList, Answer, Change, PendingRequest, ProviderList, RequestList, RunList, RunView, StartRun, UsageSummary, ViewState } from "./types.js";

export interface Options {
  /** Where the server is: `http://127.0.0.1:7420` by default. */
  url?: string;
  /** The token. A page that is logged in needs none: its cookie goes with each request. */
  token?: string;
  /** How long the server may be away before a stream fails, in milliseconds: 5 minutes by default. */
  reconnectMs?: number;
  /** Without a byte for so long a stream is taken for dead, in milliseconds: 35 s, more than two heartbeats. */
  silenceMs?: number;
  /** The `fetch` to use. */
  fetch?: typeof fetch;
}

export interface StartOptions {
  /** The same request again with the same key starts nothing and gets the run that is there. A random one by default. */
  idempotencyKey?: string;
  signal?: AbortSignal;
}

/** A server. */
export class Teamster {
  private readonly connection: Connection;

  constructor(options: Options = {}) {
    this.connection = {
      url: (options.url ?? "http://127.0.0.1:7420").replace(/\/+$/, ""),
      token: options.token,
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
      reconnectMs: options.reconnectMs ?? 300_000,
      silenceMs: options.silenceMs ?? 35_000,
    };
  }

  /** Starts a run. A connection that breaks meanwhile is made again, and the run is started once only. */
  async start(run: StartRun, options: StartOptions = {}): Promise<Run> {
    const { signal } = options;
    const headers = { "Idempotency-Key": options.idempotencyKey ?? crypto.randomUUID() };
    const patience = new Patience(this.connection.reconnectMs, signal);
    for (;;) {
      try {
        const { runId } = await json<RunView>(this.connection, "/runs", { method: "POST", body: run, headers, signal });
        return this.run(runId);
      } catch (error) {
        await patience.wait(error);
      }
    }
  }

  /** The run with this id. Nothing is sent. */
  run(id: string): Run {
    return new Run(this.connection, id);
  }

  /** A page of runs, newest first. */
  runs(query: { state?: ViewState; since?: number; limit?: number; cursor?: string } = {}): Promise<RunList> {
    return json(this.connection, `/runs${search(query)}`);
  }

  /** What waits for an answer, of all runs. */
  async requests(): Promise<PendingRequest[]> {
    return (await json<RequestList>(this.connection, "/requests")).requests;
  }

  /** Answers a request. The first answer counts; a later one is a `Problem` with the code `ALREADY_ANSWERED`. */
  answer(requestId: string, answer: Answer): Promise<void> {
    return this.run(requestId.slice(0, requestId.lastIndexOf("/"))).answer(requestId, answer);
  }

  /** How all runs and agents stand, then what changes of it. */
  watch(options: { signal?: AbortSignal } = {}): AsyncGenerator<Change, void, void> {
    return watch(this.connection, options.signal);
  }

  /** The agents in a loop. */
  agents(): Promise<AgentList> {
    return json(this.connection, "/agents");
  }

  /** Starts, stops, restarts or wakes an agent. */
  command(agentId: string, command: "start" | "stop" | "restart" | "wake"): Promise<AgentList> {
    return json(this.connection, `/agents/${encodeURIComponent(agentId)}/${command}`, { method: "POST" });
  }

  /** The last lines of an agent's log. */
  async agentLog(agentId: string, lines = 100): Promise<string> {
    return (await send(this.connection, `/agents/${encodeURIComponent(agentId)}/log?lines=${lines}`)).text();
  }

  /** The agents' CLIs of the server's machine, and what they can do. */
  async providers(): Promise<ProviderList["providers"]> {
    return (await json<ProviderList>(this.connection, "/providers")).providers;
  }

  /** Tokens and cost. */
  usage(query: { by?: string; since?: string; until?: string } = {}): Promise<UsageSummary> {
    return json(this.connection, `/usage${search(query)}`);
  }
}

function search(query: Record<string, string | number | undefined>): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  return pairs.length > 0 ? `?${new URLSearchParams(pairs.map(([key, value]) => [key, String(value)]))}` : "";
}
