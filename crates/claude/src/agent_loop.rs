//! Support for agent loops.

use serde_json::{Map, Value, json};
use teamster_core::provider::{LoopContext, LoopSettings, LoopSupport};

pub(crate) const SUPPORT: LoopSupport = {
    let mut support = LoopSupport::new();
    // Suits long sessions.
    support.model = Some("opusplan");
    support.mcp_file = Some((&["--mcp-config"], &["--strict-mcp-config"]));
    support.browser = Some("--chrome");
    support.settings = Some(LoopSettings {
        argument: "--settings",
        skills: ".claude/skills",
        content: settings,
    });
    support
};

/// Returns the settings of a loop, in addition to the user's. They allow only the agent's skills, and add hooks that
/// append lines to the log.
fn settings(context: &LoopContext<'_>) -> Value {
    let LoopContext {
        skills,
        log,
        log_in_directory,
    } = *context;
    let mut permissions = Map::new();
    if !skills.is_empty() {
        let allow = skills
            .iter()
            .flat_map(|name| [format!("Skill({name})"), format!("Skill({name} *)")]);
        permissions.insert("allow".to_owned(), allow.collect());
    }
    let log = match log.to_str() {
        Some(log) => quoted(log),
        // JSON cannot represent the path.
        None => format!("\"$CLAUDE_PROJECT_DIR\"/{log_in_directory}"),
    };
    let hook = |event: &str, note: &str| {
        // Ignore failures: a shell that cannot open the log exits with 2, and such a hook blocks the prompt.
        let command = format!(
            "date -u '+[%Y-%m-%dT%H:%M:%SZ] hook:{event} - {note}' >> {log} 2>/dev/null || true"
        );
        json!([{"matcher": "*", "hooks": [{"type": "command", "command": command}]}])
    };
    let mut settings = json!({
        "permissions": permissions,
        "hooks": {
            "SessionStart": hook("SessionStart", "context, MCP servers and skills are being loaded"),
            "UserPromptSubmit": hook("UserPromptSubmit", "all is loaded, the tick begins"),
        },
    });
    if !skills.is_empty() {
        let refuse = json!([{"matcher": "Skill", "hooks": [
            {"type": "command", "command": only_these(skills)}]}]);
        settings["hooks"]["PreToolUse"] = refuse;
    }
    settings
}

/// Returns a hook command that limits Claude Code to these skills. It reads the call, and denies other skills with
/// exit code 2.
///
/// A rule `deny: ["Skill"]` does not work: it precedes all rules that allow, so the tool is missing for these skills
/// too (measured with 2.1.197 and 2.1.330: "No such tool available: Skill").
fn only_these(skills: &[String]) -> String {
    let mut command = "grep -qF".to_owned();
    for skill in skills {
        // Quotes inside strings of the call are escaped, so the pattern matches only the field.
        for between in ["", " "] {
            let pattern = format!("\"skill\":{between}{}", Value::from(skill.as_str()));
            command.push_str(" -e ");
            command.push_str(&quoted(&pattern));
        }
    }
    let words = format!(
        "of the skills only these may be used here: {}",
        skills.join(", ")
    );
    let words = quoted(&words);
    format!("{command} || {{ echo {words} >&2; exit 2; }}")
}

/// Returns a word of a shell command that stands for this text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    const LOG: &str = ".orchestrator/agent-loop.log";

    fn of(skills: &[&str], log: &Path) -> Value {
        let skills: Vec<_> = skills.iter().map(|name| (*name).to_owned()).collect();
        settings(&LoopContext {
            skills: &skills,
            log,
            log_in_directory: LOG,
        })
    }

    #[test]
    fn only_the_agents_skills_are_allowed_and_hooks_write_the_log() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("agent-loop.log");
        assert_eq!(of(&[], &log)["permissions"], json!({}));
        let written = of(&["plan", "send"], &log);
        assert_eq!(
            written["permissions"],
            json!({"allow": ["Skill(plan)", "Skill(plan *)", "Skill(send)", "Skill(send *)"]})
        );
        let command = &written["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
        let code_for = |input: &str| {
            // The format of a call to a hook in Claude Code 2.1.197, shortened.
            let call = format!(r#"{{"tool_name":"Skill","tool_input":{input},"tool_use_id":"x"}}"#);
            let file = directory.path().join("call");
            fs::write(&file, call).unwrap();
            let mut shell = std::process::Command::new("sh");
            shell.args(["-c", command.as_str().unwrap()]);
            shell.stdin(fs::File::open(file).unwrap());
            shell.output().unwrap().status.code()
        };
        assert_eq!(code_for(r#"{"skill":"send","args":"now"}"#), Some(0));
        assert_eq!(code_for(r#"{"skill": "plan"}"#), Some(0));
        assert_eq!(code_for(r#"{"skill":"sender"}"#), Some(2));
        assert_eq!(
            code_for(r#"{"skill":"x","args":"\"skill\":\"send\""}"#),
            Some(2)
        );
        // Run the hook's command with a shell.
        let command = &written["hooks"]["SessionStart"][0]["hooks"][0]["command"];
        let status = std::process::Command::new("sh")
            .args(["-c", command.as_str().unwrap()])
            .status();
        assert!(status.unwrap().success());
        let log = fs::read_to_string(&log).unwrap();
        let (stamp, text) = log.trim_end().split_once("] ").unwrap();
        assert_eq!((stamp.len(), &stamp[..1]), (21, "["));
        assert!(text.starts_with("hook:SessionStart - "), "{log}");
        assert!(written["hooks"]["UserPromptSubmit"][0]["hooks"][0]["type"] == "command");
    }

    #[test]
    fn a_hook_never_keeps_a_prompt_from_the_agent() {
        use std::os::unix::ffi::OsStrExt;
        let command = |settings: &Value| {
            let hook = &settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"];
            hook.as_str().unwrap().to_owned()
        };
        let nowhere = of(&[], Path::new("/nowhere/it's/agent-loop.log"));
        let mut shell = std::process::Command::new("sh");
        let ended = shell.args(["-c", &command(&nowhere)]).output().unwrap();
        assert_eq!(ended.status.code(), Some(0));

        // A path that JSON cannot represent.
        let directory = tempfile::tempdir().unwrap();
        let odd = directory
            .path()
            .join(std::ffi::OsStr::from_bytes(b"a\xffb c"));
        fs::create_dir_all(odd.join(".orchestrator")).unwrap();
        let settings = of(&[], &odd.join(LOG));
        let mut shell = std::process::Command::new("sh");
        let shell = shell.env("CLAUDE_PROJECT_DIR", &odd);
        let ended = shell.args(["-c", &command(&settings)]).output().unwrap();
        assert_eq!(ended.status.code(), Some(0));
        let log = fs::read_to_string(odd.join(LOG)).unwrap();
        assert!(log.contains("hook:UserPromptSubmit"), "{log}");
    }
}
