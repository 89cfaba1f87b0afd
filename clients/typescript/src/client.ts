import { TeamsterError } from "./errors.js";
import { watch } from "./follow.js";
import { ascii, command, json, once, optional, pathOf, requestPath, text, type CallOptions, type Connection } from "./http.js";
import { Patience } from "./patience.js";
import { Run } from "./run.js";
import { Session } from "./session.js";
import type { AgentList, Answer, Change, FleetStatus, HistoryList, LimitList, PendingRequest, ProviderList, RequestList, RunList, SessionList, RunSpec, SessionSpec, StartedRun, UsageSummary, ViewState } from "./types.js";

export interface Options {
  /** Address of the server. `http://127.0.0.1:7420` by default. */
  url?: string;
  /** The token. A page that is logged in needs none: its cookie goes with each request. */
  token?: string;
  /** Time without a reachable server after which a stream or a start fails, in milliseconds. 5 minutes by default. */
  reconnectMs?: number;
  /** Time without a byte after which a stream counts as broken, in milliseconds. 35 s by default, more than two heartbeats. */
  silenceMs?: number;
  /** Time limit of a response, in milliseconds; of a stream, of its beginning. 60 s by default, `Infinity` for none. */
  timeoutMs?: number;
  /** The `fetch` to use. */
  fetch?: typeof fetch;
}

export interface StartOptions extends CallOptions {
  /** A repeated request with the same key starts nothing and returns the existing run. Random by default. */
  idempotencyKey?: string;
}

/** A server. */
export class Teamster {
  private readonly connection: Connection;

  constructor(options: Options = {}) {
    const url = options.url ?? "http://127.0.0.1:7420";
    if (/^\w+:\/\/[^/?#]*@/.test(url)) throw new TeamsterError("the address has a password: give the token as `token`");
    // That of a file ends with a line.
    const token = options.token?.trim();
    this.connection = {
      url: url.replace(/\/+$/, ""),
      token: token ? ascii("the token", token) : undefined,
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
      reconnectMs: options.reconnectMs ?? 300_000,
      silenceMs: options.silenceMs ?? 35_000,
      timeoutMs: options.timeoutMs ?? 60_000,
    };
  }

  /** Starts a run. If the connection breaks, the request is repeated, and the run still starts once. */
  async start(run: RunSpec, options: StartOptions = {}): Promise<Run> {
    return this.started(await this.begin("POST", "/runs", run, options, once(options.idempotencyKey)));
  }

  /** Starts a run with an id of your own, such as a UUID. A repeated call with the same id and run starts nothing. */
  async startWithId(id: string, run: RunSpec, options: CallOptions = {}): Promise<Run> {
    return this.started(await this.begin("PUT", pathOf("runs", id), run, options));
  }

  /** Starts a session, also once. It waits for its first prompt. */
  async startSession(session: SessionSpec, options: StartOptions = {}): Promise<Session> {
    return this.startedSession(await this.begin("POST", "/sessions", session, options, once(options.idempotencyKey)));
  }

  /** Starts a session with an id of your own. A repeated call with the same id and session starts nothing. */
  async startSessionWithId(id: string, session: SessionSpec, options: CallOptions = {}): Promise<Session> {
    return this.startedSession(await this.begin("PUT", pathOf("sessions", id), session, options));
  }

  private started({ runId, warnings }: StartedRun): Run {
    return new Run(this.connection, runId, warnings);
  }

  private startedSession({ runId, warnings }: StartedRun): Session {
    return new Session(this.connection, runId, warnings);
  }

  private async begin(method: "POST" | "PUT", path: string, body: unknown, options: CallOptions, headers?: Record<string, string>): Promise<StartedRun> {
    const { signal, timeoutMs } = options;
    const patience = new Patience(this.connection, signal);
    for (;;) {
      try {
        return await json<StartedRun>(this.connection, path, "runId", { method, body, headers, signal, timeoutMs });
      } catch (error) {
        await patience.wait(error);
      }
    }
  }

  /** Returns the run with this id, without a request. */
  run(id: string): Run {
    return new Run(this.connection, id);
  }

  /** Returns the session with this id, without a request. */
  session(id: string): Session {
    return new Session(this.connection, id);
  }

  /** Sessions, newest first. */
  async sessions(query: { state?: ViewState } = {}, options: CallOptions = {}): Promise<SessionList["sessions"]> {
    return (await json<SessionList>(this.connection, `/sessions${search(query)}`, "sessions", options)).sessions;
  }

  /** A page of runs, newest first. `text`: words of their titles, with `prompts` also of prompts that are kept. */
  runs(query: { agent?: string; directory?: string; text?: string; prompts?: boolean; state?: ViewState; machine?: string; since?: number; limit?: number; cursor?: string } = {}, options: CallOptions = {}): Promise<RunList> {
    return json(this.connection, `/runs${search(query)}`, "runs", options);
  }

  /** Pending requests of all runs. */
  async requests(options: CallOptions = {}): Promise<PendingRequest[]> {
    return (await json<RequestList>(this.connection, "/requests", "requests", options)).requests;
  }

  /** Answers a request. The first answer counts; a later one is a `Problem` with the code `ALREADY_ANSWERED`. */
  async answer(requestId: string, answer: Answer, options: CallOptions = {}): Promise<void> {
    await command(this.connection, requestPath(requestId), { ...options, method: "POST", body: answer });
  }

  /** State of all runs and agents, then each change. */
  watch(options: CallOptions = {}): AsyncGenerator<Change, void, void> {
    return watch(this.connection, options);
  }

  /** The agents in a loop. */
  agents(options: CallOptions = {}): Promise<AgentList> {
    return json(this.connection, "/agents", "agents", options);
  }

  /** Starts, stops, restarts or wakes an agent. */
  async command(agentId: string, command: "start" | "stop" | "restart" | "wake", options: CallOptions = {}): Promise<AgentList> {
    return json(this.connection, pathOf("agents", agentId, command), "agents", { ...options, method: "POST" });
  }

  /** The last lines of an agent's log. */
  async agentLog(agentId: string, lines = 100, options: CallOptions = {}): Promise<string> {
    return (await text(this.connection, `${pathOf("agents", agentId, "log")}?lines=${lines}`, "text/plain", options)) ?? "";
  }

  /** The agents' CLIs on the server's machine, with their capabilities. */
  async providers(options: CallOptions = {}): Promise<ProviderList["providers"]> {
    return (await json<ProviderList>(this.connection, "/providers", "providers", options)).providers;
  }

  /** Limits of subscriptions, such as the 5-hour and the weekly one. */
  limits(options: CallOptions = {}): Promise<LimitList> {
    return json(this.connection, "/limits", "limits", options);
  }

  /** The fleet whose machines carry out the server's runs; undefined if the server's own machine does. */
  fleet(options: CallOptions = {}): Promise<FleetStatus | undefined> {
    return optional(this.connection, "/fleet", "workers", options);
  }

  /** All recorded runs, attached ones and ticks of agents too, newest first. */
  history(query: { since?: number; until?: number; status?: string; agent?: string; key?: string; directory?: string; text?: string; limit?: number; cursor?: string } = {}, options: CallOptions = {}): Promise<HistoryList> {
    return json(this.connection, `/history${search(query)}`, "runs", options);
  }

  /** Tokens and cost; `by` is `day`, `model`, `agent`, `key` and others. */
  usage(query: { by?: string; since?: string; until?: string; provider?: string; models?: boolean } = {}, options: CallOptions = {}): Promise<UsageSummary> {
    return json(this.connection, `/usage${search(query)}`, "by", options);
  }
}

function search(query: Record<string, string | number | boolean | undefined>): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  return pairs.length > 0 ? `?${new URLSearchParams(pairs.map(([key, value]) => [key, String(value)]))}` : "";
}
