//! Sub-agents from files: Markdown below a YAML head.

use std::path::Path;

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use teamster_core::SubAgent;

use super::input::read_text;

pub(super) fn read(file: &Path) -> anyhow::Result<SubAgent> {
    let text = read_text(file, "the sub-agent")?;
    parse(&text).with_context(|| format!("--agent-file {}", file.display()))
}

fn parse(text: &str) -> anyhow::Result<SubAgent> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let parts = text.strip_prefix("---\n");
    let Some((head, prompt)) = parts.and_then(|rest| rest.split_once("\n---\n")) else {
        bail!(
            "expected a head with `name` and `description` between two lines `---`, and a prompt"
        );
    };
    let mut settings: Map<String, Value> =
        serde_norway::from_str(head).context("the head is not YAML")?;
    let mut take = |key: &str| match settings.remove(key) {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text),
        _ => bail!("the head needs a text `{key}`"),
    };
    let (name, description) = (take("name")?, take("description")?);
    let prompt = prompt.trim();
    if prompt.is_empty() {
        bail!("expected a prompt below the head");
    }
    let mut agent = SubAgent::new(name, description, prompt);
    agent.settings = settings;
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn head_has_the_settings_and_the_rest_is_the_prompt() {
        let text = "---\r\nname: reviewer\r\ndescription: >-\r\n  Reviews\r\n  code\r\ntools: Read, Grep\r\n\
                    ---\r\n\r\nYou review.\r\n\r\n---\r\nBriefly.\r\n";
        let agent = parse(text).unwrap();
        let mut expected =
            SubAgent::new("reviewer", "Reviews code", "You review.\n\n---\nBriefly.");
        expected.settings = Map::from_iter([("tools".to_owned(), json!("Read, Grep"))]);
        assert_eq!(agent, expected);
    }

    #[test]
    fn file_without_a_part_has_an_error_with_its_name() {
        let error = |text: &str| format!("{:#}", parse(text).unwrap_err());
        assert!(error("You review.").starts_with("expected a head with `name`"));
        assert!(error("---\nname: [\n---\nx").starts_with("the head is not YAML: "));
        assert_eq!(
            error("---\nname: a\n---\nx"),
            "the head needs a text `description`"
        );
        assert_eq!(
            error("---\nname: 1\ndescription: b\n---\nx"),
            "the head needs a text `name`"
        );
        assert_eq!(
            error("---\nname: a\ndescription: b\n---\n \n"),
            "expected a prompt below the head"
        );
    }
}
