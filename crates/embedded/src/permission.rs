//! Permission rules for tools.

use globset::{Glob, GlobMatcher};
use serde_json::Value;
use teamster_core::{AgentError, PermissionMode, ToolKind};

/// Characters that combine commands or redirect output. A rule with a pattern never allows a command with one of
/// them.
const SHELL_MARKS: &[char] = &[';', '&', '|', '<', '>', '`', '$', '(', ')', '\n', '\\'];

/// Decision about a call without a permission request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    /// A permission request is needed.
    Ask,
    /// Denied, with the reason for the model and the user.
    Deny(String),
}

/// Rules that allow or deny tools.
#[derive(Debug, Default, Clone)]
pub(crate) struct Rules {
    allowed: Vec<Rule>,
    denied: Vec<Rule>,
}

/// A rule: `NAME` or `NAME(PATTERN)`, both globs.
#[derive(Debug, Clone)]
struct Rule {
    name: GlobMatcher,
    /// Pattern of the command for `bash`, of the path for file tools.
    pattern: Option<GlobMatcher>,
}

impl Rule {
    fn parse(parameter: &str, text: &str) -> Result<Self, AgentError> {
        let refused = |problem: String| Err(AgentError::refused(parameter, problem));
        let text = text.trim();
        let (name, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (name.trim(), Some(pattern)),
                None => return refused(format!("`{text}`: the `)` at its end is missing")),
            },
        };
        if name.is_empty() {
            return refused(format!("`{text}` names no tool"));
        }
        let glob = |glob: &str| match Glob::new(glob) {
            Ok(glob) => Ok(glob.compile_matcher()),
            Err(error) => Err(AgentError::refused(
                parameter,
                format!("`{text}`: {}", error.kind()),
            )),
        };
        // Match all tools of the server.
        let name = match name.strip_prefix("mcp__") {
            Some(server) if !server.contains("__") => glob(&format!("{{{name},{name}__*}}"))?,
            _ => glob(name)?,
        };
        Ok(Self {
            name,
            pattern: pattern.map(glob).transpose()?,
        })
    }

    fn is_about(&self, tool: &str, subject: Option<&str>) -> bool {
        let pattern = |pattern: &GlobMatcher| subject.is_some_and(|it| pattern.is_match(it));
        self.name.is_match(tool) && self.pattern.as_ref().is_none_or(pattern)
    }
}

impl Rules {
    pub(crate) fn new(allowed: &[String], denied: &[String]) -> Result<Self, AgentError> {
        let parse = |parameter: &str, rules: &[String]| {
            let rules = rules.iter().map(|rule| Rule::parse(parameter, rule));
            rules.collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            allowed: parse("allowed_tools", allowed)?,
            denied: parse("denied_tools", denied)?,
        })
    }

    /// Returns whether a tool is denied for every input, and therefore hidden from the model.
    pub(crate) fn hides(&self, tool: &str) -> bool {
        let mut denied = self.denied.iter();
        denied.any(|rule| rule.pattern.is_none() && rule.is_about(tool, None))
    }

    /// Decides a call.
    pub(crate) fn verdict(
        &self,
        mode: PermissionMode,
        tool: &str,
        kind: ToolKind,
        input: &Value,
    ) -> Verdict {
        let subject = subject(input);
        if self.denied.iter().any(|rule| rule.is_about(tool, subject)) {
            return Verdict::Deny(format!("{tool} is denied in this run"));
        }
        let changes = kind.has_side_effects();
        if mode == PermissionMode::ReadOnly && changes && kind != ToolKind::Mcp {
            return Verdict::Deny("only reading is allowed in this run".to_owned());
        }
        let is_one_command =
            || kind != ToolKind::Execute || subject.is_some_and(|it| !it.contains(SHELL_MARKS));
        let allows = |rule: &Rule| {
            rule.is_about(tool, subject) && (rule.pattern.is_none() || is_one_command())
        };
        let is_allowed = !changes
            || mode == PermissionMode::Bypass
            || (mode == PermissionMode::AcceptEdits && kind == ToolKind::Edit)
            || self.allowed.iter().any(allows);
        if is_allowed {
            Verdict::Allow
        } else {
            Verdict::Ask
        }
    }

    /// Allows a tool for the rest of the session. For commands, allows only the identical one.
    pub(crate) fn allow_always(&mut self, tool: &str, kind: ToolKind, input: &Value) {
        let plain = |text: &str| Glob::new(&globset::escape(text)).map(|it| it.compile_matcher());
        let pattern = match (kind, subject(input)) {
            (ToolKind::Execute, Some(command)) => plain(command).map(Some),
            _ => Ok(None),
        };
        if let (Ok(name), Ok(pattern)) = (plain(tool), pattern) {
            self.allowed.push(Rule { name, pattern });
        }
    }
}

/// Returns the value that a rule's pattern matches.
fn subject(input: &Value) -> Option<&str> {
    let mut fields = ["command", "path"].iter();
    fields.find_map(|field| input.get(field)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules(allowed: &[&str], denied: &[&str]) -> Result<Rules, AgentError> {
        let owned = |rules: &[&str]| rules.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        Rules::new(&owned(allowed), &owned(denied))
    }

    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny(_) => "deny",
        }
    }

    #[test]
    fn a_mode_decides_by_the_kind_of_tool() {
        use PermissionMode::{AcceptEdits, Bypass, Default, ReadOnly};
        let kinds = [
            ToolKind::Read,
            ToolKind::Search,
            ToolKind::Think,
            ToolKind::Edit,
            ToolKind::Execute,
            ToolKind::Mcp,
        ];
        for (mode, expected) in [
            (Default, ["allow", "allow", "allow", "ask", "ask", "ask"]),
            (ReadOnly, ["allow", "allow", "allow", "deny", "deny", "ask"]),
            (
                AcceptEdits,
                ["allow", "allow", "allow", "allow", "ask", "ask"],
            ),
            (Bypass, ["allow"; 6]),
        ] {
            let rules = Rules::default();
            let words = kinds.map(|kind| word(&rules.verdict(mode, "t", kind, &json!({}))));
            assert_eq!(words, expected, "{mode}");
        }
    }

    #[test]
    fn rules_name_tools_and_their_input() {
        let rules = rules(
            &["bash(git *)", "write(src/**)", "mcp__db", "mcp__x__get*"],
            &["bash(git push*)", "grep"],
        )
        .unwrap();
        let verdict = |tool: &str, kind, input| {
            word(&rules.verdict(PermissionMode::Default, tool, kind, &input))
        };
        let bash = |command: &str| verdict("bash", ToolKind::Execute, json!({"command": command}));
        assert_eq!(bash("git status"), "allow");
        assert_eq!(bash("git push -f"), "deny");
        assert_eq!(bash("rm x"), "ask");
        for more in [
            "git log; rm x",
            "git log > f",
            "git $(rm x)",
            "git log\nrm x",
            "git a | sh",
        ] {
            assert_eq!(bash(more), "ask", "{more}");
        }
        let write = |path: &str| verdict("write", ToolKind::Edit, json!({"path": path}));
        assert_eq!((write("src/a/b.rs"), write("b.rs")), ("allow", "ask"));
        let mcp = |tool: &str| verdict(tool, ToolKind::Mcp, json!({}));
        assert_eq!(
            (mcp("mcp__db__query"), mcp("mcp__dbx__query")),
            ("allow", "ask")
        );
        assert_eq!(
            (mcp("mcp__x__get_it"), mcp("mcp__x__set")),
            ("allow", "ask")
        );
        assert_eq!(verdict("grep", ToolKind::Search, json!({})), "deny");
        assert!(rules.hides("grep") && !rules.hides("bash"));
    }

    #[test]
    fn read_only_is_stronger_than_a_rule() {
        let rules = rules(&["bash"], &[]).unwrap();
        let input = json!({"command": "ls"});
        let verdict = rules.verdict(PermissionMode::ReadOnly, "bash", ToolKind::Execute, &input);
        assert_eq!(word(&verdict), "deny");
    }

    #[test]
    fn always_allow_covers_the_same_command_only() {
        let mut rules = Rules::default();
        let allowed = json!({"command": "make [x]"});
        rules.allow_always("bash", ToolKind::Execute, &allowed);
        let of = |command: &str| {
            let input = json!({"command": command});
            word(&rules.verdict(PermissionMode::Default, "bash", ToolKind::Execute, &input))
        };
        assert_eq!((of("make [x]"), of("make x")), ("allow", "ask"));
    }

    #[test]
    fn a_rule_that_is_none_is_refused_by_name() {
        for (rule, problem) in [
            ("bash(git", "allowed_tools: `bash(git`: the `)`"),
            ("(x)", "allowed_tools: `(x)` names no tool"),
            ("a[", "allowed_tools: `a[`: "),
        ] {
            let error = rules(&[rule], &[]).unwrap_err();
            assert!(error.message.starts_with(problem), "{error}");
        }
    }
}
