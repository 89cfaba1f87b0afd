//! Detection of GitHub Copilot CLI's login.

use teamster_core::provider::{CredentialFile, Credentials, FileLocation, Sign};

pub(crate) const CREDENTIALS: Credentials = {
    let mut credentials = Credentials::in_locations(
        &[
            "COPILOT_GITHUB_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "COPILOT_PROVIDER_BASE_URL",
        ],
        &[CredentialFile {
            location: FileLocation::user("COPILOT_HOME", ".copilot", "config.json"),
            sign: Sign::Json(&["/loggedInUsers/0", "/logged_in_users/0"]),
        }],
    );
    // In a keychain, or in the login of `gh`.
    credentials.may_be_elsewhere = true;
    credentials
};
