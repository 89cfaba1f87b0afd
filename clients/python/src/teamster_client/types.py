"""Made by clients/generate.py from the OpenAPI document. Do not edit."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union

class AgentDepth(TypedDict):
    """Depth of an agent among agents that start agents, and its limit.  An agent without one was started by no other, or by one whose depth is unknown."""

    #: The number of runs around the agent, its own included.
    own: int
    #: The depth from which on an agent starts no others. Absent: no limit.
    limit: NotRequired[Union[int, None]]

class AgentError(TypedDict):
    """An error of a run: the payload of an `error` event, and a `std::error::Error`.  The message is for people; programs decide by the other fields."""

    #: Description for a person, with the next step where there is one.
    message: str
    #: Origin of the error.
    code: NotRequired["ErrorCode"]
    #: Classification: the basis for retry, fallback or giving up.
    kind: "ErrorKind"
    #: True if the same request may succeed when repeated.
    retryable: bool
    #: Backoff before a retry in milliseconds, if the service gave one.
    retryAfterMs: NotRequired[Union[int, None]]
    #: Time at which a limit resets, in milliseconds since the Unix epoch.
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

#: State of an agent's loop.
AgentState: TypeAlias = Literal["running", "failing", "limited", "suspended", "starting", "stopping", "backing_off", "stopped", "ended", "failed", "other"]

class AgentStatus(TypedDict):
    """Status of an agent."""

    #: Id of the agent.
    id: str
    #: Name that other agents use for it.
    alias: NotRequired[Union[str, None]]
    #: Role of the agent, for people.
    role: NotRequired[Union[str, None]]
    #: Runtime of its loop, if the configuration names one.
    runtime: NotRequired[Union[str, None]]
    #: Working directory.
    workingDir: str
    #: The agent's own switch.
    enabled: bool
    #: State of its loop.
    state: "AgentState"
    #: Process id of its loop.
    pid: NotRequired[Union[int, None]]
    #: Start time of its loop, in milliseconds since the Unix epoch.
    startedAtMs: NotRequired[Union[int, None]]
    #: The agent is no longer in the configuration and disappears when its loop has ended.
    removed: NotRequired[bool]
    #: The loop was started by an earlier supervisor or another program.
    adopted: NotRequired[bool]
    #: Automatic restarts since the last requested start.
    restarts: int
    #: Time of the next automatic start, in milliseconds since the Unix epoch.
    retryAtMs: NotRequired[Union[int, None]]
    #: Reason of the last change, such as the exit of its loop.
    reason: NotRequired[Union[str, None]]
    #: The loop ended cleanly after a request: `reason` adds nothing to `state`.
    stoppedInOrder: NotRequired[bool]
    #: Last error, of its tick or its loop.
    lastError: NotRequired[Union["LastError", None]]
    #: Last heartbeat of its loop, in milliseconds since the Unix epoch.
    heartbeatMs: NotRequired[Union[int, None]]
    #: Last tick.
    lastTick: NotRequired[Union["TickRecord", None]]
    #: The agent's own status: its `status.json`, if that is valid JSON of at most 64 KiB.
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
    #: Reason, for the model.
    reason: NotRequired[Union[str, None]]

#: Answer to a request.
Answer: TypeAlias = Union["AllowAnswer", "AllowAlwaysAnswer", "AllowWithAnswer", "DenyAnswer"]

class AppliedChanges(TypedDict):
    """Changes of a run that were applied to the files of a repository."""

    #: The root of the working tree whose files were changed.
    directory: str
    #: The number of changed files; 0 if the run has changed nothing.
    filesChanged: int
    #: Warnings about the files before that, such as that an earlier apply was killed and its files were restored.
    warnings: NotRequired[list[str]]

class Attempt(TypedDict):
    """One attempt of a run."""

    #: The provider.
    provider: str
    #: The model as reported by the agent, else as requested.
    model: NotRequired[Union[str, None]]
    #: The account of the agent, if one was named.
    account: NotRequired[Union[str, None]]
    #: Session of the attempt.
    sessionId: NotRequired[Union[str, None]]
    #: True if the attempt resumed the session of the previous one, because that had side effects.
    resumed: bool
    #: Duration of the attempt, in milliseconds.
    durationMs: int
    #: Usage of the attempt.
    usage: NotRequired[Union["Usage", None]]
    #: Cost in USD.
    costUsd: NotRequired[Union[float, None]]
    #: The source of the cost.
    costSource: NotRequired[Union["CostSource", None]]
    #: The error of a failed attempt.
    error: NotRequired[Union["AgentError", None]]

#: A budget of a run.
BudgetKind: TypeAlias = Literal["time", "tokens", "usd", "turns"]

class Cancel(TypedDict):
    """Options for stopping a run."""

    #: Kill the run at once instead of stopping it cleanly.
    kill: NotRequired[bool]

class Capabilities(TypedDict):
    """The `ExecuteParams`(crate::ExecuteParams) that a provider supports, and the contents of its stream.  A value of `false` means that requesting it is an `InvalidParams`(crate::ErrorCode::InvalidParams) error."""

    #: Resuming a session (`session_id`).
    resume: bool
    #: Resuming into a new session (`fork`).
    fork: bool
    #: A chosen id of a new session (`new_session_id`).
    newSessionId: bool
    #: Directories beside the working directory (`add_dirs`).
    addDirs: bool
    #: Skills for a run (`skills`).
    skills: NotRequired[bool]
    #: Sub-agents for a run (`sub_agents`).
    subAgents: NotRequired[bool]
    #: Hooks for a run (`hooks`).
    hooks: NotRequired[bool]
    #: Instructions (`system_prompt`).
    systemPrompt: "SystemPromptSupport"
    #: Title of the session in the CLI's lists (`title`).
    title: NotRequired[bool]
    #: Model (`model`).
    model: bool
    #: How hard the model thinks (`effort`).
    effort: bool
    #: Another model while the first is overloaded (`fallback_model`).
    fallbackModel: NotRequired[bool]
    #: Permission modes (`permission`).
    permissionModes: list[str]
    #: Permission mode `plan` in sessions, of a CLI whose plain runs have none.
    sessionPlan: NotRequired[bool]
    #: Tools that are allowed without a request (`allowed_tools`).
    allowedTools: bool
    #: Tools that are denied (`denied_tools`).
    deniedTools: bool
    #: Limit of turns (`max_turns`).
    maxTurns: bool
    #: Limit of the cost (`max_budget_usd`).
    maxBudgetUsd: bool
    #: Answer by a JSON Schema (`output_schema`).
    outputSchema: bool
    #: Images with the prompt (`images`).
    images: bool
    #: MCP servers for a run (`mcp_servers`).
    mcp: "McpSupport"
    #: The CLI's own retries (`cli_retries`).
    cliRetries: bool
    #: Prompts of any size, on stdin.
    promptOnStdin: bool
    #: Text as it is written, not only whole messages.
    textDeltas: bool
    #: Text is final when it is in the stream.
    #: The CLI's own retries never [retract](crate::AgentEvent::Retract) it.
    finalText: bool
    #: The model's reasoning.
    thinking: bool
    #: Token figures.
    usage: bool
    #: Cost, reported by the CLI.
    cost: bool
    #: Token figures during the run (`usage_updates`).
    #: With them a token limit can be enforced.
    liveUsage: bool
    #: Cost during the run.
    #: With it a cost limit can be enforced.
    liveCost: bool
    #: Tools whose tokens are not counted, denied in a run with a limit of tokens or cost.
    #: They have the CLI's own names. The orchestrator allows them if `allowed_tools` names them.
    uncountedTools: list[str]
    #: Every tool that can change things is announced before it runs.
    #: If true, a run that was cut short (a crash, the watchdog, a kill) without a `tool_use` whose [kind has side effects](crate::ToolKind::has_side_effects) has changed nothing and may be started over. This holds only if all of its output was understood: a lost line (`Diagnostics`(crate::Diagnostics)), such as the last line of a killed process, may have been a `tool_use`. It does not hold with `slash_commands`: their text may contain commands that are not tools.
    #: If false, it is unknown. One mutating tool that is announced late or never makes it `false`; `docs/providers/` names these tools.
    announcesTools: bool
    #: A call runs only after its whole answer has arrived.
    #: If true, a run that the CLI itself ends because a request failed has not run the calls since the last `tool_result`: they were in the incomplete answer.
    runsCallsAfterAnswer: bool
    #: The CLI's slash commands (`slash_commands`).
    #: Unless requested, a prompt is never interpreted as a command.
    slashCommands: bool
    #: The CLI's slash commands and skills in sessions (`slash_commands`).
    #: Some CLIs have them in a process that is kept only.
    sessionCommands: NotRequired[bool]
    #: `@file` in a prompt is expanded, and this cannot be disabled.
    #: This includes files outside the working directory. Do not pass it untrusted prompts.
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

class Client(TypedDict):
    """Location of a request's client."""

    #: The client is on the server's machine, as far as the server can know: its connection is, and no proxy shows. A tunnel that ends on the server's machine, as of `ssh -L`, counts as that machine.
    isOnMachine: bool

class Commits(TypedDict):
    """Commits, by their full ids."""

    #: The full ids of commits.
    commits: list[str]

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
    #: Tool calls that the model began to write and that never came, so that one may have run. Absent if there are none.
    unfinishedCalls: NotRequired[int]

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
    #: Lines with figures that could not be parsed.
    malformedLines: NotRequired[int]
    #: Lines that were too long, and were skipped.
    oversizeLines: NotRequired[int]
    #: Sessions without figures, because the CLI was killed before it wrote them.
    sessionsWithoutFigures: NotRequired[int]
    #: Files, folders and databases that could not be read.
    unreadable: NotRequired[int]
    #: Examples of unreadable paths, at most 8.
    unreadableExamples: NotRequired[list[str]]

class DiffFile(TypedDict):
    """A changed file."""

    #: What happened to the file.
    status: "DiffStatus"
    #: Path in the repository, the old one if the file was deleted. Bytes that are not UTF-8 are replaced by `U+FFFD`.
    path: str
    #: The path before a rename.
    oldPath: NotRequired[Union[str, None]]
    #: The exact path where it is not UTF-8, percent-encoded.
    rawPath: NotRequired[Union[str, None]]
    #: The exact old path where it is not UTF-8, percent-encoded.
    rawOldPath: NotRequired[Union[str, None]]
    #: Git's mode before, such as `100644`, `100755` (executable), `120000` (symbolic link) or `160000` (submodule).
    oldMode: NotRequired[Union[str, None]]
    #: Git's mode after.
    newMode: NotRequired[Union[str, None]]
    #: True if git regards the content as binary: it has neither hunks nor numbers of lines.
    binary: NotRequired[bool]
    #: Number of added lines.
    insertions: NotRequired[Union[int, None]]
    #: Number of deleted lines.
    deletions: NotRequired[Union[int, None]]
    #: The changed places.
    hunks: NotRequired[list["Hunk"]]
    #: True if hunks or lines of the file were left out because of a limit.
    truncated: NotRequired[bool]

class DiffLine(TypedDict):
    """A line of a hunk."""

    #: Whether the line was added or deleted.
    kind: "DiffLineKind"
    #: The line without its line feed. Bytes that are not UTF-8 are replaced by `U+FFFD`.
    text: str
    #: True if the file ends with this line, without a line feed.
    noNewline: NotRequired[bool]

#: Whether a line was added or deleted.
DiffLineKind: TypeAlias = Literal["context", "added", "deleted"]

#: What happened to a file.
DiffStatus: TypeAlias = Literal["added", "deleted", "modified", "renamed", "mode", "type", "other"]

#: Dimension by which figures are grouped.
Dimension: TypeAlias = Literal["day", "week", "month", "project", "model", "agent", "session", "provider", "key", "account"]

class DiscardedChanges(TypedDict):
    """Changes of a run that were discarded."""

    #: The branch that was deleted; absent if it is kept, because it has other commits or is checked out elsewhere.
    branch: NotRequired[Union[str, None]]

class SessionLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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

class OffersLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The CLI's own commands and skills. A prompt `/name` runs one, if the session was opened with `slash_commands`.
    commands: NotRequired[Union[list["SlashCommand"], None]]
    #: The models that can be set.
    models: NotRequired[Union[list["ModelChoice"], None]]
    #: The reasoning efforts of the current model. Those of a model in `models` are with it.
    efforts: NotRequired[Union[list[str], None]]
    #: The CLI's descriptions of `efforts`.
    effortDescriptions: NotRequired[dict[str, str]]
    type: Literal["offers"]

class TextLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The message whose `text` and `thinking` events so far are withdrawn. New ones may follow.
    messageId: str
    type: Literal["retract"]

class ThinkingLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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

class ToolOutputLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The id of the `tool_use`.
    toolId: str
    #: The new output.
    text: str
    type: Literal["tool_output"]

class ToolResultLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The id of the `tool_use`.
    toolId: str
    #: The result as text, complete. Images become a placeholder with their type and size.
    output: str
    #: True if the tool failed. Absent if the CLI does not report it.
    isError: NotRequired[Union[bool, None]]
    #: As in the `tool_use`.
    parentToolId: NotRequired[Union[str, None]]
    type: Literal["tool_result"]

class FileChangeLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: All entries, in order.
    entries: list["PlanEntry"]
    type: Literal["plan"]

class PermissionLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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
    #: True if the request was denied because it had no answer in time.
    timedOut: NotRequired[bool]
    type: Literal["permission"]

class PermissionModeLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The mode from now on.
    mode: "PermissionMode"
    type: Literal["permission_mode"]

class UsageLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Usage of the run so far.
    usage: "Usage"
    #: Cost of the run so far in USD, as the CLI reports it or as it is estimated.
    costUsd: NotRequired[Union[float, None]]
    #: The source of the cost, if it is an estimate.
    costSource: NotRequired[Union["CostSource", None]]
    type: Literal["usage"]

class ContextLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Tokens in the context after the last request.
    tokens: int
    #: Size of the context window, in tokens.
    window: int
    type: Literal["context"]

class RetryLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: The CLI's word, such as `allowed`, `allowed_warning` or `rejected`.
    status: str
    #: Time at which the limit resets, in milliseconds since the Unix epoch.
    resetsAt: NotRequired[Union[int, None]]
    #: Name of the limit, such as `five_hour`.
    kind: NotRequired[Union[str, None]]
    #: Used share of the limit, from 0 to 1.
    utilization: NotRequired[Union[float, None]]
    type: Literal["rate_limit"]

class NoticeLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Severity.
    level: "NoticeLevel"
    #: The text, for a person.
    message: str
    #: Source.
    source: "NoticeSource"
    #: What it is about, if callers may act on it.
    code: NotRequired[Union["NoticeCode", None]]
    type: Literal["notice"]

class UnknownLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The line.
    native: NotRequired["Native"]
    type: Literal["unknown"]

class TurnEndLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Reason why the model stopped, in the CLI's word.
    stopReason: NotRequired[Union[str, None]]
    #: True if the turn failed.
    isError: bool
    #: Usage of the turn.
    usage: NotRequired[Union["Usage", None]]
    #: Cost of the turn in USD.
    costUsd: NotRequired[Union[float, None]]
    type: Literal["turn_end"]

class ErrorLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
    attempt: int
    #: The CLI's line that the event came from, if `ExecuteParams::include_native`(crate::ExecuteParams) requests it. Absent in `unknown`, which always carries its line itself.
    native: NotRequired[Union["Native", None]]
    #: Description for a person, with the next step where there is one.
    message: str
    #: Origin of the error.
    code: NotRequired["ErrorCode"]
    #: Classification: the basis for retry, fallback or giving up.
    kind: "ErrorKind"
    #: True if the same request may succeed when repeated.
    retryable: bool
    #: Backoff before a retry in milliseconds, if the service gave one.
    retryAfterMs: NotRequired[Union[int, None]]
    #: Time at which a limit resets, in milliseconds since the Unix epoch.
    resetsAt: NotRequired[Union[int, None]]
    #: Details as data.
    detail: NotRequired[Union["ErrorDetail", None]]
    #: The underlying error: that of the last attempt, or the one that put a provider on hold.
    cause: NotRequired[Union["AgentError", None]]
    type: Literal["error"]

class DoneLogEntry(TypedDict):
    #: Number of the entry in its log, from 1 without gaps. 0 until it is assigned.
    seq: int
    #: Time of the event, in milliseconds since the Unix epoch. 0 until it is known.
    atMs: int
    #: Id of the run, if it has one.
    runId: NotRequired[Union[str, None]]
    #: Attempt of the run, from 1.
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
    #: Id of the run.
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
    #: Id of the run.
    runId: str
    #: Final status: one of three values.
    status: "OutcomeStatus"
    #: Detailed status, as in a result. Absent in a line of an older version.
    runStatus: NotRequired[Union["RunStatus", None]]
    #: Time from the run's acceptance to its end, in milliseconds, waiting included.
    durationMs: int
    #: The outcome.
    result: "Outcome"
    type: Literal["run:end"]

class RunErrorLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:error"]
    #: Id of the run.
    runId: str
    #: The error.
    error: "AgentError"

class RunAttemptLogEntry(TypedDict):
    seq: int
    atMs: int
    #: Number of the attempt, from 1.
    attempt: int
    type: Literal["run:attempt"]
    #: Id of the run.
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
    #: Id of the run.
    runId: str
    #: The group that shares limits and holds: the provider, unless the candidate names another.
    group: str
    #: The requested model, if any.
    model: NotRequired[Union[str, None]]
    #: End of the hold, in milliseconds since the Unix epoch. Absent if the attempt waits for a slot.
    untilMs: NotRequired[Union[int, None]]
    #: The error that caused the hold.
    reason: NotRequired[Union["AgentError", None]]

class RunRetryLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:retry"]
    #: Id of the run.
    runId: str
    #: The error of the failed attempt.
    reason: "AgentError"
    #: Delay before the next attempt, in milliseconds.
    delayMs: int
    #: The next attempt.
    next: "Next"

class RunFallbackLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["run:fallback"]
    #: Id of the run.
    runId: str
    #: The error for which the last candidate was given up.
    reason: "AgentError"
    #: Delay before the next attempt, in milliseconds.
    delayMs: int
    #: The next attempt.
    next: "Next"

class ToolStartLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["tool:start"]
    #: Id of the run.
    runId: str
    #: Name of the tool in the CLI.
    toolName: str
    #: Id of the call.
    toolId: str

class ToolEndLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["tool:end"]
    #: Id of the run.
    runId: str
    #: Name of the tool in the CLI.
    toolName: str
    #: Id of the call.
    toolId: str
    #: Duration of the call, in milliseconds.
    durationMs: int
    #: True if the call failed, or if its attempt ended before it.
    isError: bool

class AssistantChunkLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["assistant:chunk"]
    #: Id of the run.
    runId: str
    #: The text.
    content: str

class AssistantMessageLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["assistant:message"]
    #: Id of the run.
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
    #: Id of the run.
    runId: str

class DamagedLogEntry(TypedDict):
    seq: int
    atMs: int
    attempt: int
    type: Literal["damaged"]
    #: Id of the run.
    runId: str

#: An entry of a run's log: an event of the agent, or one of the run itself, whose `type` has a colon (or is `reset`).
Entry: TypeAlias = Union["SessionLogEntry", "OffersLogEntry", "TextLogEntry", "RetractLogEntry", "ThinkingLogEntry", "ToolUseLogEntry", "ToolOutputLogEntry", "ToolResultLogEntry", "FileChangeLogEntry", "PlanLogEntry", "PermissionLogEntry", "PermissionModeLogEntry", "UsageLogEntry", "ContextLogEntry", "RetryLogEntry", "RateLimitLogEntry", "NoticeLogEntry", "UnknownLogEntry", "TurnEndLogEntry", "ErrorLogEntry", "DoneLogEntry", "RunStartLogEntry", "RunEndLogEntry", "RunErrorLogEntry", "RunAttemptLogEntry", "RunHoldLogEntry", "RunRetryLogEntry", "RunFallbackLogEntry", "ToolStartLogEntry", "ToolEndLogEntry", "AssistantChunkLogEntry", "AssistantMessageLogEntry", "UserMessageLogEntry", "ResetLogEntry", "DamagedLogEntry"]

#: Origin of an error. The names are stable.
ErrorCode: TypeAlias = Literal["CLI_NOT_FOUND", "CLI_STDERR", "CLI_EXIT_ERROR", "CLI_ERROR", "STARTUP_TIMEOUT", "WATCHDOG_TIMEOUT", "ABORTED", "INVALID_PARAMS", "PROMPT_TOO_LARGE", "STREAM_ENDED_EARLY", "OUTPUT_LIMIT", "CONFIG_LEASE", "IO", "BUDGET_EXCEEDED", "INTERRUPTED", "PROVIDER_ON_HOLD", "NO_TURN", "SESSION_IN_USE", "SETUP_FAILED", "UNKNOWN"]

class ParameterErrorDetail(TypedDict):
    type: Literal["parameter"]
    #: The name in `ExecuteParams`(crate::ExecuteParams), such as `mcp_servers`, or that of another setting, such as `provider`, `run_id` or `budget.usd`.
    name: str
    #: The item of a list, such as the name of an MCP server or of a variable.
    item: NotRequired[Union[str, None]]
    #: The problem, for a person: the message without the names.
    problem: str
    #: The run that holds what the parameter names: it works with the session, or has the worktree.
    holder: NotRequired[Union[str, None]]

class BudgetErrorDetail(TypedDict):
    type: Literal["budget"]
    #: The budget.
    budget: "BudgetKind"
    #: Its limit: tokens, USD, seconds or turns.
    limit: NotRequired[Union[float, None]]

class NotRetriedErrorDetail(TypedDict):
    type: Literal["not_retried"]
    #: The reason.
    reason: "NotRetried"
    #: The reason for a person, with the next step.
    explanation: str

class MissingProgramErrorDetail(TypedDict):
    type: Literal["missing_program"]
    #: Name of the program.
    program: str
    #: The command that installs it, also part of the message. Empty if unknown.
    install: str

#: The subject of an error, as data. A type that only a newer version knows is deserialized as `Other`(Self::Other).
ErrorDetail: TypeAlias = Union["ParameterErrorDetail", "BudgetErrorDetail", "NotRetriedErrorDetail", "MissingProgramErrorDetail"]

#: The recommended reaction to an error.
ErrorKind: TypeAlias = Literal["auth", "rate_limit", "quota", "overloaded", "network", "context_window", "model_not_found", "session_not_found", "permission", "budget", "max_turns", "mcp", "timeout", "aborted", "interrupted", "not_found", "invalid", "protocol", "setup", "internal"]

class Figures(TypedDict):
    """Sums. Unknown figures are absent, never 0."""

    #: Requests to models.
    requests: int
    #: Requests that sub-agents made, included in `requests`.
    subagentRequests: int
    #: Tokens.
    usage: "Usage"
    #: Tokens that are cached for an hour, among those that were written to a cache.
    cacheWrite1hTokens: NotRequired[Union[int, None]]
    #: Cost reported by the CLIs in USD, for those requests that have one.
    reportedCostUsd: NotRequired[Union[float, None]]
    #: Cost by the price table in USD, for those requests whose model it has.
    estimatedCostUsd: NotRequired[Union[float, None]]
    #: Cost in USD: for each request the reported cost, or else the estimate.
    spentUsd: NotRequired[Union[float, None]]
    #: Web searches that the services made.
    webSearches: NotRequired[Union[int, None]]
    #: Requests that are not in the estimate, because their model is unknown or has no price. A run in the history without a number of requests counts as one.
    unpricedRequests: int
    #: Premium requests as counted by Copilot.
    premiumRequests: NotRequired[Union[float, None]]

class FileList(TypedDict):
    """The files of a run, in the order of their names."""

    #: The files.
    files: list["RunFile"]
    #: Reasons why files that were to be collected are missing, such as a limit.
    missing: NotRequired[list[str]]

class FileManifest(TypedDict):
    """The content of a file, by hashes."""

    #: Name of the file.
    name: str
    #: Size of the file, in bytes.
    bytes: int
    #: SHA-256 of the file, in hexadecimal.
    sha256: str
    #: Size of every part but the last, in bytes: 524288.
    partBytes: int
    #: SHA-256 of each part, in hexadecimal. An empty file has none.
    parts: list[str]

class FleetAgent(TypedDict):
    """An agent of a worker."""

    #: Id of the agent.
    id: str
    #: It is installed, and not known to be logged out.
    ready: bool
    #: Version of its program, if known.
    version: NotRequired[Union[str, None]]

class FleetHold(TypedDict):
    """A limit because of which an agent takes no runs where it has this login."""

    #: Id of the agent.
    agent: str
    #: Mark of the login that has reached it, from which neither the account nor the key can be read.
    login: str
    #: Name of the limit, such as `five_hour`, if known.
    limit: NotRequired[Union[str, None]]
    #: End of the limit, in milliseconds since the Unix epoch.
    until: int

class FleetQueue(TypedDict):
    """The runs that wait for a pool or a machine."""

    #: Name of the pool; absent for the runs of one machine.
    pool: NotRequired[Union[str, None]]
    #: Name of the machine's worker; absent for the runs of a pool.
    machine: NotRequired[Union[str, None]]
    #: Number of runs that wait.
    waiting: int
    #: Time since which the oldest one waits, in milliseconds since the Unix epoch.
    oldestAt: NotRequired[Union[int, None]]

class FleetStatus(TypedDict):
    """The state of a fleet at one time."""

    #: The workers that are present, by name.
    workers: NotRequired[list["FleetWorker"]]
    #: The pools and machines for which runs wait, by name.
    queues: NotRequired[list["FleetQueue"]]
    #: Number of runs by the state of their record, such as `started`.
    runs: NotRequired[dict[str, int]]
    #: The limits because of which agents take no runs.
    holds: NotRequired[list["FleetHold"]]
    #: The owner whose runs are counted; absent if those of all owners are.
    owner: NotRequired[Union[str, None]]

class FleetWorker(TypedDict):
    """A worker that is present."""

    #: Name of the worker.
    name: str
    #: Pools from which it takes runs.
    pools: list[str]
    #: The agents that its program knows.
    agents: list["FleetAgent"]
    #: Number of runs at once.
    slots: int
    #: Number of runs that it carries out.
    running: int
    #: It takes no new runs, and ends with those that it has.
    draining: NotRequired[bool]
    #: Version of its program.
    version: str
    #: How far its clock is ahead of the server's, in milliseconds, if that is more than 5 s.
    clockMs: NotRequired[Union[int, None]]

class ForgetRuns(TypedDict):
    """Runs and logs to delete. Live runs are kept."""

    #: Ids or unique id prefixes of runs to delete. If one of them cannot be deleted, none is.
    ids: NotRequired[list[str]]
    #: Delete runs that ended longer ago than this, in milliseconds.
    olderThanMs: NotRequired[Union[int, None]]
    #: Delete the logs of `ids` only, and keep their rows of the history.
    logsOnly: NotRequired[bool]
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

class Grants(TypedDict):
    """Actions that the agent of a session may perform without a request, as the session was started.  Each turn has these grants, no matter who sends the prompt."""

    #: Permission mode at the start. The live status has a later one.
    permission: "PermissionMode"
    #: Tools that are allowed before they are requested, in the CLI's own syntax.
    allowedTools: NotRequired[list[str]]
    #: Ids of the agents that may take over.
    fallback: NotRequired[list[str]]
    #: The CLI got further arguments, which may grant anything.
    cliArguments: NotRequired[bool]

class HistoryList(TypedDict):
    """A page of the history, newest first."""

    #: The runs.
    runs: list["RunRecord"]
    #: The `cursor` of the next page; absent on the last one.
    next: NotRequired[Union[str, None]]

class HistoryShare(TypedDict):
    """The share of the history of runs."""

    #: Runs that are not in the CLIs' files.
    onlyThere: int
    #: Runs whose cost is added to the tokens of the CLIs' files.
    withCost: int
    #: Runs of agents whose files are not known; they are not counted.
    ofOtherAgents: int

#: State of a run.
#: The names of final states are those of `status` in `run:end`, also in the database and in `teamster runs --json`: `success` for `Completed`(teamster_core::RunStatus::Completed), `aborted`, and `error` for every other `RunStatus`(teamster_core::RunStatus), whose cause is in `RunRecord::error`(super::RunRecord::error).
HistoryStatus: TypeAlias = Union[Literal["running"], Literal["success"], Literal["error"], Literal["aborted"], Literal["interrupted"], str]

class Hunk(TypedDict):
    """A changed place of a file, with the lines around it."""

    #: First line before, from 1; 0 if there is none.
    oldStart: int
    #: Number of lines before.
    oldLines: int
    #: First line after, from 1; 0 if there is none.
    newStart: int
    #: Number of lines after.
    newLines: int
    #: The line that begins the section, such as a function's, as git finds it.
    section: NotRequired[Union[str, None]]
    #: The lines.
    lines: list["DiffLine"]

class Image(TypedDict):
    """An image of a prompt, in JSON."""

    #: The media type: `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    mediaType: str
    #: The content of the image in base64.
    data: str

class Interrupt(TypedDict):
    """Options for interrupting a turn."""

    #: Kill the agent's process; the next turn starts another one.
    kill: NotRequired[bool]

class KeptSpec(TypedDict):
    """The spec of a run or session, as its runner keeps it: without values that may be secret.  What is withheld is empty in the spec, and is named in `withheld`(Self::withheld): a run of this spec needs it from somewhere else."""

    #: Version of the spec.
    version: int
    #: The spec: `run` has the body that starts a run, `session` that of a session. What was withheld is empty in it.
    what: dict[str, dict[str, Any]]
    #: Names of what was withheld, such as `prompt`, `env.API_KEY` and `mcpServers.github.headers.Authorization`.
    withheld: NotRequired[list[str]]
    #: Digest of the prompts that were withheld, by which its runner's program tells whether another spec has the same.
    promptsDigest: NotRequired[Union[str, None]]
    #: Warnings of the start, for a repetition of it.
    warnings: NotRequired[list[str]]
    #: Those of the warnings that a user who wants no others sees too.
    important: NotRequired[list[str]]

class LastError(TypedDict):
    """Last error of an agent."""

    #: Class of the error, if it is one of a tick.
    kind: NotRequired[Union["ErrorKind", None]]
    #: The error, for people.
    message: str
    #: Time of the error, in milliseconds since the Unix epoch.
    atMs: int

class LimitList(TypedDict):
    """The limits of subscriptions: the JSON of `teamster usage --limits --json` and of `GET /v1/limits`."""

    #: The limits in the files that the CLIs left on disk.
    limits: list["UsageLimit"]

#: Status of a live run or session.
LiveState: TypeAlias = Literal["idle", "running", "waiting", "ending", "not_answering", "other"]

class LiveStatus(TypedDict):
    """Status of a live run or session."""

    #: State of the run or session.
    state: "LiveState"
    #: Start of the state, in milliseconds since the Unix epoch.
    since: int
    #: Number of ended turns of a session. 0 for a run.
    turns: int
    #: The turn in progress.
    turn: NotRequired[Union["TurnStatus", None]]
    #: Provider in use, which may be a fallback.
    provider: NotRequired[Union[str, None]]
    #: Model in use.
    model: NotRequired[Union[str, None]]
    #: Id of the provider's session, to resume it.
    sessionId: NotRequired[Union[str, None]]
    #: Usage so far, as reported.
    usage: NotRequired[Union["Usage", None]]
    #: Cost so far in USD.
    costUsd: NotRequired[Union[float, None]]
    #: The source of the cost.
    costSource: NotRequired[Union["CostSource", None]]
    #: Permission mode of a session, if it was changed after the start.
    permission: NotRequired[Union[str, None]]
    #: Process id of a runner that does not answer, if it is known.
    pid: NotRequired[Union[int, None]]

class LogPage(TypedDict):
    """A page of a log."""

    #: The entries.
    entries: list["Entry"]
    #: The `after` of the next page.
    next: int
    #: True if the log ends with this page.
    ended: bool

#: State of a loop.
LoopState: TypeAlias = Literal["sleeping", "tick", "other"]

class McpServerStatus(TypedDict):
    """State of an MCP server as the CLI reports it."""

    #: Its name in the configuration.
    name: str
    #: The CLI's word for its state, such as `connected`, `failed` or `pending`.
    status: str

class McpSupport(TypedDict):
    """The properties of an `McpServer` that a provider supports."""

    #: Transports of MCP servers (`mcp_servers`).
    transports: list[str]
    #: Characters of a server's name, in addition to ASCII letters and digits.
    nameMarks: str
    #: Limit of a server's name, in characters.
    longestName: int
    #: Deliveries of MCP servers to the CLI (`mcp_delivery`).
    deliveries: list[str]
    #: Only these servers, none of the user's (`mcp_strict`).
    strict: bool
    #: Working directory of a stdio server (`cwd`).
    cwd: bool
    #: Time limit for the start of a server (`startup_timeout`).
    startupTimeout: bool
    #: Time limit for a call (`tool_timeout`).
    toolTimeout: bool
    #: Only some of a server's tools (`tools.only`).
    onlyTools: bool
    #: All but some of a server's tools (`tools.except`).
    exceptTools: bool

class McpTool(TypedDict):
    """A tool of an MCP server."""

    #: The server's name in the configuration.
    server: str
    #: The tool's own name.
    tool: str

class MissingParts(TypedDict):
    """Missing parts of a file."""

    #: The numbers of the missing parts, in ascending order.
    missing: list[int]

class ModelChoice(TypedDict):
    """A model that a session can be set to."""

    #: The name that the CLI takes.
    id: str
    #: The CLI's name for people.
    name: NotRequired[Union[str, None]]
    #: The CLI's description.
    description: NotRequired[Union[str, None]]
    #: The reasoning efforts of this model, if the CLI reports them.
    efforts: NotRequired[Union[list[str], None]]
    #: The CLI's descriptions of `efforts`.
    effortDescriptions: NotRequired[dict[str, str]]

class ModelFigures(TypedDict):
    """The figures of a model within a group."""

    #: The model. Absent if the files do not have it.
    model: NotRequired[Union[str, None]]
    #: The CLIs that used the model.
    providers: NotRequired[list[str]]
    #: Requests to models.
    requests: int
    #: Requests that sub-agents made, included in `requests`.
    subagentRequests: int
    #: Tokens.
    usage: "Usage"
    #: Tokens that are cached for an hour, among those that were written to a cache.
    cacheWrite1hTokens: NotRequired[Union[int, None]]
    #: Cost reported by the CLIs in USD, for those requests that have one.
    reportedCostUsd: NotRequired[Union[float, None]]
    #: Cost by the price table in USD, for those requests whose model it has.
    estimatedCostUsd: NotRequired[Union[float, None]]
    #: Cost in USD: for each request the reported cost, or else the estimate.
    spentUsd: NotRequired[Union[float, None]]
    #: Web searches that the services made.
    webSearches: NotRequired[Union[int, None]]
    #: Requests that are not in the estimate, because their model is unknown or has no price. A run in the history without a number of requests counts as one.
    unpricedRequests: int
    #: Premium requests as counted by Copilot.
    premiumRequests: NotRequired[Union[float, None]]

class ModelUsage(TypedDict):
    """Usage of one model in a run."""

    #: Tokens.
    usage: "Usage"
    #: Cost in USD.
    costUsd: NotRequired[Union[float, None]]
    #: Size of the model's context window in tokens.
    contextWindow: NotRequired[Union[int, None]]
    #: Limit of output tokens in one answer.
    maxOutputTokens: NotRequired[Union[int, None]]

#: The JSON value that the CLI printed, as it came.
Native: TypeAlias = Any

class Next(TypedDict):
    """The next attempt."""

    #: Number of the attempt, from 1.
    attempt: int
    #: The provider.
    provider: str
    #: The model, if one was requested.
    model: NotRequired[Union[str, None]]
    #: The account of the agent, if one was named.
    account: NotRequired[Union[str, None]]
    #: The session that the attempt resumes, because the run has made changes. If absent, the prompt is sent again, and the text of the failed attempt is retracted.
    resumes: NotRequired[Union[str, None]]

#: Reason why a run was not retried although its policy allows it.
NotRetried: TypeAlias = Literal["out_of_time", "no_slot", "side_effects", "session_lost"]

#: Subject of a notice.
NoticeCode: TypeAlias = Literal["compaction_started", "compacted", "compaction_failed", "untested_version", "other"]

#: Severity of a notice.
NoticeLevel: TypeAlias = Literal["info", "warning"]

#: Source of a notice.
NoticeSource: TypeAlias = Literal["stdout", "stderr", "runtime"]

class Outcome(TypedDict):
    """The outcome of a run, over all its attempts. A figure that no CLI reported is absent, never 0."""

    #: The agent's messages, in order. A message is the text of one message id, up to a tool call, its end, or the end of a turn. Messages of an attempt after which the prompt was sent again are excluded.
    payloads: list["Payload"]
    #: Usage of all attempts together.
    usage: NotRequired[Union["Usage", None]]
    #: The answer in the shape of `output_schema`.
    structuredOutput: NotRequired[Any]
    #: What the run leaves in its workspace. Absent if it had none of its own.
    workspace: NotRequired[Union["WorkspaceResult", None]]
    #: Metadata of the run.
    meta: "OutcomeMeta"

class OutcomeMeta(TypedDict):
    """Metadata of an outcome."""

    #: Id of the run.
    runId: str
    #: Final status of the run.
    status: "OutcomeStatus"
    #: The session of the last attempt, which can be resumed.
    sessionId: NotRequired[Union[str, None]]
    #: The provider of the last attempt.
    provider: str
    #: The model of the last attempt as reported by the agent, else as requested.
    model: NotRequired[Union[str, None]]
    #: Time from the run's acceptance to its end, in milliseconds, waiting included.
    durationMs: int
    #: The error of a run that failed.
    error: NotRequired[Union["AgentError", None]]
    #: Number of attempts; 0 if none could begin.
    attempts: int
    #: The attempts, in order.
    attemptLog: NotRequired[list["Attempt"]]
    #: Cost of all attempts together, in USD.
    costUsd: NotRequired[Union[float, None]]
    #: The source of the cost.
    costSource: NotRequired[Union["CostSource", None]]
    #: Turns of all attempts, as the CLIs count them.
    numTurns: NotRequired[Union[int, None]]

#: Final status of a run.
OutcomeStatus: TypeAlias = Literal["success", "aborted", "error"]

class Payload(TypedDict):
    """One message of the agent."""

    #: Text of the message.
    text: str

class PendingRequest(TypedDict):
    """Request that waits for an answer: permission for a tool, or the question of an MCP server."""

    #: Id of the request: `RUN_ID/NUMBER`.
    requestId: str
    #: Id of the run.
    runId: str
    #: The tool, as the CLI names it.
    toolName: str
    #: Id of the tool call.
    toolId: NotRequired[Union[str, None]]
    #: Kind of the tool.
    kind: "ToolKind"
    #: Input of the tool.
    input: Any
    #: Current text of the file that the tool would write whole, if that is a text of at most 256 KiB in the working directory.
    oldText: NotRequired[Union[str, None]]
    #: The CLI's own text about the request.
    message: NotRequired[Union[str, None]]
    #: The JSON Schema of the answer that an MCP server asks for.
    schema: NotRequired[Any]
    #: An answer can have an input.
    takesInput: bool
    #: The reason of a denial reaches the model.
    takesReason: NotRequired[bool]
    #: Time of the request, in milliseconds since the Unix epoch.
    askedAt: int
    #: Time at which the request is denied without an answer, in milliseconds since the Unix epoch.
    expiresAt: NotRequired[Union[int, None]]

class PermissionDenial(TypedDict):
    """A tool call that was not permitted."""

    #: The tool.
    toolName: str
    #: The call.
    toolId: NotRequired[Union[str, None]]
    #: The reason, in the CLI's words.
    reason: NotRequired[Union[str, None]]

#: Actions that the agent may perform without a permission request.
PermissionMode: TypeAlias = Literal["default", "read-only", "accept-edits", "bypass", "plan"]

class Placement(TypedDict):
    """The machines of a fleet that may carry a run or session out. Default: those of the default pool."""

    #: The pool whose machines may take it.
    pool: NotRequired[Union[str, None]]
    #: The only machine that may take it. Excludes `pool`.
    machine: NotRequired[Union[str, None]]

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
    #: The user's price file, which takes precedence.
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
    #: The field that was refused, with which `detail` begins; absent if the error is about none.
    parameter: NotRequired[Union[str, None]]

#: A stable error code of the API.
ProblemCode: TypeAlias = Literal["UNAUTHORIZED", "INSUFFICIENT_SCOPE", "HOST_NOT_ALLOWED", "ORIGIN_NOT_ALLOWED", "BYPASS_NOT_ALLOWED", "COMMAND_NOT_ALLOWED", "NOT_FOUND", "METHOD_NOT_ALLOWED", "RUN_NOT_FOUND", "RUN_ID_AMBIGUOUS", "RUN_EXISTS", "RUN_ENDED", "RUN_LIVE", "FILE_NOT_FOUND", "FILE_DAMAGED", "NO_WORKSPACE", "CHANGES_CONFLICT", "OVER_QUOTA", "SESSION_NOT_FOUND", "SESSION_BUSY", "SESSION_IN_USE", "NO_TURN", "SESSION_ENDING", "OVER_BUDGET", "OUT_OF_TIME", "REQUEST_NOT_FOUND", "ALREADY_ANSWERED", "INVALID_ANSWER", "IDEMPOTENCY_KEY_REUSED", "INVALID_BODY", "INVALID_PARAMS", "BODY_TOO_LARGE", "BODY_TIMEOUT", "UNSUPPORTED_MEDIA_TYPE", "AGENT_NOT_FOUND", "AGENT_REFUSED", "SUPERVISOR_NOT_RUNNING", "RUNNER_NOT_RESPONDING", "TOO_MANY_CONNECTIONS", "FLEET_NOT_INITIALIZED", "UNSUPPORTED", "INTERNAL"]

class ProviderList(TypedDict):
    """The agents of a machine."""

    #: The version of teamster on the machine; absent if that is too old to report it.
    version: NotRequired[Union[str, None]]
    #: One report for each agent.
    providers: list["ProviderReport"]

#: The login state of an agent, from its files and the environment.
ProviderLogin = TypedDict("ProviderLogin", {
    "state": str,
    "from": NotRequired[Union[str, None]],
    "expiresAt": NotRequired[Union[int, None]],
})

class ProviderReport(TypedDict):
    """An agent of a machine and its capabilities."""

    #: The agent's id, such as `claude`.
    id: str
    #: The CLI's own name.
    name: str
    #: The agent can be used: its program reported a version, or `versionFrom` has it, or, without a program, a key for a model service exists.
    usable: bool
    #: The agent has no program and runs in the process of the run.
    inProcess: bool
    #: The path of the program.
    path: NotRequired[Union[str, None]]
    #: The path of the program that a run starts, if it differs from `path`.
    resolvedPath: NotRequired[Union[str, None]]
    #: The version that the program reports.
    version: NotRequired[Union[str, None]]
    #: The `package.json` that has the version of a program that was not started.
    versionFrom: NotRequired[Union[str, None]]
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
    #: The program was found where its installer puts it, in a folder that is not on `PATH`.
    outsidePath: NotRequired[bool]
    #: The program needs another Node.js, so installing it again would not help.
    needsNode: NotRequired[bool]
    #: The command that installs it.
    install: str
    #: The login state.
    login: "ProviderLogin"
    #: How a user logs in, in the imperative, such as "log in with `claude`". Empty if there is nothing to do.
    howToLogIn: NotRequired[str]
    #: The machine of a fleet that has the agent.
    machine: NotRequired[Union[str, None]]
    #: The agent can be used in sessions.
    sessions: bool
    #: The turns of a session take images. Some CLIs take none with a run.
    sessionImages: NotRequired[bool]
    #: The agent's capabilities.
    capabilities: "Capabilities"

#: The reason for which a run is queued.
QueueReason: TypeAlias = Literal["pending", "no_slot", "no_machine", "no_agent", "old_version", "on_hold", "refused", "machine_absent", "other"]

class QueueStatus(TypedDict):
    """The reason for which a run of a fleet was not started yet."""

    #: The pool whose machines may take it; absent if it is queued for one machine.
    pool: NotRequired[Union[str, None]]
    #: The reason, for programs.
    reason: "QueueReason"
    #: The reason, for people.
    detail: str
    #: The end of the reason, such as the reset of a limit, in milliseconds since the Unix epoch. Absent if unknown.
    until: NotRequired[Union[int, None]]

class RenameRun(TypedDict):
    """Another title of a run."""

    #: The title, of at most 200 characters; `null` for the first one.
    title: Union[str, None]

class RequestList(TypedDict):
    """The pending requests of all runs."""

    #: The requests, those of the newest run first.
    requests: list["PendingRequest"]

class RunFile(TypedDict):
    """A file of a run."""

    #: Name of the file, such as `bundle` or `files/report.html`. In a name that is not UTF-8 or has a `%`, these bytes are percent-encoded.
    name: str
    #: Size in bytes. Absent if the file is made when it is first read.
    bytes: NotRequired[Union[int, None]]

#: Kind of a run.
RunKind: TypeAlias = Literal["run", "session", "tick", "other"]

class RunList(TypedDict):
    """A page of runs, newest first."""

    #: The runs.
    runs: list["RunSummary"]
    #: The `cursor` of the next page; absent on the last one.
    next: NotRequired[Union[str, None]]

class RunRecord(TypedDict):
    """A run in the history. A figure that no CLI reported is absent, never 0."""

    #: Id of the run.
    runId: str
    #: Title of the run, if it has one.
    title: NotRequired[Union[str, None]]
    #: State of the run.
    status: "HistoryStatus"
    #: The current or last provider of the run.
    provider: str
    #: The model as reported by the agent, else as requested.
    model: NotRequired[Union[str, None]]
    #: The session of the run, or the one to resume.
    sessionId: NotRequired[Union[str, None]]
    #: The conversation that it belongs to, as text.
    conversation: NotRequired[Union[str, None]]
    #: Working directory of the agent.
    workingDirectory: NotRequired[Union[str, None]]
    #: The prompt, at most its first 64 KiB: in the record of one run, where the history keeps it. Absent in lists, for detached runs, whose folder keeps it, and where prompts are not kept.
    prompt: NotRequired[Union[str, None]]
    #: SHA-256 of the prompt, in hexadecimal.
    promptHash: str
    #: Start time, in milliseconds since the Unix epoch.
    startedAt: int
    #: End time, in milliseconds since the Unix epoch. For an interrupted run it is the last heartbeat, once that was recorded.
    endedAt: NotRequired[Union[int, None]]
    #: Duration of the run, in milliseconds.
    durationMs: NotRequired[Union[int, None]]
    #: Usage of all attempts together.
    usage: NotRequired[Union["Usage", None]]
    #: Cost of all attempts together, in USD.
    costUsd: NotRequired[Union[float, None]]
    #: The source of the cost. Absent in a record of an earlier version, which kept reported costs only.
    costSource: NotRequired[Union["CostSource", None]]
    #: Turns of all attempts, as the CLIs count them.
    numTurns: NotRequired[Union[int, None]]
    #: The error of a run that failed. Its code and details are known if it is the error of the last attempt.
    error: NotRequired[Union["AgentError", None]]
    #: What the run has left in its workspace. Absent if it had none of its own.
    workspace: NotRequired[Union["WorkspaceResult", None]]
    #: Number of attempts; 0 while the run is running.
    attempts: int
    #: The attempts, in order.
    attemptLog: NotRequired[list["Attempt"]]
    #: Name of the machine that the run is on.
    host: str
    #: Id of the process that owns the run.
    pid: int
    #: Time of the last heartbeat, in milliseconds since the Unix epoch.
    heartbeatAt: int

class RunResult(TypedDict):
    """The outcome of a run. Figures that the CLI did not report are absent, never 0."""

    #: Final status.
    status: "RunStatus"
    #: All text of the main agent that was not retracted, concatenated without separators. `messages`(Self::messages) splits it, and `answer`(Self::answer) is the last message.
    text: str
    #: The pieces of `text` by message, in order.
    pieces: NotRequired[list["TextPiece"]]
    #: The last message of the main agent: the answer, without intermediate messages.
    finalMessage: NotRequired[Union[str, None]]
    #: The session, to resume it.
    sessionId: NotRequired[Union[str, None]]
    #: The model that answered.
    model: NotRequired[Union[str, None]]
    #: Time from the start of the process to its end, in milliseconds.
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
    #: Source of the cost.
    costSource: NotRequired[Union["CostSource", None]]
    #: Number of turns, as the CLI counts them.
    numTurns: NotRequired[Union[int, None]]
    #: Reason why the model stopped, in the CLI's word.
    stopReason: NotRequired[Union[str, None]]
    #: True if the caller stopped the run.
    aborted: bool
    #: Exit code of the process. Absent if a signal ended it or it never started.
    exitCode: NotRequired[Union[int, None]]
    #: Name of the signal that ended the process, such as `SIGKILL`.
    exitSignal: NotRequired[Union[str, None]]
    #: The end of the CLI's standard error.
    stderr: NotRequired[Union[str, None]]
    #: Every `error` event of the run.
    errors: NotRequired[list["AgentError"]]
    #: Every denial of permission.
    permissionDenials: NotRequired[list["PermissionDenial"]]
    #: Tool calls that never got a result.
    openToolIds: NotRequired[list[str]]
    #: The answer in the shape of `output_schema`.
    structuredOutput: NotRequired[Any]
    #: What the run leaves in its workspace. Absent if it had none of its own.
    workspace: NotRequired[Union["WorkspaceResult", None]]
    #: Anomalies of the output.
    diagnostics: "Diagnostics"

class RunSpec(TypedDict):
    """A run to start."""

    #: The agent, such as `claude`.
    provider: str
    #: The prompt.
    prompt: str
    #: Images that go with the prompt.
    images: NotRequired[list["Image"]]
    #: The title of the run, under which the agent's CLI lists its session, too. Default: the first line of the prompt, for the run alone.
    title: NotRequired[Union[str, None]]
    #: The model, by the CLI's own name.
    model: NotRequired[Union[str, None]]
    #: Reasoning effort, in the CLI's own words.
    effort: NotRequired[Union[str, None]]
    #: The model to which the CLI itself changes while its own is overloaded.
    fallbackModel: NotRequired[Union[str, None]]
    #: What the agent may do without approval. A server accepts `bypass` only if it allows it, and from a token with the scope `admin`.
    permission: NotRequired["PermissionMode"]
    #: Tools that are allowed without a request, in the CLI's own syntax. Needs a token with the scopes `run` and `answer`, or `admin`.
    allowedTools: NotRequired[list[str]]
    #: Tools that are forbidden, in the CLI's own syntax.
    deniedTools: NotRequired[list[str]]
    #: The agent's working directory, an absolute path. Default: that of the server.
    workingDirectory: NotRequired[Union[str, None]]
    #: Run in a new git worktree: `true`, or the name of its branch.
    worktree: NotRequired[Union["Worktree", None]]
    #: Where the agent works, in the long form. Excludes `workingDirectory` and `worktree`.
    workspace: NotRequired[Union["Workspace", None]]
    #: The session to resume.
    sessionId: NotRequired[Union[str, None]]
    #: The conversation, such as `slack:U42`: its session is resumed, or started by the first run with this key.
    sessionKey: NotRequired[Union[str, None]]
    #: With `sessionKey`: forget the session and start the conversation over.
    newSession: NotRequired[bool]
    #: With `sessionId`: continue in a new session and leave that one unchanged.
    fork: NotRequired[bool]
    #: Replaces the CLI's system prompt.
    systemPrompt: NotRequired[Union[str, None]]
    #: Text that is appended to the CLI's system prompt.
    appendSystemPrompt: NotRequired[Union[str, None]]
    #: The JSON Schema of the answer.
    outputSchema: NotRequired[Union[dict[str, Any], None]]
    #: The maximum number of turns.
    maxTurns: NotRequired[Union[int, None]]
    #: The maximum cost in US dollars.
    maxBudgetUsd: NotRequired[Union[float, None]]
    #: The maximum number of tokens.
    maxTokens: NotRequired[Union[int, None]]
    #: The maximum duration in milliseconds, including waits. 0: no limit.
    maxTimeMs: NotRequired[Union[int, None]]
    #: The number of retries after transient failures.
    retries: NotRequired[int]
    #: The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn fails. 0 is no limit. Default: 5 minutes with `retries`, else no wait.
    maxWaitMs: NotRequired[Union[int, None]]
    #: Agents that take over when the previous ones fail, such as `codex` or `codex:gpt-5.1`.
    fallback: NotRequired[list[str]]
    #: Accounts of the agents, by their names on the machine (`teamster accounts list`), in order of preference: the next one of an agent takes over when the limit of the previous one is reached. Of an agent without one, its own login is used.
    accounts: NotRequired[list[str]]
    #: The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once. Default: 1 hour.
    askTimeoutMs: NotRequired[Union[int, None]]
    #: Files that are collected from the working directory at the end: paths in it with `*`, `**` and `?`, or directories. Symbolic links are not followed.
    artifacts: NotRequired[list[str]]
    #: A URL that receives a request when the run ends or needs an answer.
    callback: NotRequired[Union[str, None]]
    #: The depth of the agent, if another agent starts it. It only restricts: the machine's own limit counts, too.
    depth: NotRequired[Union["AgentDepth", None]]
    #: The machines of a fleet that may carry it out. A server without a fleet refuses it.
    placement: NotRequired["Placement"]
    #: Names of the secrets that the agent gets as variables, such as `NPM_TOKEN`. The values are on the machines of the fleet, each of which decides who may use them. A server without a fleet refuses it.
    secrets: NotRequired[list[str]]
    #: Start it over, as a new run that may cost twice, if its machine is lost. Requires the permission mode `read-only` without `allowedTools`. A server without a fleet refuses it.
    rerunIfLost: NotRequired[bool]

#: Final status of a run.
RunStatus: TypeAlias = Literal["completed", "aborted", "timed_out", "incomplete", "failed"]

class RunSummary(TypedDict):
    """A run, without its events."""

    #: Id of the run.
    runId: str
    #: Title of the run: that of its spec, or else the first line of its prompt. A person may change it later; then the views of the run have the new one. `None` where titles are not kept, and for a session before its first prompt.
    title: NotRequired[Union[str, None]]
    #: Kind of the run.
    kind: "RunKind"
    #: First provider of the run.
    provider: str
    #: The requested model.
    model: NotRequired[Union[str, None]]
    #: Working directory of the agent.
    directory: NotRequired[Union[str, None]]
    #: The directory of another machine that was submitted for the run, as that machine names it.
    submittedFrom: NotRequired[Union[str, None]]
    #: Branch of the git worktree that was created for the run.
    branch: NotRequired[Union[str, None]]
    #: Id of the run whose log has the beginning of this session's conversation.
    continues: NotRequired[Union[str, None]]
    #: Grants of a session. `None` if they were not recorded: for a run, and by an earlier version.
    grants: NotRequired[Union["Grants", None]]
    #: Time of acceptance, in milliseconds since the Unix epoch.
    acceptedAt: int
    #: The run's state.
    state: "ViewState"
    #: The start of the state `queued` or `unknown`, in milliseconds since the Unix epoch.
    since: NotRequired[Union[int, None]]
    #: The reason for which it is `queued`.
    queue: NotRequired[Union["QueueStatus", None]]
    #: The machine of a fleet that has the run, or the only one that may take it.
    machine: NotRequired[Union[str, None]]
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
    #: The source of the cost.
    costSource: NotRequired[Union["CostSource", None]]
    #: The duration in milliseconds; absent while the run is live.
    durationMs: NotRequired[Union[int, None]]
    #: The number of attempts that an ended run took, if there were several.
    attempts: NotRequired[Union[int, None]]
    #: The error of a failed run.
    error: NotRequired[Union["AgentError", None]]
    #: What the run has left in its workspace; absent while it is live, and if it had none of its own.
    workspace: NotRequired[Union["WorkspaceResult", None]]
    #: The requests that wait for an answer.
    requests: list["PendingRequest"]
    #: The live status, if it was requested; absent once the run has ended.
    live: NotRequired[Union["LiveStatus", None]]

class RunView(TypedDict):
    """A run and its result."""

    #: Id of the run.
    runId: str
    #: Title of the run: that of its spec, or else the first line of its prompt. A person may change it later; then the views of the run have the new one. `None` where titles are not kept, and for a session before its first prompt.
    title: NotRequired[Union[str, None]]
    #: Kind of the run.
    kind: "RunKind"
    #: First provider of the run.
    provider: str
    #: The requested model.
    model: NotRequired[Union[str, None]]
    #: Working directory of the agent.
    directory: NotRequired[Union[str, None]]
    #: The directory of another machine that was submitted for the run, as that machine names it.
    submittedFrom: NotRequired[Union[str, None]]
    #: Branch of the git worktree that was created for the run.
    branch: NotRequired[Union[str, None]]
    #: Id of the run whose log has the beginning of this session's conversation.
    continues: NotRequired[Union[str, None]]
    #: Grants of a session. `None` if they were not recorded: for a run, and by an earlier version.
    grants: NotRequired[Union["Grants", None]]
    #: Time of acceptance, in milliseconds since the Unix epoch.
    acceptedAt: int
    #: The run's state.
    state: "ViewState"
    #: The start of the state `queued` or `unknown`, in milliseconds since the Unix epoch.
    since: NotRequired[Union[int, None]]
    #: The reason for which it is `queued`.
    queue: NotRequired[Union["QueueStatus", None]]
    #: The machine of a fleet that has the run, or the only one that may take it.
    machine: NotRequired[Union[str, None]]
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
    #: The source of the cost.
    costSource: NotRequired[Union["CostSource", None]]
    #: The duration in milliseconds; absent while the run is live.
    durationMs: NotRequired[Union[int, None]]
    #: The number of attempts that an ended run took, if there were several.
    attempts: NotRequired[Union[int, None]]
    #: The error of a failed run.
    error: NotRequired[Union["AgentError", None]]
    #: What the run has left in its workspace; absent while it is live, and if it had none of its own.
    workspace: NotRequired[Union["WorkspaceResult", None]]
    #: The requests that wait for an answer.
    requests: list["PendingRequest"]
    #: The live status, if it was requested; absent once the run has ended.
    live: NotRequired[Union["LiveStatus", None]]
    #: The prompt of a detached run; absent for sessions, and where prompts are not kept.
    prompt: NotRequired[Union[str, None]]
    #: The result; absent while the run is live.
    result: NotRequired[Union["RunResult", None]]

class SessionList(TypedDict):
    """Sessions, newest first."""

    #: The sessions.
    sessions: list["RunSummary"]

class SessionSpec(TypedDict):
    """A session to start."""

    #: The agent, such as `claude`.
    provider: str
    #: The title of the session, under which the agent's CLI lists it, too. Default: the first line of the first prompt, here alone.
    title: NotRequired[Union[str, None]]
    #: The model, by the CLI's own name.
    model: NotRequired[Union[str, None]]
    #: Reasoning effort, in the CLI's own words.
    effort: NotRequired[Union[str, None]]
    #: The model to which the CLI itself changes while its own is overloaded.
    fallbackModel: NotRequired[Union[str, None]]
    #: What the agent may do without approval. A server accepts `bypass` only if it allows it, and from a token with the scope `admin`.
    permission: NotRequired["PermissionMode"]
    #: Tools that are allowed without a request, in the CLI's own syntax. Needs a token with the scopes `run` and `answer`, or `admin`.
    allowedTools: NotRequired[list[str]]
    #: Tools that are forbidden, in the CLI's own syntax.
    deniedTools: NotRequired[list[str]]
    #: The agent's working directory, an absolute path. Default: that of the server.
    workingDirectory: NotRequired[Union[str, None]]
    #: Work in a new git worktree: `true`, or the name of its branch.
    worktree: NotRequired[Union["Worktree", None]]
    #: Where the agent works, in the long form. Excludes `workingDirectory` and `worktree`.
    workspace: NotRequired[Union["Workspace", None]]
    #: The agent's session to resume.
    sessionId: NotRequired[Union[str, None]]
    #: The conversation, such as `slack:U42`: its session is resumed, or started by the first run or session with this key.
    sessionKey: NotRequired[Union[str, None]]
    #: The id of the session whose log has the beginning of this conversation. It is shown with the session, and the workspace `continued` is that of it: `sessionId` is the session that the agent resumes.
    continues: NotRequired[Union[str, None]]
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
    #: The maximum duration of all turns together, in milliseconds. 0: no limit.
    maxTimeMs: NotRequired[Union[int, None]]
    #: The number of retries of a turn after transient failures.
    retries: NotRequired[int]
    #: The maximum wait for a limit to reset, in milliseconds. Beyond it the next agent takes over, or the run or turn fails. 0 is no limit. Default: 5 minutes with `retries`, else no wait.
    maxWaitMs: NotRequired[Union[int, None]]
    #: Agents that take over when the previous ones fail in the first turn, such as `codex` or `codex:gpt-5.1`.
    fallback: NotRequired[list[str]]
    #: Accounts of the agents, by their names on the machine (`teamster accounts list`), in order of preference: the next one of an agent takes over when the limit of the previous one is reached. Of an agent without one, its own login is used.
    accounts: NotRequired[list[str]]
    #: The time limit for an answer to a request, in milliseconds. Then the request is denied; 0 denies at once. Default: 1 hour.
    askTimeoutMs: NotRequired[Union[int, None]]
    #: Files that are collected from the working directory at the end of the session: paths in it with `*`, `**` and `?`, or directories. Symbolic links are not followed.
    artifacts: NotRequired[list[str]]
    #: End the session after this time without a turn, in milliseconds. 0: never.
    endIdleMs: NotRequired[Union[int, None]]
    #: A URL that receives a request when the session ends or needs an answer.
    callback: NotRequired[Union[str, None]]
    #: The depth of the agent, if another agent starts it. It only restricts: the machine's own limit counts, too.
    depth: NotRequired[Union["AgentDepth", None]]
    #: The machines of a fleet that may carry it out. A server without a fleet refuses it.
    placement: NotRequired["Placement"]
    #: Names of the secrets that the agent gets as variables, such as `NPM_TOKEN`. The values are on the machines of the fleet, each of which decides who may use them. A server without a fleet refuses it.
    secrets: NotRequired[list[str]]

class SlashCommand(TypedDict):
    """A command or skill of the CLI."""

    #: The name, without the leading `/`.
    name: str
    #: The CLI's description.
    description: NotRequired[Union[str, None]]
    #: The CLI's description of the text after the name.
    inputHint: NotRequired[Union[str, None]]

class SleepFile(TypedDict):
    """`sleep.json`: current status of the loop."""

    #: State of the loop.
    state: "LoopState"
    #: Current sleep between ticks, in seconds.
    current_sleep_seconds: int
    #: Reason of the state, for people, with the last error.
    reason: str
    #: `reason` without the last error, if `reason` has one.
    plain_reason: NotRequired[Union[str, None]]
    #: Time of writing, in seconds since the Unix epoch.
    updated_at_epoch: int
    #: End of the sleep, in seconds since the Unix epoch; only while the loop sleeps.
    sleep_until_epoch: NotRequired[Union[int, None]]
    #: Failed ticks and starts in a row; left out at 0.
    failed_ticks: NotRequired[int]
    #: Error of the last of them.
    last_error: NotRequired[Union["TickError", None]]

#: A prompt.
StartTurn = TypedDict("StartTurn", {
    "prompt": str,
    "images": NotRequired[list["Image"]],
    "from": NotRequired[Union[str, None]],
    "queue": NotRequired[bool],
})

class StartedRun(TypedDict):
    """A run that was started, or that an earlier start with the same key or id has started."""

    #: Id of the run.
    runId: str
    #: Title of the run: that of its spec, or else the first line of its prompt. A person may change it later; then the views of the run have the new one. `None` where titles are not kept, and for a session before its first prompt.
    title: NotRequired[Union[str, None]]
    #: Kind of the run.
    kind: "RunKind"
    #: First provider of the run.
    provider: str
    #: The requested model.
    model: NotRequired[Union[str, None]]
    #: Working directory of the agent.
    directory: NotRequired[Union[str, None]]
    #: The directory of another machine that was submitted for the run, as that machine names it.
    submittedFrom: NotRequired[Union[str, None]]
    #: Branch of the git worktree that was created for the run.
    branch: NotRequired[Union[str, None]]
    #: Id of the run whose log has the beginning of this session's conversation.
    continues: NotRequired[Union[str, None]]
    #: Grants of a session. `None` if they were not recorded: for a run, and by an earlier version.
    grants: NotRequired[Union["Grants", None]]
    #: Time of acceptance, in milliseconds since the Unix epoch.
    acceptedAt: int
    #: The run's state.
    state: "ViewState"
    #: The start of the state `queued` or `unknown`, in milliseconds since the Unix epoch.
    since: NotRequired[Union[int, None]]
    #: The reason for which it is `queued`.
    queue: NotRequired[Union["QueueStatus", None]]
    #: The machine of a fleet that has the run, or the only one that may take it.
    machine: NotRequired[Union[str, None]]
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
    #: The source of the cost.
    costSource: NotRequired[Union["CostSource", None]]
    #: The duration in milliseconds; absent while the run is live.
    durationMs: NotRequired[Union[int, None]]
    #: The number of attempts that an ended run took, if there were several.
    attempts: NotRequired[Union[int, None]]
    #: The error of a failed run.
    error: NotRequired[Union["AgentError", None]]
    #: What the run has left in its workspace; absent while it is live, and if it had none of its own.
    workspace: NotRequired[Union["WorkspaceResult", None]]
    #: The requests that wait for an answer.
    requests: list["PendingRequest"]
    #: The live status, if it was requested; absent once the run has ended.
    live: NotRequired[Union["LiveStatus", None]]
    #: The prompt of a detached run; absent for sessions, and where prompts are not kept.
    prompt: NotRequired[Union[str, None]]
    #: The result; absent while the run is live.
    result: NotRequired[Union["RunResult", None]]
    #: Warnings, such as of options without effect; absent without any. A repeated request gets those of the start.
    warnings: NotRequired[list[str]]
    #: Those of the warnings that a user who wants no others sees too, such as that the history is incomplete.
    important: NotRequired[list[str]]

#: A message for the turn in progress.
Steer = TypedDict("Steer", {
    "text": str,
    "from": NotRequired[Union[str, None]],
})

class SubscribedBrowser(TypedDict):
    """A subscription that was stored."""

    #: The id, to unsubscribe.
    id: str

class SupervisorStatus(TypedDict):
    """Status of the supervisor itself."""

    #: Process id of the supervisor.
    pid: int
    #: Start time, in milliseconds since the Unix epoch.
    startedAtMs: int
    #: Time that a loop may take to end before it is killed, in milliseconds.
    graceMs: int
    #: The supervisor lives, but does not answer: the status is that of its files.
    notAnswering: NotRequired[bool]

#: The kinds of system prompt that a provider supports.
SystemPromptSupport: TypeAlias = Literal["none", "append", "replace", "append_and_replace"]

class TextPiece(TypedDict):
    """A piece of a result's `text`: consecutive text of one message."""

    #: The message it belongs to.
    messageId: NotRequired[Union[str, None]]
    #: Its length in bytes of UTF-8. It begins where the piece before it ends.
    bytes: int

class TickError(TypedDict):
    """Error of a tick."""

    #: Class of the error.
    kind: "ErrorKind"
    #: The error, for people, on one line of limited length.
    message: str
    #: Time of the error, in seconds since the Unix epoch.
    at_epoch: int

#: Prompt of a tick.
TickPrompt: TypeAlias = Literal["light", "full"]

class TickRecord(TypedDict):
    """One line of `ticks.jsonl`."""

    #: Number of the tick since the start of its loop, from 1.
    tick: int
    #: Process id of its loop.
    pid: int
    #: Id of the tick's run: the name of its log, and its row in the history.
    run_id: NotRequired[Union[str, None]]
    #: Prompt of the tick.
    prompt: "TickPrompt"
    #: Time of its start.
    begin: str
    #: Time of its end. If its loop was killed: the start of the next loop.
    end: str
    #: Outcome of the tick.
    result: "TickResult"
    #: Class of the error.
    error_kind: NotRequired[Union["ErrorKind", None]]
    #: Error of the tick, for people.
    error: NotRequired[Union[str, None]]
    #: Flags that were set at its end, by the names of their files.
    flags: list[str]
    #: Session of the tick.
    session_id: NotRequired[Union[str, None]]
    #: Input tokens outside the cache, over all models.
    input_tokens: int
    #: Output tokens, reasoning included.
    output_tokens: int
    #: Tokens read from the cache.
    cache_read_tokens: int
    #: Tokens written to the cache.
    cache_write_tokens: int
    #: Cost in USD, if it is known for all models of the tick.
    cost_usd: NotRequired[Union[float, None]]
    #: Source of the cost: an estimate if the cost of any model is one.
    cost_source: NotRequired[Union["CostSource", None]]

#: Outcome of a tick.
TickResult: TypeAlias = Literal["completed", "failed", "refused", "timed_out", "stuck", "died", "unusable", "stopped", "killed", "other"]

#: Category of a tool, the same for every CLI.
ToolKind: TypeAlias = Literal["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "task", "mcp", "other"]

class Triggered(TypedDict):
    """The run of a trigger."""

    #: The id of the run.
    runId: str

#: Turn in progress.
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
    """A model with requests that have no price."""

    #: The model. Empty if the files do not have it.
    model: str
    #: Number of requests without a price.
    requests: int
    #: Number of all requests to the model.
    of: int

class Usage(TypedDict):
    """Tokens used. Figures that the CLI did not report are absent, never 0.  Every provider converts its CLI's own convention (input with or without cached tokens, deltas or running totals) to this one."""

    #: Input tokens that were neither read from nor written to a cache.
    inputTokens: NotRequired[Union[int, None]]
    #: Output tokens, reasoning included.
    outputTokens: NotRequired[Union[int, None]]
    #: Input tokens read from a prompt cache, not included in `input_tokens`.
    cacheReadTokens: NotRequired[Union[int, None]]
    #: Input tokens written to a prompt cache, not included in `input_tokens`.
    cacheWriteTokens: NotRequired[Union[int, None]]
    #: Reasoning tokens, a part of `output_tokens`.
    reasoningTokens: NotRequired[Union[int, None]]

class UsageGroup(TypedDict):
    """The figures of one group."""

    #: Name of the group. Absent if the files do not have it.
    name: NotRequired[Union[str, None]]
    #: Requests to models.
    requests: int
    #: Requests that sub-agents made, included in `requests`.
    subagentRequests: int
    #: Tokens.
    usage: "Usage"
    #: Tokens that are cached for an hour, among those that were written to a cache.
    cacheWrite1hTokens: NotRequired[Union[int, None]]
    #: Cost reported by the CLIs in USD, for those requests that have one.
    reportedCostUsd: NotRequired[Union[float, None]]
    #: Cost by the price table in USD, for those requests whose model it has.
    estimatedCostUsd: NotRequired[Union[float, None]]
    #: Cost in USD: for each request the reported cost, or else the estimate.
    spentUsd: NotRequired[Union[float, None]]
    #: Web searches that the services made.
    webSearches: NotRequired[Union[int, None]]
    #: Requests that are not in the estimate, because their model is unknown or has no price. A run in the history without a number of requests counts as one.
    unpricedRequests: int
    #: Premium requests as counted by Copilot.
    premiumRequests: NotRequired[Union[float, None]]
    #: The CLIs with figures in the group.
    providers: list[str]
    #: The models with figures in the group.
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
    #: The used part of the limit, in percent.
    usedPercent: float
    #: Time at which the window ends and the limit resets.
    resetsAt: NotRequired[Union[str, None]]
    #: Time at which the service reported the limit.
    at: str

class UsageSummary(TypedDict):
    """Usage of agents, in groups."""

    #: Dimension of the groups.
    by: "Dimension"
    #: Start of the counted period.
    since: NotRequired[Union[str, None]]
    #: End of the counted period.
    until: NotRequired[Union[str, None]]
    #: Time zone of the days, by its IANA name. Absent if it has none.
    timeZone: NotRequired[Union[str, None]]
    #: The groups. Days and sessions are in chronological order, others by cost in descending order.
    groups: list["UsageGroup"]
    #: All groups together.
    total: "Figures"
    #: Models with requests that have no price.
    unpriced: list["UnpricedModel"]
    #: Source of the prices for estimates.
    prices: "PriceSource"
    #: The share of the history of runs.
    history: "HistoryShare"
    #: Statistics and problems of reading.
    diagnostics: "Diagnostics2"

#: The state of a run.
ViewState: TypeAlias = Literal["queued", "running", "waiting", "unknown", "ended"]

class WebPush(TypedDict):
    """What a browser needs to subscribe."""

    #: The server's public key (VAPID, RFC 8292), as URL-safe Base64: the `applicationServerKey` of the Push API.
    key: str

class WebPushKeys(TypedDict):
    """The keys for which messages are encrypted (RFC 8291), as URL-safe Base64."""

    #: The public key.
    p256dh: str
    #: The authentication secret.
    auth: str

class WebPushSubscription(TypedDict):
    """A browser's subscription, as in the `PushSubscription` of the Push API."""

    #: The address at the browser's push service.
    endpoint: str
    #: The browser's keys.
    keys: "WebPushKeys"

class DirectoryWorkspace(TypedDict):
    kind: Literal["directory"]
    #: An absolute path.
    path: str

WorktreeWorkspace = TypedDict("WorktreeWorkspace", {
    "kind": Literal["worktree"],
    "directory": NotRequired[Union[str, None]],
    "from": NotRequired[Union[str, None]],
    "branch": NotRequired[Union[str, None]],
})

class RepositoryWorkspace(TypedDict):
    kind: Literal["repository"]
    #: The repository's URL, without a user's password or token in it.
    url: str
    #: The commit at which the worktree starts: its full hash.
    commit: str
    #: The agent's directory in the repository, a relative path. Default: its root.
    subdirectory: NotRequired[Union[str, None]]

class UploadWorkspace(TypedDict):
    kind: Literal["upload"]
    #: The full hash of the repository's first commit, by which the machine knows copies of it.
    repository: str
    #: The commit at which the worktree starts: its full hash.
    commit: str
    #: The commit on which that one has the uncommitted files, and which the submitter has: what comes back begins there. Default: the same commit.
    head: NotRequired[Union[str, None]]
    #: The full hash of a commit of files that git ignores, which are copied into the worktree. The file `included` of the run is its bundle. Default: none.
    included: NotRequired[Union[str, None]]
    #: The name of the worktree's folder. Default: the first commit.
    name: NotRequired[Union[str, None]]
    #: The agent's directory in the repository, a relative path. Default: its root.
    subdirectory: NotRequired[Union[str, None]]
    #: The directory that was submitted, as its machine names it. It is shown with the session and changes nothing else.
    submittedFrom: NotRequired[Union[str, None]]
    #: The worktree stays at the end of the session, for those that continue it (`continued`). It goes when they are forgotten. Default: it is removed if nothing was changed.
    stays: NotRequired[bool]

class ContinuedWorkspace(TypedDict):
    kind: Literal["continued"]

class EmptyWorkspace(TypedDict):
    kind: Literal["empty"]

#: Where an agent works: the long form of `workingDirectory` and `worktree`.
Workspace: TypeAlias = Union["DirectoryWorkspace", "WorktreeWorkspace", "RepositoryWorkspace", "UploadWorkspace", "ContinuedWorkspace", "EmptyWorkspace"]

class WorkspaceDiff(TypedDict):
    """The changes of a run's workspace: everything between the commit at which it began and what is there now, be it committed or not."""

    #: The commit at which the run began.
    base: str
    #: The commit that is compared: the last one of the run, or the one that has also what was not committed.
    head: str
    #: The files, in the order of their paths.
    files: list["DiffFile"]
    #: Number of changed files, including those that a limit left out.
    filesChanged: int
    #: Number of added lines in text files.
    insertions: int
    #: Number of deleted lines in text files.
    deletions: int
    #: True if files, hunks or lines were left out because of a limit.
    truncated: NotRequired[bool]

#: Kind of a workspace.
WorkspaceKind: TypeAlias = Literal["directory", "worktree", "repository", "upload", "empty", "other"]

class WorkspaceResult(TypedDict):
    """The workspace of a run at its end: what the agent has changed, be it committed or not. A figure that could not be found out is absent, never 0; then `error`(Self::error) has the reason."""

    #: Kind of the workspace.
    kind: "WorkspaceKind"
    #: Folder of the workspace. Absent if it was removed, because nothing was changed in it.
    directory: NotRequired[Union[str, None]]
    #: The run's branch. Absent if it was removed with the folder, or if there is none.
    branch: NotRequired[Union[str, None]]
    #: The commit at which the workspace began. Absent without a repository.
    base: NotRequired[str]
    #: The last commit of the run; that at which it began if it made none.
    head: NotRequired[Union[str, None]]
    #: Number of commits from `base` to `head`.
    commits: NotRequired[Union[int, None]]
    #: Number of files that differ from `base`, including what is not committed.
    filesChanged: NotRequired[Union[int, None]]
    #: Number of added lines in text files.
    insertions: NotRequired[Union[int, None]]
    #: Number of deleted lines in text files.
    deletions: NotRequired[Union[int, None]]
    #: True if there are changes that are not committed.
    dirty: NotRequired[Union[bool, None]]
    #: The commit of these changes, on top of `head`: `refs/teamster/RUN/wip`.
    wip: NotRequired[Union[str, None]]
    #: The remote and the branch that the commits were pushed to, such as `origin:fix`.
    pushed: NotRequired[Union[str, None]]
    #: Work that is only in the folder, such as `1 commit in the submodule libs/a`.
    unsaved: NotRequired[list[str]]
    #: The reason for which something is absent.
    error: NotRequired[Union[str, None]]

#: A new git worktree for a run.
Worktree: TypeAlias = Union[bool, str]
