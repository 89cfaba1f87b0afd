//! Names in a program's own schema that need no code in a provider.

use teamster_mock_model::Cli;

/// Names of Codex that are not types of lines in its output, or of lines that `teamster` never receives, below the
/// reason. Collected from 0.171.0. Claude Code's are known by their shape (`schema/zod.rs`).
const NO_LINES: &str = "\
# a request to a client that logs the user in with its own tokens
account/chatgptAuthTokens/refresh
# only for a login that the client began
account/gatewayOAuth/changed account/login/completed mcpServer/oauthLogin/completed
# a request of the protocol's first version only
applyPatchApproval execCommandApproval
# a request to a client with `requestAttestation` only
attestation/generate
# only for a `command/exec` of the client's
command/exec/outputDelta
# only for an import that the client began
externalAgentConfig/import/completed externalAgentConfig/import/progress
# only for an `fs/watch` of the client's
fs/changed
# only for a search that the client began
fuzzyFileSearch/sessionCompleted fuzzyFileSearch/sessionUpdated thread/search/partial
# a question in the CLI's plan mode, which is refused: the agent asks it in its answer
item/tool/requestUserInput
# a call of a tool that the client brings (`dynamicTools`)
item/tool/call item:dynamicToolCall
# only for a subscription of the client's
mcpServer/event/stream/notification
# only for a `process/spawn` of the client's
process/exited process/outputDelta
# only for a project that the client changed
project/changed
# only with `experimentalRawEvents`
rawResponse/completed rawResponseItem/completed
# only for a request of the client's
thread/archived thread/attachment/updated thread/deleted thread/project/updated thread/queue/changed
thread/reverted thread/section/changed thread/unarchived
# only for a conversation by voice, which the client begins
thread/realtime/closed thread/realtime/error thread/realtime/item/completed
thread/realtime/item/started thread/realtime/item/transcript/delta thread/realtime/itemAdded
thread/realtime/outputAudio/delta thread/realtime/sdp thread/realtime/started
thread/realtime/transcript/delta thread/realtime/transcript/done
# only for a set-up that the client began
windowsSandbox/setupCompleted";

pub(super) fn is_no_line(cli: Cli, name: &str) -> bool {
    let mut lines = NO_LINES.lines().filter(|line| !line.starts_with('#'));
    cli == Cli::Codex && lines.any(|line| line.split(' ').any(|it| it == name))
}
