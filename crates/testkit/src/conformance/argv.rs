//! A small model of how the CLIs read their command lines.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The library with which a CLI reads its command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Parser {
    /// `commander`, of JavaScript (Claude Code, Copilot).
    Commander,
    /// `clap`, of Rust (Codex).
    Clap,
    /// `yargs`, of JavaScript (Gemini CLI, OpenCode).
    Yargs,
    /// `getopt_long`, of C and of shells. Tried with util-linux `getopt` 2.38.1.
    Getopt,
    /// `argparse`, of Python. Tried with scripts for Python 3.11.7, with and without sub-commands.
    Argparse,
    /// `pflag`, of Go (`cobra`). Tried with `kubectl create configmap` of version 1.32.4.
    Pflag,
    /// No flags at all: every word is what it is. Tried with a Python script that prints `sys.argv`.
    Plain,
}

impl Parser {
    /// `-x=VALUE` is the value of `-x`, without the `=`.
    fn takes_equals_after_short(self) -> bool {
        !matches!(self, Self::Commander | Self::Getopt)
    }

    /// A flag with any number of values, or whose value may be missing, takes the words that follow.
    fn takes_following_words(self) -> bool {
        !matches!(self, Self::Getopt | Self::Pflag)
    }
}

/// Model of a CLI's command line: its flags, its sub-commands and its library's rules.
///
/// It is a model of the real parsers, as they were measured, and a strict one: what one of them
/// might understand in another way is an error here, so that no provider comes to depend on it.
///
/// - A flag that is not in the table is an error. So is a text that became a flag.
/// - A value may be joined to its flag by `=`; not to a short one with `commander` and `getopt`, which
///   would take the `=` for a part of it. As a word of its own it must not begin with `-`: the real parsers
///   would fail, or take it for a flag.
/// - A flag with any number of values ([`many`](Self::many)) swallows the words that follow, up to
///   the next one that begins with `-`; with `yargs` also after a value that is joined by `=`. With
///   `getopt` and `pflag` no flag does, and a value that may be missing is always joined.
/// - A word that is the name of a sub-command begins it, wherever it stands before `--`; from there
///   on that command's table holds.
/// - With `getopt` flags and `--` come before all other words: POSIX and `POSIXLY_CORRECT` take what
///   follows the first word for words. With `argparse` the other words stand together: those that a flag
///   parts from the first are an error of its.
/// - With `argparse` a command that has sub-commands has no other words, and no `--` before them.
/// - What follows `--` is positional; for CLIs where it is not, see
///   [`without_double_dash`](Self::without_double_dash).
/// - A flag with one value that is there twice is an error: `clap` refuses it, `yargs` makes a
///   list of it, and with `argparse` and `pflag` the last one holds, which with `argparse` is so for
///   [`many`](Self::many) values as well. [`each`](Self::each) is for those that may be repeated.
///
/// ```
/// # use teamster_testkit::conformance::{ArgvModel, Parser};
/// let model = ArgvModel::new(Parser::Commander)
///     .switches(&["--print|-p"])
///     .one(&["--model"])
///     .many(&["--add-dir"]);
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
    /// The first is the one that [`Parsed`] has.
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
    /// A CLI without flags yet.
    pub fn new(parser: Parser) -> Self {
        Self {
            parser,
            flags: Vec::new(),
            commands: Vec::new(),
            double_dash: true,
        }
    }

    /// Flags without a value. Other names follow after `|`, as in `--print|-p`.
    #[must_use]
    pub fn switches(self, flags: &[&'static str]) -> Self {
        self.with(flags, Arity::None)
    }

    /// Flags with exactly one value.
    #[must_use]
    pub fn one(self, flags: &[&'static str]) -> Self {
        self.with(flags, Arity::One)
    }

    /// Flags with one value, which may be repeated.
    #[must_use]
    pub fn each(self, flags: &[&'static str]) -> Self {
        self.with(flags, Arity::Each)
    }

    /// Flags whose value may be missing. A following word is its value if it does not begin with `-`.
    #[must_use]
    pub fn optional(self, flags: &[&'static str]) -> Self {
        self.with(flags, Arity::Optional)
    }

    /// Flags with any number of values.
    #[must_use]
    pub fn many(self, flags: &[&'static str]) -> Self {
        self.with(flags, Arity::Many)
    }

    /// A sub-command with its own table.
    #[must_use]
    pub fn command(mut self, name: &'static str, model: Self) -> Self {
        self.commands.push((name, model));
        self
    }

    /// Sub-commands that no run should ever reach: where their flags are not of interest.
    #[must_use]
    pub fn commands(mut self, names: &[&'static str]) -> Self {
        for name in names {
            self.commands.push((name, Self::new(self.parser)));
        }
        self
    }

    /// `--` does not protect what follows: a command line that has it is wrong.
    #[must_use]
    pub fn without_double_dash(mut self) -> Self {
        self.double_dash = false;
        self
    }

    fn with(mut self, flags: &[&'static str], arity: Arity) -> Self {
        for flag in flags {
            let names = flag.split('|').collect();
            self.flags.push(Flag { names, arity });
        }
        self
    }

    /// All names of flags and sub-commands: what a text must not become.
    pub(super) fn words(&self) -> Vec<&'static str> {
        let flags = self.flags.iter().flat_map(|flag| flag.names.clone());
        let below = self
            .commands
            .iter()
            .flat_map(|(name, model)| [vec![*name], model.words()].concat());
        flags.chain(below).collect()
    }

    /// Reads a command line, without the program.
    pub fn parse(&self, args: &[OsString]) -> Result<Parsed, String> {
        let mut parsed = Parsed::default();
        let mut level = self;
        let mut words = args.iter().peekable();
        // A flag has come after another word.
        let mut parted = false;
        while let Some(word) = words.next() {
            let text = word.as_bytes();
            if self.parser == Parser::Plain {
                parsed.positionals.push(word.clone());
            } else if text == b"--" {
                if !level.double_dash {
                    return Err("there is `--`, which does not protect what follows".into());
                }
                level.check_place(word, &parsed, parted)?;
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
                level.check_place(word, &parsed, parted)?;
                parsed.positionals.push(word.clone());
            }
        }
        Ok(parsed)
    }

    /// Whether a word that is no flag, or `--`, may stand here. `parted`: a flag has come after
    /// another word.
    fn check_place(&self, word: &OsStr, parsed: &Parsed, parted: bool) -> Result<(), String> {
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

    /// Whether a flag may stand here.
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

    /// As [`parse`](Self::parse), of texts.
    pub fn parse_words(&self, args: &[&str]) -> Result<Parsed, String> {
        let args: Vec<_> = args.iter().map(OsString::from).collect();
        self.parse(&args)
    }

    /// A flag from the value that is joined to it.
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

/// A command line as the CLI understands it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The sub-commands, outer first.
    pub commands: Vec<&'static str>,
    /// The flags by their first name in the table, in order; one with several values is there
    /// several times.
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

    /// Whether a flag is there.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|(name, _)| name == flag)
    }

    /// The values of a flag.
    pub fn values(&self, flag: &str) -> Vec<&OsStr> {
        let flags = self.flags.iter().filter(|(name, _)| name == flag);
        flags.filter_map(|(_, value)| value.as_deref()).collect()
    }

    /// The first value of a flag.
    pub fn value(&self, flag: &str) -> Option<&OsStr> {
        self.values(flag).first().copied()
    }

    /// The first value of a flag as text.
    pub fn text(&self, flag: &str) -> Option<String> {
        self.texts(flag).into_iter().next()
    }

    /// The values of a flag as texts.
    pub fn texts(&self, flag: &str) -> Vec<String> {
        let values = self.values(flag).into_iter();
        values
            .map(|value| value.to_string_lossy().into_owned())
            .collect()
    }

    /// The values of a flag as paths.
    pub fn paths(&self, flag: &str) -> Vec<PathBuf> {
        self.values(flag).into_iter().map(PathBuf::from).collect()
    }

    /// The first value of a flag as a number.
    pub fn number<T: std::str::FromStr>(&self, flag: &str) -> Option<T> {
        self.text(flag)?.parse().ok()
    }
}

#[cfg(test)]
mod tests;
