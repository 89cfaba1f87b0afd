//! Detection of OpenCode's login.

use teamster_core::provider::{CredentialFile, Credentials, FileLocation, Sign};

pub(crate) const CREDENTIALS: Credentials = {
    let mut places = Credentials::in_places(
        &[],
        &[CredentialFile {
            location: FileLocation::User {
                variable: "XDG_DATA_HOME",
                folder: ".local/share",
                path: "opencode/auth.json",
            },
            sign: Sign::AnyObject,
        }],
    );
    // Local and free models need no login.
    places.may_be_elsewhere = true;
    places
};
