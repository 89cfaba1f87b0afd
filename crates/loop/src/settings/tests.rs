use super::*;

static CLAUDE: CliInfo = CliInfo::new("claude", "Claude Code", "claude");
static COMMAND: CliInfo = CliInfo::new("acp:My agent", "My agent", "My");
static COPILOT: CliInfo = {
    let mut info = CliInfo::new("copilot", "GitHub Copilot CLI", "copilot");
    info.agent_loop.keeps_process = false;
    info
};

fn read(environment: &[(&str, &str)], file: &str) -> Result<Settings, String> {
    let find = |name: &str| {
        let found = environment.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let known = |name: Option<&str>| match name.unwrap_or("claude") {
        "claude" | "claude-code" => Ok(&CLAUDE),
        "copilot" => Ok(&COPILOT),
        "acp:My agent" => Ok(&COMMAND),
        name => Err(format!(
            "unknown provider `{name}`; available: claude, copilot"
        )),
    };
    Settings::read(&find, &crate::dotenv::parse(file), &known).map_err(|e| e.to_string())
}

#[test]
fn without_variables_they_are_the_defaults() {
    let settings = read(&[], "").unwrap();
    assert_eq!(settings, Settings::new(&CLAUDE));
    assert_eq!(settings.adapter_kind(), AdapterKind::Hot);
    assert_eq!(settings.pace.max_sleep, 3600);
}

#[test]
fn environment_precedes_the_file_and_empty_values_are_unset() {
    let file = "MIN_SLEEP=5\nIDLE_STEP=6\nMAX_SLEEP=7\nRUNTIME=copilot\nCOPILOT_MODEL=gpt-5\n\
                CLAUDE_MODEL=opus\nCOPILOT_REASONING=high\nCHROME=1\nKEEP_SESSION=1\nFULL_PROMPT_FILE=full.md";
    let settings = read(&[("MIN_SLEEP", "0"), ("IDLE_STEP", " ")], file).unwrap();
    let pace = settings.pace;
    assert_eq!((pace.min_sleep, pace.idle_step, pace.max_sleep), (0, 6, 7));
    assert_eq!(settings.agent, &COPILOT);
    assert_eq!(settings.adapter_kind(), AdapterKind::Cold);
    assert_eq!(settings.model.as_deref(), Some("gpt-5"));
    assert_eq!(settings.reasoning.as_deref(), Some("high"));
    assert!(settings.chrome && settings.keep_session);
    assert_eq!(settings.full_prompt, Some(PathBuf::from("full.md")));
}

#[test]
fn run_settings_of_ticks_are_read() {
    let file = "RETRIES=2\nMAX_WAIT=90\nFALLBACK=codex, opencode:a/b\nMAX_TOKENS=1000\nMAX_BUDGET_USD=0.5\n\
                MAX_TURNS=7\nTICK_LOGS=0";
    let settings = read(&[], file).unwrap();
    assert_eq!(settings.retries, 2);
    assert_eq!(settings.max_wait, Some(Duration::from_secs(90)));
    assert_eq!(settings.fallback, ["codex", "opencode:a/b"]);
    let budget = settings.budget;
    assert_eq!(
        (budget.tokens, budget.usd, budget.turns),
        (Some(1000), Some(0.5), Some(7))
    );
    assert_eq!(settings.tick_logs, 0);
}

#[test]
fn names_of_runtimes_in_any_case_and_by_their_other_names() {
    for (name, expected) in [
        ("Claude-Code", "claude"),
        ("COPILOT", "copilot"),
        ("acp:My agent", "acp:My agent"),
    ] {
        assert_eq!(read(&[("RUNTIME", name)], "").unwrap().agent.id, expected);
    }
    let agent = read(&[("RUNTIME", "acp:My agent"), ("ACP_MODEL", "m")], "").unwrap();
    assert_eq!(agent.model.as_deref(), Some("m"));
    assert_eq!(agent.name(), "acp:My");
    let hot = read(&[("RUNTIME", "copilot"), ("ADAPTER", "HOT")], "").unwrap();
    assert_eq!(hot.adapter_kind(), AdapterKind::Hot);
}

#[test]
fn invalid_values_are_reported_by_name() {
    for (name, value, message) in [
        (
            "RUNTIME",
            "cluade",
            "RUNTIME: unknown provider `cluade`; available: claude, copilot",
        ),
        (
            "MIN_SLEEP",
            "1m",
            "MIN_SLEEP: expected a whole number of seconds, not `1m`",
        ),
        (
            "MAX_SLEEP",
            "-1",
            "MAX_SLEEP: expected a whole number of seconds, not `-1`",
        ),
        (
            "TIMEOUT_SECS",
            "0",
            "TIMEOUT_SECS: expected at least 1 second",
        ),
        (
            "ADAPTER",
            "warm",
            "ADAPTER: expected `hot` or `cold`, not `warm`",
        ),
        (
            "LOG_MAX_BYTES",
            "0",
            "LOG_MAX_BYTES: expected at least 65536 bytes, not `0`",
        ),
        (
            "RETRIES",
            "two",
            "RETRIES: expected a whole number, not `two`",
        ),
        (
            "MAX_TOKENS",
            "0",
            "MAX_TOKENS: expected a number of tokens of at least 1, not `0`",
        ),
        (
            "MAX_BUDGET_USD",
            "nan",
            "MAX_BUDGET_USD: expected a number of dollars above 0, not `nan`",
        ),
    ] {
        assert_eq!(read(&[(name, value)], "").unwrap_err(), message);
    }
    for (value, chrome) in [("1", true), ("0", false), ("true", false)] {
        assert_eq!(read(&[("CHROME", value)], "").unwrap().chrome, chrome);
    }
}

#[test]
fn a_parameter_is_named_as_it_was_given() {
    let settings = read(&[("RUNTIME", "copilot")], "").unwrap();
    for (parameter, problem, expected) in [
        ("model", "no such", "COPILOT_MODEL: no such"),
        ("effort", "leave it out", "COPILOT_REASONING: leave it out"),
        ("mcp_servers", "too many", ".mcp.json: too many"),
        ("permission", "not as root: no", "not as root: no"),
        ("odd", "it is", "odd: it is"),
    ] {
        let error = AgentError::refused(parameter, problem);
        assert_eq!(settings.explain(&error), expected);
    }
    let server = AgentError::refused_server("a", "name: no");
    assert_eq!(settings.explain(&server), ".mcp.json: a: name: no");
    let other = AgentError::invalid_params("model: none");
    assert_eq!(settings.explain(&other), "model: none");
}
