//! Detection of OpenCode's login.

use teamster_core::provider::{CredentialFile, Credentials, FileLocation, Sign};

pub(crate) const CREDENTIALS: Credentials = {
    let mut credentials = Credentials::in_locations(
        &[],
        &[CredentialFile {
            location: FileLocation::user("XDG_DATA_HOME", ".local/share", "opencode/auth.json"),
            sign: Sign::AnyObject,
        }],
    );
    // Local and free models need no login.
    credentials.may_be_elsewhere = true;
    credentials
};
