//! Suggestions for command lines that cannot be read.

use clap::CommandFactory;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Cli;
use crate::args::provider::installed;

/// Maximum edit distance between a mistyped command and the suggested one.
const MAX_EDIT_DISTANCE: usize = 2;

/// Names that a program without fleets lacks.
#[cfg(not(feature = "fleet"))]
const WITHOUT_FLEET: &str =
    "this program was built without the feature `fleet`, which those of releases have";

/// Flags of the agents' own CLIs, and what does the same here.
const FLAGS: &[(&[&str], &str)] = &[
    #[cfg(not(feature = "fleet"))]
    (&["--fleet"], WITHOUT_FLEET),
    (
        &["--yolo", "--dangerously-skip-permissions", "--full-auto"],
        "`--permission bypass` allows everything, `--permission accept-edits` changes of files",
    ),
    (
        &["--timeout"],
        "`--max-time` limits a run, `--idle-timeout` its silence",
    ),
    (
        &["-p", "--print", "--prompt"],
        "the prompt follows the agent, as in `teamster run AGENT \"Fix the bug\"`",
    ),
];

/// Commands of other programs, and what does the same here.
const COMMANDS: &[(&[&str], &str)] = &[
    (
        &["history", "list", "ls", "ps", "status"],
        "`teamster runs list` lists the runs, with `--live` those in progress",
    ),
    (
        &["log", "logs", "show", "tail"],
        "`teamster attach ID` shows the log of a run, `teamster runs show ID` what has come of it",
    ),
    (
        &["abort", "kill", "stop"],
        "`teamster cancel ID` stops a run",
    ),
    (
        &["ask", "exec", "prompt"],
        "`teamster run AGENT PROMPT` runs an agent",
    ),
    (
        &["continue", "resume"],
        "`teamster run AGENT --resume ID PROMPT` continues a session",
    ),
];

/// Suggests the command with the smallest edit distance; clap prefers those with a common prefix. The name of an agent
/// is not one: the command is missing.
pub(super) fn command(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand).cloned()
    else {
        return if usage_of_program(&error) {
            flag(error)
        } else {
            of_a_fleet(error)
        };
    };
    let program = Cli::command();
    let known = program.get_subcommands().map(clap::Command::get_name);
    let known: Vec<&str> = known.collect();
    // For nested commands clap's own suggestion is kept.
    let is_of_program = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(suggested)) => {
            suggested.iter().all(|name| known.contains(&&**name))
        }
        _ => usage_of_program(&error),
    };
    if !is_of_program {
        return error;
    }
    #[cfg(not(feature = "fleet"))]
    if ["fleet", "worker"].contains(&&*typed) {
        error.remove(ContextKind::SuggestedSubcommand);
        return with_tip(error, WITHOUT_FLEET.to_owned());
    }
    if let Some(provider) = crate::global::providers().get(&typed) {
        let id = provider.info().id;
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = format!("`teamster run {id} PROMPT` runs it, `teamster chat {id}` talks to it");
        return with_tip(error, tip);
    }
    let is_prompt = typed.contains(char::is_whitespace);
    let named = if is_prompt { "prompt" } else { &*typed };
    if let Some((_, tip)) = (COMMANDS.iter()).find(|(names, _)| names.contains(&named)) {
        error.remove(ContextKind::SuggestedSubcommand);
        return with_tip(error, (*tip).to_owned());
    }
    let distance = |name: &&str| strsim::osa_distance(&typed, name);
    let nearest = known.iter().copied().min_by_key(distance);
    if let Some(nearest) = nearest.filter(|name| distance(name) <= MAX_EDIT_DISTANCE) {
        let value = ContextValue::Strings(vec![nearest.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, value);
    }
    error
}

/// Suggests what does the same as a flag of another program.
pub(super) fn flag(mut error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let name = typed
        .split_once(['=', ' '])
        .map_or(&**typed, |(name, _)| name);
    let known = FLAGS.iter().find(|(names, _)| names.contains(&name));
    let Some((_, tip)) = known else {
        return error;
    };
    // The usage names the flag that clap takes for the nearest.
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Usage);
    with_tip(error, (*tip).to_owned())
}

/// Names where the value of an argument that is missing is found.
pub(super) fn missing(error: clap::Error) -> clap::Error {
    if error.kind() != ErrorKind::MissingRequiredArgument {
        return error;
    }
    let Some(ContextValue::Strings(missing)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let command = usage.as_deref().and_then(|it| it.split_whitespace().nth(2));
    let is_missing = |name: &str| missing.iter().any(|it| it == name);
    let is_id = is_missing("<ID>") || is_missing("<ID>...");
    let tip = match command {
        _ if is_missing("<AGENT>") => match &*installed().collect::<Vec<_>>() {
            [] => "`teamster doctor` lists the agents, and how to install them".to_owned(),
            agents => format!("agents that are installed here: {}", agents.join(", ")),
        },
        Some("attach" | "runs") if is_id => "`teamster runs list` lists the runs".to_owned(),
        Some("say" | "wait" | "cancel") if is_id => {
            "`teamster runs list --live` lists those in progress".to_owned()
        }
        Some("answer") if is_missing("<RUN>") => {
            "`teamster requests` lists the requests".to_owned()
        }
        _ => return error,
    };
    with_tip(error, tip)
}

/// Removes clap's tip to give an unknown option as the value of an argument that takes ids.
pub(super) fn option(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string);
    let takes_text = usage.is_some_and(|usage| {
        ["<PROMPT>", "[TITLE]", "|TEXT>", "[-- "]
            .iter()
            .any(|it| usage.contains(it))
    });
    if error.kind() == ErrorKind::UnknownArgument
        && !takes_text
        && let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested)
    {
        // The other one names a subcommand that has the option.
        tips.retain(|tip| !tip.to_string().starts_with("to pass "));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

/// Names how an agent that has no name here is given.
pub(super) fn agent(error: clap::Error) -> clap::Error {
    let argument = error.get(ContextKind::InvalidArg);
    let is_agent = match argument {
        Some(ContextValue::String(name)) => ["<AGENT>", "[AGENT]"].contains(&&**name),
        _ => false,
    };
    let has_nearest = error.get(ContextKind::SuggestedValue).is_some();
    if error.kind() != ErrorKind::InvalidValue || !is_agent || has_nearest {
        return error;
    }
    let tip = "any other agent is named by its command: `acp:COMMAND` or `cmd:COMMAND`";
    with_tip(error, tip.to_owned())
}

/// Suggests a program with fleets if this one has none.
fn of_a_fleet(error: clap::Error) -> clap::Error {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(typed)) if typed == "--fleet" => flag(error),
        _ => error,
    }
}

fn with_tip(mut error: clap::Error, tip: String) -> clap::Error {
    let tip = StyledStr::from(tip);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    error
}

/// Returns whether the unknown command is one of the program, not of a command.
fn usage_of_program(error: &clap::Error) -> bool {
    match error.get(ContextKind::Usage) {
        // `Usage: teamster [OPTIONS] …`; that of a command names it before.
        Some(ContextValue::StyledStr(usage)) => {
            let usage = usage.to_string();
            usage
                .split_whitespace()
                .position(|word| word == "[OPTIONS]")
                == Some(2)
        }
        _ => false,
    }
}
