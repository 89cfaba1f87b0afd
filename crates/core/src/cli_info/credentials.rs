//! Detection of a CLI's login.

use crate::provider::FileLocation;

/// Signs of a login: environment variables and files. Only their presence counts; no value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// Variables that show a login if one is set to anything but `0` and `false`.
    pub variables: &'static [&'static str],
    /// Files that may show a login.
    pub files: &'static [CredentialFile],
    /// True if a login may be in a place that is not searched, such as a keychain. Without the signs above, it is then
    /// unknown whether there is one.
    pub may_be_elsewhere: bool,
    /// Variables with the effect of `may_be_elsewhere` if one is set.
    pub elsewhere_variables: &'static [&'static str],
    /// Files with the effect of `may_be_elsewhere` if one shows it.
    pub elsewhere_files: &'static [CredentialFile],
    /// JSON pointers to the time at which the token of the file ends, in milliseconds since the Unix epoch. The CLI renews
    /// it near that time, and a service may accept the renewal of one process only.
    pub expiry: &'static [&'static str],
}

impl Credentials {
    /// Creates the credentials of a CLI whose logins are unknown.
    pub const fn unknown() -> Self {
        Self {
            variables: &[],
            files: &[],
            may_be_elsewhere: true,
            elsewhere_variables: &[],
            elsewhere_files: &[],
            expiry: &[],
        }
    }

    /// Creates the credentials of a CLI whose login is in one of these variables or files, and nowhere else.
    pub const fn in_locations(
        variables: &'static [&'static str],
        files: &'static [CredentialFile],
    ) -> Self {
        Self {
            variables,
            files,
            may_be_elsewhere: false,
            elsewhere_variables: &[],
            elsewhere_files: &[],
            expiry: &[],
        }
    }
}

/// A file that may show a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialFile {
    /// Location of the file.
    pub location: FileLocation,
    /// The content that shows a login.
    pub sign: Sign,
}

/// Content of a file that shows a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sign {
    /// JSON with a non-empty string or an object at one of these JSON pointers.
    Json(&'static [&'static str]),
    /// A JSON object with an object in any of its fields.
    AnyObject,
    /// Lines `NAME=value`, one of them with one of these names and a non-empty value.
    Variables(&'static [&'static str]),
    /// Text with one of these words.
    Words(&'static [&'static str]),
}
