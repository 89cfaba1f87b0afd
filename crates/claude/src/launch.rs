//! How Claude Code is started.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, ExecuteParams, Image, ImageSource, Launch, PermissionMode,
    PrivateFile, Signal, Stdin, StopStep, SystemPrompt, Timeouts,
};

/// The CLI refuses a larger prompt on stdin (measured: "piped stdin input exceeds 10MB").
const LARGEST_STDIN_PROMPT: usize = 10 * 1024 * 1024;

/// A system prompt above so many bytes goes into a file: Linux takes no argument of 128 KiB.
const LARGEST_SYSTEM_PROMPT_ARGUMENT: usize = 32 * 1024;

/// The CLI's own tools that change nothing.
const READ_ONLY_TOOLS: &str = "Read,Glob,Grep,LS,WebFetch,WebSearch";

/// The CLI sets these for its own children; one that finds them believes that it is such a child.
const MARKS_OF_A_SESSION: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
];

/// The CLI gives up on a stalled answer after 298 s (measured) and asks again; the usual limit of
/// 5 minutes would end it just then.
const IDLE: Duration = Duration::from_mins(6);

/// On SIGINT, unlike on SIGTERM, the CLI ends its running shell commands, which are out of reach in
/// sessions of their own, and says so in its last lines.
const STOP_FIRST: StopStep = StopStep {
    signal: Signal::Interrupt,
    grace: Duration::from_secs(1),
};

pub(crate) fn launch(params: &ExecuteParams) -> Result<Launch, AgentError> {
    check(params)?;
    let mut args = Args::new();
    args.add("-p");
    args.add("--output-format=stream-json");
    // Without it the CLI refuses stream-json.
    args.add("--verbose");
    args.add("--include-partial-messages");
    options(params, &mut args)?;
    let system_prompt = system_prompt(params, &mut args)?;
    for arg in &params.extra_args {
        args.add(arg);
    }
    let stdin = prompt(params, &mut args)?;

    let mut env = Vec::new();
    if let Some(retries) = params.cli_retries {
        env.push(("CLAUDE_CODE_MAX_RETRIES".to_owned(), retries.to_string()));
    }
    Ok(Launch {
        args: args.0,
        private_files: system_prompt.into_iter().collect(),
        env,
        env_remove: MARKS_OF_A_SESSION.to_vec(),
        stdin,
        stop_first: Some(STOP_FIRST),
        timeouts: Timeouts {
            idle: Some(IDLE),
            ..Timeouts::default()
        },
        ..Launch::default()
    })
}

/// Arguments. Values are always joined to their flag by `=`: several flags take any number of
/// values and would swallow what follows, and a value that begins with `-` would be a flag.
struct Args(Vec<OsString>);

impl Args {
    fn new() -> Self {
        Self(Vec::new())
    }

    fn add(&mut self, arg: impl Into<OsString>) {
        self.0.push(arg.into());
    }

    fn value(&mut self, flag: &str, value: impl Into<OsString>) {
        let mut arg = OsString::from(flag);
        arg.push("=");
        arg.push(value.into());
        self.0.push(arg);
    }
}

/// The system prompt: as an argument, or in a file if it is large.
fn system_prompt(
    params: &ExecuteParams,
    args: &mut Args,
) -> Result<Option<PrivateFile>, AgentError> {
    let (flag, text) = match &params.system_prompt {
        None => return Ok(None),
        Some(SystemPrompt::Append(text)) => ("--append-system-prompt", text),
        Some(SystemPrompt::Replace(text)) => ("--system-prompt", text),
        Some(_) => {
            return Err(AgentError::invalid_params(
                "system_prompt: Claude Code takes one that is appended or one that replaces its own",
            ));
        }
    };
    if text.len() <= LARGEST_SYSTEM_PROMPT_ARGUMENT {
        args.value(flag, text);
        return Ok(None);
    }
    Ok(Some(PrivateFile {
        flag: format!("{flag}-file"),
        content: text.clone().into_bytes(),
    }))
}

fn options(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    if let Some(model) = &params.model {
        args.value("--model", model);
    }
    if let Some(effort) = &params.effort {
        args.value("--effort", effort);
    }
    match params.permission {
        PermissionMode::Default => {}
        PermissionMode::ReadOnly => args.value("--tools", READ_ONLY_TOOLS),
        PermissionMode::AcceptEdits => args.value("--permission-mode", "acceptEdits"),
        PermissionMode::Bypass => args.value("--permission-mode", "bypassPermissions"),
        other => {
            return Err(AgentError::invalid_params(format!(
                "permission: Claude Code has no mode {other:?}"
            )));
        }
    }
    for tool in &params.allowed_tools {
        args.value("--allowedTools", tool);
    }
    for tool in &params.denied_tools {
        args.value("--disallowedTools", tool);
    }
    if let Some(turns) = params.max_turns {
        args.value("--max-turns", turns.to_string());
    }
    if let Some(usd) = params.max_budget_usd {
        args.value("--max-budget-usd", usd.to_string());
    }
    if let Some(schema) = &params.output_schema {
        args.value("--json-schema", schema.to_string());
    }
    for dir in &params.add_dirs {
        args.value("--add-dir", dir);
    }
    if let Some(id) = &params.session_id {
        args.value("--resume", id);
    }
    if params.fork {
        args.add("--fork-session");
    }
    if let Some(id) = &params.new_session_id {
        args.value("--session-id", id);
    }
    Ok(())
}

/// The prompt, as an argument or on stdin: given both, the CLI would read it twice.
fn prompt(params: &ExecuteParams, args: &mut Args) -> Result<Stdin, AgentError> {
    let prompt = not_a_command(params);
    if !params.images.is_empty() {
        args.add("--input-format=stream-json");
        return Ok(Stdin::Bytes(message_with_images(&prompt, &params.images)?));
    }
    if prompt.contains('\0') || params.prompt_delivery.uses_stdin(prompt.len()) {
        if prompt.len() > LARGEST_STDIN_PROMPT {
            return Err(AgentError::new(
                ErrorCode::PromptTooLarge,
                ErrorKind::Invalid,
                format!(
                    "the prompt has {} bytes and Claude Code takes {LARGEST_STDIN_PROMPT} at most; \
                     put the rest in a file and let the agent read it",
                    prompt.len()
                ),
            ));
        }
        return Ok(Stdin::Bytes(prompt.into_owned().into_bytes()));
    }
    // What follows `--` is never a flag.
    args.add("--");
    args.add(prompt.into_owned());
    Ok(Stdin::Closed)
}

/// The prompt; with a space before a leading `/`, without which the CLI would take it for one of
/// its commands (measured: with it, it goes to the model).
fn not_a_command(params: &ExecuteParams) -> Cow<'_, str> {
    if params.prompt.starts_with('/') && !params.slash_commands {
        Cow::Owned(format!(" {}", params.prompt))
    } else {
        Cow::Borrowed(&params.prompt)
    }
}

/// One line of stream-json input: the images and the prompt.
fn message_with_images(prompt: &str, images: &[Image]) -> Result<Vec<u8>, AgentError> {
    let mut content = Vec::with_capacity(images.len() + 1);
    for image in images {
        let data = match &image.source {
            ImageSource::Bytes(bytes) => STANDARD.encode(bytes),
            ImageSource::Path(path) => {
                let bytes = fs::read(path).map_err(|e| {
                    AgentError::new(
                        ErrorCode::InvalidParams,
                        ErrorKind::NotFound,
                        format!("images: {} cannot be read: {e}", path.display()),
                    )
                })?;
                STANDARD.encode(bytes)
            }
            _ => {
                return Err(AgentError::invalid_params(
                    "images: an image is a file or bytes in memory",
                ));
            }
        };
        content.push(json!({
            "type": "image",
            "source": {"type": "base64", "media_type": image.media_type, "data": data}
        }));
    }
    content.push(json!({"type": "text", "text": prompt}));
    let message = json!({"type": "user", "message": {"role": "user", "content": content}});
    Ok(format!("{message}\n").into_bytes())
}

/// Refuses what the CLI would refuse, or misunderstand, with an error that says what to do.
fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    let invalid = |message: &str| Err(AgentError::invalid_params(message));
    if params.prompt.trim().is_empty() && params.images.is_empty() {
        return invalid("prompt: it is empty");
    }
    if params.session_id.as_deref() == Some("") {
        return invalid("session_id: it is empty; leave it out to begin a new session");
    }
    if params.fork && params.session_id.is_none() {
        return invalid("fork: there is no session_id to fork from");
    }
    if let Some(id) = &params.new_session_id {
        if !is_uuid(id) {
            return invalid("new_session_id: Claude Code takes a UUID only");
        }
        if params.session_id.is_some() && !params.fork {
            return invalid("new_session_id: a resumed session keeps its id unless fork is set");
        }
    }
    if params.max_turns == Some(0) {
        return invalid("max_turns: it must be at least 1");
    }
    if params
        .max_budget_usd
        .is_some_and(|usd| !usd.is_finite() || usd <= 0.0)
    {
        return invalid("max_budget_usd: it must be more than 0");
    }
    if let Some(schema) = &params.output_schema
        && !matches!(schema, Value::Object(_))
    {
        return invalid("output_schema: it must be a JSON object");
    }
    if params.permission == PermissionMode::Bypass && is_root() && !is_sandbox(params) {
        return Err(AgentError::new(
            ErrorCode::InvalidParams,
            ErrorKind::Permission,
            "permission: Claude Code refuses to bypass permissions as root; run it as another \
             user, or, if this machine is a sandbox in which nothing can be broken, set \
             IS_SANDBOX=1 in its environment",
        ));
    }
    Ok(())
}

fn is_uuid(id: &str) -> bool {
    id.len() == 36
        && id.bytes().enumerate().all(|(at, b)| match at {
            8 | 13 | 18 | 23 => b == b'-',
            _ => b.is_ascii_hexdigit(),
        })
}

#[cfg(unix)]
fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Whether the user has said that this is a sandbox. It is never said for him.
fn is_sandbox(params: &ExecuteParams) -> bool {
    match params.env.get("IS_SANDBOX") {
        Some(value) => !value.is_empty(),
        None => std::env::var_os("IS_SANDBOX").is_some_and(|value| !value.is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_core::PromptDelivery;

    fn args(params: &ExecuteParams) -> Vec<String> {
        let launch = launch(params).unwrap();
        launch
            .args
            .into_iter()
            .map(|arg| arg.into_string().unwrap())
            .collect()
    }

    const BASE: [&str; 4] = [
        "-p",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
    ];

    #[test]
    fn a_prompt_stands_after_the_end_of_flags() {
        let params = ExecuteParams::new("--help me");
        assert_eq!(args(&params)[..4], BASE);
        assert_eq!(args(&params)[4..], ["--", "--help me"]);
        assert_eq!(launch(&params).unwrap().stdin, Stdin::Closed);
    }

    #[test]
    fn every_value_is_joined_to_its_flag() {
        let mut params = ExecuteParams::new("hi");
        params.session_id = Some("--version".into());
        params.fork = true;
        params.new_session_id = Some("11111111-2222-4333-8444-555555555555".into());
        params.model = Some("-m".into());
        params.effort = Some("low".into());
        params.permission = PermissionMode::AcceptEdits;
        params.allowed_tools = vec!["Bash(git *)".into(), "Read".into()];
        params.denied_tools = vec!["WebFetch".into()];
        params.max_turns = Some(3);
        params.max_budget_usd = Some(0.5);
        params.system_prompt = Some(SystemPrompt::Append("--be brief".into()));
        params.output_schema = Some(json!({"type": "object"}));
        params.add_dirs = vec!["-d".into()];
        params.extra_args = vec!["--betas".into(), "x".into()];
        assert_eq!(
            args(&params)[4..],
            [
                "--model=-m",
                "--effort=low",
                "--permission-mode=acceptEdits",
                "--allowedTools=Bash(git *)",
                "--allowedTools=Read",
                "--disallowedTools=WebFetch",
                "--max-turns=3",
                "--max-budget-usd=0.5",
                "--json-schema={\"type\":\"object\"}",
                "--add-dir=-d",
                "--resume=--version",
                "--fork-session",
                "--session-id=11111111-2222-4333-8444-555555555555",
                "--append-system-prompt=--be brief",
                "--betas",
                "x",
                "--",
                "hi",
            ]
        );
    }

    #[test]
    fn a_prompt_is_on_stdin_or_in_argv_and_never_in_both() {
        let mut params = ExecuteParams::new("x".repeat(10_001));
        assert_eq!(args(&params), BASE);
        assert_eq!(
            launch(&params).unwrap().stdin,
            Stdin::Bytes(vec![b'x'; 10_001])
        );
        params.prompt_delivery = PromptDelivery::Argv;
        assert_eq!(args(&params).len(), 6);
        assert_eq!(launch(&params).unwrap().stdin, Stdin::Closed);
        params.prompt = "short".into();
        params.prompt_delivery = PromptDelivery::Stdin;
        assert_eq!(args(&params), BASE);
        params.prompt = "a\0b".into();
        params.prompt_delivery = PromptDelivery::default();
        assert_eq!(launch(&params).unwrap().stdin, Stdin::Bytes(b"a\0b".into()));
    }

    #[test]
    fn a_large_system_prompt_goes_into_a_file() {
        let mut params = ExecuteParams::new("hi");
        params.system_prompt = Some(SystemPrompt::Replace("x".repeat(40_000)));
        let launch = launch(&params).unwrap();
        assert_eq!(launch.args.len(), BASE.len() + 2);
        assert_eq!(launch.private_files[0].flag, "--system-prompt-file");
        assert_eq!(launch.private_files[0].content.len(), 40_000);
    }

    #[test]
    fn a_prompt_is_a_command_only_if_asked_for() {
        let mut params = ExecuteParams::new("/clear");
        assert_eq!(args(&params)[5], " /clear");
        params.slash_commands = true;
        assert_eq!(args(&params)[5], "/clear");
    }

    #[test]
    fn images_go_with_the_prompt_as_one_line_of_input() {
        let mut params = ExecuteParams::new("what is this?\n");
        params.images = vec![Image {
            media_type: "image/png".into(),
            source: ImageSource::Bytes(vec![0, 1, 2, 3]),
        }];
        assert_eq!(args(&params)[4..], ["--input-format=stream-json"]);
        let Stdin::Bytes(line) = launch(&params).unwrap().stdin else {
            panic!("nothing on stdin");
        };
        assert_eq!(
            String::from_utf8(line).unwrap(),
            concat!(
                r#"{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAECAw=="}},{"type":"text","text":"what is this?\n"}]}}"#,
                "\n"
            )
        );
    }

    #[test]
    fn what_cannot_be_is_refused_by_name() {
        type Change = fn(&mut ExecuteParams);
        let cases: &[(&str, Change)] = &[
            ("prompt:", |p| p.prompt = " \n".into()),
            ("session_id:", |p| p.session_id = Some(String::new())),
            ("fork:", |p| p.fork = true),
            ("new_session_id:", |p| p.new_session_id = Some("me".into())),
            ("new_session_id:", |p| {
                p.session_id = Some("a".into());
                p.new_session_id = Some("11111111-2222-4333-8444-555555555555".into());
            }),
            ("max_turns:", |p| p.max_turns = Some(0)),
            ("max_budget_usd:", |p| p.max_budget_usd = Some(-1.0)),
            ("output_schema:", |p| p.output_schema = Some(json!("x"))),
            ("images:", |p| {
                p.images = vec![Image {
                    media_type: "image/png".into(),
                    source: ImageSource::Path("/no/such/file.png".into()),
                }];
            }),
        ];
        for (name, change) in cases {
            let mut params = ExecuteParams::new("hi");
            change(&mut params);
            let error = launch(&params).unwrap_err();
            assert_eq!(error.code, ErrorCode::InvalidParams);
            assert!(error.message.starts_with(name), "{name}: {error}");
        }
    }

    #[test]
    fn a_prompt_larger_than_stdin_takes_is_refused() {
        let params = ExecuteParams::new("x".repeat(LARGEST_STDIN_PROMPT + 1));
        assert_eq!(launch(&params).unwrap_err().code, ErrorCode::PromptTooLarge);
    }

    #[test]
    fn retries_of_the_cli_are_set_by_environment() {
        let mut params = ExecuteParams::new("hi");
        params.cli_retries = Some(2);
        assert_eq!(
            launch(&params).unwrap().env,
            [("CLAUDE_CODE_MAX_RETRIES".to_owned(), "2".to_owned())]
        );
    }

    #[test]
    fn a_sandbox_is_never_claimed_behind_the_users_back() {
        let mut params = ExecuteParams::new("hi");
        params.permission = PermissionMode::Bypass;
        params.env.insert("IS_SANDBOX".into(), String::new());
        match launch(&params) {
            Ok(launch) => assert!(!is_root() && launch.env.is_empty()),
            Err(error) => {
                assert!(is_root());
                assert_eq!(error.kind, ErrorKind::Permission);
                assert!(error.message.contains("IS_SANDBOX=1"), "{error}");
            }
        }
        params.env.insert("IS_SANDBOX".into(), "1".into());
        let launch = launch(&params).unwrap();
        assert!(launch.env.iter().all(|(name, _)| name != "IS_SANDBOX"));
    }
}
