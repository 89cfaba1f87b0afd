// Made by clients/generate.py from the OpenAPI document. Do not edit.

/** Depth of an agent among agents that start agents, and its limit.  An agent without one was started by no other, or by one whose depth is unknown. */
export interface AgentDepth {
  /** The number of runs around the agent, its own included. */
  own: number;
  /** The depth from which on an agent starts no others. Absent: no limit. */
  limit?: number | null;
}

/** An error of a run: the payload of an `error` event, and a `std::error::Error`.  The message is for people; programs decide by the other fields. */
export interface AgentError {
  /** Description for a person, with the next step where there is one. */
  message: string;
  /** Origin of the error. */
  code?: ErrorCode;
  /** Classification: the basis for retry, fallback or giving up. */
  kind: ErrorKind;
  /** True if the same request may succeed when repeated. */
  retryable: boolean;
  /** Backoff before a retry in milliseconds, if the service gave one. */
  retryAfterMs?: number | null;
  /** Time at which a limit resets, in milliseconds since the Unix epoch. */
  resetsAt?: number | null;
  /** Details as data. */
  detail?: ErrorDetail | null;
  /** The underlying error: that of the last attempt, or the one that put a provider on hold. */
  cause?: AgentError | null;
}

/** The agents of a supervisor. */
export interface AgentList {
  /** The configuration; absent if the server has none. */
  config?: string | null;
  /** The supervisor; null if none is running. */
  supervisor?: SupervisorStatus | null;
  /** The master switch: while it is off, no agent is started. */
  enabled: boolean;
  /** The agents, in the order of the configuration. */
  agents: AgentStatus[];
  /** Warnings about settings without effect, for people. */
  warnings?: string[];
}

/** A selection of agents. */
export interface AgentSelection {
  /** The ids of the agents. */
  agents?: string[];
  /** Select all agents. */
  all?: boolean;
}

/** State of an agent's loop. */
export type AgentState = "running" | "failing" | "limited" | "suspended" | "starting" | "stopping" | "backing_off" | "stopped" | "ended" | "failed" | "other";

/** Status of an agent. */
export interface AgentStatus {
  /** Id of the agent. */
  id: string;
  /** Name that other agents use for it. */
  alias?: string | null;
  /** Role of the agent, for people. */
  role?: string | null;
  /** Runtime of its loop, if the configuration names one. */
  runtime?: string | null;
  /** Working directory. */
  workingDir: string;
  /** The agent's own switch. */
  enabled: boolean;
  /** State of its loop. */
  state: AgentState;
  /** Process id of its loop. */
  pid?: number | null;
  /** Start time of its loop, in milliseconds since the Unix epoch. */
  startedAtMs?: number | null;
  /** The agent is no longer in the configuration and disappears when its loop has ended. */
  removed?: boolean;
  /** The loop was started by an earlier supervisor or another program. */
  adopted?: boolean;
  /** Automatic restarts since the last requested start. */
  restarts: number;
  /** Time of the next automatic start, in milliseconds since the Unix epoch. */
  retryAtMs?: number | null;
  /** Reason of the last change, such as the exit of its loop. */
  reason?: string | null;
  /** The loop ended cleanly after a request: `reason` adds nothing to `state`. */
  stoppedInOrder?: boolean;
  /** Last error, of its tick or its loop. */
  lastError?: LastError | null;
  /** Last heartbeat of its loop, in milliseconds since the Unix epoch. */
  heartbeatMs?: number | null;
  /** Last tick. */
  lastTick?: TickRecord | null;
  /** The agent's own status: its `status.json`, if that is valid JSON of at most 64 KiB. */
  status?: unknown;
  /** The loop's own status, while it runs. */
  activity?: SleepFile | null;
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
  /** Reason, for the model. */
  reason?: string | null;
}

/** Answer to a request. */
export type Answer = AllowAnswer | AllowAlwaysAnswer | AllowWithAnswer | DenyAnswer;

/** Changes of a run that were applied to the files of a repository. */
export interface AppliedChanges {
  /** The root of the working tree whose files were changed. */
  directory: string;
  /** The number of changed files; 0 if the run has changed nothing. */
  filesChanged: number;
  /** Warnings about the files before that, such as that an earlier apply was killed and its files were restored. */
  warnings?: string[];
}

/** One attempt of a run. */
export interface Attempt {
  /** The provider. */
  provider: string;
  /** The model as reported by the agent, else as requested. */
  model?: string | null;
  /** The account of the agent, if one was named. */
  account?: string | null;
  /** Session of the attempt. */
  sessionId?: string | null;
  /** True if the attempt resumed the session of the previous one, because that had side effects. */
  resumed: boolean;
  /** Duration of the attempt, in milliseconds. */
  durationMs: number;
  /** Usage of the attempt. */
  usage?: Usage | null;
  /** Cost in USD. */
  costUsd?: number | null;
  /** The source of the cost. */
  costSource?: CostSource | null;
  /** The error of a failed attempt. */
  error?: AgentError | null;
}

/** A budget of a run. */
export type BudgetKind = "time" | "tokens" | "usd" | "turns";

/** Options for stopping a run. */
export interface Cancel {
  /** Kill the run at once instead of stopping it cleanly. */
  kill?: boolean;
}

/** The `ExecuteParams`(crate::ExecuteParams) that a provider supports, and the contents of its stream.  A value of `false` means that requesting it is an `InvalidParams`(crate::ErrorCode::InvalidParams) error. */
export interface Capabilities {
  /** Resuming a session (`session_id`). */
  resume: boolean;
  /** Resuming into a new session (`fork`). */
  fork: boolean;
  /** A chosen id of a new session (`new_session_id`). */
  newSessionId: boolean;
  /** Directories beside the working directory (`add_dirs`). */
  addDirs: boolean;
  /** Skills for a run (`skills`). */
  skills?: boolean;
  /** Sub-agents for a run (`sub_agents`). */
  subAgents?: boolean;
  /** Hooks for a run (`hooks`). */
  hooks?: boolean;
  /** Instructions (`system_prompt`). */
  systemPrompt: SystemPromptSupport;
  /** Title of the session in the CLI's lists (`title`). */
  title?: boolean;
  /** Model (`model`). */
  model: boolean;
  /** How hard the model thinks (`effort`). */
  effort: boolean;
  /** Another model while the first is overloaded (`fallback_model`). */
  fallbackModel?: boolean;
  /** Permission modes (`permission`). */
  permissionModes: string[];
  /** Permission mode `plan` in sessions, of a CLI whose plain runs have none. */
  sessionPlan?: boolean;
  /** Tools that are allowed without a request (`allowed_tools`). */
  allowedTools: boolean;
  /** Tools that are denied (`denied_tools`). */
  deniedTools: boolean;
  /** Limit of turns (`max_turns`). */
  maxTurns: boolean;
  /** Limit of the cost (`max_budget_usd`). */
  maxBudgetUsd: boolean;
  /** Answer by a JSON Schema (`output_schema`). */
  outputSchema: boolean;
  /** Images with the prompt (`images`). */
  images: boolean;
  /** MCP servers for a run (`mcp_servers`). */
  mcp: McpSupport;
  /** The CLI's own retries (`cli_retries`). */
  cliRetries: boolean;
  /** Prompts of any size, on stdin. */
  promptOnStdin: boolean;
  /** Text as it is written, not only whole messages. */
  textDeltas: boolean;
  /** Text is final when it is in the stream.  The CLI's own retries never [retract](crate::AgentEvent::Retract) it. */
  finalText: boolean;
  /** The model's reasoning. */
  thinking: boolean;
  /** Token figures. */
  usage: boolean;
  /** Cost, reported by the CLI. */
  cost: boolean;
  /** Token figures during the run (`usage_updates`).  With them a token limit can be enforced. */
  liveUsage: boolean;
  /** Cost during the run.  With it a cost limit can be enforced. */
  liveCost: boolean;
  /** Tools whose tokens are not counted, denied in a run with a limit of tokens or cost.  They have the CLI's own names. The orchestrator allows them if `allowed_tools` names them. */
  uncountedTools: string[];
  /** Every tool that can change things is announced before it runs.  If true, a run that was cut short (a crash, the watchdog, a kill) without a `tool_use` whose [kind has side effects](crate::ToolKind::has_side_effects) has changed nothing and may be started over. This holds only if all of its output was understood: a lost line (`Diagnostics`(crate::Diagnostics)), such as the last line of a killed process, may have been a `tool_use`. It does not hold with `slash_commands`: their text may contain commands that are not tools.  If false, it is unknown. One mutating tool that is announced late or never makes it `false`; `docs/providers/` names these tools. */
  announcesTools: boolean;
  /** A call runs only after its whole answer has arrived.  If true, a run that the CLI itself ends because a request failed has not run the calls since the last `tool_result`: they were in the incomplete answer. */
  runsCallsAfterAnswer: boolean;
  /** The CLI's slash commands (`slash_commands`).  Unless requested, a prompt is never interpreted as a command. */
  slashCommands: boolean;
  /** The CLI's slash commands and skills in sessions (`slash_commands`).  Some CLIs have them in a process that is kept only. */
  sessionCommands?: boolean;
  /** `@file` in a prompt is expanded, and this cannot be disabled.  This includes files outside the working directory. Do not pass it untrusted prompts. */
  fileMentions: boolean;
}

export interface SnapshotChange {
  type: "snapshot";
  /** The newest 50 runs and all that have not ended, newest first. */
  runs: RunSummary[];
  /** The agents; absent if the server has no configuration of them. */
  agents?: AgentList | null;
}

export interface RunChange {
  type: "run";
  /** The run's current state, including its requests. */
  run: RunSummary;
}

export interface GoneChange {
  type: "gone";
  /** The run's id. */
  runId: string;
}

export interface AgentsChange {
  type: "agents";
  /** The current state of the agents. */
  agents: AgentList;
}

/** A message of the state stream. */
export type Change = SnapshotChange | RunChange | GoneChange | AgentsChange;

/** The kind of a file change. */
export type ChangeKind = "add" | "delete" | "move" | "update";

/** Settings to change from the next turn on. */
export interface ChangeSession {
  /** The model, by the CLI's own name. */
  model?: string | null;
  /** The permission mode. */
  permission?: PermissionMode | null;
}

/** Location of a request's client. */
export interface Client {
  /** The client is on the server's machine, as far as the server can know: its connection is, and no proxy shows. A tunnel that ends on the server's machine, as of `ssh -L`, counts as that machine. */
  isOnMachine: boolean;
}

/** Commits, by their full ids. */
export interface Commits {
  /** The full ids of commits. */
  commits: string[];
}

/** Source of a cost. */
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
  /** Tool calls that the model began to write and that never came, so that one may have run. Absent if there are none. */
  unfinishedCalls?: number;
}

/** Statistics and problems of reading. None of them ends a scan. */
export interface Diagnostics2 {
  /** Files and databases that were read. */
  files?: number;
  /** Files that were left out because they were last changed before the requested time. */
  oldFiles?: number;
  /** Bytes that were read. */
  bytes?: number;
  /** Lines that were read. */
  lines?: number;
  /** Lines with figures that could not be parsed. */
  malformedLines?: number;
  /** Lines that were too long, and were skipped. */
  oversizeLines?: number;
  /** Sessions without figures, because the CLI was killed before it wrote them. */
  sessionsWithoutFigures?: number;
  /** Files, folders and databases that could not be read. */
  unreadable?: number;
  /** Examples of unreadable paths, at most 8. */
  unreadableExamples?: string[];
}

/** A changed file. */
export interface DiffFile {
  /** What happened to the file. */
  status: DiffStatus;
  /** Path in the repository, the old one if the file was deleted. Bytes that are not UTF-8 are replaced by `U+FFFD`. */
  path: string;
  /** The path before a rename. */
  oldPath?: string | null;
  /** The exact path where it is not UTF-8, percent-encoded. */
  rawPath?: string | null;
  /** The exact old path where it is not UTF-8, percent-encoded. */
  rawOldPath?: string | null;
  /** Git's mode before, such as `100644`, `100755` (executable), `120000` (symbolic link) or `160000` (submodule). */
  oldMode?: string | null;
  /** Git's mode after. */
  newMode?: string | null;
  /** True if git regards the content as binary: it has neither hunks nor numbers of lines. */
  binary?: boolean;
  /** Number of added lines. */
  insertions?: number | null;
  /** Number of deleted lines. */
  deletions?: number | null;
  /** The changed places. */
  hunks?: Hunk[];
  /** True if hunks or lines of the file were left out because of a limit. */
  truncated?: boolean;
}

/** A line of a hunk. */
export interface DiffLine {
  /** Whether the line was added or deleted. */
  kind: DiffLineKind;
  /** The line without its line feed. Bytes that are not UTF-8 are replaced by `U+FFFD`. */
  text: string;
  /** True if the file ends with this line, without a line feed. */
  noNewline?: boolean;
}

/** Whether a line was added or deleted. */
export type DiffLineKind = "context" | "added" | "deleted";

/** What happened to a file. */
export type DiffStatus = "added" | "deleted" | "modified" | "renamed" | "mode" | "type" | "other";

/** Dimension by which figures are grouped. */
export type Dimension = "day" | "week" | "month" | "project" | "model" | "agent" | "session" | "provider" | "key" | "account";

/** Changes of a run that were discarded. */
export interface DiscardedChanges {
  /** The branch that was deleted; absent if it is kept, because it has other commits or is checked out elsewhere. */
  branch?: string | null;
}

export interface SessionLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
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

export interface OffersLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The CLI's own commands and skills. A prompt `/name` runs one, if the session was opened with `slash_commands`. */
  commands?: SlashCommand[] | null;
  /** The models that can be set. */
  models?: ModelChoice[] | null;
  /** The reasoning efforts of the current model. Those of a model in `models` are with it. */
  efforts?: string[] | null;
  /** The CLI's descriptions of `efforts`. */
  effortDescriptions?: Record<string, string>;
  type: "offers";
}

export interface TextLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
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
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The message whose `text` and `thinking` events so far are withdrawn. New ones may follow. */
  messageId: string;
  type: "retract";
}

export interface ThinkingLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
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
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
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

export interface ToolOutputLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The id of the `tool_use`. */
  toolId: string;
  /** The new output. */
  text: string;
  type: "tool_output";
}

export interface ToolResultLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The id of the `tool_use`. */
  toolId: string;
  /** The result as text, complete. Images become a placeholder with their type and size. */
  output: string;
  /** True if the tool failed. Absent if the CLI does not report it. */
  isError?: boolean | null;
  /** As in the `tool_use`. */
  parentToolId?: string | null;
  type: "tool_result";
}

export interface FileChangeLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The file, as the CLI names it. */
  path: string;
  /** The kind of change. */
  change: ChangeKind;
  /** The tool call that did it. */
  toolId?: string | null;
  type: "file_change";
}

export interface PlanLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** All entries, in order. */
  entries: PlanEntry[];
  type: "plan";
}

export interface PermissionLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
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
  /** True if the request was denied because it had no answer in time. */
  timedOut?: boolean;
  type: "permission";
}

export interface PermissionModeLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The mode from now on. */
  mode: PermissionMode;
  type: "permission_mode";
}

export interface UsageLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Usage of the run so far. */
  usage: Usage;
  /** Cost of the run so far in USD, as the CLI reports it or as it is estimated. */
  costUsd?: number | null;
  /** The source of the cost, if it is an estimate. */
  costSource?: CostSource | null;
  type: "usage";
}

export interface ContextLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Tokens in the context after the last request. */
  tokens: number;
  /** Size of the context window, in tokens. */
  window: number;
  type: "context";
}

export interface RetryLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
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
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** The CLI's word, such as `allowed`, `allowed_warning` or `rejected`. */
  status: string;
  /** Time at which the limit resets, in milliseconds since the Unix epoch. */
  resetsAt?: number | null;
  /** Name of the limit, such as `five_hour`. */
  kind?: string | null;
  /** Used share of the limit, from 0 to 1. */
  utilization?: number | null;
  type: "rate_limit";
}

export interface NoticeLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Severity. */
  level: NoticeLevel;
  /** The text, for a person. */
  message: string;
  /** Source. */
  source: NoticeSource;
  /** What it is about, if callers may act on it. */
  code?: NoticeCode | null;
  type: "notice";
}

export interface UnknownLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The line. */
  native?: Native;
  type: "unknown";
}

export interface TurnEndLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Reason why the model stopped, in the CLI's word. */
  stopReason?: string | null;
  /** True if the turn failed. */
  isError: boolean;
  /** Usage of the turn. */
  usage?: Usage | null;
  /** Cost of the turn in USD. */
  costUsd?: number | null;
  type: "turn_end";
}

export interface ErrorLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
  native?: Native | null;
  /** Description for a person, with the next step where there is one. */
  message: string;
  /** Origin of the error. */
  code?: ErrorCode;
  /** Classification: the basis for retry, fallback or giving up. */
  kind: ErrorKind;
  /** True if the same request may succeed when repeated. */
  retryable: boolean;
  /** Backoff before a retry in milliseconds, if the service gave one. */
  retryAfterMs?: number | null;
  /** Time at which a limit resets, in milliseconds since the Unix epoch. */
  resetsAt?: number | null;
  /** Details as data. */
  detail?: ErrorDetail | null;
  /** The underlying error: that of the last attempt, or the one that put a provider on hold. */
  cause?: AgentError | null;
  type: "error";
}

export interface DoneLogEntry {
  /** Number of the entry in its log, from 1 without gaps. 0 until it is assigned. */
  seq: number;
  /** Time of the event, in milliseconds since the Unix epoch. 0 until it is known. */
  atMs: number;
  /** Id of the run, if it has one. */
  runId?: string | null;
  /** Attempt of the run, from 1. */
  attempt: number;
  /** The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself. */
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
  /** Id of the run. */
  runId: string;
  /** The agent's session. */
  sessionId?: string | null;
  /** The provider that is tried first. */
  provider: string;
  /** The model as reported by the agent, else as requested. */
  model?: string | null;
}

export interface RunEndLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  /** Id of the run. */
  runId: string;
  /** Final status: one of three values. */
  status: OutcomeStatus;
  /** Detailed status, as in a result. Absent in a line of an older version. */
  runStatus?: RunStatus | null;
  /** Time from the run's acceptance to its end, in milliseconds, waiting included. */
  durationMs: number;
  /** The outcome. */
  result: Outcome;
  type: "run:end";
}

export interface RunErrorLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:error";
  /** Id of the run. */
  runId: string;
  /** The error. */
  error: AgentError;
}

export interface RunAttemptLogEntry {
  seq: number;
  atMs: number;
  /** Number of the attempt, from 1. */
  attempt: number;
  type: "run:attempt";
  /** Id of the run. */
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
  /** Id of the run. */
  runId: string;
  /** The group that shares limits and holds: the provider, unless the candidate names another. */
  group: string;
  /** The requested model, if any. */
  model?: string | null;
  /** End of the hold, in milliseconds since the Unix epoch. Absent if the attempt waits for a slot. */
  untilMs?: number | null;
  /** The error that caused the hold. */
  reason?: AgentError | null;
}

export interface RunRetryLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:retry";
  /** Id of the run. */
  runId: string;
  /** The error of the failed attempt. */
  reason: AgentError;
  /** Delay before the next attempt, in milliseconds. */
  delayMs: number;
  /** The next attempt. */
  next: Next;
}

export interface RunFallbackLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "run:fallback";
  /** Id of the run. */
  runId: string;
  /** The error for which the last candidate was given up. */
  reason: AgentError;
  /** Delay before the next attempt, in milliseconds. */
  delayMs: number;
  /** The next attempt. */
  next: Next;
}

export interface ToolStartLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "tool:start";
  /** Id of the run. */
  runId: string;
  /** Name of the tool in the CLI. */
  toolName: string;
  /** Id of the call. */
  toolId: string;
}

export interface ToolEndLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "tool:end";
  /** Id of the run. */
  runId: string;
  /** Name of the tool in the CLI. */
  toolName: string;
  /** Id of the call. */
  toolId: string;
  /** Duration of the call, in milliseconds. */
  durationMs: number;
  /** True if the call failed, or if its attempt ended before it. */
  isError: boolean;
}

export interface AssistantChunkLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "assistant:chunk";
  /** Id of the run. */
  runId: string;
  /** The text. */
  content: string;
}

export interface AssistantMessageLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "assistant:message";
  /** Id of the run. */
  runId: string;
  /** The text. */
  content: string;
}

export interface UserMessageLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "user:message";
  /** Id of the turn. */
  runId: string;
  /** Text of the message. */
  text: string;
  /** The sender, such as `terminal pts/3`. */
  from?: string | null;
  /** True if the message goes to the turn in progress. */
  steer?: boolean;
  /** Idempotency key of the request: a second request with the same key begins no turn. */
  key?: string | null;
}

export interface ResetLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "reset";
  /** Id of the run. */
  runId: string;
}

export interface DamagedLogEntry {
  seq: number;
  atMs: number;
  attempt: number;
  type: "damaged";
  /** Id of the run. */
  runId: string;
}

/** An entry of a run's log: an event of the agent, or one of the run itself, whose `type` has a colon (or is `reset`). */
export type Entry = SessionLogEntry | OffersLogEntry | TextLogEntry | RetractLogEntry | ThinkingLogEntry | ToolUseLogEntry | ToolOutputLogEntry | ToolResultLogEntry | FileChangeLogEntry | PlanLogEntry | PermissionLogEntry | PermissionModeLogEntry | UsageLogEntry | ContextLogEntry | RetryLogEntry | RateLimitLogEntry | NoticeLogEntry | UnknownLogEntry | TurnEndLogEntry | ErrorLogEntry | DoneLogEntry | RunStartLogEntry | RunEndLogEntry | RunErrorLogEntry | RunAttemptLogEntry | RunHoldLogEntry | RunRetryLogEntry | RunFallbackLogEntry | ToolStartLogEntry | ToolEndLogEntry | AssistantChunkLogEntry | AssistantMessageLogEntry | UserMessageLogEntry | ResetLogEntry | DamagedLogEntry;

/** Origin of an error. The names are stable. */
export type ErrorCode = "CLI_NOT_FOUND" | "CLI_STDERR" | "CLI_EXIT_ERROR" | "CLI_ERROR" | "STARTUP_TIMEOUT" | "WATCHDOG_TIMEOUT" | "ABORTED" | "INVALID_PARAMS" | "PROMPT_TOO_LARGE" | "STREAM_ENDED_EARLY" | "OUTPUT_LIMIT" | "CONFIG_LEASE" | "IO" | "BUDGET_EXCEEDED" | "INTERRUPTED" | "PROVIDER_ON_HOLD" | "NO_TURN" | "SESSION_IN_USE" | "SETUP_FAILED" | "UNKNOWN";

export interface ParameterErrorDetail {
  type: "parameter";
  /** The name in `ExecuteParams`(crate::ExecuteParams), such as `mcp_servers`, or that of another setting, such as `provider`, `run_id` or `budget.usd`. */
  name: string;
  /** The item of a list, such as the name of an MCP server or of a variable. */
  item?: string | null;
  /** The problem, for a person: the message without the names. */
  problem: string;
  /** The run that holds what the parameter names: it works with the session, or has the worktree. */
  holder?: string | null;
}

export interface BudgetErrorDetail {
  type: "budget";
  /** The budget. */
  budget: BudgetKind;
  /** Its limit: tokens, USD, seconds or turns. */
  limit?: number | null;
}

export interface NotRetriedErrorDetail {
  type: "not_retried";
  /** The reason. */
  reason: NotRetried;
  /** The reason for a person, with the next step. */
  explanation: string;
}

export interface MissingProgramErrorDetail {
  type: "missing_program";
  /** Name of the program. */
  program: string;
  /** The command that installs it, also part of the message. Empty if unknown. */
  install: string;
}

/** The subject of an error, as data. A type that only a newer version knows is deserialized as `Other`(Self::Other). */
export type ErrorDetail = ParameterErrorDetail | BudgetErrorDetail | NotRetriedErrorDetail | MissingProgramErrorDetail;

/** The recommended reaction to an error. */
export type ErrorKind = "auth" | "rate_limit" | "quota" | "overloaded" | "network" | "context_window" | "model_not_found" | "session_not_found" | "permission" | "budget" | "max_turns" | "mcp" | "timeout" | "aborted" | "interrupted" | "not_found" | "invalid" | "protocol" | "setup" | "internal";

/** Sums. Unknown figures are absent, never 0. */
export interface Figures {
  /** Requests to models. */
  requests: number;
  /** Requests that sub-agents made, included in `requests`. */
  subagentRequests: number;
  /** Tokens. */
  usage: Usage;
  /** Tokens that are cached for an hour, among those that were written to a cache. */
  cacheWrite1hTokens?: number | null;
  /** Cost reported by the CLIs in USD, for those requests that have one. */
  reportedCostUsd?: number | null;
  /** Cost by the price table in USD, for those requests whose model it has. */
  estimatedCostUsd?: number | null;
  /** Cost in USD: for each request the reported cost, or else the estimate. */
  spentUsd?: number | null;
  /** Web searches that the services made. */
  webSearches?: number | null;
  /** Requests that are not in the estimate, because their model is unknown or has no price. A run in the history without a number of requests counts as one. */
  unpricedRequests: number;
  /** Premium requests as counted by Copilot. */
  premiumRequests?: number | null;
}

/** The files of a run, in the order of their names. */
export interface FileList {
  /** The files. */
  files: RunFile[];
  /** Reasons why files that were to be collected are missing, such as a limit. */
  missing?: string[];
}

/** The content of a file, by hashes. */
export interface FileManifest {
  /** Name of the file. */
  name: string;
  /** Size of the file, in bytes. */
  bytes: number;
  /** SHA-256 of the file, in hexadecimal. */
  sha256: string;
  /** Size of every part but the last, in bytes: 524288. */
  partBytes: number;
  /** SHA-256 of each part, in hexadecimal. An empty file has none. */
  parts: string[];
}

/** An agent of a worker. */
export interface FleetAgent {
  /** Id of the agent. */
  id: string;
  /** It is installed, and not known to be logged out. */
  ready: boolean;
  /** Version of its program, if known. */
  version?: string | null;
}

/** A limit because of which an agent takes no runs where it has this login. */
export interface FleetHold {
  /** Id of the agent. */
  agent: string;
  /** Mark of the login that has reached it, from which neither the account nor the key can be read. */
  login: string;
  /** Name of the limit, such as `five_hour`, if known. */
  limit?: string | null;
  /** End of the limit, in milliseconds since the Unix epoch. */
  until: number;
}

/** The runs that wait for a pool or a machine. */
export interface FleetQueue {
  /** Name of the pool; absent for the runs of one machine. */
  pool?: string | null;
  /** Name of the machine's worker; absent for the runs of a pool. */
  machine?: string | null;
  /** Number of runs that wait. */
  waiting: number;
  /** Time since which the oldest one waits, in milliseconds since the Unix epoch. */
  oldestAt?: number | null;
}

/** The state of a fleet at one time. */
export interface FleetStatus {
  /** The workers that are present, by name. */
  workers?: FleetWorker[];
  /** The pools and machines for which runs wait, by name. */
  queues?: FleetQueue[];
  /** Number of runs by the state of their record, such as `started`. */
  runs?: Record<string, number>;
  /** The limits because of which agents take no runs. */
  holds?: FleetHold[];
  /** The owner whose runs are counted; absent if those of all owners are. */
  owner?: string | null;
}

/** A worker that is present. */
export interface FleetWorker {
  /** Name of the worker. */
  name: string;
  /** Pools from which it takes runs. */
  pools: string[];
  /** The agents that its program knows. */
  agents: FleetAgent[];
  /** Number of runs at once. */
  slots: number;
  /** Number of runs that it carries out. */
  running: number;
  /** It takes no new runs, and ends with those that it has. */
  draining?: boolean;
  /** Version of its program. */
  version: string;
  /** How far its clock is ahead of the server's, in milliseconds, if that is more than 5 s. */
  clockMs?: number | null;
}

/** Runs and logs to delete. Live runs are kept. */
export interface ForgetRuns {
  /** Ids or unique id prefixes of runs to delete. If one of them cannot be deleted, none is. */
  ids?: string[];
  /** Delete runs that ended longer ago than this, in milliseconds. */
  olderThanMs?: number | null;
  /** Delete the logs of `ids` only, and keep their rows of the history. */
  logsOnly?: boolean;
  /** Delete the oldest logs until the rest takes at most this many bytes. */
  logsOver?: number | null;
}

/** The number of deleted runs and logs. */
export interface Forgotten {
  /** Deleted runs of the history. */
  runs: number;
  /** Deleted logs. */
  logs: number;
  /** The size of the deleted logs, in bytes. */
  logBytes: number;
}

/** Actions that the agent of a session may perform without a request, as the session was started.  Each turn has these grants, no matter who sends the prompt. */
export interface Grants {
  /** Permission mode at the start. The live status has a later one. */
  permission: PermissionMode;
  /** Tools that are allowed before they are requested, in the CLI's own syntax. */
  allowedTools?: string[];
  /** Ids of the agents that may take over. */
  fallback?: string[];
  /** The CLI got further arguments, which may grant anything. */
  cliArguments?: boolean;
}

/** A page of the history, newest first. */
export interface HistoryList {
  /** The runs. */
  runs: RunRecord[];
  /** The `cursor` of the next page; absent on the last one. */
  next?: string | null;
}

/** The share of the history of runs. */
export interface HistoryShare {
  /** Runs that are not in the CLIs' files. */
  onlyThere: number;
  /** Runs whose cost is added to the tokens of the CLIs' files. */
  withCost: number;
  /** Runs of agents whose files are not known; they are not counted. */
  ofOtherAgents: number;
}

/** State of a run.  The names of final states are those of `status` in `run:end`, also in the database and in `teamster runs --json`: `success` for `Completed`(teamster_core::RunStatus::Completed), `aborted`, and `error` for every other `RunStatus`(teamster_core::RunStatus), whose cause is in `RunRecord::error`(super::RunRecord::error). */
export type HistoryStatus = "running" | "success" | "error" | "aborted" | "interrupted" | string;

/** A changed place of a file, with the lines around it. */
export interface Hunk {
  /** First line before, from 1; 0 if there is none. */
  oldStart: number;
  /** Number of lines before. */
  oldLines: number;
  /** First line after, from 1; 0 if there is none. */
  newStart: number;
  /** Number of lines after. */
  newLines: number;
  /** The line that begins the section, such as a function's, as git finds it. */
  section?: string | null;
  /** The lines. */
  lines: DiffLine[];
}

/** An image of a prompt, in JSON. */
export interface Image {
  /** The media type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`. */
  mediaType: string;
  /** The content of the image in base64. */
  data: string;
}

/** Options for interrupting a turn. */
export interface Interrupt {
  /** Kill the agent's process; the next turn starts another one. */
  kill?: boolean;
}

/** The spec of a run or session, as its runner keeps it: without values that may be secret.  What is withheld is empty in the spec, and is named in `withheld`(Self::withheld): a run of this spec needs it from somewhere else. */
export interface KeptSpec {
  /** Version of the spec. */
  version: number;
  /** The spec: `run` has the body that starts a run, `session` that of a session. What was withheld is empty in it. */
  what: Record<string, Record<string, unknown>>;
  /** Names of what was withheld, such as `prompt`, `env.API_KEY` and `mcpServers.github.headers.Authorization`. */
  withheld?: string[];
  /** Digest of the prompts that were withheld, by which its runner's program tells whether another spec has the same. */
  promptsDigest?: string | null;
  /** Warnings of the start, for a repetition of it. */
  warnings?: string[];
  /** Those of the warnings that a user who wants no others sees too. */
  important?: string[];
}

/** Last error of an agent. */
export interface LastError {
  /** Class of the error, if it is one of a tick. */
  kind?: ErrorKind | null;
  /** The error, for people. */
  message: string;
  /** Time of the error, in milliseconds since the Unix epoch. */
  atMs: number;
}

/** The limits of subscriptions: the JSON of `teamster usage --limits --json` and of `GET /v1/limits`. */
export interface LimitList {
  /** The limits in the files that the CLIs left on disk. */
  limits: UsageLimit[];
}

/** Status of a live run or session. */
export type LiveState = "idle" | "running" | "waiting" | "ending" | "not_answering" | "other";

/** Status of a live run or session. */
export interface LiveStatus {
  /** State of the run or session. */
  state: LiveState;
  /** Start of the state, in milliseconds since the Unix epoch. */
  since: number;
  /** Number of ended turns of a session. 0 for a run. */
  turns: number;
  /** The turn in progress. */
  turn?: TurnStatus | null;
  /** Provider in use, which may be a fallback. */
  provider?: string | null;
  /** Model in use. */
  model?: string | null;
  /** Id of the provider's session, to resume it. */
  sessionId?: string | null;
  /** Usage so far, as reported. */
  usage?: Usage | null;
  /** Cost so far in USD. */
  costUsd?: number | null;
  /** The source of the cost. */
  costSource?: CostSource | null;
  /** Permission mode of a session, if it was changed after the start. */
  permission?: string | null;
  /** Process id of a runner that does not answer, if it is known. */
  pid?: number | null;
}

/** A page of a log. */
export interface LogPage {
  /** The entries. */
  entries: Entry[];
  /** The `after` of the next page. */
  next: number;
  /** True if the log ends with this page. */
  ended: boolean;
}

/** State of a loop. */
export type LoopState = "sleeping" | "tick" | "other";

/** State of an MCP server as the CLI reports it. */
export interface McpServerStatus {
  /** Its name in the configuration. */
  name: string;
  /** The CLI's word for its state, such as `connected`, `failed` or `pending`. */
  status: string;
}

/** The properties of an `McpServer` that a provider supports. */
export interface McpSupport {
  /** Transports of MCP servers (`mcp_servers`). */
  transports: string[];
  /** Characters of a server's name, in addition to ASCII letters and digits. */
  nameMarks: string;
  /** Limit of a server's name, in characters. */
  longestName: number;
  /** Deliveries of MCP servers to the CLI (`mcp_delivery`). */
  deliveries: string[];
  /** Only these servers, none of the user's (`mcp_strict`). */
  strict: boolean;
  /** Working directory of a stdio server (`cwd`). */
  cwd: boolean;
  /** Time limit for the start of a server (`startup_timeout`). */
  startupTimeout: boolean;
  /** Time limit for a call (`tool_timeout`). */
  toolTimeout: boolean;
  /** Only some of a server's tools (`tools.only`). */
  onlyTools: boolean;
  /** All but some of a server's tools (`tools.except`). */
  exceptTools: boolean;
}

/** A tool of an MCP server. */
export interface McpTool {
  /** The server's name in the configuration. */
  server: string;
  /** The tool's own name. */
  tool: string;
}

/** Missing parts of a file. */
export interface MissingParts {
  /** The numbers of the missing parts, in ascending order. */
  missing: number[];
}

/** A model that a session can be set to. */
export interface ModelChoice {
  /** The name that the CLI takes. */
  id: string;
  /** The CLI's name for people. */
  name?: string | null;
  /** The CLI's description. */
  description?: string | null;
  /** The reasoning efforts of this model, if the CLI reports them. */
  efforts?: string[] | null;
  /** The CLI's descriptions of `efforts`. */
  effortDescriptions?: Record<string, string>;
}

/** The figures of a model within a group. */
export interface ModelFigures {
  /** The model. Absent if the files do not have it. */
  model?: string | null;
  /** The CLIs that used the model. */
  providers?: string[];
  /** Requests to models. */
  requests: number;
  /** Requests that sub-agents made, included in `requests`. */
  subagentRequests: number;
  /** Tokens. */
  usage: Usage;
  /** Tokens that are cached for an hour, among those that were written to a cache. */
  cacheWrite1hTokens?: number | null;
  /** Cost reported by the CLIs in USD, for those requests that have one. */
  reportedCostUsd?: number | null;
  /** Cost by the price table in USD, for those requests whose model it has. */
  estimatedCostUsd?: number | null;
  /** Cost in USD: for each request the reported cost, or else the estimate. */
  spentUsd?: number | null;
  /** Web searches that the services made. */
  webSearches?: number | null;
  /** Requests that are not in the estimate, because their model is unknown or has no price. A run in the history without a number of requests counts as one. */
  unpricedRequests: number;
  /** Premium requests as counted by Copilot. */
  premiumRequests?: number | null;
}

/** Usage of one model in a run. */
export interface ModelUsage {
  /** Tokens. */
  usage: Usage;
  /** Cost in USD. */
  costUsd?: number | null;
  /** Size of the model's context window in tokens. */
  contextWindow?: number | null;
  /** Limit of output tokens in one answer. */
  maxOutputTokens?: number | null;
}

/** The JSON value that the CLI printed, as it came. */
export type Native = unknown;

/** The next attempt. */
export interface Next {
  /** Number of the attempt, from 1. */
  attempt: number;
  /** The provider. */
  provider: string;
  /** The model, if one was requested. */
  model?: string | null;
  /** The account of the agent, if one was named. */
  account?: string | null;
  /** The session that the attempt resumes, because the run has made changes. If absent, the prompt is sent again, and the text of the failed attempt is retracted. */
  resumes?: string | null;
}

/** Reason why a run was not retried although its policy allows it. */
export type NotRetried = "out_of_time" | "no_slot" | "side_effects" | "session_lost";

/** Subject of a notice. */
export type NoticeCode = "compaction_started" | "compacted" | "compaction_failed" | "untested_version" | "other";

/** Severity of a notice. */
export type NoticeLevel = "info" | "warning";

/** Source of a notice. */
export type NoticeSource = "stdout" | "stderr" | "runtime";

/** The outcome of a run, over all its attempts. A figure that no CLI reported is absent, never 0. */
export interface Outcome {
  /** The agent's messages, in order. A message is the text of one message id, up to a tool call, its end, or the end of a turn. Messages of an attempt after which the prompt was sent again are excluded. */
  payloads: Payload[];
  /** Usage of all attempts together. */
  usage?: Usage | null;
  /** The answer in the shape of `output_schema`. */
  structuredOutput?: unknown;
  /** What the run leaves in its workspace. Absent if it had none of its own. */
  workspace?: WorkspaceResult | null;
  /** Metadata of the run. */
  meta: OutcomeMeta;
}

/** Metadata of an outcome. */
export interface OutcomeMeta {
  /** Id of the run. */
  runId: string;
  /** Final status of the run. */
  status: OutcomeStatus;
  /** The session of the last attempt, which can be resumed. */
  sessionId?: string | null;
  /** The provider of the last attempt. */
  provider: string;
  /** The model of the last attempt as reported by the agent, else as requested. */
  model?: string | null;
  /** Time from the run's acceptance to its end, in milliseconds, waiting included. */
  durationMs: number;
  /** The error of a run that failed. */
  error?: AgentError | null;
  /** Number of attempts; 0 if none could begin. */
  attempts: number;
  /** The attempts, in order. */
  attemptLog?: Attempt[];
  /** Cost of all attempts together, in USD. */
  costUsd?: number | null;
  /** The source of the cost. */
  costSource?: CostSource | null;
  /** Turns of all attempts, as the CLIs count them. */
  numTurns?: number | null;
}

/** Final status of a run. */
export type OutcomeStatus = "success" | "aborted" | "error";

/** One message of the agent. */
export interface Payload {
  /** Text of the message. */
  text: string;
}

/** Request that waits for an answer: permission for a tool, or the question of an MCP server. */
export interface PendingRequest {
  /** Id of the request: `RUN_ID/NUMBER`. */
  requestId: string;
  /** Id of the run. */
  runId: string;
  /** The tool, as the CLI names it. */
  toolName: string;
  /** Id of the tool call. */
  toolId?: string | null;
  /** Kind of the tool. */
  kind: ToolKind;
  /** Input of the tool. */
  input: unknown;
  /** Current text of the file that the tool would write whole, if that is a text of at most 256 KiB in the working directory. */
  oldText?: string | null;
  /** The CLI's own text about the request. */
  message?: string | null;
  /** The JSON Schema of the answer that an MCP server asks for. */
  schema?: unknown;
  /** An answer can have an input. */
  takesInput: boolean;
  /** The reason of a denial reaches the model. */
  takesReason?: boolean;
  /** Time of the request, in milliseconds since the Unix epoch. */
  askedAt: number;
  /** Time at which the request is denied without an answer, in milliseconds since the Unix epoch. */
  expiresAt?: number | null;
}

/** A tool call that was not permitted. */
export interface PermissionDenial {
  /** The tool. */
  toolName: string;
  /** The call. */
  toolId?: string | null;
  /** The reason, in the CLI's words. */
  reason?: string | null;
}

/** Actions that the agent may perform without a permission request. */
export type PermissionMode = "default" | "read-only" | "accept-edits" | "bypass" | "plan";

/** The machines of a fleet that may carry a run or session out. Default: those of the default pool. */
export interface Placement {
  /** The pool whose machines may take it. */
  pool?: string | null;
  /** The only machine that may take it. Excludes `pool`. */
  machine?: string | null;
}

/** One entry of a plan. */
export interface PlanEntry {
  /** The task. */
  content: string;
  /** Its progress. */
  status: PlanStatus;
}

/** Progress of a plan entry. */
export type PlanStatus = "in_progress" | "completed" | "cancelled" | "pending";

/** Source of the prices for estimates. */
export interface PriceSource {
  /** The origin of the built-in table. */
  source: string;
  /** The date of the built-in table. */
  date: string;
  /** The user's price file, which takes precedence. */
  file?: string | null;
}

/** An error of the API: problem details of RFC 9457. */
export interface Problem {
  /** Always `about:blank`; `code` has the error type. */
  type: string;
  /** The reason phrase of the status. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** The error code, for programs. */
  code: ProblemCode;
  /** The error message, for people. */
  detail: string;
  /** The field that was refused, with which `detail` begins; absent if the error is about none. */
  parameter?: string | null;
}

/** A stable error code of the API. */
export type ProblemCode = "UNAUTHORIZED" | "INSUFFICIENT_SCOPE" | "HOST_NOT_ALLOWED" | "ORIGIN_NOT_ALLOWED" | "BYPASS_NOT_ALLOWED" | "COMMAND_NOT_ALLOWED" | "NOT_FOUND" | "METHOD_NOT_ALLOWED" | "RUN_NOT_FOUND" | "RUN_ID_AMBIGUOUS" | "RUN_EXISTS" | "RUN_ENDED" | "RUN_LIVE" | "FILE_NOT_FOUND" | "FILE_DAMAGED" | "NO_WORKSPACE" | "CHANGES_CONFLICT" | "OVER_QUOTA" | "SESSION_NOT_FOUND" | "SESSION_BUSY" | "SESSION_IN_USE" | "NO_TURN" | "SESSION_ENDING" | "OVER_BUDGET" | "OUT_OF_TIME" | "REQUEST_NOT_FOUND" | "ALREADY_ANSWERED" | "INVALID_ANSWER" | "IDEMPOTENCY_KEY_REUSED" | "INVALID_BODY" | "INVALID_PARAMS" | "BODY_TOO_LARGE" | "BODY_TIMEOUT" | "UNSUPPORTED_MEDIA_TYPE" | "AGENT_NOT_FOUND" | "AGENT_REFUSED" | "SUPERVISOR_NOT_RUNNING" | "RUNNER_NOT_RESPONDING" | "TOO_MANY_CONNECTIONS" | "FLEET_NOT_INITIALIZED" | "UNSUPPORTED" | "INTERNAL";

/** The agents of a machine. */
export interface ProviderList {
  /** The version of teamster on the machine; absent if that is too old to report it. */
  version?: string | null;
  /** One report for each agent. */
  providers: ProviderReport[];
}

/** The login state of an agent, from its files and the environment. */
export interface ProviderLogin {
  /** `yes`, `no`, or `unknown` where it cannot be seen, as in a keychain. */
  state: string;
  /** The variable or file that shows it. */
  from?: string | null;
  /** The time at which the token of the file ends, in milliseconds since the Unix epoch. The CLI renews it. */
  expiresAt?: number | null;
}

/** An agent of a machine and its capabilities. */
export interface ProviderReport {
  /** The agent's id, such as `claude`. */
  id: string;
  /** The CLI's own name. */
  name: string;
  /** The agent can be used: its program reported a version, or `versionFrom` has it, or, without a program, a key for a model service exists. */
  usable: boolean;
  /** The agent has no program and runs in the process of the run. */
  inProcess: boolean;
  /** The path of the program. */
  path?: string | null;
  /** The path of the program that a run starts, if it differs from `path`. */
  resolvedPath?: string | null;
  /** The version that the program reports. */
  version?: string | null;
  /** The `package.json` that has the version of a program that was not started. */
  versionFrom?: string | null;
  /** The decoder is tested with recordings of this version. */
  tested: boolean;
  /** The versions whose recordings the decoder is tested with. */
  testedVersions: string[];
  /** The oldest supported version. */
  oldestVersion?: string | null;
  /** The version is older than `oldestVersion`. */
  tooOld: boolean;
  /** The reason why the agent cannot be used. */
  problem?: string | null;
  /** The program was found where its installer puts it, in a folder that is not on `PATH`. */
  outsidePath?: boolean;
  /** The program needs another Node.js, so installing it again would not help. */
  needsNode?: boolean;
  /** The command that installs it. */
  install: string;
  /** The login state. */
  login: ProviderLogin;
  /** How a user logs in, in the imperative, such as "log in with `claude`". Empty if there is nothing to do. */
  howToLogIn?: string;
  /** The machine of a fleet that has the agent. */
  machine?: string | null;
  /** The agent can be used in sessions. */
  sessions: boolean;
  /** The turns of a session take images. Some CLIs take none with a run. */
  sessionImages?: boolean;
  /** The agent's capabilities. */
  capabilities: Capabilities;
}

/** The reason for which a run is queued. */
export type QueueReason = "pending" | "no_slot" | "no_machine" | "no_agent" | "old_version" | "on_hold" | "refused" | "machine_absent" | "other";

/** The reason for which a run of a fleet was not started yet. */
export interface QueueStatus {
  /** The pool whose machines may take it; absent if it is queued for one machine. */
  pool?: string | null;
  /** The reason, for programs. */
  reason: QueueReason;
  /** The reason, for people. */
  detail: string;
  /** The end of the reason, such as the reset of a limit, in milliseconds since the Unix epoch. Absent if unknown. */
  until?: number | null;
}

/** Another title of a run. */
export interface RenameRun {
  /** The title, of at most 200 characters; `null` for the first one. */
  title: string | null;
}

/** The pending requests of all runs. */
export interface RequestList {
  /** The requests, those of the newest run first. */
  requests: PendingRequest[];
}

/** A file of a run. */
export interface RunFile {
  /** Name of the file, such as `bundle` or `files/report.html`. In a name that is not UTF-8 or has a `%`, these bytes are percent-encoded. */
  name: string;
  /** Size in bytes. Absent if the file is made when it is first read. */
  bytes?: number | null;
}

/** Kind of a run. */
export type RunKind = "run" | "session" | "tick" | "other";

/** A page of runs, newest first. */
export interface RunList {
  /** The runs. */
  runs: RunSummary[];
  /** The `cursor` of the next page; absent on the last one. */
  next?: string | null;
}

/** A run in the history. A figure that no CLI reported is absent, never 0. */
export interface RunRecord {
  /** Id of the run. */
  runId: string;
  /** Title of the run, if it has one. */
  title?: string | null;
  /** State of the run. */
  status: HistoryStatus;
  /** The current or last provider of the run. */
  provider: string;
  /** The model as reported by the agent, else as requested. */
  model?: string | null;
  /** The session of the run, or the one to resume. */
  sessionId?: string | null;
  /** The conversation that it belongs to, as text. */
  conversation?: string | null;
  /** Working directory of the agent. */
  workingDirectory?: string | null;
  /** The prompt, at most its first 64 KiB: in the record of one run, where the history keeps it. Absent in lists, for detached runs, whose folder keeps it, and where prompts are not kept. */
  prompt?: string | null;
  /** SHA-256 of the prompt, in hexadecimal. */
  promptHash: string;
  /** Start time, in milliseconds since the Unix epoch. */
  startedAt: number;
  /** End time, in milliseconds since the Unix epoch. For an interrupted run it is the last heartbeat, once that was recorded. */
  endedAt?: number | null;
  /** Duration of the run, in milliseconds. */
  durationMs?: number | null;
  /** Usage of all attempts together. */
  usage?: Usage | null;
  /** Cost of all attempts together, in USD. */
  costUsd?: number | null;
  /** The source of the cost. Absent in a record of an earlier version, which kept reported costs only. */
  costSource?: CostSource | null;
  /** Turns of all attempts, as the CLIs count them. */
  numTurns?: number | null;
  /** The error of a run that failed. Its code and details are known if it is the error of the last attempt. */
  error?: AgentError | null;
  /** What the run has left in its workspace. Absent if it had none of its own. */
  workspace?: WorkspaceResult | null;
  /** Number of attempts; 0 while the run is running. */
  attempts: number;
  /** The attempts, in order. */
  attemptLog?: Attempt[];
  /** Name of the machine that the run is on. */
  host: string;
  /** Id of the process that owns the run. */
  pid: number;
  /** Time of the last heartbeat, in milliseconds since the Unix epoch. */
  heartbeatAt: number;
}

/** The outcome of a run. Figures that the CLI did not report are absent, never 0. */
export interface RunResult {
  /** Final status. */
  status: RunStatus;
  /** All text of the main agent that was not retracted, concatenated without separators. `messages`(Self::messages) splits it, and `answer`(Self::answer) is the last message. */
  text: string;
  /** The pieces of `text` by message, in order. */
  pieces?: TextPiece[];
  /** The last message of the main agent: the answer, without intermediate messages. */
  finalMessage?: string | null;
  /** The session, to resume it. */
  sessionId?: string | null;
  /** The model that answered. */
  model?: string | null;
  /** Time from the start of the process to its end, in milliseconds. */
  durationMs: number;
  /** Time spent in requests to the model, in milliseconds. */
  apiDurationMs?: number | null;
  /** Usage of this run. */
  usage?: Usage | null;
  /** Usage of the session in total, if the CLI reports it. */
  sessionUsage?: Usage | null;
  /** Usage by model. */
  usageByModel?: Record<string, ModelUsage>;
  /** Cost of this run in USD. */
  totalCostUsd?: number | null;
  /** Source of the cost. */
  costSource?: CostSource | null;
  /** Number of turns, as the CLI counts them. */
  numTurns?: number | null;
  /** Reason why the model stopped, in the CLI's word. */
  stopReason?: string | null;
  /** True if the caller stopped the run. */
  aborted: boolean;
  /** Exit code of the process. Absent if a signal ended it or it never started. */
  exitCode?: number | null;
  /** Name of the signal that ended the process, such as `SIGKILL`. */
  exitSignal?: string | null;
  /** The end of the CLI's standard error. */
  stderr?: string | null;
  /** Every `error` event of the run. */
  errors?: AgentError[];
  /** Every denial of permission. */
  permissionDenials?: PermissionDenial[];
  /** Tool calls that never got a result. */
  openToolIds?: string[];
  /** The answer in the shape of `output_schema`. */
  structuredOutput?: unknown;
  /** What the run leaves in its workspace. Absent if it had none of its own. */
  workspace?: WorkspaceResult | null;
  /** Anomalies of the output. */
  diagnostics: Diagnostics;
}

/** A run to start. */
export interface RunSpec {
  /** The agent, such as `claude`. */
  provider: string;
  /** The prompt. */
  prompt: string;
  /** Images that go with the prompt. */
  images?: Image[];
  /** The title of the run, under which the agent's CLI lists its session, too. Default: the first line of the prompt, for the run alone. */
  title?: string | null;
  /** The model, by the CLI's own name. */
  model?: string | null;
  /** Reasoning effort, in the CLI's own words. */
  effort?: string | null;
  /** The model to which the CLI itself changes while its own is overloaded. */
  fallbackModel?: string | null;
  /** What the agent may do without approval. A server accepts `bypass` only if it allows it, and from a token with the scope `admin`. */
  permission?: PermissionMode;
  /** Tools that are allowed without a request, in the CLI's own syntax. Needs a token with the scopes `run` and `answer`, or `admin`. */
  allowedTools?: string[];
  /** Tools that are forbidden, in the CLI's own syntax. */
  deniedTools?: string[];
  /** The agent's working directory, an absolute path. Default: that of the server. */
  workingDirectory?: string | null;
  /** Run in a new git worktree: `true`, or the name of its branch. */
  worktree?: Worktree | null;
  /** Where the agent works, in the long form. Excludes `workingDirectory` and `worktree`. */
  workspace?: Workspace | null;
  /** The session to resume. */
  sessionId?: string | null;
  /** The conversation, such as `slack:U42`: its session is resumed, or started by the first run with this key. */
  sessionKey?: string | null;
  /** With `sessionKey`: forget the session and start the conversation over. */
  newSession?: boolean;
  /** With `sessionId`: continue in a new session and leave that one unchanged. */
  fork?: boolean;
  /** Replaces the CLI's system prompt. */
  systemPrompt?: string | null;
  /** Text that is appended to the CLI's system prompt. */
  appendSystemPrompt?: string | null;
  /** The JSON Schema of the answer. */
  outputSchema?: Record<string, unknown> | null;
  /** The maximum number of turns. */
  maxTurns?: number | null;
  /** The maximum cost in US dollars. */
  maxBudgetUsd?: number | null;
  /** The maximum number of tokens. */
  maxTokens?: number | null;
  /** The maximum duration in milliseconds, including waits. 0: no limit. */
  maxTimeMs?: number | null;
  /** The number of retries after transient failures. */
  retries?: number;
  /** The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn fails. 0 is no limit. Default: 5 minutes with `retries`, else no wait. */
  maxWaitMs?: number | null;
  /** Agents that take over when the previous ones fail, such as `codex` or `codex:gpt-5.1`. */
  fallback?: string[];
  /** Accounts of the agents, by their names on the machine (`teamster accounts list`), in order of preference: the next one of an agent takes over when the limit of the previous one is reached. Of an agent without one, its own login is used. */
  accounts?: string[];
  /** The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once. Default: 1 hour. */
  askTimeoutMs?: number | null;
  /** Files that are collected from the working directory at the end: paths in it with `*`, `**` and `?`, or directories. Symbolic links are not followed. */
  artifacts?: string[];
  /** A URL that receives a request when the run ends or needs an answer. */
  callback?: string | null;
  /** The depth of the agent, if another agent starts it. It only restricts: the machine's own limit counts, too. */
  depth?: AgentDepth | null;
  /** The machines of a fleet that may carry it out. A server without a fleet refuses it. */
  placement?: Placement;
  /** Names of the secrets that the agent gets as variables, such as `NPM_TOKEN`. The values are on the machines of the fleet, each of which decides who may use them. A server without a fleet refuses it. */
  secrets?: string[];
  /** Start it over, as a new run that may cost twice, if its machine is lost. Requires the permission mode `read-only` without `allowedTools`. A server without a fleet refuses it. */
  rerunIfLost?: boolean;
}

/** Final status of a run. */
export type RunStatus = "completed" | "aborted" | "timed_out" | "incomplete" | "failed";

/** A run, without its events. */
export interface RunSummary {
  /** Id of the run. */
  runId: string;
  /** Title of the run: that of its spec, or else the first line of its prompt. A person may change it later; then the views of the run have the new one. `None` where titles are not kept, and for a session before its first prompt. */
  title?: string | null;
  /** Kind of the run. */
  kind: RunKind;
  /** First provider of the run. */
  provider: string;
  /** The requested model. */
  model?: string | null;
  /** Working directory of the agent. */
  directory?: string | null;
  /** The directory of another machine that was submitted for the run, as that machine names it. */
  submittedFrom?: string | null;
  /** Branch of the git worktree that was created for the run. */
  branch?: string | null;
  /** Id of the run whose log has the beginning of this session's conversation. */
  continues?: string | null;
  /** Grants of a session. `None` if they were not recorded: for a run, and by an earlier version. */
  grants?: Grants | null;
  /** Time of acceptance, in milliseconds since the Unix epoch. */
  acceptedAt: number;
  /** The run's state. */
  state: ViewState;
  /** The start of the state `queued` or `unknown`, in milliseconds since the Unix epoch. */
  since?: number | null;
  /** The reason for which it is `queued`. */
  queue?: QueueStatus | null;
  /** The machine of a fleet that has the run, or the only one that may take it. */
  machine?: string | null;
  /** The outcome; absent while the run is live. */
  status?: RunStatus | null;
  /** The `seq` of the newest log entry. */
  seq: number;
  /** The time of the last write to the log, in milliseconds since the Unix epoch. */
  changedAt?: number | null;
  /** The agent's session, if known. */
  sessionId?: string | null;
  /** The tokens used so far, if the agent reports them. */
  usage?: Usage | null;
  /** The cost so far in US dollars, if known. */
  costUsd?: number | null;
  /** The source of the cost. */
  costSource?: CostSource | null;
  /** The duration in milliseconds; absent while the run is live. */
  durationMs?: number | null;
  /** The number of attempts that an ended run took, if there were several. */
  attempts?: number | null;
  /** The error of a failed run. */
  error?: AgentError | null;
  /** What the run has left in its workspace; absent while it is live, and if it had none of its own. */
  workspace?: WorkspaceResult | null;
  /** The requests that wait for an answer. */
  requests: PendingRequest[];
  /** The live status, if it was requested; absent once the run has ended. */
  live?: LiveStatus | null;
}

/** A run and its result. */
export interface RunView {
  /** Id of the run. */
  runId: string;
  /** Title of the run: that of its spec, or else the first line of its prompt. A person may change it later; then the views of the run have the new one. `None` where titles are not kept, and for a session before its first prompt. */
  title?: string | null;
  /** Kind of the run. */
  kind: RunKind;
  /** First provider of the run. */
  provider: string;
  /** The requested model. */
  model?: string | null;
  /** Working directory of the agent. */
  directory?: string | null;
  /** The directory of another machine that was submitted for the run, as that machine names it. */
  submittedFrom?: string | null;
  /** Branch of the git worktree that was created for the run. */
  branch?: string | null;
  /** Id of the run whose log has the beginning of this session's conversation. */
  continues?: string | null;
  /** Grants of a session. `None` if they were not recorded: for a run, and by an earlier version. */
  grants?: Grants | null;
  /** Time of acceptance, in milliseconds since the Unix epoch. */
  acceptedAt: number;
  /** The run's state. */
  state: ViewState;
  /** The start of the state `queued` or `unknown`, in milliseconds since the Unix epoch. */
  since?: number | null;
  /** The reason for which it is `queued`. */
  queue?: QueueStatus | null;
  /** The machine of a fleet that has the run, or the only one that may take it. */
  machine?: string | null;
  /** The outcome; absent while the run is live. */
  status?: RunStatus | null;
  /** The `seq` of the newest log entry. */
  seq: number;
  /** The time of the last write to the log, in milliseconds since the Unix epoch. */
  changedAt?: number | null;
  /** The agent's session, if known. */
  sessionId?: string | null;
  /** The tokens used so far, if the agent reports them. */
  usage?: Usage | null;
  /** The cost so far in US dollars, if known. */
  costUsd?: number | null;
  /** The source of the cost. */
  costSource?: CostSource | null;
  /** The duration in milliseconds; absent while the run is live. */
  durationMs?: number | null;
  /** The number of attempts that an ended run took, if there were several. */
  attempts?: number | null;
  /** The error of a failed run. */
  error?: AgentError | null;
  /** What the run has left in its workspace; absent while it is live, and if it had none of its own. */
  workspace?: WorkspaceResult | null;
  /** The requests that wait for an answer. */
  requests: PendingRequest[];
  /** The live status, if it was requested; absent once the run has ended. */
  live?: LiveStatus | null;
  /** The prompt of a detached run; absent for sessions, and where prompts are not kept. */
  prompt?: string | null;
  /** The result; absent while the run is live. */
  result?: RunResult | null;
}

/** Sessions, newest first. */
export interface SessionList {
  /** The sessions. */
  sessions: RunSummary[];
}

/** A session to start. */
export interface SessionSpec {
  /** The agent, such as `claude`. */
  provider: string;
  /** The title of the session, under which the agent's CLI lists it, too. Default: the first line of the first prompt, here alone. */
  title?: string | null;
  /** The model, by the CLI's own name. */
  model?: string | null;
  /** Reasoning effort, in the CLI's own words. */
  effort?: string | null;
  /** The model to which the CLI itself changes while its own is overloaded. */
  fallbackModel?: string | null;
  /** What the agent may do without approval. A server accepts `bypass` only if it allows it, and from a token with the scope `admin`. */
  permission?: PermissionMode;
  /** Tools that are allowed without a request, in the CLI's own syntax. Needs a token with the scopes `run` and `answer`, or `admin`. */
  allowedTools?: string[];
  /** Tools that are forbidden, in the CLI's own syntax. */
  deniedTools?: string[];
  /** The agent's working directory, an absolute path. Default: that of the server. */
  workingDirectory?: string | null;
  /** Work in a new git worktree: `true`, or the name of its branch. */
  worktree?: Worktree | null;
  /** Where the agent works, in the long form. Excludes `workingDirectory` and `worktree`. */
  workspace?: Workspace | null;
  /** The agent's session to resume. */
  sessionId?: string | null;
  /** The conversation, such as `slack:U42`: its session is resumed, or started by the first run or session with this key. */
  sessionKey?: string | null;
  /** The id of the session whose log has the beginning of this conversation. It is shown with the session, and the workspace `continued` is that of it: `sessionId` is the session that the agent resumes. */
  continues?: string | null;
  /** With `sessionId`: continue in a new session and leave that one unchanged. */
  fork?: boolean;
  /** Replaces the CLI's system prompt. */
  systemPrompt?: string | null;
  /** Text that is appended to the CLI's system prompt. */
  appendSystemPrompt?: string | null;
  /** The maximum cost of all turns together, in US dollars. */
  maxBudgetUsd?: number | null;
  /** The maximum number of tokens of all turns together. */
  maxTokens?: number | null;
  /** The maximum duration of all turns together, in milliseconds. 0: no limit. */
  maxTimeMs?: number | null;
  /** The number of retries of a turn after transient failures. */
  retries?: number;
  /** The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn fails. 0 is no limit. Default: 5 minutes with `retries`, else no wait. */
  maxWaitMs?: number | null;
  /** Agents that take over when the previous ones fail in the first turn, such as `codex` or `codex:gpt-5.1`. */
  fallback?: string[];
  /** Accounts of the agents, by their names on the machine (`teamster accounts list`), in order of preference: the next one of an agent takes over when the limit of the previous one is reached. Of an agent without one, its own login is used. */
  accounts?: string[];
  /** The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once. Default: 1 hour. */
  askTimeoutMs?: number | null;
  /** Files that are collected from the working directory at the end of the session: paths in it with `*`, `**` and `?`, or directories. Symbolic links are not followed. */
  artifacts?: string[];
  /** End the session after this time without a turn, in milliseconds. 0: never. */
  endIdleMs?: number | null;
  /** A URL that receives a request when the session ends or needs an answer. */
  callback?: string | null;
  /** The depth of the agent, if another agent starts it. It only restricts: the machine's own limit counts, too. */
  depth?: AgentDepth | null;
  /** The machines of a fleet that may carry it out. A server without a fleet refuses it. */
  placement?: Placement;
  /** Names of the secrets that the agent gets as variables, such as `NPM_TOKEN`. The values are on the machines of the fleet, each of which decides who may use them. A server without a fleet refuses it. */
  secrets?: string[];
}

/** A command or skill of the CLI. */
export interface SlashCommand {
  /** The name, without the leading `/`. */
  name: string;
  /** The CLI's description. */
  description?: string | null;
  /** The CLI's description of the text after the name. */
  inputHint?: string | null;
}

/** `sleep.json`: current status of the loop. */
export interface SleepFile {
  /** State of the loop. */
  state: LoopState;
  /** Current sleep between ticks, in seconds. */
  current_sleep_seconds: number;
  /** Reason of the state, for people, with the last error. */
  reason: string;
  /** `reason` without the last error, if `reason` has one. */
  plain_reason?: string | null;
  /** Time of writing, in seconds since the Unix epoch. */
  updated_at_epoch: number;
  /** End of the sleep, in seconds since the Unix epoch; only while the loop sleeps. */
  sleep_until_epoch?: number | null;
  /** Failed ticks and starts in a row; left out at 0. */
  failed_ticks?: number;
  /** Error of the last of them. */
  last_error?: TickError | null;
}

/** A prompt. */
export interface StartTurn {
  /** The prompt. */
  prompt: string;
  /** Images that go with the prompt. */
  images?: Image[];
  /** The name of the sender, for the log and for other clients. Default: the token's name. */
  from?: string | null;
  /** During another turn, wait for its end, at most 30 seconds. A prompt that is still refused as `SESSION_BUSY` was not sent: repeat the request. */
  queue?: boolean;
}

/** A run that was started, or that an earlier start with the same key or id has started. */
export interface StartedRun {
  /** Id of the run. */
  runId: string;
  /** Title of the run: that of its spec, or else the first line of its prompt. A person may change it later; then the views of the run have the new one. `None` where titles are not kept, and for a session before its first prompt. */
  title?: string | null;
  /** Kind of the run. */
  kind: RunKind;
  /** First provider of the run. */
  provider: string;
  /** The requested model. */
  model?: string | null;
  /** Working directory of the agent. */
  directory?: string | null;
  /** The directory of another machine that was submitted for the run, as that machine names it. */
  submittedFrom?: string | null;
  /** Branch of the git worktree that was created for the run. */
  branch?: string | null;
  /** Id of the run whose log has the beginning of this session's conversation. */
  continues?: string | null;
  /** Grants of a session. `None` if they were not recorded: for a run, and by an earlier version. */
  grants?: Grants | null;
  /** Time of acceptance, in milliseconds since the Unix epoch. */
  acceptedAt: number;
  /** The run's state. */
  state: ViewState;
  /** The start of the state `queued` or `unknown`, in milliseconds since the Unix epoch. */
  since?: number | null;
  /** The reason for which it is `queued`. */
  queue?: QueueStatus | null;
  /** The machine of a fleet that has the run, or the only one that may take it. */
  machine?: string | null;
  /** The outcome; absent while the run is live. */
  status?: RunStatus | null;
  /** The `seq` of the newest log entry. */
  seq: number;
  /** The time of the last write to the log, in milliseconds since the Unix epoch. */
  changedAt?: number | null;
  /** The agent's session, if known. */
  sessionId?: string | null;
  /** The tokens used so far, if the agent reports them. */
  usage?: Usage | null;
  /** The cost so far in US dollars, if known. */
  costUsd?: number | null;
  /** The source of the cost. */
  costSource?: CostSource | null;
  /** The duration in milliseconds; absent while the run is live. */
  durationMs?: number | null;
  /** The number of attempts that an ended run took, if there were several. */
  attempts?: number | null;
  /** The error of a failed run. */
  error?: AgentError | null;
  /** What the run has left in its workspace; absent while it is live, and if it had none of its own. */
  workspace?: WorkspaceResult | null;
  /** The requests that wait for an answer. */
  requests: PendingRequest[];
  /** The live status, if it was requested; absent once the run has ended. */
  live?: LiveStatus | null;
  /** The prompt of a detached run; absent for sessions, and where prompts are not kept. */
  prompt?: string | null;
  /** The result; absent while the run is live. */
  result?: RunResult | null;
  /** Warnings, such as of options without effect; absent without any. A repeated request gets those of the start. */
  warnings?: string[];
  /** Those of the warnings that a user who wants no others sees too, such as that the history is incomplete. */
  important?: string[];
}

/** A message for the turn in progress. */
export interface Steer {
  /** The message. */
  text: string;
  /** The name of the sender, for the log and for other clients. Default: the token's name. */
  from?: string | null;
}

/** A subscription that was stored. */
export interface SubscribedBrowser {
  /** The id, to unsubscribe. */
  id: string;
}

/** Status of the supervisor itself. */
export interface SupervisorStatus {
  /** Process id of the supervisor. */
  pid: number;
  /** Start time, in milliseconds since the Unix epoch. */
  startedAtMs: number;
  /** Time that a loop may take to end before it is killed, in milliseconds. */
  graceMs: number;
  /** The supervisor lives, but does not answer: the status is that of its files. */
  notAnswering?: boolean;
}

/** The kinds of system prompt that a provider supports. */
export type SystemPromptSupport = "none" | "append" | "replace" | "append_and_replace";

/** A piece of a result's `text`: consecutive text of one message. */
export interface TextPiece {
  /** The message it belongs to. */
  messageId?: string | null;
  /** Its length in bytes of UTF-8. It begins where the piece before it ends. */
  bytes: number;
}

/** Error of a tick. */
export interface TickError {
  /** Class of the error. */
  kind: ErrorKind;
  /** The error, for people, on one line of limited length. */
  message: string;
  /** Time of the error, in seconds since the Unix epoch. */
  at_epoch: number;
}

/** Prompt of a tick. */
export type TickPrompt = "light" | "full";

/** One line of `ticks.jsonl`. */
export interface TickRecord {
  /** Number of the tick since the start of its loop, from 1. */
  tick: number;
  /** Process id of its loop. */
  pid: number;
  /** Id of the tick's run: the name of its log, and its row in the history. */
  run_id?: string | null;
  /** Prompt of the tick. */
  prompt: TickPrompt;
  /** Time of its start. */
  begin: string;
  /** Time of its end. If its loop was killed: the start of the next loop. */
  end: string;
  /** Outcome of the tick. */
  result: TickResult;
  /** Class of the error. */
  error_kind?: ErrorKind | null;
  /** Error of the tick, for people. */
  error?: string | null;
  /** Flags that were set at its end, by the names of their files. */
  flags: string[];
  /** Session of the tick. */
  session_id?: string | null;
  /** Input tokens outside the cache, over all models. */
  input_tokens: number;
  /** Output tokens, reasoning included. */
  output_tokens: number;
  /** Tokens read from the cache. */
  cache_read_tokens: number;
  /** Tokens written to the cache. */
  cache_write_tokens: number;
  /** Cost in USD, if it is known for all models of the tick. */
  cost_usd?: number | null;
  /** Source of the cost: an estimate if the cost of any model is one. */
  cost_source?: CostSource | null;
}

/** Outcome of a tick. */
export type TickResult = "completed" | "failed" | "refused" | "timed_out" | "stuck" | "died" | "unusable" | "stopped" | "killed" | "other";

/** Category of a tool, the same for every CLI. */
export type ToolKind = "read" | "edit" | "delete" | "move" | "search" | "execute" | "think" | "fetch" | "task" | "mcp" | "other";

/** The run of a trigger. */
export interface Triggered {
  /** The id of the run. */
  runId: string;
}

/** Turn in progress. */
export interface TurnStatus {
  /** Id of the turn in the log and in the history. */
  runId: string;
  /** Name of the sender, such as `terminal pts/3`. `None` for a turn that the agent began by itself. */
  from?: string | null;
  /** Start time, in milliseconds since the Unix epoch. */
  beganAt: number;
}

/** A turn of a session. */
export interface TurnView {
  /** The turn's id: the session's id, a dot and a number. */
  runId: string;
  /** The `seq` of the log entry with the prompt. */
  seq: number;
  /** The result; absent while the turn is in progress. */
  result?: RunResult | null;
}

/** A model with requests that have no price. */
export interface UnpricedModel {
  /** The model. Empty if the files do not have it. */
  model: string;
  /** Number of requests without a price. */
  requests: number;
  /** Number of all requests to the model. */
  of: number;
}

/** Tokens used. Figures that the CLI did not report are absent, never 0.  Every provider converts its CLI's own convention (input with or without cached tokens, deltas or running totals) to this one. */
export interface Usage {
  /** Input tokens that were neither read from nor written to a cache. */
  inputTokens?: number | null;
  /** Output tokens, reasoning included. */
  outputTokens?: number | null;
  /** Input tokens read from a prompt cache, not included in `input_tokens`. */
  cacheReadTokens?: number | null;
  /** Input tokens written to a prompt cache, not included in `input_tokens`. */
  cacheWriteTokens?: number | null;
  /** Reasoning tokens, a part of `output_tokens`. */
  reasoningTokens?: number | null;
}

/** The figures of one group. */
export interface UsageGroup {
  /** Name of the group. Absent if the files do not have it. */
  name?: string | null;
  /** Requests to models. */
  requests: number;
  /** Requests that sub-agents made, included in `requests`. */
  subagentRequests: number;
  /** Tokens. */
  usage: Usage;
  /** Tokens that are cached for an hour, among those that were written to a cache. */
  cacheWrite1hTokens?: number | null;
  /** Cost reported by the CLIs in USD, for those requests that have one. */
  reportedCostUsd?: number | null;
  /** Cost by the price table in USD, for those requests whose model it has. */
  estimatedCostUsd?: number | null;
  /** Cost in USD: for each request the reported cost, or else the estimate. */
  spentUsd?: number | null;
  /** Web searches that the services made. */
  webSearches?: number | null;
  /** Requests that are not in the estimate, because their model is unknown or has no price. A run in the history without a number of requests counts as one. */
  unpricedRequests: number;
  /** Premium requests as counted by Copilot. */
  premiumRequests?: number | null;
  /** The CLIs with figures in the group. */
  providers: string[];
  /** The models with figures in the group. */
  models: string[];
  /** The directory in which a session began. */
  directory?: string | null;
  /** The time of the first request. */
  first: string;
  /** The time of the last request. */
  last: string;
  /** The models within the group, if requested. */
  byModel?: ModelFigures[];
}

/** A limit of a subscription, and how much of it is used. */
export interface UsageLimit {
  /** The CLI whose service has the limit. */
  provider: string;
  /** The length of the window in minutes: 300 for five hours, 10,080 for a week. */
  windowMinutes?: number | null;
  /** The used part of the limit, in percent. */
  usedPercent: number;
  /** Time at which the window ends and the limit resets. */
  resetsAt?: string | null;
  /** Time at which the service reported the limit. */
  at: string;
}

/** Usage of agents, in groups. */
export interface UsageSummary {
  /** Dimension of the groups. */
  by: Dimension;
  /** Start of the counted period. */
  since?: string | null;
  /** End of the counted period. */
  until?: string | null;
  /** Time zone of the days, by its IANA name. Absent if it has none. */
  timeZone?: string | null;
  /** The groups. Days and sessions are in chronological order, others by cost in descending order. */
  groups: UsageGroup[];
  /** All groups together. */
  total: Figures;
  /** Models with requests that have no price. */
  unpriced: UnpricedModel[];
  /** Source of the prices for estimates. */
  prices: PriceSource;
  /** The share of the history of runs. */
  history: HistoryShare;
  /** Statistics and problems of reading. */
  diagnostics: Diagnostics2;
}

/** The state of a run. */
export type ViewState = "queued" | "running" | "waiting" | "unknown" | "ended";

/** What a browser needs to subscribe. */
export interface WebPush {
  /** The server's public key (VAPID, RFC 8292), as URL-safe Base64: the `applicationServerKey` of the Push API. */
  key: string;
}

/** The keys for which messages are encrypted (RFC 8291), as URL-safe Base64. */
export interface WebPushKeys {
  /** The public key. */
  p256dh: string;
  /** The authentication secret. */
  auth: string;
}

/** A browser's subscription, as in the `PushSubscription` of the Push API. */
export interface WebPushSubscription {
  /** The address at the browser's push service. */
  endpoint: string;
  /** The browser's keys. */
  keys: WebPushKeys;
}

export interface DirectoryWorkspace {
  kind: "directory";
  /** An absolute path. */
  path: string;
}

export interface WorktreeWorkspace {
  kind: "worktree";
  /** The directory, an absolute path. Default: that of the server. */
  directory?: string | null;
  /** The commit at which the worktree starts, as git names it. Default: `HEAD`. */
  from?: string | null;
  /** The name of its new branch. Default: `teamster/` and the run's id. */
  branch?: string | null;
}

export interface RepositoryWorkspace {
  kind: "repository";
  /** The repository's URL, without a user's password or token in it. */
  url: string;
  /** The commit at which the worktree starts: its full hash. */
  commit: string;
  /** The agent's directory in the repository, a relative path. Default: its root. */
  subdirectory?: string | null;
}

export interface UploadWorkspace {
  kind: "upload";
  /** The full hash of the repository's first commit, by which the machine knows copies of it. */
  repository: string;
  /** The commit at which the worktree starts: its full hash. */
  commit: string;
  /** The commit on which that one has the uncommitted files, and which the submitter has: what comes back begins there. Default: the same commit. */
  head?: string | null;
  /** The full hash of a commit of files that git ignores, which are copied into the worktree. The file `included` of the run is its bundle. Default: none. */
  included?: string | null;
  /** The name of the worktree's folder. Default: the first commit. */
  name?: string | null;
  /** The agent's directory in the repository, a relative path. Default: its root. */
  subdirectory?: string | null;
  /** The directory that was submitted, as its machine names it. It is shown with the session and changes nothing else. */
  submittedFrom?: string | null;
  /** The worktree stays at the end of the session, for those that continue it (`continued`). It goes when they are forgotten. Default: it is removed if nothing was changed. */
  stays?: boolean;
}

export interface ContinuedWorkspace {
  kind: "continued";
}

export interface EmptyWorkspace {
  kind: "empty";
}

/** Where an agent works: the long form of `workingDirectory` and `worktree`. */
export type Workspace = DirectoryWorkspace | WorktreeWorkspace | RepositoryWorkspace | UploadWorkspace | ContinuedWorkspace | EmptyWorkspace;

/** The changes of a run's workspace: everything between the commit at which it began and what is there now, be it committed or not. */
export interface WorkspaceDiff {
  /** The commit at which the run began. */
  base: string;
  /** The commit that is compared: the last one of the run, or the one that has also what was not committed. */
  head: string;
  /** The files, in the order of their paths. */
  files: DiffFile[];
  /** Number of changed files, including those that a limit left out. */
  filesChanged: number;
  /** Number of added lines in text files. */
  insertions: number;
  /** Number of deleted lines in text files. */
  deletions: number;
  /** True if files, hunks or lines were left out because of a limit. */
  truncated?: boolean;
}

/** Kind of a workspace. */
export type WorkspaceKind = "directory" | "worktree" | "repository" | "upload" | "empty" | "other";

/** The workspace of a run at its end: what the agent has changed, be it committed or not. A figure that could not be found out is absent, never 0; then `error`(Self::error) has the reason. */
export interface WorkspaceResult {
  /** Kind of the workspace. */
  kind: WorkspaceKind;
  /** Folder of the workspace. Absent if it was removed, because nothing was changed in it. */
  directory?: string | null;
  /** The run's branch. Absent if it was removed with the folder, or if there is none. */
  branch?: string | null;
  /** The commit at which the workspace began. Absent without a repository. */
  base?: string;
  /** The last commit of the run; that at which it began if it made none. */
  head?: string | null;
  /** Number of commits from `base` to `head`. */
  commits?: number | null;
  /** Number of files that differ from `base`, including what is not committed. */
  filesChanged?: number | null;
  /** Number of added lines in text files. */
  insertions?: number | null;
  /** Number of deleted lines in text files. */
  deletions?: number | null;
  /** True if there are changes that are not committed. */
  dirty?: boolean | null;
  /** The commit of these changes, on top of `head`: `refs/teamster/RUN/wip`. */
  wip?: string | null;
  /** The remote and the branch that the commits were pushed to, such as `origin:fix`. */
  pushed?: string | null;
  /** Work that is only in the folder, such as `1 commit in the submodule libs/a`. */
  unsaved?: string[];
  /** The reason for which something is absent. */
  error?: string | null;
}

/** A new git worktree for a run. */
export type Worktree = boolean | string;
