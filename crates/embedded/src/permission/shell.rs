//! Splits a line of shell into its simple commands.
//!
//! Permission rules need to know which commands a line runs, not what they do. Commands of control structures,
//! substitutions and here-documents are found as well. Forms that are known to end a command elsewhere in bash than
//! here are refused as unreadable: that is for rules that deny. A rule that allows needs more, a line that
//! [`is_plain`].

mod plain;
#[cfg(test)]
mod tests;
mod word;

pub(super) use plain::is_plain;

/// Maximum depth of expansions within expansions.
const DEEPEST: usize = 32;
pub(super) const TOO_DEEP: Unreadable = "it is nested too deep";
/// Maximum number of commands of a line.
const MOST_COMMANDS: usize = 500;

/// Reason why a line cannot be read.
pub(super) type Unreadable = &'static str;
type Scan<T> = Result<T, Unreadable>;

/// A simple command.
#[derive(Debug, Default, Clone)]
pub(super) struct Command {
    /// Variables that are set for this command.
    pub(super) assignments: Vec<Word>,
    pub(super) words: Vec<Word>,
    /// Targets of redirections, and the texts of here-documents that expand.
    pub(super) targets: Vec<Word>,
    /// The command as it is written, redirections included.
    pub(super) source: String,
    /// True if a redirection reads or writes a file other than `/dev/null`.
    pub(super) uses_files: bool,
}

impl Command {
    fn is_empty(&self) -> bool {
        self.assignments.is_empty() && self.words.is_empty() && self.targets.is_empty()
    }
}

/// A word, without its quotes.
#[derive(Debug, Default, Clone)]
pub(super) struct Word {
    pub(super) text: String,
    /// Offset in `text` of the first part that the shell replaces when it runs the command.
    pub(super) varies_at: Option<usize>,
    /// True if that part is an expansion of `$`, `` ` `` or a process, not only a pattern of file names.
    pub(super) expands: bool,
    /// True if an expansion may run code that a variable holds: arithmetic, indexes, `${x@P}`.
    pub(super) evaluates: bool,
    /// True if it has a `$` or `` ` `` that the shell does not replace in this place.
    pub(super) holds_code: bool,
    is_quoted: bool,
}

impl Word {
    fn varies(&mut self, expands: bool) {
        self.varies_at.get_or_insert(self.text.len());
        self.expands |= expands;
    }

    /// Adds a character that is not replaced in this place.
    fn push(&mut self, c: char) {
        self.holds_code |= matches!(c, '$' | '`');
        self.text.push(c);
    }

    fn is_keyword(&self, keyword: &str) -> bool {
        !self.is_quoted && self.text == keyword
    }

    fn is_assignment(&self) -> bool {
        let Some((name, _)) = self.text.split_once('=') else {
            return false;
        };
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split('[').next().unwrap_or_default();
        is_name(name)
    }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn is_function_name(word: &Word) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    !word.is_quoted && word.text.chars().all(is_plain)
}

pub(super) fn commands(line: &str) -> Result<Vec<Command>, Unreadable> {
    let mut scanner = Scanner::new(line, 0)?;
    scanner.list(false)?;
    if !scanner.documents.is_empty() {
        return Err("a here-document without text");
    }
    Ok(scanner.out)
}

/// Refuses a newline after `\` within what may be an operator: bash removes both before it reads operators.
fn check_continuations(chars: &[char]) -> Scan<()> {
    let is_blank = |c: Option<&char>| matches!(c, None | Some(' ' | '\t' | '\n'));
    let is_plain = |c: &char| c.is_alphanumeric() || "_-./,:=+@%".contains(*c);
    let mut at = 0;
    while at < chars.len() {
        match &chars[at..] {
            ['\\', '\n', ..] => {
                let before = at.checked_sub(1).and_then(|at| chars.get(at));
                while chars[at..].starts_with(&['\\', '\n']) {
                    at += 2;
                }
                let after = chars.get(at);
                let is_word = before.is_some_and(is_plain) && after.is_some_and(is_plain);
                if !is_word && !is_blank(before) && !is_blank(after) {
                    return Err("a line continued within an operator");
                }
            }
            ['\\', ..] => at += 2,
            _ => at += 1,
        }
    }
    Ok(())
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    depth: usize,
    out: Vec<Command>,
    /// Here-documents whose text begins after the next newline.
    documents: Vec<Document>,
    /// True after `[[`, which has its own rules for `#`, `(` and `<<`.
    in_conditional: bool,
}

struct Document {
    end: String,
    expands: bool,
    strips_tabs: bool,
}

/// Keywords before a command.
const KEYWORDS: [&str; 14] = [
    "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "esac", "in",
];

impl Scanner {
    fn new(text: &str, depth: usize) -> Scan<Self> {
        let chars: Vec<_> = text.chars().collect();
        check_continuations(&chars)?;
        Ok(Self {
            chars,
            at: 0,
            depth,
            out: Vec::new(),
            documents: Vec::new(),
            in_conditional: false,
        })
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn after(&self, steps: usize) -> Option<char> {
        self.chars.get(self.at + steps).copied()
    }

    fn skip_blanks(&mut self) {
        loop {
            match (self.peek(), self.after(1)) {
                (Some(' ' | '\t'), _) => self.at += 1,
                (Some('\\'), Some('\n')) => self.at += 2,
                _ => return,
            }
        }
    }

    /// Reads commands to the end of the text, or of a substitution.
    fn list(&mut self, in_substitution: bool) -> Scan<()> {
        let mut open = 0_usize;
        let mut command = Command::default();
        let mut start = self.at;
        loop {
            if command.is_empty() {
                start = self.at;
            }
            let Some(next) = self.peek() else {
                self.close(&mut command, start)?;
                return if in_substitution {
                    Err("a `)` is missing")
                } else {
                    Ok(())
                };
            };
            match next {
                ' ' | '\t' => self.at += 1,
                '\\' if self.after(1) == Some('\n') => self.at += 2,
                '\n' => {
                    self.close(&mut command, start)?;
                    self.at += 1;
                    self.read_documents()?;
                }
                '#' if self.in_conditional => return Err("a `#` after `[[`"),
                '#' => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                '&' if self.after(1) == Some('>') => self.redirection(&mut command)?,
                ';' | '&' | '|' => {
                    self.close(&mut command, start)?;
                    self.at += 1;
                }
                '(' if command.is_empty() && self.after(1) == Some('(') => {
                    self.arithmetic_command()?;
                }
                '(' => {
                    // A pattern such as `@(a|b)`, an array, or a subshell after `time`.
                    if !command.is_empty() && !self.is_function(&command) {
                        return Err("a `(` after a word");
                    }
                    self.close(&mut command, start)?;
                    self.at += 1;
                    open += 1;
                }
                // Without an open parenthesis, it ends a pattern of `case`.
                ')' => {
                    self.close(&mut command, start)?;
                    self.at += 1;
                    if open == 0 && in_substitution {
                        return Ok(());
                    }
                    open = open.saturating_sub(1);
                }
                '<' | '>' if self.after(1) != Some('(') => self.redirection(&mut command)?,
                _ => self.command_word(&mut command, in_substitution)?,
            }
        }
    }

    /// Reads the next word of a command, or a keyword before one.
    fn command_word(&mut self, command: &mut Command, in_substitution: bool) -> Scan<()> {
        let start = self.at;
        let word = self.word()?;
        let is_number = !word.text.is_empty() && word.text.bytes().all(|b| b.is_ascii_digit());
        if is_number && !word.is_quoted && matches!(self.peek(), Some('<' | '>')) {
            return self.redirection(command);
        }
        if command.is_empty() && !word.is_quoted {
            match word.text.as_str() {
                "!" if self.peek() == Some('(') => return Err("a `(` after a word"),
                keyword if KEYWORDS.contains(&keyword) => return Ok(()),
                "coproc" => return Err("`coproc`"),
                // A `)` after its patterns would look like the end of the substitution.
                "case" if in_substitution => return Err("`case` in a substitution"),
                "function" => {
                    self.skip_blanks();
                    let name = self.word()?;
                    self.skip_blanks();
                    if self.peek() == Some('(') && !is_function_name(&name) {
                        return Err("a `(` after a word");
                    }
                    return Ok(());
                }
                "for" | "select" => return self.loop_head(start),
                _ => {}
            }
        }
        self.in_conditional |= word.is_keyword("[[");
        if command.words.is_empty() && word.is_assignment() {
            command.assignments.push(word);
        } else {
            command.words.push(word);
        }
        Ok(())
    }

    /// Returns whether a `(` begins the definition of a function with this name.
    fn is_function(&self, command: &Command) -> bool {
        let is_name = matches!(command.words.as_slice(), [name] if is_function_name(name));
        is_name
            && self.after(1) == Some(')')
            && command.assignments.is_empty()
            && command.targets.is_empty()
    }

    /// Reads `((…))`. It is a command that sets variables.
    fn arithmetic_command(&mut self) -> Scan<()> {
        let start = self.at;
        self.arithmetic()?;
        let mut word = Word::default();
        self.evaluation(&mut word, start);
        let mut command = Command {
            assignments: vec![word],
            ..Command::default()
        };
        self.close(&mut command, start)
    }

    /// Reads what follows `for` or `select`, up to the end of the list of values: the head is a command that sets the
    /// variable.
    fn loop_head(&mut self, start: usize) -> Scan<()> {
        self.skip_blanks();
        if self.peek() == Some('(') && self.after(1) == Some('(') {
            return self.arithmetic_command();
        }
        let mut command = Command::default();
        command.assignments.push(self.word()?);
        self.skip_blanks();
        let before = self.at;
        if !self.word()?.is_keyword("in") {
            self.at = before;
            return if self.peek() == Some('(') {
                Err("a `(` after a word")
            } else {
                self.close(&mut command, start)
            };
        }
        loop {
            self.skip_blanks();
            match self.peek() {
                Some('(') => return Err("a `(` after a word"),
                None | Some('\n' | ';' | '&' | '|' | ')') => {
                    return self.close(&mut command, start);
                }
                Some('<' | '>') if self.after(1) != Some('(') => {
                    return Err("a redirection in the head of a loop");
                }
                Some(_) => command.assignments.push(self.word()?),
            }
        }
    }

    fn close(&mut self, command: &mut Command, start: usize) -> Scan<()> {
        if command.is_empty() {
            return Ok(());
        }
        if self.out.len() == MOST_COMMANDS {
            return Err("too many commands");
        }
        let mut command = std::mem::take(command);
        let source: String = self.chars[start..self.at].iter().collect();
        source.trim().clone_into(&mut command.source);
        self.out.push(command);
        Ok(())
    }

    fn redirection(&mut self, command: &mut Command) -> Scan<()> {
        const OPERATORS: [&str; 12] = [
            "<<<", "<<-", "&>>", "<<", "<>", "<&", ">>", ">|", ">&", "&>", "<", ">",
        ];
        let begins = |operator: &&&str| {
            let mut chars = operator.chars().enumerate();
            chars.all(|(n, c)| self.after(n) == Some(c))
        };
        let Some(operator) = OPERATORS.iter().find(begins).copied() else {
            return Err("a redirection");
        };
        self.at += operator.len();
        self.skip_blanks();
        if matches!(self.peek(), None | Some('\n' | ';' | '&' | '|' | '#' | ')')) {
            return Err("a redirection without a target");
        }
        let target = self.word()?;
        if matches!(operator, "<<" | "<<-") {
            if target.expands || target.text.contains('\n') {
                return Err("the end of a here-document");
            }
            if self.in_conditional {
                return Err("a `<<` after `[[`");
            }
            self.documents.push(Document {
                end: target.text.clone(),
                expands: !target.is_quoted,
                strips_tabs: operator == "<<-",
            });
            command.targets.push(target);
            return Ok(());
        }
        let is_descriptor = target.text == "-" || target.text.bytes().all(|b| b.is_ascii_digit());
        let is_harmless = !target.expands
            && match operator {
                ">&" | "<&" => is_descriptor && !target.text.is_empty(),
                ">" | ">>" | "&>" | "&>>" => target.text == "/dev/null",
                _ => false,
            };
        command.uses_files |= !is_harmless;
        command.targets.push(target);
        Ok(())
    }

    /// Reads the here-documents after a newline.
    fn read_documents(&mut self) -> Scan<()> {
        for document in std::mem::take(&mut self.documents) {
            let mut text = String::new();
            while self.at < self.chars.len() {
                let rest = &self.chars[self.at..];
                let length = rest.iter().position(|c| *c == '\n').unwrap_or(rest.len());
                let line: String = rest[..length].iter().collect();
                self.at = (self.at + length + 1).min(self.chars.len());
                let line = if document.strips_tabs {
                    line.trim_start_matches('\t')
                } else {
                    &line
                };
                if line == document.end {
                    break;
                }
                // In a substitution, bash takes `E)` for the end as well.
                if self.depth > 0 && line.starts_with(&document.end) {
                    return Err("a here-document in a substitution");
                }
                if document.expands && line.ends_with('\\') {
                    return Err("a continued line of a here-document");
                }
                text.push_str(line);
                text.push('\n');
            }
            if document.expands {
                let mut inner = self.inner(&text)?;
                let mut word = Word::default();
                inner.double(&mut word, None)?;
                self.out.append(&mut inner.out);
                if word.expands {
                    self.out.push(Command {
                        source: format!("<<{}", document.end),
                        targets: vec![word],
                        ..Command::default()
                    });
                }
            }
        }
        Ok(())
    }
}
