//! Detection of Gemini CLI's login.

use teamster_core::provider::{CredentialFile, Credentials, FileLocation, Sign};

const VARIABLES: &[&str] = &[
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENAI_USE_VERTEXAI",
];

pub(crate) const CREDENTIALS: Credentials = {
    let mut credentials = Credentials::in_locations(
        VARIABLES,
        &[
            CredentialFile {
                location: in_folder(".gemini/oauth_creds.json"),
                sign: Sign::Json(&["/refresh_token", "/access_token"]),
            },
            CredentialFile {
                location: in_folder(".gemini/.env"),
                sign: Sign::Variables(VARIABLES),
            },
            CredentialFile {
                location: FileLocation::user("", "", ".env"),
                sign: Sign::Variables(VARIABLES),
            },
        ],
    );
    // A login method was chosen, and the key may be in a keychain or an encrypted file.
    credentials.elsewhere_files = &[CredentialFile {
        location: in_folder(".gemini/settings.json"),
        sign: Sign::Json(&["/security/auth/selectedType", "/selectedAuthType"]),
    }];
    // As google-auth-library writes it.
    credentials.expiry = &["/expiry_date"];
    credentials
};

/// Location of a file in the folder that contains the CLI's own folder.
pub(crate) const fn in_folder(path: &'static str) -> FileLocation {
    FileLocation::user("GEMINI_CLI_HOME", "", path)
}
