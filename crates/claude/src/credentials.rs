//! Detection of Claude Code's login.

use teamster_core::provider::{CredentialFile, Credentials, FileLocation, Sign};

pub(crate) const CREDENTIALS: Credentials = {
    let mut credentials = Credentials::in_locations(
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ],
        &[
            CredentialFile {
                location: in_folder(".credentials.json"),
                sign: Sign::Json(&["/claudeAiOauth/accessToken"]),
            },
            CredentialFile {
                location: in_folder("settings.json"),
                sign: Sign::Json(&[
                    "/apiKeyHelper",
                    "/env/ANTHROPIC_API_KEY",
                    "/env/ANTHROPIC_AUTH_TOKEN",
                ]),
            },
            // In the home directory, unless the variable is set.
            CredentialFile {
                location: FileLocation::user("CLAUDE_CONFIG_DIR", "", ".claude.json"),
                sign: Sign::Json(&["/primaryApiKey"]),
            },
        ],
    );
    // As reported in its issue 88947, where processes that renew it at once log each other out.
    credentials.expiry = &["/claudeAiOauth/expiresAt"];
    credentials
};

const fn in_folder(path: &'static str) -> FileLocation {
    FileLocation::user("CLAUDE_CONFIG_DIR", ".claude", path)
}
