//! Arguments of a CLI.

use std::ffi::OsString;

use crate::provider::{PathLocation, PrivateFile};

/// Arguments for a CLI, built so that no value can be parsed as a flag.
///
/// A value is always joined to its flag by `=`. Several CLIs have flags that take any number of values and would
/// consume the following arguments, and a separate value that begins with `-` would be a flag.
#[derive(Debug, Clone, Default)]
pub struct Args {
    list: Vec<OsString>,
    files: Vec<PrivateFile>,
}

impl Args {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an unchanged argument.
    pub fn add(&mut self, arg: impl Into<OsString>) {
        self.list.push(arg.into());
    }

    /// Adds `flag=value`.
    pub fn value(&mut self, flag: &str, value: impl Into<OsString>) {
        let mut arg = OsString::from(flag);
        arg.push("=");
        arg.push(value.into());
        self.list.push(arg);
    }

    /// Adds `flag=value` for each value: none, one or any number.
    pub fn values<V: Into<OsString>>(&mut self, flag: &str, values: impl IntoIterator<Item = V>) {
        for value in values {
            self.value(flag, value);
        }
    }

    /// Adds unchanged arguments.
    pub fn add_all<A: Into<OsString>>(&mut self, args: impl IntoIterator<Item = A>) {
        for arg in args {
            self.add(arg);
        }
    }

    /// Adds an argument that consists of `prefix` and the path of a private file with this content. The prefix is
    /// usually a flag with its `=`.
    pub fn private_file(&mut self, prefix: impl Into<OsString>, content: impl Into<Vec<u8>>) {
        self.file(prefix.into(), content.into(), PathLocation::Argument);
    }

    /// Like [`private_file`](Self::private_file), for a file whose name ends with `suffix`.
    pub fn private_file_named(
        &mut self,
        prefix: impl Into<OsString>,
        suffix: &'static str,
        content: impl Into<Vec<u8>>,
    ) {
        let location = |at| PathLocation::ArgumentNamed(at, suffix);
        self.file(prefix.into(), content.into(), location);
    }

    /// Like [`private_file`](Self::private_file), with the path of a directory that has only this file, with this name.
    pub fn private_directory(
        &mut self,
        prefix: impl Into<OsString>,
        name: &'static str,
        content: impl Into<Vec<u8>>,
    ) {
        let location = |at| PathLocation::ArgumentDirectory(at, name);
        self.file(prefix.into(), content.into(), location);
    }

    fn file(
        &mut self,
        prefix: OsString,
        content: Vec<u8>,
        location: impl FnOnce(usize) -> PathLocation,
    ) {
        self.files.push(PrivateFile {
            location: location(self.list.len()),
            content,
        });
        self.list.push(prefix);
    }

    /// Returns the arguments and the files that they name.
    pub fn into_parts(self) -> (Vec<OsString>, Vec<PrivateFile>) {
        (self.list, self.files)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_joined_and_files_know_their_argument() {
        let mut args = Args::new();
        args.add("run");
        args.value("--model", "-x y");
        args.values("--effort", None::<&str>);
        args.values("--tool", ["a", "-b"]);
        args.private_file("--settings=", "{}");
        args.private_file_named("", ".toml", b"a = 1".as_slice());
        args.private_directory("--plugin-dir=", "plugin.json", "[]");
        args.add_all(["--more"]);
        let (list, files) = args.into_parts();
        let words = [
            "run",
            "--model=-x y",
            "--tool=a",
            "--tool=-b",
            "--settings=",
            "",
            "--plugin-dir=",
            "--more",
        ];
        assert_eq!(list, words);
        let file = |location, content: &str| PrivateFile {
            location,
            content: content.as_bytes().to_vec(),
        };
        assert_eq!(
            files,
            [
                file(PathLocation::Argument(4), "{}"),
                file(PathLocation::ArgumentNamed(5, ".toml"), "a = 1"),
                file(PathLocation::ArgumentDirectory(6, "plugin.json"), "[]"),
            ]
        );
    }
}
