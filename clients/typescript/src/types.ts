// Made by clients/generate.py from the OpenAPI document. Do not edit.

/** An error of a run: the payload of an `error` event, and a `std::error::Error`.  The message is for people; programs decide by the other fields. */
export interface AgentError {
  /** What happened, for a person, with the next step where there is one. */
  message: string;
  /** Where the error was found. */
  code?: ErrorCode;
  /** What the error means: the basis for retry, fallback or giving up. */
  kind: ErrorKind;
  /** Whether the same request may succeed when repeated. */
  retryable: boolean;
  /** Backoff before a retry in milliseconds, if the service gave one. */
  retryAfterMs?: number | null;
  /** When a limit resets, in milliseconds since the Unix epoch. */
  resetsAt?: number | null;
  /** What the error is about, as data. */
  detail?: ErrorDetail | null;
  /** The underlying error: that of the last attempt, or the one that put a provider on hold. */
  cause?: AgentError | null;
}

/** The agents of a supervisor. */
export interface AgentList {
  /** The configuration. */
  config?: string | null;
  /** The supervisor; null if none is running. */
  supervisor?: Record<string, unknown> | null;
  /** The master switch: while it is off, no agent is started. */
  enabled: boolean;
  /** The agents. */
  agents: Record<string, unknown>[];
}

export interface AllowAnswer {
  decision: "allow";
}

export interface AllowAlwaysAnswer {
  decision: "allow_always";
}

export interface AllowWithAnswer {
  decision: "allow_with";
  /** The input. */
  input: unknown;
}

export interface DenyAnswer {
  decision: "deny";
  /** Why, for the model. */
  reason?: string | null;
}

/** An answer to a request. */
export type Answer = AllowAnswer | AllowAlwaysAnswer | AllowWithAnswer | DenyAnswer;

/** One attempt of a run. */
export interface Attempt {
  /** The provider. */
  provider: string;
  /** The model: as the agent says, else as it was asked for. */
  model?: string | null;
  /** Its session. */
  sessionId?: string | null;
  /** It went on with the session of the attempt before, because of what that had done. */
  resumed: boolean;
  /** How long it took, in milliseconds. */
  durationMs: number;
  /** What it used. */
  usage?: Usage | null;
  /** What it cost, in USD. */
  costUsd?: number | null;
  /** Why it failed, if it did. */
  error?: AgentError | null;
}

/** A budget of a run. */
export type BudgetKind = "time" | "tokens" | "usd" | "turns";

/** How a run is stopped. */
export interface Cancel {
  /** At once, by force. */
  kill?: boolean;
}

export interface SnapshotChange {
  type: "snapshot";
  /** The newest 50 runs and all that have not ended, the newest first. */
  runs: RunSummary[];
  /** The agents; absent if the server has no configuration of them. */
  agents?: AgentList | null;
}

export interface RunChange {
  type: "run";
  /** How it is now. */
  run: RunSummary;
}

export interface GoneChange {
  type: "gone";
  /** Its id. */
  runId: string;
}

export interface AgentsChange {
  type: "agents";
  /** How they are now. */
  agents: AgentList;
}

/** One message of the stream. */
export type Change = SnapshotChange | RunChange | GoneChange | AgentsChange;

/** What happened to a file. */
export type ChangeKind = "add" | "delete" | "move" | "update";

/** Where a cost comes from. */
export type CostSource = "reported" | "estimated";

/** Outcome of a permission request. */
export type Decision = "allowed" | "denied" | "requested" | "other";

/** Counts of lines that the CLI printed. */
export interface Diagnostics {
  /** Lines that were not blank. */
  lines: number;
  /** Lines that are not the JSON they should be. */
  malformed: number;
  /** Lines longer than the limit. */
  oversize: number;
  /** JSON lines of a type that the decoder does not know. */
  unknown: number;
}

export interface SessionLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The id with which the session can be resumed. */
  sessionId: string;
  /** The model that answers. */
  model?: string | null;
  /** Names of the tools that the agent has. */
  tools?: string[] | null;
  /** MCP servers and their states. */
  mcpServers?: McpServerStatus[] | null;
  type: "session";
}

export interface TextLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The new text. */
  text: string;
  /** The message it belongs to. */
  messageId?: string | null;
  /** The tool call that started the sub-agent which wrote this; absent for the main agent. */
  parentToolId?: string | null;
  type: "text";
}

export interface RetractLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The message whose `text` and `thinking` events so far are void. New ones may follow. */
  messageId: string;
  type: "retract";
}

export interface ThinkingLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The new text. */
  text: string;
  /** The message it belongs to. */
  messageId?: string | null;
  /** The tool call that started the sub-agent which wrote this; absent for the main agent. */
  parentToolId?: string | null;
  type: "thinking";
}

export interface ToolUseLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The CLI's own name of the tool. */
  toolName: string;
  /** The id that the `tool_result` will carry. Unique in the run. */
  toolId: string;
  /** The arguments, complete. */
  input: unknown;
  /** The category of the tool. */
  kind: ToolKind;
  /** Server and tool, for a tool of an MCP server. */
  mcp?: McpTool | null;
  /** The tool call that started the sub-agent which made this call; absent for the main agent. */
  parentToolId?: string | null;
  type: "tool_use";
}

export interface ToolResultLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The id of the `tool_use`. */
  toolId: string;
  /** The result as text, complete. Images become a placeholder with their type and size. */
  output: string;
  /** Whether the tool failed, if the CLI reports it. */
  isError?: boolean | null;
  /** As in the `tool_use`. */
  parentToolId?: string | null;
  type: "tool_result";
}

export interface FileChangeLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The file, as the CLI names it. */
  path: string;
  /** What happened to it. */
  change: ChangeKind;
  /** The tool call that did it. */
  toolId?: string | null;
  type: "file_change";
}

export interface PlanLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** All entries, in order. */
  entries: PlanEntry[];
  type: "plan";
}

export interface PermissionLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The tool in question. */
  toolName: string;
  /** The call in question. */
  toolId?: string | null;
  /** The decision. */
  decision: Decision;
  /** The reason, in the CLI's words. */
  reason?: string | null;
  /** Id of the request that callers can answer, in the log of a detached run. */
  requestId?: string | null;
  type: "permission";
}

export interface UsageLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** What the run has used so far. */
  usage: Usage;
  /** What it has cost so far in USD, if the CLI reports that. */
  costUsd?: number | null;
  type: "usage";
}

export interface RetryLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Number of this retry, from 1. On the wire it is `number`: an entry's `attempt` is that of the run. */
  number: number;
  /** Limit of retries. */
  maxAttempts?: number | null;
  /** Backoff before this retry, in milliseconds. */
  delayMs?: number | null;
  /** The error that caused it. */
  error: AgentError;
  type: "retry";
}

export interface RateLimitLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The CLI's word, such as `allowed`, `allowed_warning` or `rejected`. */
  status: string;
  /** When the limit resets, in milliseconds since the Unix epoch. */
  resetsAt?: number | null;
  /** Name of the limit, such as `five_hour`. */
  kind?: string | null;
  /** Used share of the limit, from 0 to 1. */
  utilization?: number | null;
  type: "rate_limit";
}

export interface NoticeLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Severity. */
  level: NoticeLevel;
  /** The text, for a person. */
  message: string;
  /** Source. */
  source: NoticeSource;
  type: "notice";
}

export interface UnknownLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The line. */
  native?: Native;
  type: "unknown";
}

export interface TurnEndLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Why the model stopped, in the CLI's word. */
  stopReason?: string | null;
  /** Whether the turn failed. */
  isError: boolean;
  /** What the turn used. */
  usage?: Usage | null;
  /** What the turn cost, in USD. */
  costUsd?: number | null;
  type: "turn_end";
}

export interface ErrorLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** What happened, for a person, with the next step where there is one. */
  message: string;
  /** Where the error was found. */
  code?: ErrorCode;
  /** What the error means: the basis for retry, fallback or giving up. */
  kind: ErrorKind;
  /** Whether the same request may succeed when repeated. */
  retryable: boolean;
  /** Backoff before a retry in milliseconds, if the service gave one. */
  retryAfterMs?: number | null;
  /** When a limit resets, in milliseconds since the Unix epoch. */
  resetsAt?: number | null;
  /** What the error is about, as data. */
  detail?: ErrorDetail | null;
  /** The underlying error: that of the last attempt, or the one that put a provider on hold. */
  cause?: AgentError | null;
  type: "error";
}

export interface DoneLogEntry {
  /** The entry's number in its log: from 1, without gaps. 0 until the log has numbered it. */
  seq: number;
  /** When it happened, in milliseconds since the Unix epoch. 0 until that is known. */
  atMs: number;
  /** The run, where it has an id. */
  runId?: string | null;
  /** The attempt of the run that it belongs to, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) asked for it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The result of the run. */
  result: RunResult;
  type: "done";
}

export interface RunStartLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:start";
  /** The run. */
  runId: string;
  /** The agent's session. */
  sessionId?: string | null;
  /** The provider that is tried first. */
  provider: string;
  /** The model, as the agent says, else as it was asked for. */
  model?: string | null;
}

export interface RunEndLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  /** The run. */
  runId: string;
  /** How it ended, in three words. */
  status: OutcomeStatus;
  /** The same in the words of a result. Absent in a line of an older version. */
  runStatus?: RunStatus | null;
  /** From its acceptance to its end, in milliseconds: waiting included. */
  durationMs: number;
  /** What came of it. */
  result: Outcome;
  type: "run:end";
}

export interface RunErrorLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:error";
  /** The run. */
  runId: string;
  /** Why. */
  error: AgentError;
}

export interface RunAttemptLogEntry {
  seq: number;
  atMs: number;
  /** The number of the attempt; the first of a run is 1. */
  attempt: number;
  type: "run:attempt";
  /** The run. */
  runId: string;
  /** The provider. */
  provider: string;
  /** The requested model. */
  model?: string | null;
  /** The session of an earlier attempt that this one resumes because of its side effects. */
  resumes?: string | null;
}

export interface RunHoldLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:hold";
  /** The run. */
  runId: string;
  /** The group that shares limits and holds: the provider, unless the candidate names another. */
  group: string;
  /** The requested model, if any. */
  model?: string | null;
  /** When the hold is over, in milliseconds since the Unix epoch; absent where it waits for room. */
  untilMs?: number | null;
  /** The error that has put it on hold. */
  reason?: AgentError | null;
}

export interface RunRetryLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:retry";
  /** The run. */
  runId: string;
  /** Why the last one failed. */
  reason: AgentError;
  /** How long the run waits before it, in milliseconds. */
  delayMs: number;
  /** What comes. */
  next: Next;
}

export interface RunFallbackLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:fallback";
  /** The run. */
  runId: string;
  /** Why the last candidate was given up. */
  reason: AgentError;
  /** How long the run waits before it, in milliseconds. */
  delayMs: number;
  /** What comes. */
  next: Next;
}

export interface ToolStartLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "tool:start";
  /** The run. */
  runId: string;
  /** The tool, by the CLI's own name. */
  toolName: string;
  /** The call. */
  toolId: string;
}

export interface ToolEndLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "tool:end";
  /** The run. */
  runId: string;
  /** The tool, by the CLI's own name. */
  toolName: string;
  /** The call. */
  toolId: string;
  /** From its start, in milliseconds. */
  durationMs: number;
  /** It failed, or its attempt ended before it did. */
  isError: boolean;
}

export interface AssistantChunkLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "assistant:chunk";
  /** The run. */
  runId: string;
  /** The text. */
  content: string;
}

export interface AssistantMessageLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "assistant:message";
  /** The run. */
  runId: string;
  /** The text. */
  content: string;
}

export interface UserMessageLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "user:message";
  /** The turn. */
  runId: string;
  /** What is said. */
  text: string;
  /** Who says it, such as `terminal pts/3`. */
  from?: string | null;
  /** The turn is in progress already. */
  steer?: boolean;
}

export interface ResetLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "reset";
  /** The run. */
  runId: string;
}

/** An entry of a run's log: an event of the agent, or one of the run itself, which has a colon in its `type` (or is `reset`). */
export type Entry = SessionLogEntry | TextLogEntry | RetractLogEntry | ThinkingLogEntry | ToolUseLogEntry | ToolResultLogEntry | FileChangeLogEntry | PlanLogEntry | PermissionLogEntry | UsageLogEntry | RetryLogEntry | RateLimitLogEntry | NoticeLogEntry | UnknownLogEntry | TurnEndLogEntry | ErrorLogEntry | DoneLogEntry | RunStartLogEntry | RunEndLogEntry | RunErrorLogEntry | RunAttemptLogEntry | RunHoldLogEntry | RunRetryLogEntry | RunFallbackLogEntry | ToolStartLogEntry | ToolEndLogEntry | AssistantChunkLogEntry | AssistantMessageLogEntry | UserMessageLogEntry | ResetLogEntry;

/** Where an error was found. The names are stable. */
export type ErrorCode = "CLI_NOT_FOUND" | "CLI_STDERR" | "CLI_EXIT_ERROR" | "CLI_ERROR" | "STARTUP_TIMEOUT" | "WATCHDOG_TIMEOUT" | "ABORTED" | "INVALID_PARAMS" | "PROMPT_TOO_LARGE" | "STREAM_ENDED_EARLY" | "OUTPUT_LIMIT" | "CONFIG_LEASE" | "IO" | "BUDGET_EXCEEDED" | "INTERRUPTED" | "PROVIDER_ON_HOLD" | "NO_TURN" | "UNKNOWN";

export interface ParameterErrorDetail {
  type: "parameter";
  /** The name in `ExecuteParams`(crate::ExecuteParams), such as `mcp_servers`, or that of another setting, such as `provider`, `run_id` or `budget.usd`. */
  name: string;
  /** The item of a list, such as the name of an MCP server or of a variable. */
  item?: string | null;
  /** What is wrong with it, for a person: the message without the names. */
  problem: string;
}

export interface BudgetErrorDetail {
  type: "budget";
  /** Which budget. */
  budget: BudgetKind;
  /** Its limit: tokens, USD, seconds or turns. */
  limit?: number | null;
}

export interface NotRetriedErrorDetail {
  type: "not_retried";
  /** Why there was none. */
  reason: NotRetried;
  /** The same for a person, with the next step. */
  explanation: string;
}

export interface MissingProgramErrorDetail {
  type: "missing_program";
  /** The name that was looked for. */
  program: string;
  /** The command that installs it, also part of the message. Empty if unknown. */
  install: string;
}

/** The subject of an error, as data. A type that only a newer version knows is read as `Other`(Self::Other). */
export type ErrorDetail = ParameterErrorDetail | BudgetErrorDetail | NotRetriedErrorDetail | MissingProgramErrorDetail;

/** What to do about an error. */
export type ErrorKind = "auth" | "rate_limit" | "quota" | "overloaded" | "network" | "context_window" | "model_not_found" | "session_not_found" | "permission" | "budget" | "max_turns" | "mcp" | "timeout" | "aborted" | "interrupted" | "not_found" | "invalid" | "protocol" | "internal";

/** One page of a log. */
export interface LogPage {
  /** The entries. */
  entries: Entry[];
  /** The `after` of the next page. */
  next: number;
  /** Whether the log has its end here. */
  ended: boolean;
}

/** State of an MCP server as the CLI reports it. */
export interface McpServerStatus {
  /** Its name in the configuration. */
  name: string;
  /** The CLI's word for its state, such as `connected`, `failed` or `pending`. */
  status: string;
}

/** A tool of an MCP server. */
export interface McpTool {
  /** The server's name in the configuration. */
  server: string;
  /** The tool's own name. */
  tool: string;
}

/** What one model used in a run. */
export interface ModelUsage {
  /** Tokens. */
  usage: Usage;
  /** Cost in USD. */
  costUsd?: number | null;
  /** Size of the model's context window in tokens. */
  contextWindow?: number | null;
  /** Most output tokens of one answer. */
  maxOutputTokens?: number | null;
}

/** The JSON value that the CLI printed, as it came. */
export type Native = unknown;

/** The attempt that comes. */
export interface Next {
  /** Its number; the first attempt of a run is 1. */
  attempt: number;
  /** The provider. */
  provider: string;
  /** The model, if one was asked for. */
  model?: string | null;
  /** The session that it goes on with, because of what was done already. Without it the prompt is sent again, and the text of the failed attempt is void. */
  resumes?: string | null;
}

/** Why a run was not retried although its policy allows it. */
export type NotRetried = "out_of_time" | "no_slot" | "side_effects" | "session_lost";

/** Severity of a notice. */
export type NoticeLevel = "info" | "warning";

/** Source of a notice. */
export type NoticeSource = "stdout" | "stderr" | "runtime";

/** What came of a run, over all its attempts. A figure that no CLI reported is absent, never 0. */
export interface Outcome {
  /** The agent's messages, in order: text of one message id, up to a tool call, its end, or the end of a turn. Those of an attempt after which the prompt was sent again are not among them. */
  payloads: Payload[];
  /** What all attempts used together. */
  usage?: Usage | null;
  /** The answer in the shape of `output_schema`. */
  structuredOutput?: unknown;
  /** How it went. */
  meta: OutcomeMeta;
}

/** How a run went. */
export interface OutcomeMeta {
  /** The run. */
  runId: string;
  /** How it ended. */
  status: OutcomeStatus;
  /** The session in which the last attempt worked, to go on with it. */
  sessionId?: string | null;
  /** The provider of the last attempt. */
  provider: string;
  /** The model of the last attempt: as the agent says, else as it was asked for. */
  model?: string | null;
  /** From the run's acceptance to its end, in milliseconds: waiting included. */
  durationMs: number;
  /** Why it did not succeed. */
  error?: AgentError | null;
  /** How many attempts there were; 0 if none could begin. */
  attempts: number;
  /** Each of them, in order. */
  attemptLog?: Attempt[];
  /** What all attempts cost together, in USD, of what was reported. */
  costUsd?: number | null;
  /** Turns of all attempts, as the CLIs count them. */
  numTurns?: number | null;
}

/** How a run ended. */
export type OutcomeStatus = "success" | "aborted" | "error";

/** One message of the agent. */
export interface Payload {
  /** Its text. */
  text: string;
}

/** A request that waits for an answer: a tool that wants permission, or the question of an MCP server. */
export interface PendingRequest {
  /** Its id: that of the run, `/`, and a number. */
  requestId: string;
  /** The run. */
  runId: string;
  /** The tool, in the CLI's own name. */
  toolName: string;
  /** The call of the tool. */
  toolId?: string | null;
  /** What kind of tool it is. */
  kind: ToolKind;
  /** What the tool is to do. */
  input: unknown;
  /** What the CLI says about it. */
  message?: string | null;
  /** The JSON Schema of the answer that an MCP server asks for. */
  schema?: unknown;
  /** Whether an input can be given with the answer. */
  takesInput: boolean;
  /** Whether the reason of a denial reaches the model. */
  takesReason?: boolean;
  /** When it came, in milliseconds since the Unix epoch. */
  askedAt: number;
  /** When it is denied without an answer. */
  expiresAt?: number | null;
}

/** A tool call that was not permitted. */
export interface PermissionDenial {
  /** The tool. */
  toolName: string;
  /** The call. */
  toolId?: string | null;
  /** Why, in the CLI's words. */
  reason?: string | null;
}

/** What an agent may do without approval. */
export type PermissionMode = "default" | "read-only" | "accept-edits" | "bypass";

/** One entry of a plan. */
export interface PlanEntry {
  /** The task. */
  content: string;
  /** Its progress. */
  status: PlanStatus;
}

/** Progress of a plan entry. */
export type PlanStatus = "in_progress" | "completed" | "cancelled" | "pending";

/** An error of the API: problem details of RFC 9457. */
export interface Problem {
  /** `about:blank`: `code` says what it is. */
  type: string;
  /** The status in words. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** The error as a word for programs. */
  code: ProblemCode;
  /** The error, for people. */
  detail: string;
}

/** An error of the API as a word for programs. Stable. */
export type ProblemCode = "UNAUTHORIZED" | "INSUFFICIENT_SCOPE" | "HOST_NOT_ALLOWED" | "ORIGIN_NOT_ALLOWED" | "BYPASS_NOT_ALLOWED" | "COMMAND_NOT_ALLOWED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "RUN_NOT_FOUND" | "RUN_ID_AMBIGUOUS" | "RUN_EXISTS" | "RUN_ENDED" | "REQUEST_NOT_FOUND" | "ALREADY_ANSWERED" | "INVALID_ANSWER" | "IDEMPOTENCY_KEY_REUSED" | "INVALID_BODY" | "INVALID_PARAMS" | "BODY_TOO_LARGE" | "BODY_TIMEOUT" | "UNSUPPORTED_MEDIA_TYPE" | "AGENT_NOT_FOUND" | "AGENT_REFUSED" | "SUPERVISOR_NOT_RUNNING" | "RUNNER_NOT_RESPONDING" | "UNSUPPORTED" | "INTERNAL";

/** The agents of this machine. */
export interface ProviderList {
  /** One report for each, with its `capabilities`; as `teamster doctor --json` has it. */
  providers: Record<string, unknown>[];
}

/** What waits for an answer. */
export interface RequestList {
  /** The requests, those of the newest run first. */
  requests: PendingRequest[];
}

/** One prompt, or a conversation. */
export type RunKind = "run" | "session" | "tick" | "other";

/** A page of runs, newest first. */
export interface RunList {
  /** The runs. */
  runs: RunSummary[];
  /** The `cursor` of the next page; absent on the last one. */
  next?: string | null;
}

/** The whole of a run, known at its end. A figure that the CLI did not report is absent, never 0. */
export interface RunResult {
  /** How it ended. */
  status: RunStatus;
  /** All text of the main agent that was not retracted, as it came: nothing stands between two messages. `messages`(Self::messages) parts them, and `answer`(Self::answer) is the last. */
  text: string;
  /** How `text` is parted into messages: its pieces, in order. */
  pieces?: TextPiece[];
  /** The last message of the main agent: the answer, without what it said on the way. */
  finalMessage?: string | null;
  /** The session, to resume it. */
  sessionId?: string | null;
  /** The model that answered. */
  model?: string | null;
  /** From the start of the process to its end, in milliseconds. */
  durationMs: number;
  /** Time spent in requests to the model, in milliseconds. */
  apiDurationMs?: number | null;
  /** What this run used. */
  usage?: Usage | null;
  /** What the session has used in all, where a CLI reports that. */
  sessionUsage?: Usage | null;
  /** What each model used. */
  usageByModel?: Record<string, ModelUsage>;
  /** What this run cost, in USD. */
  totalCostUsd?: number | null;
  /** Where the cost comes from. */
  costSource?: CostSource | null;
  /** Turns, as the CLI counts them. */
  numTurns?: number | null;
  /** Why the model stopped, in the CLI's word. */
  stopReason?: string | null;
  /** Whether the caller stopped the run. */
  aborted: boolean;
  /** Exit code of the process; absent when a signal ended it or it never started. */
  exitCode?: number | null;
  /** Name of the signal that ended the process, such as `SIGKILL`. */
  exitSignal?: string | null;
  /** The end of what the CLI wrote to its standard error. */
  stderr?: string | null;
  /** Every `error` event of the run. */
  errors?: AgentError[];
  /** Every denial of permission. */
  permissionDenials?: PermissionDenial[];
  /** Tool calls that never got a result. */
  openToolIds?: string[];
  /** The answer in the shape of `output_schema`. */
  structuredOutput?: unknown;
  /** What was odd about the output. */
  diagnostics: Diagnostics;
}

/** How a run ended. */
export type RunStatus = "completed" | "aborted" | "timed_out" | "incomplete" | "failed";

/** A run, without what it has said. */
export interface RunSummary {
  /** The run's id. */
  runId: string;
  /** One prompt, or a conversation. */
  kind: RunKind;
  /** The provider that is tried first. */
  provider: string;
  /** The model that was asked for. */
  model?: string | null;
  /** Where the agent works. */
  directory?: string | null;
  /** The branch of the git worktree that was made for it. */
  branch?: string | null;
  /** When it was accepted, in milliseconds since the Unix epoch. */
  acceptedAt: number;
  /** What it does. */
  state: ViewState;
  /** How it ended; absent while it runs. */
  status?: RunStatus | null;
  /** The number of the newest entry of its log. */
  seq: number;
  /** When its log was last written to, in milliseconds since the Unix epoch. */
  changedAt?: number | null;
  /** The session of its agent, as far as it is known. */
  sessionId?: string | null;
  /** The tokens so far, as far as the agent reports them. */
  usage?: Usage | null;
  /** The cost so far in US dollars, as far as it is known. */
  costUsd?: number | null;
  /** How long it took, in milliseconds; absent while it runs. */
  durationMs?: number | null;
  /** Why it failed. */
  error?: AgentError | null;
  /** Its requests that wait for an answer. */
  requests: PendingRequest[];
}

/** A run and its result. */
export interface RunView {
  /** The run's id. */
  runId: string;
  /** One prompt, or a conversation. */
  kind: RunKind;
  /** The provider that is tried first. */
  provider: string;
  /** The model that was asked for. */
  model?: string | null;
  /** Where the agent works. */
  directory?: string | null;
  /** The branch of the git worktree that was made for it. */
  branch?: string | null;
  /** When it was accepted, in milliseconds since the Unix epoch. */
  acceptedAt: number;
  /** What it does. */
  state: ViewState;
  /** How it ended; absent while it runs. */
  status?: RunStatus | null;
  /** The number of the newest entry of its log. */
  seq: number;
  /** When its log was last written to, in milliseconds since the Unix epoch. */
  changedAt?: number | null;
  /** The session of its agent, as far as it is known. */
  sessionId?: string | null;
  /** The tokens so far, as far as the agent reports them. */
  usage?: Usage | null;
  /** The cost so far in US dollars, as far as it is known. */
  costUsd?: number | null;
  /** How long it took, in milliseconds; absent while it runs. */
  durationMs?: number | null;
  /** Why it failed. */
  error?: AgentError | null;
  /** Its requests that wait for an answer. */
  requests: PendingRequest[];
  /** The result; absent while it runs. */
  result?: RunResult | null;
}

/** A run to start. What is left out is as in `teamster run --detach`. */
export interface StartRun {
  /** The agent, such as `claude`. */
  provider: string;
  /** The prompt. */
  prompt: string;
  /** The model, by the CLI's own name. */
  model?: string | null;
  /** Reasoning effort, in the CLI's own words. */
  effort?: string | null;
  /** What the agent may do without approval. */
  permission?: PermissionMode;
  /** Tools that are allowed, in the CLI's own syntax. */
  allowedTools?: string[];
  /** Tools that are forbidden, in the CLI's own syntax. */
  deniedTools?: string[];
  /** Where the agent works, an absolute path; the server's own working directory if left out. */
  workingDirectory?: string | null;
  /** A git worktree of its own for the run: `true`, or the name of its branch. */
  worktree?: Worktree | null;
  /** The session that it resumes. */
  sessionId?: string | null;
  /** With `sessionId`: go on in a new session and leave that one unchanged. */
  fork?: boolean;
  /** Replaces the CLI's system prompt. */
  systemPrompt?: string | null;
  /** Is appended to the CLI's system prompt. */
  appendSystemPrompt?: string | null;
  /** The JSON Schema of the answer. */
  outputSchema?: unknown;
  /** The most turns. */
  maxTurns?: number | null;
  /** The most that it may cost, in US dollars. */
  maxBudgetUsd?: number | null;
  /** The most tokens. */
  maxTokens?: number | null;
  /** The longest time, in milliseconds, waiting included. */
  maxTimeMs?: number | null;
  /** How often transient failures are retried. */
  retries?: number;
  /** Agents that take over when the previous ones fail, such as `codex` or `codex:gpt-5.1`. */
  fallback?: string[];
  /** How long a request waits for an answer before it is denied, in milliseconds; 0 denies at once. 1 hour. */
  askTimeoutMs?: number | null;
  /** A URL that gets a request when the run has ended, and when it needs an answer. */
  callback?: string | null;
}

/** A piece of a result's `text`: consecutive text of one message. */
export interface TextPiece {
  /** The message it belongs to. */
  messageId?: string | null;
  /** Its length in bytes of UTF-8. It begins where the piece before it ends. */
  bytes: number;
}

/** Category of a tool, the same for every CLI. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "task" | "mcp" | "other";

/** Tokens used. A figure that the CLI did not report is absent, never 0.  Every provider converts its CLI's own convention (cached tokens inside or beside the input, deltas or running totals) to this one. */
export interface Usage {
  /** Input tokens that were neither read from nor written to a cache. */
  inputTokens?: number | null;
  /** Output tokens, reasoning included. */
  outputTokens?: number | null;
  /** Input tokens read from a prompt cache, beside `input_tokens`. */
  cacheReadTokens?: number | null;
  /** Input tokens written to a prompt cache, beside `input_tokens`. */
  cacheWriteTokens?: number | null;
  /** Reasoning tokens, a part of `output_tokens`. */
  reasoningTokens?: number | null;
}

/** What agents have used, in groups. */
export type UsageSummary = Record<string, unknown>;

/** What a run does. */
export type ViewState = "running" | "waiting" | "ended";

/** A git worktree of its own for a run. */
export type Worktree = boolean | string;
