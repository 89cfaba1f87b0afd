//! Permission rules for tools.

mod command;
mod path;
mod protected;
mod shell;
mod subject;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use teamster_core::text::excerpt;
use teamster_core::{AgentError, PermissionMode, ToolKind};

use crate::tools::{Roots, Target};
use command::Line;
use path::PathPattern;
pub(crate) use subject::Subject;

/// Words, with white space between them.
struct Words(&'static str);

impl Words {
    fn iter(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.0.split_ascii_whitespace()
    }

    fn has(&self, word: &str) -> bool {
        self.iter().any(|it| it == word)
    }
}

/// Decision about a call without a permission request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allow,
    /// A permission request is needed. Has a reason if the mode alone does not explain it.
    Ask(Option<String>),
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
    /// The rule as the user wrote it.
    text: String,
    name: GlobMatcher,
    pattern: Option<Pattern>,
    /// True if it allows protected files as well.
    covers_protected: bool,
}

/// Pattern of the command for `bash`, of the path for file tools.
#[derive(Debug, Clone)]
enum Pattern {
    Glob {
        command: GlobMatcher,
        path: Box<PathPattern>,
    },
    /// Exactly this command.
    Command(String),
    /// Exactly this file.
    File(PathBuf),
}

impl Rule {
    fn parse(parameter: &str, text: &str) -> Result<Self, AgentError> {
        let text = text.trim();
        let refused = |problem: String| AgentError::refused(parameter, problem);
        let (name, pattern) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(pattern) => (name.trim(), Some(pattern)),
                None => return Err(refused(format!("`{text}`: the `)` at its end is missing"))),
            },
        };
        if name.is_empty() {
            return Err(refused(format!("`{text}` names no tool")));
        }
        let wrong = |problem: String| refused(format!("`{text}`: {problem}"));
        let glob = |glob: &str, ignores_case| path::glob(glob, ignores_case).map_err(wrong);
        // Match all tools of the server.
        let name = match name.strip_prefix("mcp__") {
            Some(server) if !server.contains("__") => glob(&format!("{{{name},{name}__*}}"), true)?,
            _ => glob(name, true)?,
        };
        let pattern = match pattern {
            None => None,
            Some(pattern) => Some(Pattern::Glob {
                command: glob(pattern, false)?,
                path: PathPattern::parse(pattern).map_err(wrong)?.into(),
            }),
        };
        Ok(Self {
            text: text.to_owned(),
            name,
            pattern,
            covers_protected: true,
        })
    }

    /// Returns whether a denial of some paths is about this tool. A denial to read also denies search and edit; a
    /// denial to write also denies edit, and the other way round.
    fn denies_for(&self, tool: &str) -> bool {
        let others: &[&str] = match tool {
            "edit" => &["read", "write"],
            "write" => &["edit"],
            "grep" | "glob" => &["read"],
            _ => &[],
        };
        self.name.is_match(tool) || others.iter().any(|other| self.name.is_match(other))
    }
}

/// Commands of a call, if it has any. An error has the reason why they are not known.
type Commands = Option<Result<Line, String>>;

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
        denied.any(|rule| rule.pattern.is_none() && rule.name.is_match(tool))
    }

    /// Returns whether a search leaves out a file, because its content is denied.
    pub(crate) fn hides_file(&self, roots: &Roots, tool: &str, file: &Path) -> bool {
        let target = Target {
            asked: file.to_owned(),
            real: Ok(file.to_owned()),
        };
        let hides = |rule: &Rule| match &rule.pattern {
            Some(Pattern::Glob { path, .. }) => {
                rule.denies_for(tool) && path.denies(roots, &target)
            }
            _ => false,
        };
        self.denied.iter().any(hides)
    }

    pub(crate) fn verdict(
        &self,
        mode: PermissionMode,
        tool: &str,
        kind: ToolKind,
        roots: &Roots,
        subject: &Subject,
    ) -> Verdict {
        let commands = subject.command.as_deref().map(Line::read);
        if let Some(why) = self.denial(tool, roots, subject, &commands) {
            return Verdict::Deny(why);
        }
        let changes = kind.has_side_effects();
        if mode == PermissionMode::ReadOnly && changes && kind != ToolKind::Mcp {
            return Verdict::Deny("only reading is allowed in this run".to_owned());
        }
        if !changes || mode == PermissionMode::Bypass {
            return Verdict::Allow;
        }
        let protected = (subject.targets.iter()).find(|target| is_protected(roots, target));
        let is_edit = mode == PermissionMode::AcceptEdits && kind == ToolKind::Edit;
        let is_allowed = (is_edit && protected.is_none())
            || self.allows(tool, roots, subject, &commands, protected.is_some());
        if is_allowed {
            return Verdict::Allow;
        }
        Verdict::Ask(protected.filter(|_| is_edit).map(|target| {
            let shown = roots.shown(target.real.as_ref().unwrap_or(&target.asked));
            format!(
                "other programs run or obey {shown}, so an edit of it needs permission; \
                 allow it with --allow-tool '{tool}({shown})'"
            )
        }))
    }

    /// Returns the reason why a call is denied by a rule.
    fn denial(
        &self,
        tool: &str,
        roots: &Roots,
        subject: &Subject,
        commands: &Commands,
    ) -> Option<String> {
        self.denied.iter().find_map(|rule| {
            let (text, shown) = (&rule.text, |command: &str| excerpt(command, 200));
            match &rule.pattern {
                None => (rule.name.is_match(tool)).then(|| format!("{tool} is denied in this run")),
                Some(Pattern::Glob { command, path }) => {
                    if rule.denies_for(tool)
                        && subject.targets.iter().any(|target| path.denies(roots, target))
                    {
                        return Some(format!("{tool} of this path is denied in this run ({text})"));
                    }
                    let (line, commands) = (subject.command.as_ref()?, commands.as_ref()?);
                    if !rule.name.is_match(tool) {
                        return None;
                    }
                    if command.is_match(line) {
                        return Some(format!("{tool} of this command is denied in this run ({text})"));
                    }
                    match commands {
                        Err(why) => Some(format!(
                            "{text} is denied in this run, and the commands of this line cannot be known: {why}; \
                             write it in a simpler way"
                        )),
                        Ok(line) => match (line.first_denied(command), line.unknown()) {
                            (Some(denied), _) => {
                                Some(format!("`{}` is denied in this run ({text})", shown(denied)))
                            }
                            (None, Some(unknown)) => Some(format!(
                                "{text} is denied in this run, and what `{}` runs cannot be known before; write \
                                 the command itself",
                                shown(unknown)
                            )),
                            (None, None) => None,
                        },
                    }
                }
                Some(Pattern::Command(_) | Pattern::File(_)) => None,
            }
        })
    }

    fn allows(
        &self,
        tool: &str,
        roots: &Roots,
        subject: &Subject,
        commands: &Commands,
        is_protected: bool,
    ) -> bool {
        let named = self
            .allowed
            .iter()
            .filter(|rule| rule.name.is_match(tool) && (rule.covers_protected || !is_protected));
        let named: Vec<_> = named.collect();
        let whole = named.iter().any(|rule| match &rule.pattern {
            None => true,
            Some(Pattern::Command(command)) => {
                subject.targets.is_empty() && subject.command.as_ref() == Some(command)
            }
            Some(Pattern::File(_) | Pattern::Glob { .. }) => false,
        });
        let each = |command: &str| {
            named.iter().any(|rule| match &rule.pattern {
                Some(Pattern::Glob { command: glob, .. }) => glob.is_match(command),
                _ => false,
            })
        };
        let each_target = |target: &Target| {
            named.iter().any(|rule| match &rule.pattern {
                Some(Pattern::File(file)) => target.real.as_ref() == Ok(file),
                Some(Pattern::Glob { path, .. }) => path.allows(roots, target),
                _ => false,
            })
        };
        let targets = &subject.targets;
        let has_allowed_subject = match commands {
            None => !targets.is_empty(),
            Some(Ok(line)) => line.all(each),
            Some(Err(_)) => false,
        };
        whole || (has_allowed_subject && targets.iter().all(each_target))
    }

    /// Allows a tool for the rest of the session. For commands and protected files, allows only the identical one; has
    /// no effect for a call with a command and paths, or with several paths of which one is protected.
    pub(crate) fn allow_always(&mut self, tool: &str, roots: &Roots, subject: &Subject) {
        let is_guarded = |target: &Target| is_protected(roots, target);
        let pattern = match (&subject.command, &subject.targets[..]) {
            (Some(command), []) => Some(Pattern::Command(command.clone())),
            (Some(_), _) => return,
            (None, [target]) if is_guarded(target) => match &target.real {
                Ok(real) => Some(Pattern::File(real.clone())),
                Err(_) => return,
            },
            (None, targets) if targets.iter().any(is_guarded) => return,
            (None, _) => None,
        };
        // The name of a tool has no wildcards after it is escaped, so the pattern is valid.
        if let Ok(name) = GlobBuilder::new(&globset::escape(tool)).build() {
            self.allowed.push(Rule {
                text: tool.to_owned(),
                name: name.compile_matcher(),
                covers_protected: pattern.is_some(),
                pattern,
            });
        }
    }
}

/// Returns whether other programs run or obey a file: by the requested path, or by what it leads to.
fn is_protected(roots: &Roots, target: &Target) -> bool {
    let paths = std::iter::once(&target.asked).chain(target.real.as_ref().ok());
    paths.into_iter().any(|path| {
        roots.all().any(|root| {
            (path.strip_prefix(root)).is_ok_and(|path| protected::is_protected(root, path))
        })
    })
}
