//! Words, and the expansions in them.

use super::{DEEPEST, Scan, Scanner, TOO_DEEP, Word, is_name};

impl Scanner {
    pub(super) fn inner(&self, text: &str) -> Scan<Self> {
        if self.depth == DEEPEST {
            return Err(TOO_DEEP);
        }
        Self::new(text, self.depth + 1)
    }

    pub(super) fn word(&mut self) -> Scan<Word> {
        let mut word = Word::default();
        let mut braces = None;
        let mut has_index = false;
        while let Some(next) = self.peek() {
            match next {
                '<' | '>' if self.after(1) == Some('(') => {
                    let start = self.at;
                    self.at += 2;
                    self.substitution()?;
                    self.expansion(&mut word, start);
                }
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                '\\' => {
                    match self.after(1) {
                        Some('\n') => {}
                        Some(c) => {
                            word.is_quoted = true;
                            word.push(c);
                        }
                        None => return Err("a `\\` at the end"),
                    }
                    self.at += 2;
                }
                '\'' => {
                    self.at += 1;
                    word.is_quoted = true;
                    loop {
                        let c = self.peek().ok_or("a `'` is missing")?;
                        self.at += 1;
                        if c == '\'' {
                            break;
                        }
                        word.push(c);
                    }
                }
                '"' => {
                    self.at += 1;
                    word.is_quoted = true;
                    self.double(&mut word, Some('"'))?;
                }
                '`' => self.backquotes(&mut word, false)?,
                '$' => self.dollar(&mut word, false)?,
                c => {
                    if c == '{' {
                        braces.get_or_insert(word.text.len());
                    }
                    if matches!(c, '*' | '?' | '[' | '{') || (c == '~' && word.text.is_empty()) {
                        word.varies(false);
                    }
                    has_index |= c == '[' && !word.is_quoted && is_name(&word.text);
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
        if matches!(word.text.as_str(), "[" | "[[" | "{" | "{}") {
            word.varies_at = None;
        }
        // `{a,b}` and `{1..3}` become several words.
        word.expands |= braces.is_some_and(|at| {
            let inside = &word.text[at..];
            inside.contains('}') && (inside.contains(',') || inside.contains(".."))
        });
        // Bash reads on to the `]` that closes it, across any characters.
        let count = |bracket| word.text.matches(bracket).count();
        if has_index && (word.is_quoted || word.expands || count('[') != count(']')) {
            return Err("an index without its end");
        }
        Ok(word)
    }

    /// Adds an expansion that began at `start`, as it is written.
    fn expansion(&self, word: &mut Word, start: usize) {
        word.varies(true);
        word.text.extend(&self.chars[start..self.at]);
    }

    /// Adds an expansion that may run code that a variable holds, unless it is only about numbers.
    pub(super) fn evaluation(&self, word: &mut Word, start: usize) {
        let text = &self.chars[start..self.at];
        word.evaluates |= text
            .iter()
            .skip(1)
            .any(|c| c.is_alphabetic() || "_$".contains(*c));
        self.expansion(word, start);
    }

    /// Reads to the end of double quotes, or of a here-document.
    pub(super) fn double(&mut self, word: &mut Word, end: Option<char>) -> Scan<()> {
        loop {
            let Some(next) = self.peek() else {
                return match end {
                    Some(_) => Err("a `\"` is missing"),
                    None => Ok(()),
                };
            };
            match next {
                c if Some(c) == end => {
                    self.at += 1;
                    return Ok(());
                }
                '\\' => {
                    match self.after(1) {
                        Some('\n') => {}
                        Some(c @ ('$' | '`' | '\\' | '"')) => word.push(c),
                        Some(c) => word.text.extend(['\\', c]),
                        None => word.text.push('\\'),
                    }
                    self.at += 2;
                }
                '`' => self.backquotes(word, true)?,
                '$' => self.dollar(word, true)?,
                c => {
                    word.text.push(c);
                    self.at += 1;
                }
            }
        }
    }

    fn dollar(&mut self, word: &mut Word, in_double: bool) -> Scan<()> {
        self.deeper()?;
        let start = self.at;
        let mut is_evaluation = false;
        match self.after(1) {
            Some('(') if self.after(2) == Some('(') => {
                self.at += 1;
                self.arithmetic()?;
                is_evaluation = true;
            }
            Some('(') => {
                self.at += 2;
                self.substitution()?;
            }
            Some('{') => {
                self.at += 2;
                self.parameter()?;
                let name: String = self.chars[start + 2..self.at - 1].iter().collect();
                is_evaluation = !is_name(&name);
            }
            Some('[') => return Err("`$[`"),
            Some('\'') if !in_double => {
                self.at += 2;
                word.is_quoted = true;
                loop {
                    match self.peek().ok_or("a `'` is missing")? {
                        '\\' => {
                            // It may be the code of any character.
                            let code = self.after(1);
                            word.holds_code |=
                                code.is_some_and(|c| c.is_ascii_digit() || "xuUc".contains(c));
                            self.at += 2;
                        }
                        '\'' => break self.at += 1,
                        c => {
                            word.holds_code |= matches!(c, '$' | '`');
                            self.at += 1;
                        }
                    }
                }
            }
            Some('"') if !in_double => {
                self.at += 2;
                word.is_quoted = true;
                word.varies(true);
                self.depth -= 1;
                return self.double(word, Some('"'));
            }
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                self.at += 1;
                while (self.peek()).is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                    self.at += 1;
                }
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => self.at += 2,
            _ => {
                self.at += 1;
                word.push('$');
                self.depth -= 1;
                return Ok(());
            }
        }
        self.depth -= 1;
        if is_evaluation {
            self.evaluation(word, start);
        } else {
            self.expansion(word, start);
        }
        Ok(())
    }

    /// Begins an expansion within another one.
    fn deeper(&mut self) -> Scan<()> {
        if self.depth == DEEPEST {
            return Err(TOO_DEEP);
        }
        self.depth += 1;
        Ok(())
    }

    /// Reads from after `$(`, `<(` or `>(` to its end.
    fn substitution(&mut self) -> Scan<()> {
        self.deeper()?;
        let (start, outer) = (self.at, std::mem::take(&mut self.documents));
        self.list(true)?;
        let has_newline = self.chars[start..self.at].contains(&'\n');
        if !self.documents.is_empty() || (has_newline && !outer.is_empty()) {
            return Err("a here-document around a substitution");
        }
        self.documents = outer;
        self.depth -= 1;
        Ok(())
    }

    /// Reads from after `${` to its end.
    fn parameter(&mut self) -> Scan<()> {
        if matches!(self.peek(), Some(' ' | '\t' | '\n' | '|')) {
            return Err("a command in `${`");
        }
        loop {
            match self.peek().ok_or("a `}` is missing")? {
                '}' => {
                    self.at += 1;
                    return Ok(());
                }
                // What they quote depends on the operator and on what is around it.
                '\'' | '"' => return Err("a quote in `${`"),
                '\\' if self.after(1) == Some('\n') => {
                    return Err("a line continued within `${`");
                }
                '<' | '>' if self.after(1) == Some('(') => {
                    self.at += 2;
                    self.substitution()?;
                }
                _ => self.inside()?,
            }
        }
    }

    /// Reads from `((` to its end.
    pub(super) fn arithmetic(&mut self) -> Scan<()> {
        self.at += 2;
        let mut open = 0_usize;
        loop {
            match self.peek().ok_or("a `))` is missing")? {
                '(' => {
                    open += 1;
                    self.at += 1;
                }
                ')' if open > 0 => {
                    open -= 1;
                    self.at += 1;
                }
                ')' if self.after(1) == Some(')') => {
                    self.at += 2;
                    return Ok(());
                }
                ')' => return Err("a `((` without `))`"),
                '\'' | '"' => return Err("a quote in `((`"),
                _ => self.inside()?,
            }
        }
    }

    /// Reads one character or expansion within another expansion.
    fn inside(&mut self) -> Scan<()> {
        match self.peek() {
            Some('`') => self.backquotes(&mut Word::default(), true),
            Some('$') => self.dollar(&mut Word::default(), true),
            Some('\\') => {
                self.at += 2;
                Ok(())
            }
            _ => {
                self.at += 1;
                Ok(())
            }
        }
    }

    fn backquotes(&mut self, word: &mut Word, in_double: bool) -> Scan<()> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.peek().ok_or("a `` ` `` is missing")? {
                '`' => break self.at += 1,
                '\\' => {
                    match self.after(1).ok_or("a `` ` `` is missing")? {
                        c @ ('$' | '`' | '\\') => text.push(c),
                        // Whether it is kept depends on what is around it.
                        '"' if in_double => return Err("a `\\\"` in backquotes"),
                        c => text.extend(['\\', c]),
                    }
                    self.at += 2;
                }
                c => {
                    text.push(c);
                    self.at += 1;
                }
            }
        }
        let mut inner = self.inner(&text)?;
        inner.list(false)?;
        if !inner.documents.is_empty() {
            return Err("a here-document without text");
        }
        self.out.append(&mut inner.out);
        self.expansion(word, start);
        Ok(())
    }
}
