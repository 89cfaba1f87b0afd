//! Arguments of `teamster answer`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  teamster requests
  teamster answer 0199d1c2-7e3a/1 allow
  teamster answer 0199d1c2-7e3a deny --reason \"use cargo nextest\"    if the run asks for one thing only";

/// Answer a request of a detached run
///
/// `allow` allows it this once, `always` for the rest of the session, `deny` denies it. The question of an MCP
/// server takes the text of the answer, or a JSON object with all its fields. The first answer counts.
///
/// The request's id, as `teamster requests` prints it, is the run's id, `/` and a number. The run's id, or a
/// unique prefix of it, is enough while the run has only one pending request.
#[derive(Debug, Args)]
#[command(
    after_help = EXAMPLES,
    override_usage = "teamster answer [OPTIONS] <RUN> [REQUEST] <allow|always|deny|TEXT>"
)]
pub(crate) struct AnswerArgs {
    /// The run, or the whole id of the request
    #[arg(value_name = "RUN")]
    pub(crate) id: String,
    /// The number of the request, if the run has several, and the answer
    #[arg(value_name = "ANSWER", num_args = 1..=2, required = true)]
    pub(crate) words: Vec<String>,
    /// With deny: the reason, which is sent to the agent
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// With allow: run the tool with this input instead, as JSON
    #[arg(long, value_name = "JSON")]
    pub(crate) input: Option<String>,
}
