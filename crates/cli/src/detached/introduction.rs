//! What a run is about, shown before its log: its prompt and its workspace.

use std::path::Path;
use std::time::Duration;

use anstyle::Style;
use teamster_api::RunInfo;
use tokio::time::timeout;

use super::run::Run;
use crate::words;

/// Time in which the prompt must be read. Its run may be on another machine, or not answer.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum number of lines of the prompt.
const LINES: usize = 10;

/// Returns the prompt of a run and its workspace; `None` if neither is known, or needs a word. The turns of a session show
/// their prompts.
pub(crate) async fn introduction(run: &Run) -> Option<String> {
    let prompt = if run.is_session() {
        None
    } else {
        let view = timeout(LIMIT, run.handle.outline()).await;
        view.ok().and_then(Result::ok).and_then(|view| view.prompt)
    };
    let here = std::env::current_dir().ok();
    text(prompt.as_deref(), &run.info, here.as_deref())
}

fn text(prompt: Option<&str>, info: &RunInfo, here: Option<&Path>) -> Option<String> {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let mut lines = Vec::new();
    if let Some(prompt) = prompt {
        let shown: Vec<_> = words::first_lines(prompt, LINES).collect();
        lines.push(format!("{bold}> {}{bold:#}", shown.join("\n> ")));
    }
    let directory = info.directory.as_deref();
    let directory = directory.filter(|it| Some(*it) != here || info.branch.is_some());
    if let Some(directory) = directory {
        let directory = words::one_line(&directory.display().to_string());
        let branch = info.branch.as_deref().map(words::one_line);
        let branch = branch.map(|branch| format!(", branch {branch}"));
        let branch = branch.unwrap_or_default();
        lines.push(format!("{dim}  in {directory}{branch}{dim:#}"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_and_the_workspace_of_a_run_are_shown() {
        let mut info = RunInfo::new("r", "claude");
        let shown = |prompt: Option<&str>, info: &RunInfo| {
            let text = text(prompt, info, Some(Path::new("/here")));
            text.map(|text| anstream::adapter::strip_str(&text).to_string())
        };
        assert_eq!(shown(None, &info), None);
        info.directory = Some("/here".into());
        assert_eq!(
            shown(Some("Fix\u{1b}[2J it\nnow"), &info).unwrap(),
            "> Fix[2J it\n> now"
        );
        info.branch = Some("teamster/r".to_owned());
        assert_eq!(shown(None, &info).unwrap(), "  in /here, branch teamster/r");
        info.branch = None;
        info.directory = Some("/there".into());
        assert_eq!(shown(Some("x"), &info).unwrap(), "> x\n  in /there");
    }
}
