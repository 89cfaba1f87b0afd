//! What an agent printed in a run, as a fixture.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::One;

/// Writes the first run of a scenario: `FOLDER/AGENT/SCENARIO`.
pub(crate) fn write(folder: &Path, agent: &str, one: &One) -> anyhow::Result<()> {
    if one.hot || one.printed.is_empty() {
        return Ok(());
    }
    let folder = folder
        .join(agent)
        .join(format!("conformance_{}", one.scenario.name));
    fs::create_dir_all(&folder)?;
    let about = one.about.as_ref();
    let version = about.and_then(|about| about["agentInfo"]["version"].as_str());
    let run = &one.scenario.test.run[0];
    let meta = json!({
        "cli": agent,
        "version": version,
        "recorded_by": concat!("teamster ", env!("CARGO_PKG_VERSION")),
        "argv": [agent],
        "env": {},
        "prompt": run.prompt,
        "stdin": "open",
        "exit_code": 0,
        "scenario": format!("conformance_{}", one.scenario.name),
        "what_it_shows": one.scenario.description(),
    });
    fs::write(folder.join("stdout.ndjson"), one.printed.join("\n") + "\n")?;
    fs::write(folder.join("stderr.txt"), "")?;
    fs::write(
        folder.join("meta.json"),
        serde_json::to_string_pretty(&meta)? + "\n",
    )?;
    Ok(())
}
