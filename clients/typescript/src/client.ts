import { watch } from "./follow.js";
import { Patience, json, send, type Connection } from "./http.js";
import { Run } from "./run.js";
import { Session } from "./session.js";
import type { AgentList, Answer, Change, HistoryList, LimitList, PendingRequest, ProviderList, RequestList, RunList, RunView, SessionList, StartRun, StartSession, UsageSummary, ViewState } from "./types.js";

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
    return this.run(await this.begin("/runs", run, options));
  }

  /** Starts a session, once only as well. It waits for its first prompt. */
  async startSession(session: StartSession, options: StartOptions = {}): Promise<Session> {
    return this.session(await this.begin("/sessions", session, options));
  }

  private async begin(path: string, body: unknown, options: StartOptions): Promise<string> {
    const { signal } = options;
    const headers = { "Idempotency-Key": options.idempotencyKey ?? crypto.randomUUID() };
    const patience = new Patience(this.connection.reconnectMs, signal);
    for (;;) {
      try {
        return (await json<RunView>(this.connection, path, { method: "POST", body, headers, signal })).runId;
      } catch (error) {
        await patience.wait(error);
      }
    }
  }

  /** The run with this id. Nothing is sent. */
  run(id: string): Run {
    return new Run(this.connection, id);
  }

  /** The session with this id. Nothing is sent. */
  session(id: string): Session {
    return new Session(this.connection, id);
  }

  /** Sessions, newest first. */
  async sessions(query: { state?: ViewState } = {}): Promise<SessionList["sessions"]> {
    return (await json<SessionList>(this.connection, `/sessions${search(query)}`)).sessions;
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

  /** Limits of subscriptions, such as those of 5 hours and of a week. */
  limits(): Promise<LimitList> {
    return json(this.connection, "/limits");
  }

  /** All recorded runs, attached ones and ticks of agents too, newest first. */
  history(query: { since?: number; until?: number; status?: string; agent?: string; key?: string; directory?: string; limit?: number; cursor?: string } = {}): Promise<HistoryList> {
    return json(this.connection, `/history${search(query)}`);
  }

  /** Tokens and cost; `by` is `day`, `model`, `agent`, `key` and others. */
  usage(query: { by?: string; since?: string; until?: string; provider?: string; models?: boolean } = {}): Promise<UsageSummary> {
    return json(this.connection, `/usage${search(query)}`);
  }
}

function search(query: Record<string, string | number | boolean | undefined>): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  return pairs.length > 0 ? `?${new URLSearchParams(pairs.map(([key, value]) => [key, String(value)]))}` : "";
}
