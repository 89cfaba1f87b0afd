//! The commands that a line of shell runs, for rules with a pattern.

mod xargs;

use globset::GlobMatcher;

use super::Words;
use super::shell::{self, Command, Word};
use crate::tools::LONGEST_COMMAND as LONGEST;

/// Programs that run the command in their arguments.
const WRAPPERS: Words = Words(
    "
        arch builtin busybox bwrap catchsegv cgexec chpst chroot chrt command daemonize dbus-launch
        dbus-run-session doas eatmydata env exec fakeroot faketime firejail flock genv gnice gnohup gosu
        gstdbuf gtime gtimeout i386 ionice linux32 linux64 ltrace nice nohup nsenter numactl parallel pkexec
        prlimit proot proxychains rlwrap run0 runuser script setarch setpriv setsid setuidgid sg softlimit
        ssh sshpass start-stop-daemon stdbuf strace su su-exec sudo systemd-inhibit systemd-run taskset time
        timeout torsocks toybox uname26 unbuffer unshare valgrind watch x86_64 xargs xvfb-run
    ",
);
/// Options of `find` and `fd` before a command.
const EXECUTE: Words = Words("-exec -execdir -ok -okdir -x -X --exec --exec-batch");
const SHELLS: Words = Words("ash bash dash fish ksh mksh rbash sh zsh");
/// Programs that take a whole line of shell as one argument.
const TAKE_LINES: Words = Words("flock runuser script sg ssh su trap watch");
/// Builtins that evaluate an index in their arguments, such as `a[$(b)]`.
const EVALUATE_INDEXES: Words = Words("[ [[ getopts mapfile printf read readarray test unset wait");
/// Builtins that set variables to their arguments, or compute with them.
const ASSIGN: Words = Words("declare export let local readonly typeset");
/// Comparisons of `[[` that compute with their operands, and tests for a variable, which evaluate its index.
const COMPUTE: Words = Words("-eq -ne -lt -le -gt -ge -v -R");
/// Maximum number of words of a wrapper's command line.
const MOST_WORDS: usize = 200;
/// Maximum depth of lines within arguments.
const DEEPEST: usize = 4;
/// Maximum number of commands of a line and the lines within it.
const MOST_COMMANDS: usize = 1000;
/// Maximum number of bytes that are read of a line and the lines within it, each as often as it is read.
const MOST_BYTES: usize = 1_000_000;
const TOO_MANY: &str = "too many commands";

/// Commands of a line, as far as they are known before it runs.
#[derive(Debug, Default)]
pub(super) struct Line {
    commands: Vec<Command>,
    /// A command that is only known when the line runs.
    unknown: Option<String>,
    /// True if it, or a line within it, has more than simple commands.
    is_complex: bool,
    /// Number of bytes that were read.
    bytes: usize,
}

impl Line {
    /// Reads a line. Returns the reason if that is impossible.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("it is longer than {LONGEST} bytes"));
        }
        let mut line = Self::default();
        line.add(text, 0)?;
        if line.is_full() {
            return Err(TOO_MANY.to_owned());
        }
        line.find_evaluated_code();
        Ok(line)
    }

    fn is_full(&self) -> bool {
        self.commands.len() > MOST_COMMANDS || self.bytes > MOST_BYTES
    }

    fn add(&mut self, text: &str, depth: usize) -> Result<(), String> {
        if depth > DEEPEST {
            return Err(shell::TOO_DEEP.to_owned());
        }
        self.bytes += text.len();
        if self.is_full() {
            return Err(TOO_MANY.to_owned());
        }
        self.is_complex |= !shell::is_plain(text);
        for mut command in shell::commands(text)? {
            xargs::mark_replaced(&mut command.words);
            self.look_into(&command, depth);
            self.commands.push(command);
        }
        Ok(())
    }

    fn is_unknown(&mut self, command: &Command) {
        self.unknown.get_or_insert_with(|| command.source.clone());
    }

    /// Finds code that the shell runs when it computes with a variable that holds it.
    fn find_evaluated_code(&mut self) {
        let is_assigned = |command: &&Command| command.assignments.iter().any(|it| it.holds_code);
        let holds_code = |command: &&Command| {
            let words = command.words.iter().chain(&command.targets);
            words.into_iter().any(|word| word.holds_code)
        };
        let found = self.commands.iter().find(is_assigned).or_else(|| {
            let evaluates = self.commands.iter().any(evaluates);
            self.commands.iter().find(holds_code).filter(|_| evaluates)
        });
        if let Some(found) = found.cloned() {
            self.is_unknown(&found);
        }
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
            let has = |flag| arguments.iter().any(|word| is_flag(word, flag));
            let is_known = match program {
                program if SHELLS.has(program) => self.of_shell(arguments, depth),
                "eval" => {
                    !arguments.iter().any(|word| word.expands) && {
                        self.try_add(&joined(arguments).0, depth)
                    }
                }
                program if TAKE_LINES.has(program) => {
                    let is_line = matches!(program, "trap" | "su");
                    let mut arguments = arguments.iter();
                    arguments.all(|word| self.of_argument(word, is_line, depth))
                }
                // It runs what it reads.
                "parallel" => false,
                "xargs" => xargs::is_known(arguments),
                "source" | "." => arguments.first().is_none_or(is_file),
                "env" | "genv" => {
                    let is_split = |word: &Word| word.text.starts_with("--s");
                    !has('S') && !arguments.iter().any(is_split)
                }
                "alias" => !arguments.iter().any(|word| word.text.contains('=')),
                "hash" => !has('p'),
                "compgen" => !has('C'),
                program if ASSIGN.has(program) => !arguments.iter().any(|word| word.holds_code),
                program if EVALUATE_INDEXES.has(program) => {
                    let is_callback = matches!(program, "mapfile" | "readarray") && has('C');
                    let is_code = |word: &Word| word.holds_code && word.text.contains('[');
                    !is_callback && !arguments.iter().any(is_code)
                }
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

    fn of_argument(&mut self, word: &Word, is_line: bool, depth: usize) -> bool {
        let text = word.text.as_str();
        let value = match text.split_once('=').filter(|_| text.starts_with("--")) {
            Some((_, value)) => Some(value),
            None if is_flag(word, 'c') => text.split_once('c').map(|(_, value)| value),
            None => None,
        };
        let is_special = |c: char| c.is_whitespace() || ";&|<>$`(){}*?[".contains(c);
        let is_line = is_line || value.is_some() || text.contains(is_special);
        !word.expands && (!is_line || self.try_add(value.unwrap_or(text), depth))
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
                    .take(MOST_WORDS)
                    .any(|start| may_match(command, start, pattern))
        };
        let denied = self.commands.iter().find(denied);
        denied.map(|command| command.source.as_str())
    }

    /// Returns whether it consists of simple commands in a form that can be read in one way, and each is known in full
    /// and allowed.
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
        !self.is_complex
            && self.unknown.is_none()
            && !self.commands.is_empty()
            && self.commands.iter().all(&mut is_allowed)
    }
}

/// Returns the positions at which a command may begin: the first word, and further ones of a wrapper.
fn starts(words: &[Word]) -> Vec<usize> {
    let Some(name) = words.first() else {
        return Vec::new();
    };
    let runs_next = |word: &Word| EXECUTE.has(&word.text);
    match base(&name.text) {
        "xargs" => xargs::starts(words),
        name if name.starts_with("ld-") || name == "ld.so" => (0..words.len()).collect(),
        name if WRAPPERS.has(name) => (0..words.len()).collect(),
        "find" | "fd" | "fdfind" => (0..words.len())
            .filter(|at| *at == 0 || runs_next(&words[at - 1]))
            .collect(),
        _ => vec![0],
    }
}

/// Returns whether the shell computes with variables in a command.
fn evaluates(command: &Command) -> bool {
    let Command {
        assignments,
        words,
        targets,
        ..
    } = command;
    let mut all = assignments.iter().chain(words).chain(targets);
    if all.any(|word| word.evaluates) {
        return true;
    }
    starts(words).into_iter().take(MOST_WORDS).any(|start| {
        let arguments = &words[start + 1..];
        match base(&words[start].text) {
            "[" | "[[" | "test" => (arguments.iter()).any(|word| COMPUTE.has(&word.text)),
            "printf" => arguments.iter().any(|word| is_flag(word, 'v')),
            program => {
                (ASSIGN.has(program) || EVALUATE_INDEXES.has(program))
                    && arguments.iter().any(|word| word.expands)
            }
        }
    })
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
