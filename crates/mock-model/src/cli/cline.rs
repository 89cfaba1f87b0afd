//! Cline.

use serde_json::json;

use super::{Call, CallContext, Habits, HomeFile, Pointing, elsewhere, variables};
use crate::Part;

const KEY: &str = "sk-mock-000";
const PROVIDER: &str = "openai-compatible";
const MODEL: &str = "mock-model";

pub(super) const HABITS: Habits = Habits::NONE;

/// Uses Chat Completions. As an ACP agent Cline needs the variables, and the address in a separate file.
pub(super) fn point_at(url: &str) -> Pointing {
    let env = [
        ("CLINE_API_KEY", KEY),
        ("CLINE_PROVIDER", PROVIDER),
        ("CLINE_MODEL", MODEL),
    ];
    let providers = json!({
        "version": 1,
        "lastUsedProvider": PROVIDER,
        "modes": {},
        "providers": {PROVIDER: {
            "settings": {
                "provider": PROVIDER,
                "apiKey": KEY,
                "model": MODEL,
                "baseUrl": format!("{url}/v1"),
            },
            "updatedAt": "2026-11-24T00:00:00.000Z",
            "tokenSource": "manual",
        }},
    });
    Pointing {
        env: variables(&env),
        files: vec![HomeFile::new(
            ".cline/data/settings/providers.json",
            format!("{providers:#}\n"),
        )],
        elsewhere: elsewhere(
            "
                CLINE_DIR CLINE_DATA_DIR CLINE_PROVIDER_SETTINGS_PATH CLINE_GLOBAL_SETTINGS_PATH
                CLINE_SESSION_DATA_DIR
            ",
        ),
        folders: [("CLINE_DIR", ".cline")].into(),
        waits_for_stdin: true,
        ..Pointing::default()
    }
}

pub(super) fn is_asking(user_agent: &str, tools: &[String]) -> bool {
    let offers = |name| tools.iter().any(|tool| tool == name);
    user_agent.starts_with("Cline/") || (offers("run_commands") && offers("read_files"))
}

/// Returns `None`: Cline's tools are identified by their schemas.
pub(super) fn call(_: &Part, _: &CallContext<'_>) -> Option<Call> {
    None
}
