//! Detection of Pi's login.

use teamster_core::provider::{CredentialFile, Credentials, FileLocation, Sign};

/// Variable that names the folder of Pi's settings, logins and sessions.
const FOLDER_VARIABLE: &str = "PI_CODING_AGENT_DIR";
/// That folder in the home, if the variable is not set.
const FOLDER: &str = ".pi/agent";

pub(crate) const CREDENTIALS: Credentials = {
    let mut credentials = Credentials::in_locations(
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_OAUTH_TOKEN",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "OPENROUTER_API_KEY",
            "MISTRAL_API_KEY",
            "DEEPSEEK_API_KEY",
            "XAI_API_KEY",
        ],
        &[
            CredentialFile {
                location: FileLocation::user(FOLDER_VARIABLE, FOLDER, "auth.json"),
                sign: Sign::AnyObject,
            },
            CredentialFile {
                location: FileLocation::user(FOLDER_VARIABLE, FOLDER, "models.json"),
                sign: Sign::Json(&["/providers"]),
            },
        ],
    );
    // Keys of other services and of cloud platforms.
    credentials.may_be_elsewhere = true;
    credentials
};
