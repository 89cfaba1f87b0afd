//! Generated TOML files, with the table in every form.

use crate::edit::dice::Dice;

struct Writer<'a> {
    dice: &'a mut Dice,
    text: String,
    newlines: &'static [&'static str],
    keys: usize,
}

/// Returns a file, with the table in some form or without it.
pub(crate) fn file(dice: &mut Dice) -> String {
    let newlines: &[&str] = match dice.below(4) {
        0 | 1 => &["\n"],
        2 => &["\r\n"],
        _ => &["\n", "\r\n"],
    };
    let mut writer = Writer {
        text: String::new(),
        newlines,
        keys: 0,
        dice,
    };
    if writer.dice.once_in(5) {
        writer.text.push('\u{feff}');
    }
    writer.file();
    if writer.dice.once_in(3) {
        // No line break at the end.
        let end = writer.text.trim_end_matches(['\n', '\r']).len();
        writer.text.truncate(end);
    }
    writer.text
}

impl Writer<'_> {
    fn file(&mut self) {
        self.trivia();
        let form = self.dice.below(8);
        let root = self.dice.below(3);
        for i in 0..=root {
            if i == root.min(1) {
                match form {
                    1 => self.inline_table(),
                    2 | 3 => self.dotted_entries(&format!("{}.", self.top())),
                    _ => {}
                }
            }
            if i < root {
                self.pair();
            }
        }
        let sections = self.dice.below(4);
        let at = self.dice.below(sections + 1);
        for i in 0..=sections {
            if i == at {
                match form {
                    // More tables of a table that is defined by dotted keys.
                    3 => self.entry_section("uz"),
                    4 => self.key_section(),
                    5 => {
                        for name in ["ua", "ub", "uc"].into_iter().take(1 + self.dice.below(3)) {
                            self.entry_section(name);
                        }
                    }
                    6 => {
                        self.entry_section("ua");
                        self.other_section();
                        self.key_section();
                        self.entry_section("ub");
                    }
                    _ => {}
                }
            }
            if i < sections {
                self.other_section();
            }
        }
    }

    fn newline(&mut self) {
        let newline = self.dice.pick(self.newlines);
        self.text.push_str(newline);
    }

    fn blank(&mut self) {
        let blank = ["", " ", "", "\t", "  "][self.dice.below(5)];
        self.text.push_str(blank);
    }

    /// Writes the end of a line that is not empty.
    fn line_end(&mut self) {
        self.blank();
        if self.dice.once_in(5) {
            let comment = self
                .dice
                .pick(&["# mine", "#", "# [mcp_servers.docs]", "# é 🦀 \" '"]);
            self.text.push_str(comment);
        }
        self.newline();
        self.trivia();
    }

    /// Writes empty lines and comments.
    fn trivia(&mut self) {
        for _ in 0..self.dice.below(6).saturating_sub(3) {
            self.blank();
            if self.dice.below(2) == 1 {
                let comment = self.dice.pick(&["# mine", "# a = \"\"\"", "#[x]"]);
                self.text.push_str(comment);
            }
            self.newline();
        }
    }

    /// Returns the table's key, in one of its forms.
    fn top(&self) -> &'static str {
        [
            "mcp_servers",
            "\"mcp_servers\"",
            "'mcp_servers'",
            "\"mcp\\u005Fservers\"",
        ][self.keys % 4]
    }

    fn new_key(&mut self) -> String {
        self.keys += 1;
        let keys = self.keys;
        match self.dice.below(6) {
            0 | 1 => format!("k{keys}"),
            2 => format!("\"k.# é{keys}\""),
            3 => format!("'k[\"{keys}'"),
            4 => format!("d{keys} . mcp_servers.\"x\""),
            _ => format!("{keys}"),
        }
    }

    fn pair(&mut self) {
        let key = self.new_key();
        self.blank();
        self.text.push_str(&key);
        self.equals();
        self.value(0);
        self.line_end();
    }

    fn equals(&mut self) {
        self.blank();
        self.text.push('=');
        self.blank();
    }

    fn value(&mut self, depth: usize) {
        match self.dice.below(if depth > 2 { 8 } else { 11 }) {
            0..=2 => {
                let marker = self.dice.marker();
                self.text.push_str(&marker);
            }
            3 => self
                .text
                .push_str(["\"\"", "\"a # b\"", "\"\\\"] é\\\\\"", "\"}\""][self.dice.below(4)]),
            4 => self
                .text
                .push_str(["''", "'a # \\'", "'\"\"\"'", "'[x]'"][self.dice.below(4)]),
            5 => {
                let texts = [
                    "\"\"\"\n[mcp_servers.docs]\ncommand = 1\n\"\"\"",
                    "\"\"\"a \\\"\"\" \"\" # ]\r\n\"\"\"\"\"",
                    "\"\"\" \\\n   x\"\"\"",
                ];
                self.text.push_str(texts[self.dice.below(3)]);
            }
            6 => self.text.push_str(
                ["''''''", "'''\n\\''a\n'''''", "'''\r\n# b = 1\r\n'''"][self.dice.below(3)],
            ),
            7 => {
                let others = [
                    "true",
                    "-1.5e+3",
                    "inf",
                    "nan",
                    "1979-05-27 07:32:00Z",
                    "07:32:00",
                    "0xDEAD_beef",
                    "1_000",
                ];
                self.text.push_str(others[self.dice.below(8)]);
            }
            8 | 9 => {
                self.text.push('[');
                let count = self.dice.below(4);
                for i in 0..count {
                    self.array_trivia();
                    self.value(depth + 1);
                    self.array_trivia();
                    if i + 1 < count || self.dice.below(2) == 1 {
                        self.text.push(',');
                    }
                }
                self.array_trivia();
                self.text.push(']');
            }
            _ => {
                let count = self.dice.below(3);
                self.braces(count, &mut |this, i| {
                    this.text.push_str(["a", "\"b c\"", "c.d"][i]);
                    this.equals();
                    this.value(depth + 1);
                });
            }
        }
    }

    fn array_trivia(&mut self) {
        match self.dice.below(6) {
            0..=2 => {}
            3 => self.text.push(' '),
            4 => self.newline(),
            _ => {
                self.text.push_str(" # ] } \"");
                self.newline();
            }
        }
    }

    fn braces(&mut self, count: usize, item: &mut dyn FnMut(&mut Self, usize)) {
        self.text.push('{');
        self.blank();
        for i in 0..count {
            item(self, i);
            self.blank();
            if i + 1 < count {
                self.text.push(',');
                self.blank();
            }
        }
        self.text.push('}');
    }

    /// Writes `mcp_servers = { … }`.
    fn inline_table(&mut self) {
        let (top, count) = (self.top(), self.dice.below(4));
        self.blank();
        self.text.push_str(top);
        self.equals();
        self.braces(count, &mut |this, i| {
            this.text.push_str(["ua", "\"ub\"", "'u c'.d"][i]);
            this.equals();
            let inner = 1 + this.dice.below(2);
            this.braces(inner, &mut |this, i| {
                this.text.push_str(["command", "env"][i]);
                this.equals();
                this.value(1);
            });
        });
        self.line_end();
    }

    /// Writes `a.command = …`, possibly with other keys in between.
    fn dotted_entries(&mut self, before: &str) {
        for i in 0..=self.dice.below(3) {
            self.blank();
            let key = ["u1.command", "u1 . env.A", "\"u 2\".url", "u3"][i];
            self.text.extend([before, key]);
            self.equals();
            if key == "u3" {
                self.braces(1, &mut |this, _| {
                    this.text.push_str("x = 1");
                });
            } else {
                self.value(1);
            }
            self.line_end();
            if self.dice.once_in(4) {
                self.pair();
            }
        }
    }

    fn header(&mut self, path: &str, braces: (&str, &str)) {
        self.blank();
        self.text.push_str(braces.0);
        self.blank();
        self.text.push_str(path);
        self.blank();
        self.text.push_str(braces.1);
        self.line_end();
    }

    /// Writes `[mcp_servers]`, with or without entries.
    fn key_section(&mut self) {
        let top = self.top();
        self.header(top, ("[", "]"));
        match self.dice.below(3) {
            0 => {}
            1 => self.dotted_entries(""),
            _ => {
                self.blank();
                self.text.push_str("u9");
                self.equals();
                self.braces(1, &mut |this, _| {
                    this.text.push_str("command");
                    this.equals();
                    this.value(1);
                });
                self.line_end();
            }
        }
    }

    /// Writes `[mcp_servers.name]`, possibly with tables inside.
    fn entry_section(&mut self, name: &str) {
        let path = format!("{}.{name}", self.top());
        self.header(&path, ("[", "]"));
        for _ in 0..self.dice.below(3) {
            self.pair();
        }
        if self.dice.once_in(3) {
            self.header(&format!("mcp_servers . {name}.env"), ("[", "]"));
            self.pair();
        }
        if self.dice.once_in(5) {
            self.header(&format!("mcp_servers.{name}.list"), ("[[", "]]"));
        }
    }

    fn other_section(&mut self) {
        self.keys += 1;
        let keys = self.keys;
        let list = self.dice.once_in(3);
        let path = ["t", "t.mcp_servers", "\"t # ]\"", "projects.\"/a.b\""][self.dice.below(4)];
        let path = format!("s{keys}.{path}");
        for _ in 0..=usize::from(list) {
            self.header(&path, if list { ("[[", "]]") } else { ("[", "]") });
            for _ in 0..self.dice.below(3) {
                self.pair();
            }
        }
        if self.dice.once_in(4) {
            self.header(&format!("{path}.docs"), ("[", "]"));
        }
    }
}
