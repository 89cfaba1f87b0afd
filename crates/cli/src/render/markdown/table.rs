//! Tables, which are shown once their last row is known.

use anstyle::Style;
use console::measure_text_width;

use super::inline::{self, Span};
use super::paper::Piece;

/// Maximum number of columns: each row has a cell in each.
const MOST_COLUMNS: usize = 100;
/// The columns of a cell that is still readable.
const NARROWEST: usize = 6;
const BETWEEN: &str = " │ ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Align {
    Left,
    Right,
    Center,
}

/// Lays out rows of a table as lines of at most `width` columns. Returns `None` if they are no table, or if it is too wide.
pub(super) fn lay_out(rows: &[String], width: usize) -> Option<Vec<Vec<Piece>>> {
    let [head, delimiters, body @ ..] = rows else {
        return None;
    };
    let mut align: Vec<_> =
        (cells(delimiters).iter().map(|cell| alignment(cell))).collect::<Option<_>>()?;
    let head = cells(head);
    if head.len() != align.len() {
        return None;
    }
    // Cells beyond the columns are shown, too.
    let most = body.iter().map(|row| cells(row).len()).max().unwrap_or(0);
    let columns = most.max(align.len());
    if columns > MOST_COLUMNS || columns.saturating_sub(1) * measure_text_width(BETWEEN) >= width {
        return None;
    }
    align.resize(columns, Align::Left);
    let bold = Style::new().bold();
    let of_row = |row: &[String], style| -> Vec<Vec<Word>> {
        let cell = |i: usize| {
            row.get(i)
                .map_or_else(Vec::new, |cell| words_of(cell, style))
        };
        (0..align.len()).map(cell).collect()
    };
    let mut table = vec![of_row(&head, bold)];
    table.extend(body.iter().map(|row| of_row(&cells(row), Style::new())));
    let widths = widths(&table, align.len(), width)?;
    let mut lines = Vec::new();
    for (i, row) in table.iter().enumerate() {
        let wrapped: Vec<_> = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| wrap(cell, *width))
            .collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or(1).max(1);
        for line in 0..height {
            lines.push(line_of(&wrapped, line, &widths, &align));
        }
        if i == 0 {
            let rules: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(vec![(Style::new().dimmed(), rules.join("─┼─"))]);
        }
    }
    Some(lines)
}

/// A word of a cell with its columns.
#[derive(Debug, Clone)]
struct Word {
    pieces: Vec<Piece>,
    width: usize,
}

/// Splits a row into its cells.
fn cells(row: &str) -> Vec<String> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    let (mut cells, mut cell, mut escaped) = (Vec::new(), String::new(), false);
    for c in row.chars() {
        match c {
            '|' if escaped => {
                cell.pop();
                cell.push('|');
            }
            '|' => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            c => cell.push(c),
        }
        escaped = c == '\\' && !escaped;
    }
    if !cell.trim().is_empty() {
        cells.push(cell.trim().to_owned());
    }
    cells
}

fn alignment(cell: &str) -> Option<Align> {
    let left = cell.starts_with(':');
    let right = cell.len() > 1 && cell.ends_with(':');
    let rule = cell.strip_prefix(':').unwrap_or(cell);
    let rule = rule.strip_suffix(':').unwrap_or(rule);
    let is_rule = !rule.is_empty() && rule.bytes().all(|byte| byte == b'-');
    is_rule.then_some(match (left, right) {
        (true, true) => Align::Center,
        (false, true) => Align::Right,
        _ => Align::Left,
    })
}

fn words_of(cell: &str, style: Style) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut is_new = true;
    inline::spans(cell, true, None, style, &mut |span| {
        let (Span::Text(style, text) | Span::Code(style, text)) = span else {
            return;
        };
        for (i, part) in text.split([' ', '\t']).enumerate() {
            is_new |= i > 0;
            if part.is_empty() {
                continue;
            }
            if std::mem::take(&mut is_new) {
                words.push(Word {
                    pieces: Vec::new(),
                    width: 0,
                });
            }
            if let Some(word) = words.last_mut() {
                word.pieces.push((style, part.to_owned()));
                word.width += measure_text_width(part);
            }
        }
    });
    words
}

/// Returns the widths of the columns: those of the text, or less where that does not fit.
fn widths(table: &[Vec<Vec<Word>>], columns: usize, width: usize) -> Option<Vec<usize>> {
    let text = |cell: &[Word]| {
        let words: usize = cell.iter().map(|word| word.width).sum();
        words + cell.len().saturating_sub(1)
    };
    let widest = |i: usize| {
        table
            .iter()
            .map(|row| text(&row[i]))
            .max()
            .unwrap_or(0)
            .max(1)
    };
    let mut widths: Vec<_> = (0..columns).map(widest).collect();
    let room = width.saturating_sub(columns.saturating_sub(1) * measure_text_width(BETWEEN));
    // The columns that need less than an equal share keep their width, and the others share the rest.
    let mut total: usize = widths.iter().sum();
    while total > room {
        let longest = widths.iter().copied().max()?;
        let count = widths.iter().filter(|width| **width == longest).count();
        let next = widths
            .iter()
            .copied()
            .filter(|width| *width < longest)
            .max();
        let over = (total - room).div_ceil(count);
        let less = next.map_or(over, |next| over.min(longest - next)).max(1);
        let shrunk = longest
            .checked_sub(less)
            .filter(|width| *width >= NARROWEST)?;
        for width in widths.iter_mut().filter(|width| **width == longest) {
            *width = shrunk;
        }
        total = widths.iter().sum();
    }
    Some(widths)
}

/// Wraps the words of a cell to lines. A word that is longer is split.
fn wrap(cell: &[Word], width: usize) -> Vec<Word> {
    let mut lines: Vec<Word> = Vec::new();
    let new = || Word {
        pieces: Vec::new(),
        width: 0,
    };
    for word in cell {
        let fits = lines
            .last()
            .is_some_and(|line| line.width + 1 + word.width <= width);
        if fits && let Some(line) = lines.last_mut() {
            line.pieces.push((Style::new(), " ".to_owned()));
            line.pieces.extend(word.pieces.iter().cloned());
            line.width += 1 + word.width;
            continue;
        }
        lines.push(new());
        for (style, text) in &word.pieces {
            for c in text.chars() {
                let wide = measure_text_width(c.encode_utf8(&mut [0; 4]));
                if lines
                    .last()
                    .is_some_and(|line| line.width > 0 && line.width + wide > width)
                {
                    lines.push(new());
                }
                let Some(line) = lines.last_mut() else {
                    continue;
                };
                match line.pieces.last_mut() {
                    Some((last, text)) if last == style => text.push(c),
                    _ => line.pieces.push((*style, c.to_string())),
                }
                line.width += wide;
            }
        }
    }
    lines
}

fn line_of(row: &[Vec<Word>], number: usize, widths: &[usize], align: &[Align]) -> Vec<Piece> {
    let mut line = Vec::new();
    let blank = |count: usize| (Style::new(), " ".repeat(count));
    for (i, ((cell, width), align)) in row.iter().zip(widths).zip(align).enumerate() {
        let text = cell.get(number);
        if i > 0 {
            let is_end = i + 1 == widths.len() && text.is_none();
            let between = if is_end { BETWEEN.trim_end() } else { BETWEEN };
            line.push((Style::new().dimmed(), between.to_owned()));
        }
        let free = width.saturating_sub(text.map_or(0, |text| text.width));
        let left = match align {
            Align::Left => 0,
            Align::Right => free,
            Align::Center => free / 2,
        };
        line.push(blank(left));
        line.extend(
            text.into_iter()
                .flat_map(|text| text.pieces.iter().cloned()),
        );
        // Nothing follows the last cell.
        if i + 1 < widths.len() {
            line.push(blank(free - left));
        }
    }
    line
}
