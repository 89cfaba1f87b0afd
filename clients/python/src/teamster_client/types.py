"""Made by clients/generate.py from the OpenAPI document. Do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

class AgentError(TypedDict):
    """An error of a run: the payload of an `error` event, and a `std::error::Error`.  The message is for people; programs decide by the other fields."""

    #: Description for a person, with the next step where there is one.
    message: str
    #: Where the error was found.
    code: NotRequired["ErrorCode"]
    #: Classification: the basis for retry, fallback or giving up.
    kind: "ErrorKind"
    #: Whether the same request may succeed when repeated.
    retryable: bool
    #: Backoff before a retry in milliseconds, if the service gave one.
    retryAfterMs: NotRequired[Union[int, None]]
    #: When a limit resets, in milliseconds since the Unix epoch.
    resetsAt: NotRequired[Union[int, None]]
    #: Details as data.
    detail: NotRequired[Union["ErrorDetail", None]]
    #: The underlying error: that of the last attempt, or the one that put a provider on hold.
    cause: NotRequired[Union["AgentError", None]]

class AgentList(TypedDict):
    """The agents of a supervisor."""

    #: The configuration; absent if the server has none.
    config: NotRequired[Union[str, None]]
    #: The supervisor; null if none is running.
    supervisor: NotRequired[Union["SupervisorStatus", None]]
    #: The master switch: while it is off, no agent is started.
    enabled: bool
    #: The agents, in the order of the configuration.
    agents: list["AgentStatus"]
    #: Warnings about settings without effect, for people.
    warnings: NotRequired[list[str]]

class AgentSelection(TypedDict):
    """A selection of agents."""

    #: The ids of the agents.
    agents: NotRequired[list[str]]
    #: Select all agents.
    all: NotRequired[bool]

#: What the loop of an agent is in the eyes of the supervisor.
AgentState: TypeAlias = Literal["running", "failing", "limited", "starting", "stopping", "backing_off", "stopped", "ended", "failed", "other"]

class AgentStatus(TypedDict):
    """One agent."""

    #: Its id.
    id: str
    #: By what its colleagues call it.
    alias: NotRequired[Union[str, None]]
    #: What it is there for.
    role: NotRequired[Union[str, None]]
    #: The adapter of its loop, if the configuration names one.
    runtime: NotRequired[Union[str, None]]
    #: Where it works.
    workingDir: str
    #: Its own switch.
    enabled: bool
    #: What its loop does.
    state: "AgentState"
    #: The process id of its loop.
    pid: NotRequired[Union[int, None]]
    #: When its loop was started, in milliseconds since the Unix epoch.
    startedAtMs: NotRequired[Union[int, None]]
    #: It is no longer in the configuration, and goes when its loop has ended.
    removed: NotRequired[bool]
    #: The loop was started by an earlier supervisor.
    adopted: NotRequired[bool]
    #: How often it was restarted automatically since the last requested start.
    restarts: int
    #: When it is started again, in milliseconds since the Unix epoch; of one that crashed.
    retryAtMs: NotRequired[Union[int, None]]
    #: The last reason of a change, such as how its loop ended.
    reason: NotRequired[Union[str, None]]
    #: Its loop ended because it was asked to, and in order: `reason` adds nothing to `state`.
    stoppedInOrder: NotRequired[bool]
    #: What failed last: its tick, or its loop.
    lastError: NotRequired[Union["LastError", None]]
    #: The last sign of life of its loop, in milliseconds since the Unix epoch.
    heartbeatMs: NotRequired[Union[int, None]]
    #: Its last tick.
    lastTick: NotRequired[Union["TickRecord", None]]
    #: The agent's own status: its `status.json`, if that is JSON of at most 64 KiB.
    status: NotRequired[Any]
    #: The loop's own status, while it runs.
    activity: NotRequired[Union["SleepFile", None]]

class AllowAnswer(TypedDict):
    decision: Literal["allow"]

class AllowAlwaysAnswer(TypedDict):
    decision: Literal["allow_always"]

class AllowWithAnswer(TypedDict):
    decision: Literal["allow_with"]
    #: The input.
    input: Any

class DenyAnswer(TypedDict):
    decision: Literal["deny"]
    #: Why, for the model.
    reason: NotRequired[Union[str, None]]

#: An answer to a request.
Answer: TypeAlias = Union["AllowAnswer", "AllowAlwaysAnswer", "AllowWithAnswer", "DenyAnswer"]

class Attempt(TypedDict):
    """One attempt of a run."""

    #: The provider.
    provider: str
    #: The model as reported by the agent, else as requested.
    model: NotRequired[Union[str, None]]
    #: Its session.
    sessionId: NotRequired[Union[str, None]]
    #: It went on with the session of the attempt before, because of what that had done.
    resumed: bool
    #: How long it took, in milliseconds.
    durationMs: int
    #: Its usage.
    usage: NotRequired[Union["Usage", None]]
    #: Its cost in USD.
    costUsd: NotRequired[Union[float, None]]
    #: Why it failed, if it did.
    error: NotRequired[Union["AgentError", None]]

#: A budget of a run.
BudgetKind: TypeAlias = Literal["time", "tokens", "usd", "turns"]

class Cancel(TypedDict):
    """Options for stopping a run."""

    #: Kill the run at once instead of stopping it cleanly.
    kill: NotRequired[bool]

class Capabilities(TypedDict):
    """Which `ExecuteParams`(crate::ExecuteParams) a provider supports, and what its stream contains.  A value of `false` means that requesting it is an `InvalidParams`(crate::ErrorCode::InvalidParams) error."""

    #: `session_id`.
    resume: bool
    #: `fork`.
    fork: bool
    #: `new_session_id`.
    newSessionId: bool
    #: `add_dirs`.
    addDirs: bool
    #: `system_prompt`.
    systemPrompt: "SystemPromptSupport"
    #: `model`.
    model: bool
    #: `effort`.
    effort: bool
    #: `permission`: the modes that it knows.
    permissionModes: list[str]
    #: `allowed_tools`.
    allowedTools: bool
    #: `denied_tools`.
    deniedTools: bool
    #: `max_turns`.
    maxTurns: bool
    #: `max_budget_usd`.
    maxBudgetUsd: bool
    #: `output_schema`.
    outputSchema: bool
    #: `images`.
    images: bool
    #: `mcp_servers`.
    mcp: "McpSupport"
    #: `cli_retries`.
    cliRetries: bool
    #: A prompt can go to stdin, so its size is not limited by argv.
    promptOnStdin: bool
    #: The stream has text as it is written, not only whole messages.
    textDeltas: bool
    #: A run's text is final as soon as it is in the stream: the CLI's own retries never [retract](crate::AgentEvent::Retract) it.
    finalText: bool
    #: The stream has the model's reasoning.
    thinking: bool
    #: The result has token figures.
    usage: bool
    #: The result has a cost that the CLI reports.
    cost: bool
    #: `usage_updates`: the stream has token figures during the run, so that a token limit can be enforced.
    liveUsage: bool
    #: The same for costs.
    liveCost: bool
    #: Tools whose use of tokens is in no figure, by the CLI's own names. The orchestrator denies them to a run with a limit of tokens or cost, which could not hold with them, unless `allowed_tools` names them.
    uncountedTools: list[str]
    #: The stream emits a `tool_use` before every mutating tool runs.
    #: If so, a run that broke off (a crash, the watchdog, a kill) without a `tool_use` whose [kind has side effects](crate::ToolKind::has_side_effects) has changed nothing and may be started over, as long as all that it printed was understood: in a line that was lost (`Diagnostics`(crate::Diagnostics), the last line of a killed process among them) there may have been one. It does not hold with `slash_commands`: their text may contain commands that are not tools.
    #: If not, that is unknown. It is `false` as soon as one mutating tool is announced late or never. Which that is, is in `docs/providers/`.
    announcesTools: bool
    #: The CLI runs the calls of an answer only after the whole answer has arrived.
    #: If so, a run that the CLI itself ends because a request failed has not run the calls since the last `tool_result`: they were in the answer that broke off.
    runsCallsAfterAnswer: bool
    #: `slash_commands`. Unless requested, a prompt is never interpreted as a command.
    slashCommands: bool
    #: The CLI adds the files that a prompt names with `@` to the request, also those outside the working directory, and it cannot be switched off: mind this with prompts of strangers.
    fileMentions: bool

class SnapshotChange(TypedDict):
    type: Literal["snapshot"]
    #: The newest 50 runs and all that have not ended, newest first.
    runs: list["RunSummary"]
    #: The agents; absent if the server has no configuration of them.
    agents: NotRequired[Union["AgentList", None]]

class RunChange(TypedDict):
    type: Literal["run"]
    #: The run's current state, including its requests.
    run: "RunSummary"

class GoneChange(TypedDict):
    type: Literal["gone"]
    #: The run's id.
    runId: str

class AgentsChange(TypedDict):
    type: Literal["agents"]
    #: The current state of the agents.
    agents: "AgentList"

#: A message of the state stream.
Change: TypeAlias = Union["SnapshotChange", "RunChange", "GoneChange", "AgentsChange"]

#: The kind of a file change.
ChangeKind: TypeAlias = Literal["add", "delete", "move", "update"]

class ChangeSession(TypedDict):
    """Settings to change from the next turn on."""

    #: The model, by the CLI's own name.
    model: NotRequired[Union[str, None]]
    #: The permission mode.
    permission: NotRequired[Union["PermissionMode", None]]

#: Source of a cost.
CostSource: TypeAlias = Literal["reported", "estimated"]

#: Outcome of a permission request.
Decision: TypeAlias = Literal["allowed", "denied", "requested", "other"]

class Diagnostics(TypedDict):
    """Counts of lines that the CLI printed."""

    #: Lines that were not blank.
    lines: int
    #: Lines that are not the JSON they should be.
    malformed: int
    #: Lines longer than the limit.
    oversize: int
    #: JSON lines of a type that the decoder does not know.
    unknown: int

class Diagnostics2(TypedDict):
    """Statistics and problems of reading. None of them ends a scan."""

    #: Files and databases that were read.
    files: NotRequired[int]
    #: Files that were left out because they were last changed before the requested time.
    oldFiles: NotRequired[int]
    #: Bytes that were read.
    bytes: NotRequired[int]
    #: Lines that were read.
    lines: NotRequired[int]
    #: Lines that should have held figures and could not be understood.
    malformedLines: NotRequired[int]
    #: Lines that were too long to be read.
    oversizeLines: NotRequired[int]
    #: Sessions whose figures the CLI has not written, because it was killed before it did.
    sessionsWithoutFigures: NotRequired[int]
    #: Files, folders and databases that could not be read.
    unreadable: NotRequired[int]
    #: Some of those.
    unreadableExamples: NotRequired[list[str]]

#: Dimension by which figures are grouped.
Dimension: TypeAlias = Literal["day", "week", "month", "project", "model", "agent", "session", "provider", "key"]

class SessionLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The id with which the session can be resumed.
    sessionId: str
    #: The model that answers.
    model: NotRequired[Union[str, None]]
    #: Names of the tools that the agent has.
    tools: NotRequired[Union[list[str], None]]
    #: MCP servers and their states.
    mcpServers: NotRequired[Union[list["McpServerStatus"], None]]
    type: Literal["session"]

class TextLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The new text.
    text: str
    #: The message it belongs to.
    messageId: NotRequired[Union[str, None]]
    #: The tool call that started the sub-agent which wrote this; absent for the main agent.
    parentToolId: NotRequired[Union[str, None]]
    type: Literal["text"]

class RetractLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The message whose `text` and `thinking` events so far are withdrawn. New ones may follow.
    messageId: str
    type: Literal["retract"]

class ThinkingLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The new text.
    text: str
    #: The message it belongs to.
    messageId: NotRequired[Union[str, None]]
    #: The tool call that started the sub-agent which wrote this; absent for the main agent.
    parentToolId: NotRequired[Union[str, None]]
    type: Literal["thinking"]

class ToolUseLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The CLI's own name of the tool.
    toolName: str
    #: The id that the `tool_result` will carry. Unique in the run.
    toolId: str
    #: The arguments, complete.
    input: Any
    #: The category of the tool.
    kind: "ToolKind"
    #: Server and tool, for a tool of an MCP server.
    mcp: NotRequired[Union["McpTool", None]]
    #: The tool call that started the sub-agent which made this call; absent for the main agent.
    parentToolId: NotRequired[Union[str, None]]
    type: Literal["tool_use"]

class ToolResultLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The id of the `tool_use`.
    toolId: str
    #: The result as text, complete. Images become a placeholder with their type and size.
    output: str
    #: Whether the tool failed, if the CLI reports it.
    isError: NotRequired[Union[bool, None]]
    #: As in the `tool_use`.
    parentToolId: NotRequired[Union[str, None]]
    type: Literal["tool_result"]

class FileChangeLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The file, as the CLI names it.
    path: str
    #: The kind of change.
    change: "ChangeKind"
    #: The tool call that did it.
    toolId: NotRequired[Union[str, None]]
    type: Literal["file_change"]

class PlanLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: All entries, in order.
    entries: list["PlanEntry"]
    type: Literal["plan"]

class PermissionLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The tool in question.
    toolName: str
    #: The call in question.
    toolId: NotRequired[Union[str, None]]
    #: The decision.
    decision: "Decision"
    #: The reason, in the CLI's words.
    reason: NotRequired[Union[str, None]]
    #: Id of the request that callers can answer, in the log of a detached run.
    requestId: NotRequired[Union[str, None]]
    type: Literal["permission"]

class UsageLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Usage of the run so far.
    usage: "Usage"
    #: Cost of the run so far in USD, if the CLI reports it.
    costUsd: NotRequired[Union[float, None]]
    type: Literal["usage"]

class RetryLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Number of this retry, from 1. On the wire it is `number`: an entry's `attempt` is that of the run.
    number: int
    #: Limit of retries.
    maxAttempts: NotRequired[Union[int, None]]
    #: Backoff before this retry, in milliseconds.
    delayMs: NotRequired[Union[int, None]]
    #: The error that caused it.
    error: "AgentError"
    type: Literal["retry"]

class RateLimitLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The CLI's word, such as `allowed`, `allowed_warning` or `rejected`.
    status: str
    #: When the limit resets, in milliseconds since the Unix epoch.
    resetsAt: NotRequired[Union[int, None]]
    #: Name of the limit, such as `five_hour`.
    kind: NotRequired[Union[str, None]]
    #: Used share of the limit, from 0 to 1.
    utilization: NotRequired[Union[float, None]]
    type: Literal["rate_limit"]

class NoticeLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Severity.
    level: "NoticeLevel"
    #: The text, for a person.
    message: str
    #: Source.
    source: "NoticeSource"
    type: Literal["notice"]

class UnknownLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The line.
    native: NotRequired["Native"]
    type: Literal["unknown"]

class TurnEndLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Why the model stopped, in the CLI's word.
    stopReason: NotRequired[Union[str, None]]
    #: Whether the turn failed.
    isError: bool
    #: Usage of the turn.
    usage: NotRequired[Union["Usage", None]]
    #: Cost of the turn in USD.
    costUsd: NotRequired[Union[float, None]]
    type: Literal["turn_end"]

class ErrorLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Description for a person, with the next step where there is one.
    message: str
    #: Where the error was found.
    code: NotRequired["ErrorCode"]
    #: Classification: the basis for retry, fallback or giving up.
    kind: "ErrorKind"
    #: Whether the same request may succeed when repeated.
    retryable: bool
    #: Backoff before a retry in milliseconds, if the service gave one.
    retryAfterMs: NotRequired[Union[int, None]]
    #: When a limit resets, in milliseconds since the Unix epoch.
    resetsAt: NotRequired[Union[int, None]]
    #: Details as data.
    detail: NotRequired[Union["ErrorDetail", None]]
    #: The underlying error: that of the last attempt, or the one that put a provider on hold.
    cause: NotRequired[Union["AgentError", None]]
    type: Literal["error"]

class DoneLogEntry(TypedDict):
    #: The entry's number in its log: from 1, without gaps. 0 until the log has numbered it.
    seq: int
    #: When it happened, in milliseconds since the Unix epoch. 0 until that is known.
    atMs: int
    #: The run, where it has an id.
    runId: NotRequired[Union[str, None]]
    #: The attempt of the run that it belongs to, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The result of the run.
    result: "RunResult"
    type: Literal["done"]

class RunStartLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:start"]
    #: The run.
    runId: str
    #: The agent's session.
    sessionId: NotRequired[Union[str, None]]
    #: The provider that is tried first.
    provider: str
    #: The model as reported by the agent, else as requested.
    model: NotRequired[Union[str, None]]

class RunEndLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    #: The run.
    runId: str
    #: How it ended, in three words.
    status: "OutcomeStatus"
    #: The same in the words of a result. Absent in a line of an older version.
    runStatus: NotRequired[Union["RunStatus", None]]
    #: From its acceptance to its end, in milliseconds: waiting included.
    durationMs: int
    #: The outcome.
    result: "Outcome"
    type: Literal["run:end"]

class RunErrorLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:error"]
    #: The run.
    runId: str
    #: Why.
    error: "AgentError"

class RunAttemptLogEntry(TypedDict):
    seq: int
    atMs: int
    #: The number of the attempt; the first of a run is 1.
    attempt: int
    type: Literal["run:attempt"]
    #: The run.
    runId: str
    #: The provider.
    provider: str
    #: The requested model.
    model: NotRequired[Union[str, None]]
    #: The session of an earlier attempt that this one resumes because of its side effects.
    resumes: NotRequired[Union[str, None]]

class RunHoldLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:hold"]
    #: The run.
    runId: str
    #: The group that shares limits and holds: the provider, unless the candidate names another.
    group: str
    #: The requested model, if any.
    model: NotRequired[Union[str, None]]
    #: When the hold is over, in milliseconds since the Unix epoch; absent where it waits for room.
    untilMs: NotRequired[Union[int, None]]
    #: The error that has put it on hold.
    reason: NotRequired[Union["AgentError", None]]

class RunRetryLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:retry"]
    #: The run.
    runId: str
    #: Why the last one failed.
    reason: "AgentError"
    #: How long the run waits before it, in milliseconds.
    delayMs: int
    #: The next attempt.
    next: "Next"

class RunFallbackLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:fallback"]
    #: The run.
    runId: str
    #: Why the last candidate was given up.
    reason: "AgentError"
    #: How long the run waits before it, in milliseconds.
    delayMs: int
    #: The next attempt.
    next: "Next"

class ToolStartLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["tool:start"]
    #: The run.
    runId: str
    #: The tool, by the CLI's own name.
    toolName: str
    #: The call.
    toolId: str

class ToolEndLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["tool:end"]
    #: The run.
    runId: str
    #: The tool, by the CLI's own name.
    toolName: str
    #: The call.
    toolId: str
    #: From its start, in milliseconds.
    durationMs: int
    #: It failed, or its attempt ended before it did.
    isError: bool

class AssistantChunkLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["assistant:chunk"]
    #: The run.
    runId: str
    #: The text.
    content: str

class AssistantMessageLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["assistant:message"]
    #: The run.
    runId: str
    #: The text.
    content: str

UserMessageLogEntry = TypedDict("UserMessageLogEntry", {
    "seq": int,
    "atMs": int,
    "attempt": int,
    "type": Literal["user:message"],
    "runId": str,
    "text": str,
    "from": NotRequired[Union[str, None]],
    "steer": NotRequired[bool],
    "key": NotRequired[Union[str, None]],
})

class ResetLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["reset"]
    #: The run.
    runId: str

#: An entry of a run's log: an event of the agent, or one of the run itself, whose `type` has a colon (or is `reset`).
Entry: TypeAlias = Union["SessionLogEntry", "TextLogEntry", "RetractLogEntry", "ThinkingLogEntry", "ToolUseLogEntry", "ToolResultLogEntry", "FileChangeLogEntry", "PlanLogEntry", "PermissionLogEntry", "UsageLogEntry", "RetryLogEntry", "RateLimitLogEntry", "NoticeLogEntry", "UnknownLogEntry", "TurnEndLogEntry", "ErrorLogEntry", "DoneLogEntry", "RunStartLogEntry", "RunEndLogEntry", "RunErrorLogEntry", "RunAttemptLogEntry", "RunHoldLogEntry", "RunRetryLogEntry", "RunFallbackLogEntry", "ToolStartLogEntry", "ToolEndLogEntry", "AssistantChunkLogEntry", "AssistantMessageLogEntry", "UserMessageLogEntry", "ResetLogEntry"]

#: Origin of an error. The names are stable.
ErrorCode: TypeAlias = Literal["CLI_NOT_FOUND", "CLI_STDERR", "CLI_EXIT_ERROR", "CLI_ERROR", "STARTUP_TIMEOUT", "WATCHDOG_TIMEOUT", "ABORTED", "INVALID_PARAMS", "PROMPT_TOO_LARGE", "STREAM_ENDED_EARLY", "OUTPUT_LIMIT", "CONFIG_LEASE", "IO", "BUDGET_EXCEEDED", "INTERRUPTED", "PROVIDER_ON_HOLD", "NO_TURN", "UNKNOWN"]

class ParameterErrorDetail(TypedDict):
    type: Literal["parameter"]
    #: The name in `ExecuteParams`(crate::ExecuteParams), such as `mcp_servers`, or that of another setting, such as `provider`, `run_id` or `budget.usd`.
    name: str
    #: The item of a list, such as the name of an MCP server or of a variable.
    item: NotRequired[Union[str, None]]
    #: The problem, for a person: the message without the names.
    problem: str

class BudgetErrorDetail(TypedDict):
    type: Literal["budget"]
    #: Which budget.
    budget: "BudgetKind"
    #: Its limit: tokens, USD, seconds or turns.
    limit: NotRequired[Union[float, None]]

class NotRetriedErrorDetail(TypedDict):
    type: Literal["not_retried"]
    #: Why there was none.
    reason: "NotRetried"
    #: The same for a person, with the next step.
    explanation: str

class MissingProgramErrorDetail(TypedDict):
    type: Literal["missing_program"]
    #: The name that was looked for.
    program: str
    #: The command that installs it, also part of the message. Empty if unknown.
    install: str

#: The subject of an error, as data. A type that only a newer version knows is read as `Other`(Self::Other).
ErrorDetail: TypeAlias = Union["ParameterErrorDetail", "BudgetErrorDetail", "NotRetriedErrorDetail", "MissingProgramErrorDetail"]

#: The recommended reaction to an error.
ErrorKind: TypeAlias = Literal["auth", "rate_limit", "quota", "overloaded", "network", "context_window", "model_not_found", "session_not_found", "permission", "budget", "max_turns", "mcp", "timeout", "aborted", "interrupted", "not_found", "invalid", "protocol", "internal"]

class Figures(TypedDict):
    """Sums. Unknown figures are absent, never 0."""

    #: Requests to models.
    requests: int
    #: Those of them that sub-agents made.
    subagentRequests: int
    #: Tokens.
    usage: "Usage"
    #: Of the tokens that were written to a cache, those that it keeps for an hour.
    cacheWrite1hTokens: NotRequired[Union[int, None]]
    #: Cost reported by the CLIs in USD, for those requests that have one.
    reportedCostUsd: NotRequired[Union[float, None]]
    #: Cost by the price table in USD, for those requests whose model it has.
    estimatedCostUsd: NotRequired[Union[float, None]]
    #: Cost in USD: of each request the reported one, or else the estimate.
    spentUsd: NotRequired[Union[float, None]]
    #: Searches in the web that the services made.
    webSearches: NotRequired[Union[int, None]]
    #: Requests that are not in the estimate, since the table does not know their model or no one does. Of a run of the history that does not say how many it made, one.
    unpricedRequests: int
    #: Premium requests that Copilot counts.
    premiumRequests: NotRequired[Union[float, None]]

class ForgetRuns(TypedDict):
    """Runs and logs to delete. Live runs are kept."""

    #: Ids or unique id prefixes of runs to delete. If one of them cannot be deleted, none is.
    ids: NotRequired[list[str]]
    #: Delete runs that ended longer ago than this, in milliseconds.
    olderThanMs: NotRequired[Union[int, None]]
    #: Delete the oldest logs until the rest takes at most this many bytes.
    logsOver: NotRequired[Union[int, None]]

class Forgotten(TypedDict):
    """The number of deleted runs and logs."""

    #: Deleted runs of the history.
    runs: int
    #: Deleted logs.
    logs: int
    #: The size of the deleted logs, in bytes.
    logBytes: int

class HistoryList(TypedDict):
    """A page of the history, newest first."""

    #: The runs.
    runs: list["RunRecord"]
    #: The `cursor` of the next page; absent on the last one.
    next: NotRequired[Union[str, None]]

class HistoryShare(TypedDict):
    """The share of the history of runs."""

    #: Runs that the CLIs' files do not know.
    onlyThere: int
    #: Runs whose cost is added to the tokens of the CLIs' files.
    withCost: int
    #: Runs of agents whose files are not known; they are not counted.
    ofOtherAgents: int

#: State of a run.
#: The words of a run that is over are those of `status` in `run:end`, which the database and `teamster runs --json` have had from the beginning: `success` for `Completed`(teamster_core::RunStatus::Completed), `aborted`, and `error` for every other `RunStatus`(teamster_core::RunStatus), whose cause is in `RunRecord::error`.
HistoryStatus: TypeAlias = Union[Literal["running"], Literal["success"], Literal["error"], Literal["aborted"], Literal["interrupted"], str]

class Interrupt(TypedDict):
    """Options for interrupting a turn."""

    #: Kill the agent's process; the next turn starts another one.
    kill: NotRequired[bool]

class LastError(TypedDict):
    """Something that failed."""

    #: The class of the error, if it is one of a tick.
    kind: NotRequired[Union["ErrorKind", None]]
    #: The error, for people.
    message: str
    #: When it happened, in milliseconds since the Unix epoch.
    atMs: int

class LimitList(TypedDict):
    """The limits of subscriptions: the JSON of `teamster usage --limits --json` and of `GET /v1/limits`."""

    #: The limits that the CLIs left on the disk.
    limits: list["UsageLimit"]

#: What a live run or session is doing.
LiveState: TypeAlias = Literal["idle", "running", "waiting", "ending", "other"]

class LiveStatus(TypedDict):
    """What a live run or session is doing."""

    #: What it is doing.
    state: "LiveState"
    #: Since when, in milliseconds since the Unix epoch.
    since: int
    #: The turns of a session that have ended. 0 for a run.
    turns: int
    #: The turn in progress.
    turn: NotRequired[Union["TurnStatus", None]]
    #: The provider that works, which may be a fallback.
    provider: NotRequired[Union[str, None]]
    #: The model that answers.
    model: NotRequired[Union[str, None]]
    #: The provider's session, to resume it.
    sessionId: NotRequired[Union[str, None]]
    #: What was used so far, as far as it was reported.
    usage: NotRequired[Union["Usage", None]]
    #: What it cost so far in USD, as far as that was reported.
    costUsd: NotRequired[Union[float, None]]

class LogPage(TypedDict):
    """A page of a log."""

    #: The entries.
    entries: list["Entry"]
    #: The `after` of the next page.
    next: int
    #: True if the log ends with this page.
    ended: bool

#: What a loop is doing.
LoopState: TypeAlias = Literal["sleeping", "tick", "other"]

class McpServerStatus(TypedDict):
    """State of an MCP server as the CLI reports it."""

    #: Its name in the configuration.
    name: str
    #: The CLI's word for its state, such as `connected`, `failed` or `pending`.
    status: str

class McpSupport(TypedDict):
    """Which properties of an `McpServer` a provider supports."""

    #: The transports, by their names.
    transports: list[str]
    #: The characters that a server's name may have beside ASCII letters and digits.
    nameMarks: str
    #: How long a server's name may be, in characters.
    longestName: int
    #: `mcp_delivery`: the ways that there are.
    deliveries: list[str]
    #: `mcp_strict`.
    strict: bool
    #: `cwd` of a stdio server.
    cwd: bool
    #: `startup_timeout`.
    startupTimeout: bool
    #: `tool_timeout`.
    toolTimeout: bool
    #: `tools.only`.
    onlyTools: bool
    #: `tools.except`.
    exceptTools: bool

class McpTool(TypedDict):
    """A tool of an MCP server."""

    #: The server's name in the configuration.
    server: str
    #: The tool's own name.
    tool: str

class ModelFigures(TypedDict):
    """The figures of a model within a group."""

    #: The model; absent where the files do not have it.
    model: NotRequired[Union[str, None]]
    #: The CLIs that used it.
    providers: NotRequired[list[str]]
    #: Requests to models.
    requests: int
    #: Those of them that sub-agents made.
    subagentRequests: int
    #: Tokens.
    usage: "Usage"
    #: Of the tokens that were written to a cache, those that it keeps for an hour.
    cacheWrite1hTokens: NotRequired[Union[int, None]]
    #: Cost reported by the CLIs in USD, for those requests that have one.
    reportedCostUsd: NotRequired[Union[float, None]]
    #: Cost by the price table in USD, for those requests whose model it has.
    estimatedCostUsd: NotRequired[Union[float, None]]
    #: Cost in USD: of each request the reported one, or else the estimate.
    spentUsd: NotRequired[Union[float, None]]
    #: Searches in the web that the services made.
    webSearches: NotRequired[Union[int, None]]
    #: Requests that are not in the estimate, since the table does not know their model or no one does. Of a run of the history that does not say how many it made, one.
    unpricedRequests: int
    #: Premium requests that Copilot counts.
    premiumRequests: NotRequired[Union[float, None]]

class ModelUsage(TypedDict):
    """Usage of one model in a run."""

    #: Tokens.
    usage: "Usage"
    #: Cost in USD.
    costUsd: NotRequired[Union[float, None]]
    #: Size of the model's context window in tokens.
    contextWindow: NotRequired[Union[int, None]]
    #: Most output tokens of one answer.
    maxOutputTokens: NotRequired[Union[int, None]]

#: The JSON value that the CLI printed, as it came.
Native: TypeAlias = Any

class Next(TypedDict):
    """The attempt that comes."""

    #: Its number; the first attempt of a run is 1.
    attempt: int
    #: The provider.
    provider: str
    #: The model, if one was requested.
    model: NotRequired[Union[str, None]]
    #: The session that it resumes, because changes were made already. Without it the prompt is sent again, and the text of the failed attempt is withdrawn.
    resumes: NotRequired[Union[str, None]]

#: Reason why a run was not retried although its policy allows it.
NotRetried: TypeAlias = Literal["out_of_time", "no_slot", "side_effects", "session_lost"]

#: Severity of a notice.
NoticeLevel: TypeAlias = Literal["info", "warning"]

#: Source of a notice.
NoticeSource: TypeAlias = Literal["stdout", "stderr", "runtime"]

class Outcome(TypedDict):
    """The outcome of a run, over all its attempts. A figure that no CLI reported is absent, never 0."""

    #: The agent's messages, in order: text of one message id, up to a tool call, its end, or the end of a turn. Those of an attempt after which the prompt was sent again are not among them.
    payloads: list["Payload"]
    #: Usage of all attempts together.
    usage: NotRequired[Union["Usage", None]]
    #: The answer in the shape of `output_schema`.
    structuredOutput: NotRequired[Any]
    #: How it went.
    meta: "OutcomeMeta"

class OutcomeMeta(TypedDict):
    """Metadata of an outcome."""

    #: The run.
    runId: str
    #: How it ended.
    status: "OutcomeStatus"
    #: The session in which the last attempt worked, to go on with it.
    sessionId: NotRequired[Union[str, None]]
    #: The provider of the last attempt.
    provider: str
    #: The model of the last attempt as reported by the agent, else as requested.
    model: NotRequired[Union[str, None]]
    #: From the run's acceptance to its end, in milliseconds: waiting included.
    durationMs: int
    #: Why it did not succeed.
    error: NotRequired[Union["AgentError", None]]
    #: How many attempts there were; 0 if none could begin.
    attempts: int
    #: Each of them, in order.
    attemptLog: NotRequired[list["Attempt"]]
    #: Reported cost of all attempts together, in USD.
    costUsd: NotRequired[Union[float, None]]
    #: Turns of all attempts, as the CLIs count them.
    numTurns: NotRequired[Union[int, None]]

#: Final status of a run.
OutcomeStatus: TypeAlias = Literal["success", "aborted", "error"]

class Payload(TypedDict):
    """One message of the agent."""

    #: Its text.
    text: str

class PendingRequest(TypedDict):
    """A request that waits for an answer: a tool that wants permission, or the question of an MCP server."""

    #: Its id: that of the run, `/`, and a number.
    requestId: str
    #: The run.
    runId: str
    #: The tool, in the CLI's own name.
    toolName: str
    #: The call of the tool.
    toolId: NotRequired[Union[str, None]]
    #: What kind of tool it is.
    kind: "ToolKind"
    #: What the tool is to do.
    input: Any
    #: The CLI's own text about it.
    message: NotRequired[Union[str, None]]
    #: The JSON Schema of the answer that an MCP server asks for.
    schema: NotRequired[Any]
    #: Whether an input can be given with the answer.
    takesInput: bool
    #: Whether the reason of a denial reaches the model.
    takesReason: NotRequired[bool]
    #: When it came, in milliseconds since the Unix epoch.
    askedAt: int
    #: When it is denied without an answer.
    expiresAt: NotRequired[Union[int, None]]

class PermissionDenial(TypedDict):
    """A tool call that was not permitted."""

    #: The tool.
    toolName: str
    #: The call.
    toolId: NotRequired[Union[str, None]]
    #: Why, in the CLI's words.
    reason: NotRequired[Union[str, None]]

#: The permission mode of an agent: what it may do without approval.
PermissionMode: TypeAlias = Literal["default", "read-only", "accept-edits", "bypass"]

class PlanEntry(TypedDict):
    """One entry of a plan."""

    #: The task.
    content: str
    #: Its progress.
    status: "PlanStatus"

#: Progress of a plan entry.
PlanStatus: TypeAlias = Literal["in_progress", "completed", "cancelled", "pending"]

class PriceSource(TypedDict):
    """Source of the prices for estimates."""

    #: The origin of the built-in table.
    source: str
    #: The date of the built-in table.
    date: str
    #: The user's file whose prices go before it.
    file: NotRequired[Union[str, None]]

class Problem(TypedDict):
    """An error of the API: problem details of RFC 9457."""

    #: Always `about:blank`; `code` has the error type.
    type: str
    #: The reason phrase of the status.
    title: str
    #: The HTTP status.
    status: int
    #: The error code, for programs.
    code: "ProblemCode"
    #: The error message, for people.
    detail: str

#: A stable error code of the API.
ProblemCode: TypeAlias = Literal["UNAUTHORIZED", "INSUFFICIENT_SCOPE", "HOST_NOT_ALLOWED", "ORIGIN_NOT_ALLOWED", "BYPASS_NOT_ALLOWED", "COMMAND_NOT_ALLOWED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "RUN_NOT_FOUND", "RUN_ID_AMBIGUOUS", "RUN_EXISTS", "RUN_ENDED", "SESSION_NOT_FOUND", "SESSION_BUSY", "NO_TURN", "SESSION_ENDING", "OVER_BUDGET", "REQUEST_NOT_FOUND", "ALREADY_ANSWERED", "INVALID_ANSWER", "IDEMPOTENCY_KEY_REUSED", "INVALID_BODY", "INVALID_PARAMS", "BODY_TOO_LARGE", "BODY_TIMEOUT", "UNSUPPORTED_MEDIA_TYPE", "AGENT_NOT_FOUND", "AGENT_REFUSED", "SUPERVISOR_NOT_RUNNING", "RUNNER_NOT_RESPONDING", "UNSUPPORTED", "INTERNAL"]

class ProviderList(TypedDict):
    """The agents of this machine."""

    #: One report for each agent.
    providers: list["ProviderReport"]

#: The login state of an agent, from its files and the environment.
ProviderLogin = TypedDict("ProviderLogin", {
    "state": str,
    "from": NotRequired[Union[str, None]],
})

class ProviderReport(TypedDict):
    """An agent of this machine and its capabilities."""

    #: The agent's id, such as `claude`.
    id: str
    #: The CLI's own name.
    name: str
    #: The agent can be used: its program reported a version or, without a program, a key for a model service exists.
    usable: bool
    #: The agent has no program and runs in the process of the run.
    inProcess: bool
    #: The path of the program.
    path: NotRequired[Union[str, None]]
    #: The path of the program that a run starts, if it differs from `path`.
    resolvedPath: NotRequired[Union[str, None]]
    #: The version that the program reports.
    version: NotRequired[Union[str, None]]
    #: The decoder is tested with recordings of this version.
    tested: bool
    #: The versions whose recordings the decoder is tested with.
    testedVersions: list[str]
    #: The oldest supported version.
    oldestVersion: NotRequired[Union[str, None]]
    #: The version is older than `oldestVersion`.
    tooOld: bool
    #: The reason why the agent cannot be used.
    problem: NotRequired[Union[str, None]]
    #: The command that installs it.
    install: str
    #: The login state.
    login: "ProviderLogin"
    #: The agent's capabilities.
    capabilities: "Capabilities"

class RequestList(TypedDict):
    """The pending requests of all runs."""

    #: The requests, those of the newest run first.
    requests: list["PendingRequest"]

#: One prompt, or a conversation.
RunKind: TypeAlias = Literal["run", "session", "tick", "other"]

class RunList(TypedDict):
    """A page of runs, newest first."""

    #: The runs.
    runs: list["RunSummary"]
    #: The `cursor` of the next page; absent on the last one.
    next: NotRequired[Union[str, None]]

class RunRecord(TypedDict):
    """A run in the history. A figure that no CLI reported is absent, never 0."""

    #: Its id.
    runId: str
    #: Where it stands.
    status: "HistoryStatus"
    #: The provider that works on it, or worked on it last.
    provider: str
    #: The model as reported by the agent, else as requested.
    model: NotRequired[Union[str, None]]
    #: The session in which it works, or which it shall resume.
    sessionId: NotRequired[Union[str, None]]
    #: The conversation that it belongs to, as text.
    conversation: NotRequired[Union[str, None]]
    #: Where the agent works.
    workingDirectory: NotRequired[Union[str, None]]
    #: SHA-256 of the prompt, in hexadecimal.
    promptHash: str
    #: When it began, in milliseconds since the Unix epoch.
    startedAt: int
    #: When it ended. Of an interrupted run, when it was last heard of, once that was written down.
    endedAt: NotRequired[Union[int, None]]
    #: How long it took, in milliseconds.
    durationMs: NotRequired[Union[int, None]]
    #: Usage of all attempts together.
    usage: NotRequired[Union["Usage", None]]
    #: Cost of all attempts together, in USD.
    costUsd: NotRequired[Union[float, None]]
    #: Turns of all attempts, as the CLIs count them.
    numTurns: NotRequired[Union[int, None]]
    #: Why it did not succeed. Its code and details are known where it is the error of the last attempt.
    error: NotRequired[Union["AgentError", None]]
    #: How many attempts there were; 0 while it runs.
    attempts: int
    #: Each of them, in order.
    attemptLog: NotRequired[list["Attempt"]]
    #: The machine that it runs on.
    host: str
    #: The process there that has it in hand.
    pid: int
    #: When it was last heard of, in milliseconds since the Unix epoch.
    heartbeatAt: int

class RunResult(TypedDict):
    """The outcome of a run. A figure that the CLI did not report is absent, never 0."""

    #: How it ended.
    status: "RunStatus"
    #: All text of the main agent that was not retracted, as it came: nothing stands between two messages. `messages`(Self::messages) parts them, and `answer`(Self::answer) is the last.
    text: str
    #: How `text` is parted into messages: its pieces, in order.
    pieces: NotRequired[list["TextPiece"]]
    #: The last message of the main agent: the answer, without intermediate messages.
    finalMessage: NotRequired[Union[str, None]]
    #: The session, to resume it.
    sessionId: NotRequired[Union[str, None]]
    #: The model that answered.
    model: NotRequired[Union[str, None]]
    #: From the start of the process to its end, in milliseconds.
    durationMs: int
    #: Time spent in requests to the model, in milliseconds.
    apiDurationMs: NotRequired[Union[int, None]]
    #: Usage of this run.
    usage: NotRequired[Union["Usage", None]]
    #: Usage of the session in total, if the CLI reports it.
    sessionUsage: NotRequired[Union["Usage", None]]
    #: Usage by model.
    usageByModel: NotRequired[dict[str, "ModelUsage"]]
    #: Cost of this run in USD.
    totalCostUsd: NotRequired[Union[float, None]]
    #: Where the cost comes from.
    costSource: NotRequired[Union["CostSource", None]]
    #: Turns, as the CLI counts them.
    numTurns: NotRequired[Union[int, None]]
    #: Why the model stopped, in the CLI's word.
    stopReason: NotRequired[Union[str, None]]
    #: Whether the caller stopped the run.
    aborted: bool
    #: Exit code of the process; absent when a signal ended it or it never started.
    exitCode: NotRequired[Union[int, None]]
    #: Name of the signal that ended the process, such as `SIGKILL`.
    exitSignal: NotRequired[Union[str, None]]
    #: The end of what the CLI wrote to its standard error.
    stderr: NotRequired[Union[str, None]]
    #: Every `error` event of the run.
    errors: NotRequired[list["AgentError"]]
    #: Every denial of permission.
    permissionDenials: NotRequired[list["PermissionDenial"]]
    #: Tool calls that never got a result.
    openToolIds: NotRequired[list[str]]
    #: The answer in the shape of `output_schema`.
    structuredOutput: NotRequired[Any]
    #: Anomalies of the output.
    diagnostics: "Diagnostics"

#: Final status of a run.
RunStatus: TypeAlias = Literal["completed", "aborted", "timed_out", "incomplete", "failed"]

class RunSummary(TypedDict):
    """A run, without its events."""

    #: The run's id.
    runId: str
    #: One prompt, or a conversation.
    kind: "RunKind"
    #: The provider that is tried first.
    provider: str
    #: The requested model.
    model: NotRequired[Union[str, None]]
    #: Where the agent works.
    directory: NotRequired[Union[str, None]]
    #: The branch of the git worktree that was made for it.
    branch: NotRequired[Union[str, None]]
    #: The run in whose log this session's conversation begins.
    continues: NotRequired[Union[str, None]]
    #: When it was accepted, in milliseconds since the Unix epoch.
    acceptedAt: int
    #: The run's state.
    state: "ViewState"
    #: The outcome; absent while the run is live.
    status: NotRequired[Union["RunStatus", None]]
    #: The `seq` of the newest log entry.
    seq: int
    #: The time of the last write to the log, in milliseconds since the Unix epoch.
    changedAt: NotRequired[Union[int, None]]
    #: The agent's session, if known.
    sessionId: NotRequired[Union[str, None]]
    #: The tokens used so far, if the agent reports them.
    usage: NotRequired[Union["Usage", None]]
    #: The cost so far in US dollars, if known.
    costUsd: NotRequired[Union[float, None]]
    #: The duration in milliseconds; absent while the run is live.
    durationMs: NotRequired[Union[int, None]]
    #: The error of a failed run.
    error: NotRequired[Union["AgentError", None]]
    #: The requests that wait for an answer.
    requests: list["PendingRequest"]
    #: The live status, if it was requested; absent once the run has ended.
    live: NotRequired[Union["LiveStatus", None]]

class RunView(TypedDict):
    """A run and its result."""

    #: The run's id.
    runId: str
    #: One prompt, or a conversation.
    kind: "RunKind"
    #: The provider that is tried first.
    provider: str
    #: The requested model.
    model: NotRequired[Union[str, None]]
    #: Where the agent works.
    directory: NotRequired[Union[str, None]]
    #: The branch of the git worktree that was made for it.
    branch: NotRequired[Union[str, None]]
    #: The run in whose log this session's conversation begins.
    continues: NotRequired[Union[str, None]]
    #: When it was accepted, in milliseconds since the Unix epoch.
    acceptedAt: int
    #: The run's state.
    state: "ViewState"
    #: The outcome; absent while the run is live.
    status: NotRequired[Union["RunStatus", None]]
    #: The `seq` of the newest log entry.
    seq: int
    #: The time of the last write to the log, in milliseconds since the Unix epoch.
    changedAt: NotRequired[Union[int, None]]
    #: The agent's session, if known.
    sessionId: NotRequired[Union[str, None]]
    #: The tokens used so far, if the agent reports them.
    usage: NotRequired[Union["Usage", None]]
    #: The cost so far in US dollars, if known.
    costUsd: NotRequired[Union[float, None]]
    #: The duration in milliseconds; absent while the run is live.
    durationMs: NotRequired[Union[int, None]]
    #: The error of a failed run.
    error: NotRequired[Union["AgentError", None]]
    #: The requests that wait for an answer.
    requests: list["PendingRequest"]
    #: The live status, if it was requested; absent once the run has ended.
    live: NotRequired[Union["LiveStatus", None]]
    #: The result; absent while the run is live.
    result: NotRequired[Union["RunResult", None]]

class SessionList(TypedDict):
    """Sessions, newest first."""

    #: The sessions.
    sessions: list["RunSummary"]

class SleepFile(TypedDict):
    """`sleep.json`: what the loop is doing."""

    #: Whether it sleeps.
    state: "LoopState"
    #: The sleep that it has come to, in seconds.
    current_sleep_seconds: int
    #: Why, for a person, with the last error.
    reason: str
    #: The same without the last error, where `reason` has one.
    plain_reason: NotRequired[Union[str, None]]
    #: When this was written, in seconds since 1970.
    updated_at_epoch: int
    #: When the sleep is over, in seconds since 1970; only while it sleeps.
    sleep_until_epoch: NotRequired[Union[int, None]]
    #: Ticks and starts in a row that failed; left out at 0.
    failed_ticks: NotRequired[int]
    #: Why the last of them failed.
    last_error: NotRequired[Union["TickError", None]]

class StartRun(TypedDict):
    """A run to start. Defaults are those of `teamster run --detach`."""

    #: The agent, such as `claude`.
    provider: str
    #: The prompt.
    prompt: str
    #: The model, by the CLI's own name.
    model: NotRequired[Union[str, None]]
    #: Reasoning effort, in the CLI's own words.
    effort: NotRequired[Union[str, None]]
    #: The permission mode.
    permission: NotRequired["PermissionMode"]
    #: Tools that are allowed, in the CLI's own syntax.
    allowedTools: NotRequired[list[str]]
    #: Tools that are forbidden, in the CLI's own syntax.
    deniedTools: NotRequired[list[str]]
    #: The agent's working directory, an absolute path. Default: the server's working directory.
    workingDirectory: NotRequired[Union[str, None]]
    #: Run in a new git worktree: `true`, or the name of its branch.
    worktree: NotRequired[Union["Worktree", None]]
    #: The session to resume.
    sessionId: NotRequired[Union[str, None]]
    #: The conversation, such as `slack:U42`: its session is resumed, or started by the first run with this key.
    sessionKey: NotRequired[Union[str, None]]
    #: With `sessionId`: continue in a new session and leave that one unchanged.
    fork: NotRequired[bool]
    #: Replaces the CLI's system prompt.
    systemPrompt: NotRequired[Union[str, None]]
    #: Text that is appended to the CLI's system prompt.
    appendSystemPrompt: NotRequired[Union[str, None]]
    #: The JSON Schema of the answer.
    outputSchema: NotRequired[Any]
    #: The maximum number of turns.
    maxTurns: NotRequired[Union[int, None]]
    #: The maximum cost in US dollars.
    maxBudgetUsd: NotRequired[Union[float, None]]
    #: The maximum number of tokens.
    maxTokens: NotRequired[Union[int, None]]
    #: The maximum duration in milliseconds, including waits.
    maxTimeMs: NotRequired[Union[int, None]]
    #: The number of retries after transient failures.
    retries: NotRequired[int]
    #: The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn fails. Default: 5 minutes with `retries`, else 0.
    maxWaitMs: NotRequired[Union[int, None]]
    #: Agents that take over when the previous ones fail, such as `codex` or `codex:gpt-5.1`.
    fallback: NotRequired[list[str]]
    #: The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once. Default: 1 hour.
    askTimeoutMs: NotRequired[Union[int, None]]
    #: A URL that receives a request when the run ends or needs an answer.
    callback: NotRequired[Union[str, None]]

class StartSession(TypedDict):
    """A session to start. Defaults are those of `teamster chat --detach`."""

    #: The agent, such as `claude`.
    provider: str
    #: The model, by the CLI's own name.
    model: NotRequired[Union[str, None]]
    #: Reasoning effort, in the CLI's own words.
    effort: NotRequired[Union[str, None]]
    #: The permission mode.
    permission: NotRequired["PermissionMode"]
    #: Tools that are allowed, in the CLI's own syntax.
    allowedTools: NotRequired[list[str]]
    #: Tools that are forbidden, in the CLI's own syntax.
    deniedTools: NotRequired[list[str]]
    #: The agent's working directory, an absolute path. Default: the server's working directory.
    workingDirectory: NotRequired[Union[str, None]]
    #: Work in a new git worktree: `true`, or the name of its branch.
    worktree: NotRequired[Union["Worktree", None]]
    #: The agent's session to resume.
    sessionId: NotRequired[Union[str, None]]
    #: With `sessionId`: continue in a new session and leave that one unchanged.
    fork: NotRequired[bool]
    #: Replaces the CLI's system prompt.
    systemPrompt: NotRequired[Union[str, None]]
    #: Text that is appended to the CLI's system prompt.
    appendSystemPrompt: NotRequired[Union[str, None]]
    #: The maximum cost of all turns together, in US dollars.
    maxBudgetUsd: NotRequired[Union[float, None]]
    #: The maximum number of tokens of all turns together.
    maxTokens: NotRequired[Union[int, None]]
    #: The maximum duration of all turns together, in milliseconds.
    maxTimeMs: NotRequired[Union[int, None]]
    #: The number of retries of a turn after transient failures.
    retries: NotRequired[int]
    #: The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn fails. Default: 5 minutes with `retries`, else 0.
    maxWaitMs: NotRequired[Union[int, None]]
    #: Agents that take over when the previous ones fail in the first turn, such as `codex` or `codex:gpt-5.1`.
    fallback: NotRequired[list[str]]
    #: The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once. Default: 1 hour.
    askTimeoutMs: NotRequired[Union[int, None]]
    #: End the session after this time without a turn, in milliseconds.
    endIdleMs: NotRequired[Union[int, None]]
    #: A URL that receives a request when the session ends or needs an answer.
    callback: NotRequired[Union[str, None]]

#: A prompt.
StartTurn = TypedDict("StartTurn", {
    "prompt": str,
    "from": NotRequired[Union[str, None]],
})

#: A message for the turn in progress.
Steer = TypedDict("Steer", {
    "text": str,
    "from": NotRequired[Union[str, None]],
})

class SupervisorStatus(TypedDict):
    """The supervisor itself."""

    #: Its process id.
    pid: int
    #: When it was started, in milliseconds since the Unix epoch.
    startedAtMs: int
    #: How long a loop may take to end before it is killed, in milliseconds.
    graceMs: int

#: Which kinds of system prompt a provider takes.
SystemPromptSupport: TypeAlias = Literal["none", "append", "replace", "append_and_replace"]

class TextPiece(TypedDict):
    """A piece of a result's `text`: consecutive text of one message."""

    #: The message it belongs to.
    messageId: NotRequired[Union[str, None]]
    #: Its length in bytes of UTF-8. It begins where the piece before it ends.
    bytes: int

class TickError(TypedDict):
    """Why a tick failed."""

    #: The class of the error.
    kind: "ErrorKind"
    #: The error, for a person, on one line of limited length.
    message: str
    #: When it happened, in seconds since 1970.
    at_epoch: int

#: Which prompt a tick has.
TickPrompt: TypeAlias = Literal["light", "full"]

class TickRecord(TypedDict):
    """One line of `ticks.jsonl`."""

    #: Its number since the start of its loop, from 1.
    tick: int
    #: The process id of its loop.
    pid: int
    #: The tick as a run: the name of its log, and its row in the history.
    run_id: NotRequired[Union[str, None]]
    #: Which prompt it had.
    prompt: "TickPrompt"
    #: When it began.
    begin: str
    #: When it ended; of one whose loop was killed, when the next loop began.
    end: str
    #: How it ended.
    result: "TickResult"
    #: The class of its error.
    error_kind: NotRequired[Union["ErrorKind", None]]
    #: Its error, for people.
    error: NotRequired[Union[str, None]]
    #: The flags that were set at its end, by the names of their files.
    flags: list[str]
    #: The session that it was in.
    session_id: NotRequired[Union[str, None]]
    #: Input tokens beside the cache, over all models.
    input_tokens: int
    #: Output tokens, reasoning included.
    output_tokens: int
    #: Tokens read from the cache.
    cache_read_tokens: int
    #: Tokens written to the cache.
    cache_write_tokens: int
    #: What it cost in USD, if that is known of all its models.
    cost_usd: NotRequired[Union[float, None]]
    #: Where the cost is from; an estimate if that of any model is one.
    cost_source: NotRequired[Union["CostSource", None]]

#: How a tick ended.
TickResult: TypeAlias = Literal["completed", "failed", "refused", "timed_out", "stuck", "died", "unusable", "stopped", "killed", "other"]

#: Category of a tool, the same for every CLI.
ToolKind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "task", "mcp", "other"]

#: A turn in progress.
TurnStatus = TypedDict("TurnStatus", {
    "runId": str,
    "from": NotRequired[Union[str, None]],
    "beganAt": int,
})

class TurnView(TypedDict):
    """A turn of a session."""

    #: The turn's id: the session's id, a dot and a number.
    runId: str
    #: The `seq` of the log entry with the prompt.
    seq: int
    #: The result; absent while the turn is in progress.
    result: NotRequired[Union["RunResult", None]]

class UnpricedModel(TypedDict):
    """A model of which not every request has a price."""

    #: The model; empty where the files do not have it.
    model: str
    #: How many requests have no price.
    requests: int
    #: How many requests were made to it in all.
    of: int

class Usage(TypedDict):
    """Tokens used. A figure that the CLI did not report is absent, never 0.  Every provider converts its CLI's own convention (cached tokens inside or beside the input, deltas or running totals) to this one."""

    #: Input tokens that were neither read from nor written to a cache.
    inputTokens: NotRequired[Union[int, None]]
    #: Output tokens, reasoning included.
    outputTokens: NotRequired[Union[int, None]]
    #: Input tokens read from a prompt cache, beside `input_tokens`.
    cacheReadTokens: NotRequired[Union[int, None]]
    #: Input tokens written to a prompt cache, beside `input_tokens`.
    cacheWriteTokens: NotRequired[Union[int, None]]
    #: Reasoning tokens, a part of `output_tokens`.
    reasoningTokens: NotRequired[Union[int, None]]

class UsageGroup(TypedDict):
    """The figures of one group."""

    #: Its name; absent where the files do not have it.
    name: NotRequired[Union[str, None]]
    #: Requests to models.
    requests: int
    #: Those of them that sub-agents made.
    subagentRequests: int
    #: Tokens.
    usage: "Usage"
    #: Of the tokens that were written to a cache, those that it keeps for an hour.
    cacheWrite1hTokens: NotRequired[Union[int, None]]
    #: Cost reported by the CLIs in USD, for those requests that have one.
    reportedCostUsd: NotRequired[Union[float, None]]
    #: Cost by the price table in USD, for those requests whose model it has.
    estimatedCostUsd: NotRequired[Union[float, None]]
    #: Cost in USD: of each request the reported one, or else the estimate.
    spentUsd: NotRequired[Union[float, None]]
    #: Searches in the web that the services made.
    webSearches: NotRequired[Union[int, None]]
    #: Requests that are not in the estimate, since the table does not know their model or no one does. Of a run of the history that does not say how many it made, one.
    unpricedRequests: int
    #: Premium requests that Copilot counts.
    premiumRequests: NotRequired[Union[float, None]]
    #: The CLIs that it has figures of.
    providers: list[str]
    #: The models that it has figures of.
    models: list[str]
    #: The directory in which a session began.
    directory: NotRequired[Union[str, None]]
    #: The time of the first request.
    first: str
    #: The time of the last request.
    last: str
    #: The models within the group, if requested.
    byModel: NotRequired[list["ModelFigures"]]

class UsageLimit(TypedDict):
    """A limit of a subscription, and how much of it is used."""

    #: The CLI whose service has the limit.
    provider: str
    #: The length of the window in minutes: 300 for five hours, 10,080 for a week.
    windowMinutes: NotRequired[Union[int, None]]
    #: The part of the limit that was used, in percent.
    usedPercent: float
    #: When the window ends and the limit is whole again.
    resetsAt: NotRequired[Union[str, None]]
    #: When the service reported it.
    at: str

class UsageSummary(TypedDict):
    """Usage of agents, in groups."""

    #: Dimension of the groups.
    by: "Dimension"
    #: From when on requests count.
    since: NotRequired[Union[str, None]]
    #: Until when requests count.
    until: NotRequired[Union[str, None]]
    #: The zone of the days, by its IANA name where it has one.
    timeZone: NotRequired[Union[str, None]]
    #: The groups: days and sessions in the order of time, others by what was spent, the most first.
    groups: list["UsageGroup"]
    #: All groups together.
    total: "Figures"
    #: Models of which not every request has a price.
    unpriced: list["UnpricedModel"]
    #: Source of the prices for estimates.
    prices: "PriceSource"
    #: The share of the history of runs.
    history: "HistoryShare"
    #: Statistics and problems of reading.
    diagnostics: "Diagnostics2"

#: The state of a run.
ViewState: TypeAlias = Literal["running", "waiting", "ended"]

#: A new git worktree for a run.
Worktree: TypeAlias = Union[bool, str]
