//! Detection of Codex's login.

use teamster_core::provider::{CredentialFile, Credentials, FileLocation, Sign};

pub(crate) const CREDENTIALS: Credentials = {
    let mut credentials = Credentials::in_locations(
        &["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"],
        &[CredentialFile {
            location: in_home("auth.json"),
            sign: Sign::Json(&["/tokens/access_token", "/OPENAI_API_KEY"]),
        }],
    );
    // A custom model provider may need no login or use another variable, and the login may be in a keyring.
    credentials.elsewhere_variables = &["OPENAI_API_KEY"];
    credentials.elsewhere_files = &[CredentialFile {
        location: in_home("config.toml"),
        sign: Sign::Words(&["model_provider", "cli_auth_credentials_store"]),
    }];
    credentials
};

/// Location of a file in the CLI's home.
pub(crate) const fn in_home(path: &'static str) -> FileLocation {
    FileLocation::user("CODEX_HOME", ".codex", path)
}
