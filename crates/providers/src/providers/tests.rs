use super::*;
use teamster_core::{AgentRuntime, ErrorCode, ExecuteParams};

#[cfg(feature = "acp")]
#[test]
fn any_other_agent_is_named_by_its_command() {
    let runtime = create_cli_runtime("acp:my-agent  --acp", RuntimeConfig::default()).unwrap();
    assert_eq!(runtime.id(), "acp:my-agent --acp");
    let builtin = Providers::builtin();
    let provider = builtin.get(runtime.id()).unwrap();
    assert_eq!(provider.info().id, runtime.id());
    assert!(provider.launch(&ExecuteParams::new("hi")).is_err());
    let sessions = create_session_runtime(runtime.id(), RuntimeConfig::default()).unwrap();
    assert!(sessions.session_capabilities().interrupt);

    let config = RuntimeConfig::default();
    let error = create_session_runtime("acp:'", config.clone()).err();
    assert!(error.unwrap().message.contains("is not closed"));
    assert!(create_cli_runtime("acp:", config).is_err());
    assert!(builtin.get("acp:").is_none());
}

#[cfg(feature = "command")]
#[test]
fn text_program_is_named_by_its_command_or_its_own_name() {
    use crate::command::{CommandSettings, TextCommand};
    let config = RuntimeConfig::default;
    let runtime = create_cli_runtime("cmd:my-agent  {prompt}", config()).unwrap();
    assert_eq!(runtime.id(), "cmd:my-agent {prompt}");
    let error = create_session_runtime(runtime.id(), config())
        .err()
        .unwrap();
    assert!(error.message.contains("has no sessions"), "{error}");
    assert!(create_cli_runtime("cmd:'", config()).is_err());

    let settings = CommandSettings::new("my-agent {prompt}");
    let own = TextCommand::with_settings("mine", settings).unwrap();
    let providers = Providers::builtin().with_command(own);
    assert_eq!(providers.runtime("mine", config()).unwrap().id(), "mine");
    assert!(providers.session_runtime("mine", config()).is_err());
}

#[cfg(feature = "claude")]
#[test]
fn a_known_provider_gives_its_runtime() {
    let runtime = create_cli_runtime("claude", RuntimeConfig::default()).unwrap();
    assert_eq!(runtime.id(), "claude");
    assert!(runtime.capabilities().resume);
}

#[test]
fn names_are_taken_as_people_write_them() {
    for (name, id) in [
        ("Claude", "claude"),
        (" claude\n", "claude"),
        ("Claude Code", "claude"),
        ("claude_code", "claude"),
        ("CODEX", "codex"),
        ("Gemini CLI", "gemini"),
        ("OpenCode", "opencode"),
        ("GitHub Copilot CLI", "copilot"),
        ("github-copilot", "copilot"),
    ] {
        assert_eq!(known_id(&normalize(name)), Some(id), "{name:?}");
    }
    for name in ["", "claud", "claude code 2", "gpt"] {
        assert_eq!(known_id(&normalize(name)), None, "{name:?}");
    }
}

#[test]
fn every_provider_is_known_by_its_id_and_no_name_stands_for_two() {
    for provider in Providers::builtin().all() {
        assert_eq!(known_id(provider.info().id), Some(provider.info().id));
    }
    let mut names: Vec<_> = KNOWN
        .iter()
        .flat_map(|(id, aliases)| std::iter::once(id).chain(*aliases))
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn an_unknown_provider_is_an_error_that_lists_the_known_ones() {
    let error = create_cli_runtime(" no-such", RuntimeConfig::default())
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    assert_eq!(
        error.message,
        "unknown provider `no-such`; available: claude, cline, codex, copilot, gemini, kilo, \
         kimi, opencode, pi, qwen, embedded"
    );
}

/// Builds without the provider report this error.
#[test]
fn a_provider_that_is_not_in_the_build_names_its_feature() {
    assert!(
        Providers::builtin()
            .missing("acp:x")
            .message
            .contains("the feature `acp`")
    );
    assert_eq!(
        Providers::builtin().missing("Codex CLI").message,
        "the provider `codex` is not in this build: turn on the feature `codex` of the crate \
         `teamster`"
    );
}
