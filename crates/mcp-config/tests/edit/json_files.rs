//! Generated JSON files, well-formatted and unformatted ones.

use crate::edit::dice::Dice;
use crate::edit::support::JSON_KEY;

struct Writer<'a> {
    dice: &'a mut Dice,
    text: String,
    newlines: &'static [&'static str],
    /// Indentation of the file, if it is formatted.
    unit: Option<&'static str>,
    trailing: bool,
}

/// Returns a file, with the table in some form or without it.
pub(crate) fn file(dice: &mut Dice) -> String {
    let newlines: &[&str] = match dice.below(4) {
        0 | 1 => &["\n"],
        2 => &["\r\n"],
        _ => &["\n", "\r\n"],
    };
    let unit = [
        Some("  "),
        Some("    "),
        Some("\t"),
        Some("   "),
        Some(""),
        None,
        None,
    ][dice.below(7)];
    let trailing = dice.once_in(3);
    let mut writer = Writer {
        text: String::new(),
        newlines,
        unit,
        trailing,
        dice,
    };
    if writer.dice.once_in(5) {
        writer.text.push('\u{feff}');
    }
    let empty = writer.dice.once_in(6);
    if writer.unit.is_none() || empty || writer.dice.once_in(4) {
        writer.wild();
    }
    if empty {
        return writer.text;
    }
    writer.root();
    match writer.dice.below(4) {
        0 => writer.newline(),
        1 => {}
        _ => writer.wild(),
    }
    writer.text
}

impl Writer<'_> {
    fn newline(&mut self) {
        let newline = self.dice.pick(self.newlines);
        self.text.push_str(newline);
    }

    fn comment(&mut self, line: bool) {
        if line {
            let text = self.dice.pick(&[
                "// mine",
                "// \"mcpServers\": {",
                "//",
                "// é /* 🦀",
                "// end  ",
            ]);
            self.text.push_str(text);
            self.newline();
        } else {
            let text = self.dice.pick(&[
                "/* mine */",
                "/**/",
                "/* a\n, } */",
                "/* // */",
                "/*\u{2028}*/",
                "/* \" */",
            ]);
            self.text.push_str(text);
        }
    }

    /// Writes anything that is allowed between the parts of a file.
    fn wild(&mut self) {
        for _ in 0..self.dice.below(4) {
            match self.dice.below(8) {
                0 => self.newline(),
                1 | 2 => self.text.push(' '),
                3 => self.text.push('\t'),
                4 => self.comment(true),
                5 => self.comment(false),
                6 => self.text.push_str("   "),
                _ => self.text.push('\r'),
            }
        }
    }

    /// Writes white space and comments before an item of a list.
    fn before(&mut self, depth: usize) {
        let Some(unit) = self.unit else {
            self.wild();
            return;
        };
        if self.dice.once_in(8) {
            self.text.push_str([" ", "  "][self.dice.below(2)]);
            let line = self.dice.below(2) == 0;
            self.comment(line);
        }
        if unit.is_empty() {
            return;
        }
        self.newline();
        if self.dice.once_in(8) {
            self.newline();
        }
        self.text.push_str(&unit.repeat(depth));
        if self.dice.once_in(8) {
            self.comment(true);
            self.text.push_str(&unit.repeat(depth));
        }
    }

    fn gap(&mut self) {
        match self.unit {
            None => self.wild(),
            Some(_) => self.text.push(' '),
        }
    }

    fn list(
        &mut self,
        braces: (char, char),
        count: usize,
        depth: usize,
        item: &mut dyn FnMut(&mut Self, usize),
    ) {
        self.text.push(braces.0);
        for i in 0..count {
            self.before(depth + 1);
            item(self, i);
            if self.unit.is_none() {
                self.wild();
            }
            if i + 1 < count || self.trailing {
                self.text.push(',');
            }
        }
        if count > 0 || self.dice.once_in(3) {
            self.before(depth);
        }
        self.text.push(braces.1);
    }

    fn key(&mut self, name: &str) {
        self.text.extend(["\"", name, "\""]);
        if self.unit.is_none() {
            self.wild();
        }
        self.text.push(':');
        self.gap();
    }

    fn root(&mut self) {
        let others = self.dice.below(4);
        let table = self.dice.below(2 + others); // anywhere, or not at all
        let count = others + usize::from(table <= others);
        self.list(('{', '}'), count, 0, &mut |this, i| {
            if i == table {
                let key = [JSON_KEY, JSON_KEY, "mcp\\u0053ervers"][this.dice.below(3)];
                this.key(key);
                let entries = this.dice.below(4);
                this.list(('{', '}'), entries, 1, &mut |this, i| {
                    this.key(&format!("u{i}"));
                    this.value(2, i);
                });
            } else {
                let name = this
                    .dice
                    .pick(&["theme", "mcp", "MCPServers", "a/*b", "//c", "é\\n"]);
                this.key(&format!("{name}{i}"));
                this.value(1, i);
            }
        });
    }

    fn value(&mut self, depth: usize, i: usize) {
        match self.dice.below(if depth > 3 { 5 } else { 8 }) {
            0 | 1 => {
                let marker = self.dice.marker();
                self.text.push_str(&marker);
            }
            2 => {
                let texts = [
                    "\"\"",
                    "\"a // b\"",
                    "\"/* , } \\\" \"",
                    "\"é 🦀 \\\\\"",
                    "\"\\u0041,]\"",
                ];
                self.text.push_str(texts[self.dice.below(5)]);
            }
            3 => self
                .text
                .push_str(["true", "false", "null"][self.dice.below(3)]),
            4 => self
                .text
                .push_str(["-0.5e+10", "1E2", "0", "123456789012345"][self.dice.below(4)]),
            5 => {
                let count = self.dice.below(3);
                self.list(('[', ']'), count, depth, &mut |this, i| {
                    this.value(depth + 1, i);
                });
            }
            _ => {
                let count = self.dice.below(3);
                // A nested table of the same name is a different one.
                let name = [JSON_KEY, "env", "x"][i % 3];
                self.list(('{', '}'), count, depth, &mut |this, i| {
                    this.key(&format!(
                        "{name}{}",
                        if i == 0 { String::new() } else { i.to_string() }
                    ));
                    this.value(depth + 1, i);
                });
            }
        }
    }
}
