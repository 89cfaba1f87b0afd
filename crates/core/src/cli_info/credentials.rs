//! Detection of a CLI's login.

use crate::provider::FileLocation;

/// Signs of a login: variables of the environment and files. Only their presence counts; no value is
/// kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// A login is there if one of these is set to anything but `0` and `false`.
    pub variables: &'static [&'static str],
    /// A login is there if one of these files shows it.
    pub files: &'static [CredentialFile],
    /// Without the above, a login may still be where nothing looks, such as a keychain: then it is unknown
    /// whether there is one.
    pub may_be_elsewhere: bool,
    /// The same if one of these variables is set.
    pub elsewhere_variables: &'static [&'static str],
    /// The same if one of these files shows it.
    pub elsewhere_files: &'static [CredentialFile],
}

impl Credentials {
    /// Nothing is known about logins.
    pub const fn unknown() -> Self {
        Self {
            variables: &[],
            files: &[],
            may_be_elsewhere: true,
            elsewhere_variables: &[],
            elsewhere_files: &[],
        }
    }

    /// A login shows in one of these variables or files, and nowhere else.
    pub const fn in_places(
        variables: &'static [&'static str],
        files: &'static [CredentialFile],
    ) -> Self {
        Self {
            variables,
            files,
            may_be_elsewhere: false,
            elsewhere_variables: &[],
            elsewhere_files: &[],
        }
    }
}

/// A file that may show a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CredentialFile {
    /// Where it is.
    pub location: FileLocation,
    /// The part of it that shows a login.
    pub sign: Sign,
}

/// How a file shows a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sign {
    /// JSON with a text that is not empty, or an object, at one of these JSON pointers.
    Json(&'static [&'static str]),
    /// A JSON object with an object in any of its fields.
    AnyObject,
    /// Lines `NAME=value`, one of them with one of these names and a value.
    Variables(&'static [&'static str]),
    /// Text with one of these words.
    Words(&'static [&'static str]),
}
