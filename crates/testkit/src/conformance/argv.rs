//! A model of the command-line parsers of CLIs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The library that parses a CLI's command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parser {
    /// `commander` for JavaScript (Claude Code, Copilot).
    Commander,
    /// `clap` for Rust (Codex).
    Clap,
    /// `yargs` for JavaScript (Gemini CLI, OpenCode).
    Yargs,
    /// `getopt_long` of C and `getopt` of shells. Tested with util-linux `getopt` 2.38.1.
    Getopt,
    /// `argparse` of Python. Tested with scripts for Python 3.11.7, with and without sub-commands.
    Argparse,
    /// `pflag` for Go (`cobra`). Tested with `kubectl create configmap` of version 1.32.4.
    Pflag,
    /// No flags at all: every word is literal. Tested with a Python script that prints `sys.argv`.
    Plain,
}

impl Parser {
    /// Returns whether `-x=VALUE` sets `-x` to `VALUE` without the `=`.
    fn takes_equals_after_short(self) -> bool {
        !matches!(self, Self::Commander | Self::Getopt)
    }

    /// Returns whether a flag with any number of values, or with an optional one, takes the words that
    /// follow.
    fn takes_following_words(self) -> bool {
        !matches!(self, Self::Getopt | Self::Pflag)
    }
}

/// Model of a CLI's command line: its flags, its sub-commands and the rules of its library.
///
/// The rules were measured with the real parsers. The model is strict: input that any of them might parse
/// differently is an error, so that no provider depends on it.
///
/// - A flag that is not in the table is an error, and so is a text that became a flag.
/// - A value may be joined to its flag by `=`. A short flag of `commander` and `getopt` is an exception: they
///   would take the `=` as part of the value. A separate value must not begin with `-`: the real parsers
///   would fail, or parse it as a flag.
/// - A flag with any number of values ([`many`](Self::many)) takes the words that follow, up to the next one
///   that begins with `-`. With `yargs` it does so after a joined value too. With `getopt` and `pflag` no
///   flag does, and an optional value is always joined.
/// - The name of a sub-command before `--` begins that sub-command. From there on its table applies.
/// - With `getopt`, flags and `--` come before all other words: POSIX and `POSIXLY_CORRECT` parse the rest
///   after the first word as words. With `argparse`, the other words must be contiguous: one that a flag
///   separates from the first is an error.
/// - With `argparse`, a command with sub-commands has no other words, and no `--` before them.
/// - Words after `--` are positional. For CLIs where they are not, see
///   [`without_double_dash`](Self::without_double_dash).
/// - A repeated flag with one value is an error: `clap` refuses it, `yargs` makes a list of it, and with
///   `argparse` and `pflag` the last one wins. With `argparse` the last one wins for
///   [`many`](Self::many) values too. [`each`](Self::each) is for flags that may be repeated.
///
/// ```
/// # use teamster_testkit::conformance::{ArgvModel, Parser};
/// let model = ArgvModel::new(Parser::Commander)
///     .switches("--print|-p")
///     .one("--model")
///     .many("--add-dir");
/// let parsed = model.parse_words(&["-p", "--model=x", "--", "--help me"]).unwrap();
/// assert_eq!(parsed.text("--model").as_deref(), Some("x"));
/// assert_eq!(parsed.positionals, ["--help me"]);
///
/// let swallowed = model.parse_words(&["--add-dir", "dir", "prompt"]).unwrap();
/// assert!(swallowed.positionals.is_empty());
/// assert!(model.parse_words(&["-p", "--help me"]).is_err());
/// ```
#[derive(Debug, Clone)]
pub struct ArgvModel {
    parser: Parser,
    flags: Vec<Flag>,
    commands: Vec<(&'static str, Self)>,
    double_dash: bool,
}

#[derive(Debug, Clone)]
struct Flag {
    /// The first is the name in [`Parsed`].
    names: Vec<&'static str>,
    arity: Arity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arity {
    None,
    One,
    Each,
    Optional,
    Many,
}

impl ArgvModel {
    /// Creates the model of a CLI without flags.
    pub fn new(parser: Parser) -> Self {
        Self {
            parser,
            flags: Vec::new(),
            commands: Vec::new(),
            double_dash: true,
        }
    }

    /// Adds flags without a value, with white space between them. Other names of a flag follow after `|`, as in
    /// `--print|-p`.
    #[must_use]
    pub fn switches(self, flags: &'static str) -> Self {
        self.with(flags, Arity::None)
    }

    /// Adds flags with exactly one value.
    #[must_use]
    pub fn one(self, flags: &'static str) -> Self {
        self.with(flags, Arity::One)
    }

    /// Adds flags with one value that may be repeated.
    #[must_use]
    pub fn each(self, flags: &'static str) -> Self {
        self.with(flags, Arity::Each)
    }

    /// Adds flags with an optional value. A following word is the value if it does not begin with `-`.
    #[must_use]
    pub fn optional(self, flags: &'static str) -> Self {
        self.with(flags, Arity::Optional)
    }

    /// Adds flags with any number of values.
    #[must_use]
    pub fn many(self, flags: &'static str) -> Self {
        self.with(flags, Arity::Many)
    }

    /// Adds a sub-command with its own table.
    #[must_use]
    pub fn command(mut self, name: &'static str, model: Self) -> Self {
        self.commands.push((name, model));
        self
    }

    /// Adds sub-commands that no run may reach, without their flags.
    #[must_use]
    pub fn commands(mut self, names: &'static str) -> Self {
        for name in names.split_ascii_whitespace() {
            self.commands.push((name, Self::new(self.parser)));
        }
        self
    }

    /// Makes `--` an error, for a CLI where it does not protect the words that follow.
    #[must_use]
    pub fn without_double_dash(mut self) -> Self {
        self.double_dash = false;
        self
    }

    fn with(mut self, flags: &'static str, arity: Arity) -> Self {
        for flag in flags.split_ascii_whitespace() {
            let names = flag.split('|').collect();
            self.flags.push(Flag { names, arity });
        }
        self
    }

    /// Returns all names of flags and sub-commands. A text must not become one of them.
    pub(super) fn words(&self) -> Vec<&'static str> {
        let flags = self.flags.iter().flat_map(|flag| flag.names.clone());
        let below = self
            .commands
            .iter()
            .flat_map(|(name, model)| [vec![*name], model.words()].concat());
        flags.chain(below).collect()
    }

    /// Parses a command line without the program.
    ///
    /// # Errors
    ///
    /// A description of the first word that the model does not accept.
    pub fn parse(&self, args: &[OsString]) -> Result<Parsed, String> {
        let mut parsed = Parsed::default();
        let mut level = self;
        let mut words = args.iter().peekable();
        // True after a flag that follows another word.
        let mut parted = false;
        while let Some(word) = words.next() {
            let text = word.as_bytes();
            if self.parser == Parser::Plain {
                parsed.positionals.push(word.clone());
            } else if text == b"--" {
                if !level.double_dash {
                    return Err("there is `--`, which does not protect what follows".into());
                }
                level.check_position(word, &parsed, parted)?;
                parsed.positionals.extend(words.by_ref().cloned());
            } else if text.len() > 1 && text[0] == b'-' {
                let (name, joined) = self.split(word);
                let flag = level.flag(name)?;
                level.check_flag(flag, &parsed)?;
                parted |= !parsed.positionals.is_empty();
                let follows = |words: &mut std::iter::Peekable<std::slice::Iter<'_, OsString>>| {
                    words
                        .next_if(|word| !word.as_bytes().starts_with(b"-"))
                        .cloned()
                };
                let takes_next =
                    flag.arity != Arity::Optional || self.parser.takes_following_words();
                parsed.add(flag, joined, || {
                    takes_next.then(|| follows(&mut words)).flatten()
                })?;
                let swallows = self.parser.takes_following_words()
                    && (joined.is_none() || self.parser == Parser::Yargs);
                while flag.arity == Arity::Many
                    && swallows
                    && let Some(value) = follows(&mut words)
                {
                    parsed.flags.push((flag.name(), Some(value)));
                }
            } else if let Some((name, model)) =
                level.commands.iter().find(|(name, _)| *word == *name)
            {
                parsed.commands.push(name);
                level = model;
            } else {
                level.check_position(word, &parsed, parted)?;
                parsed.positionals.push(word.clone());
            }
        }
        Ok(parsed)
    }

    /// Checks that a word that is not a flag, or `--`, is allowed here. `parted` is true if a flag has
    /// followed another word.
    fn check_position(&self, word: &OsStr, parsed: &Parsed, parted: bool) -> Result<(), String> {
        let has_words = !parsed.positionals.is_empty();
        match self.parser {
            Parser::Argparse if !self.commands.is_empty() => {
                Err(format!("{} is no sub-command", shown(word)))
            }
            Parser::Argparse if parted => Err(format!(
                "a flag parts {} from the words before",
                shown(word)
            )),
            Parser::Getopt if has_words && word == "--" => {
                Err("`--` follows a word, after which it may be one itself".into())
            }
            _ => Ok(()),
        }
    }

    /// Checks that a flag is allowed here.
    fn check_flag(&self, flag: &Flag, parsed: &Parsed) -> Result<(), String> {
        let name = flag.name();
        match self.parser {
            Parser::Argparse if flag.arity == Arity::Many && parsed.has(&name) => {
                Err(format!("{name} is there twice, and the last one holds"))
            }
            Parser::Getopt if !parsed.positionals.is_empty() => Err(format!(
                "{name} follows a word, after which it may be one itself"
            )),
            _ => Ok(()),
        }
    }

    /// Parses a command line of texts, as [`parse`](Self::parse) does.
    pub fn parse_words(&self, args: &[&str]) -> Result<Parsed, String> {
        let args: Vec<_> = args.iter().map(OsString::from).collect();
        self.parse(&args)
    }

    /// Splits a flag from the value that is joined to it.
    fn split<'a>(&self, word: &'a OsStr) -> (&'a OsStr, Option<&'a OsStr>) {
        let bytes = word.as_bytes();
        let short = !bytes.starts_with(b"--");
        match bytes.iter().position(|b| *b == b'=') {
            Some(at) if !short || (at == 2 && self.parser.takes_equals_after_short()) => (
                OsStr::from_bytes(&bytes[..at]),
                Some(OsStr::from_bytes(&bytes[at + 1..])),
            ),
            _ => (word, None),
        }
    }

    fn flag(&self, name: &OsStr) -> Result<&Flag, String> {
        self.flags
            .iter()
            .find(|flag| flag.names.iter().any(|known| name == *known))
            .ok_or_else(|| format!("{} is no flag of the CLI's", shown(name)))
    }
}

impl Flag {
    fn name(&self) -> String {
        self.names[0].to_owned()
    }
}

fn shown(word: &OsStr) -> String {
    format!(
        "{:?}",
        teamster_core::text::excerpt(&word.to_string_lossy(), 60)
    )
}

/// A command line as the CLI parses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The sub-commands, outer first.
    pub commands: Vec<&'static str>,
    /// The flags in order, by their first name in the table. One with several values occurs several times.
    pub flags: Vec<(String, Option<OsString>)>,
    /// The other words.
    pub positionals: Vec<OsString>,
}

impl Parsed {
    fn add(
        &mut self,
        flag: &Flag,
        joined: Option<&OsStr>,
        next: impl FnOnce() -> Option<OsString>,
    ) -> Result<(), String> {
        let name = flag.name();
        let value = match flag.arity {
            Arity::None if joined.is_some() => return Err(format!("{name} takes no value")),
            Arity::None => None,
            _ => joined.map(OsStr::to_owned).or_else(next),
        };
        if value.is_none() && !matches!(flag.arity, Arity::None | Arity::Optional) {
            return Err(format!(
                "{name} has no value, or one that begins with `-` and is a word of its own"
            ));
        }
        if matches!(flag.arity, Arity::One | Arity::Optional) && self.has(&name) {
            return Err(format!("{name} is there twice"));
        }
        self.flags.push((name, value));
        Ok(())
    }

    /// Returns whether a flag is present.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(name, _)| name == flag)
    }

    /// Returns the values of a flag.
    pub fn values(&self, flag: &str) -> Vec<&OsStr> {
        let flags = self.flags.iter().filter(|(name, _)| name == flag);
        flags.filter_map(|(_, value)| value.as_deref()).collect()
    }

    /// Returns the first value of a flag.
    pub fn value(&self, flag: &str) -> Option<&OsStr> {
        self.values(flag).first().copied()
    }

    /// Returns the first value of a flag as text.
    pub fn text(&self, flag: &str) -> Option<String> {
        self.texts(flag).into_iter().next()
    }

    /// Returns the values of a flag as texts.
    pub fn texts(&self, flag: &str) -> Vec<String> {
        let values = self.values(flag).into_iter();
        values
            .map(|value| value.to_string_lossy().into_owned())
            .collect()
    }

    /// Returns the values of a flag as paths.
    pub fn paths(&self, flag: &str) -> Vec<PathBuf> {
        self.values(flag).into_iter().map(PathBuf::from).collect()
    }

    /// Returns the first value of a flag as a number, or `None` if it is not one.
    pub fn number<T: std::str::FromStr>(&self, flag: &str) -> Option<T> {
        self.text(flag)?.parse().ok()
    }
}

#[cfg(test)]
mod tests;
