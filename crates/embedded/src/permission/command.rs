//! The commands that a line of shell runs, for rules with a pattern.

use globset::GlobMatcher;

use super::shell::{self, Command, Word};

/// Programs that run the command in their arguments.
const WRAPPERS: [&str; 39] = [
    "arch",
    "builtin",
    "busybox",
    "bwrap",
    "catchsegv",
    "chroot",
    "chrt",
    "command",
    "doas",
    "env",
    "exec",
    "fakeroot",
    "firejail",
    "flock",
    "ionice",
    "ltrace",
    "nice",
    "nohup",
    "nsenter",
    "numactl",
    "parallel",
    "proot",
    "runuser",
    "script",
    "setpriv",
    "setsid",
    "ssh",
    "stdbuf",
    "strace",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "unbuffer",
    "unshare",
    "watch",
    "xargs",
];
/// Options of `find` and `fd` before a command.
const EXECUTE: [&str; 8] = [
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-x",
    "-X",
    "--exec",
    "--exec-batch",
];
/// Shells.
const SHELLS: [&str; 9] = [
    "ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh",
];
/// Programs that take a whole line of shell as one argument.
const TAKE_LINES: [&str; 7] = ["flock", "parallel", "script", "ssh", "su", "trap", "watch"];
/// Maximum number of words of a wrapper's command line.
const MOST_WORDS: usize = 200;
/// Maximum depth of lines within arguments.
const DEEPEST: usize = 4;

/// Commands of a line, as far as they are known before it runs.
#[derive(Debug, Default)]
pub(super) struct Line {
    commands: Vec<Command>,
    /// A command that is only known when the line runs.
    unknown: Option<String>,
}

impl Line {
    /// Reads a line. Returns the reason if that is impossible.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut line = Self::default();
        line.add(text, 0)?;
        Ok(line)
    }

    fn add(&mut self, text: &str, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(shell::TOO_DEEP.to_owned());
        }
        for command in shell::commands(text)? {
            self.look_into(&command, depth);
            self.commands.push(command);
        }
        Ok(())
    }

    fn is_unknown(&mut self, command: &Command) {
        self.unknown.get_or_insert_with(|| command.source.clone());
    }

    /// Finds lines in the arguments of a command.
    fn look_into(&mut self, command: &Command, depth: usize) {
        let words = &command.words;
        let Some(name) = words.first() else { return };
        let starts = starts(words);
        if name.varies_at.is_some() || starts.len() > MOST_WORDS {
            self.is_unknown(command);
            return;
        }
        for start in starts {
            let (program, arguments) = (base(&words[start].text), &words[start + 1..]);
            let is_known = match program {
                program if SHELLS.contains(&program) => self.of_shell(arguments, depth),
                "eval" => {
                    !arguments.iter().any(|word| word.expands) && {
                        self.try_add(&joined(arguments).0, depth)
                    }
                }
                program if TAKE_LINES.contains(&program) => {
                    arguments.iter().all(|word| self.of_argument(word, depth))
                }
                "source" | "." => arguments.first().is_none_or(is_file),
                "env" => !arguments
                    .iter()
                    .any(|word| word.text.starts_with("--split") || is_flag(word, 'S')),
                "alias" => !arguments.iter().any(|word| word.text.contains('=')),
                _ => true,
            };
            if !is_known {
                self.is_unknown(command);
            }
        }
    }

    /// Reads the line of a shell's `-c`. Returns whether what it runs is known.
    fn of_shell(&mut self, arguments: &[Word], depth: usize) -> bool {
        let has = |flag| arguments.iter().any(|word| is_flag(word, flag));
        let mut operands = arguments.iter().filter(|word| !word.text.starts_with('-'));
        if has('c') {
            return operands.all(|word| !word.expands && self.try_add(&word.text, depth));
        }
        // Without a file, it reads its input.
        !has('s') && !has('i') && operands.next().is_some_and(is_file)
    }

    fn of_argument(&mut self, word: &Word, depth: usize) -> bool {
        let is_line = word.text.contains(|c: char| c.is_whitespace() || c == ';');
        !word.expands && (!is_line || self.try_add(&word.text, depth))
    }

    fn try_add(&mut self, text: &str, depth: usize) -> bool {
        self.add(text, depth + 1).is_ok()
    }

    /// Returns the command that keeps a rule against commands from deciding.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.unknown.as_deref()
    }

    /// Returns the first command that the pattern matches, or may match when it runs.
    pub(super) fn first_denied(&self, pattern: &GlobMatcher) -> Option<&str> {
        let denied = |command: &&Command| {
            pattern.is_match(&command.source)
                || (starts(&command.words).into_iter())
                    .any(|start| may_match(command, start, pattern))
        };
        let denied = self.commands.iter().find(denied);
        denied.map(|command| command.source.as_str())
    }

    /// Returns whether each command is known in full and allowed.
    pub(super) fn all(&self, mut allows: impl FnMut(&str) -> bool) -> bool {
        let mut is_allowed = |command: &Command| {
            let words: Vec<_> = (command.assignments.iter().chain(&command.words))
                .cloned()
                .collect();
            let has_blank = words.first().is_some_and(|word| word.text.contains(' '));
            !command.uses_files
                && !has_blank
                && !words.iter().any(|word| word.expands)
                && allows(&joined(&words).0)
        };
        self.unknown.is_none()
            && !self.commands.is_empty()
            && self.commands.iter().all(&mut is_allowed)
    }
}

/// Returns the positions at which a command may begin: the first word, and further ones of a wrapper.
fn starts(words: &[Word]) -> Vec<usize> {
    let Some(name) = words.first() else {
        return Vec::new();
    };
    let runs_next = |word: &Word| EXECUTE.contains(&word.text.as_str());
    match base(&name.text) {
        name if WRAPPERS.contains(&name) => (0..words.len()).collect(),
        "find" | "fd" | "fdfind" => (0..words.len())
            .filter(|at| *at == 0 || runs_next(&words[at - 1]))
            .collect(),
        _ => vec![0],
    }
}

fn may_match(command: &Command, start: usize, pattern: &GlobMatcher) -> bool {
    let words = &command.words[start..];
    let (mut text, mut varies_at) = joined(words);
    let adds_words = |word: &Word| matches!(base(&word.text), "xargs" | "parallel");
    if command.words[..start].iter().any(adds_words) {
        text.push(' ');
        varies_at.get_or_insert(text.len());
    }
    // A pattern of file names is rather an operand of the wrapper than the name of a program.
    let is_operand = |first: &Word| start > 0 && first.varies_at == Some(0) && !first.expands;
    // Of an unknown name at the beginning, the whole line is unknown.
    let is_unknown = |first: &Word| start == 0 && first.varies_at.is_some();
    if words
        .first()
        .is_some_and(|first| is_operand(first) || is_unknown(first))
    {
        varies_at = None;
    }
    let name = words.first().map_or("", |word| word.text.as_str());
    let skipped = name.len() - base(name).len();
    [0, skipped].into_iter().any(|skipped| {
        let text = &text[skipped..];
        pattern.is_match(text)
            || varies_at.is_some_and(|at| {
                let fixed = literal(pattern.glob().glob());
                let known = text.get(..at.saturating_sub(skipped)).unwrap_or_default();
                !fixed.is_empty() && (fixed.starts_with(known) || known.starts_with(fixed))
            })
    })
}

/// Returns the words with a space between them, and the offset of the first part that the shell replaces.
fn joined(words: &[Word]) -> (String, Option<usize>) {
    let (mut text, mut varies_at) = (String::new(), None);
    for (number, word) in words.iter().enumerate() {
        if number > 0 {
            text.push(' ');
        }
        varies_at = varies_at.or(word.varies_at.map(|at| text.len() + at));
        text.push_str(&word.text);
    }
    (text, varies_at)
}

/// Returns the beginning of a pattern up to its first wildcard.
fn literal(pattern: &str) -> &str {
    let end = pattern.find(['*', '?', '[', '{', '\\']);
    &pattern[..end.unwrap_or(pattern.len())]
}

/// Returns the name of a program without its folder.
fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

fn is_flag(word: &Word, flag: char) -> bool {
    word.text.starts_with('-') && !word.text.starts_with("--") && word.text.contains(flag)
}

/// Returns whether an operand names a file, rather than the input or what another command writes.
fn is_file(word: &Word) -> bool {
    !word.expands && !matches!(word.text.as_str(), "-" | "/dev/stdin" | "/dev/fd/0")
}
