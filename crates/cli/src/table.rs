//! Tables for a terminal.

use std::io::{self, Write};

use anstyle::Style;

use crate::words;

/// The number of spaces between columns.
const GAP: usize = 2;

/// A table whose columns are as wide as their widest cell.
#[derive(Clone)]
pub(crate) struct Table {
    rows: Vec<Vec<(String, Style)>>,
    figures: usize,
    without_empty: bool,
    left_out: Vec<usize>,
}

impl Table {
    /// Creates a table with these column names.
    pub(crate) fn new<'a>(head: impl IntoIterator<Item = &'a str>) -> Self {
        let dim = Style::new().dimmed();
        let head = head.into_iter().map(|name| (name.to_owned(), dim));
        Self {
            rows: vec![head.collect()],
            figures: usize::MAX,
            without_empty: false,
            left_out: Vec::new(),
        }
    }

    /// Right-aligns this column and all after it.
    pub(crate) fn figures_from(mut self, column: usize) -> Self {
        self.figures = column;
        self
    }

    /// Hides columns whose cells are all empty.
    pub(crate) fn without_empty(mut self) -> Self {
        self.without_empty = true;
        self
    }

    /// Adds a row. It MUST have as many cells as the head.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Style)>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Adds a row of cells without a style.
    pub(crate) fn texts(&mut self, cells: impl IntoIterator<Item = String>) {
        self.row(cells.into_iter().map(|cell| (cell, Style::new())));
    }

    /// Hides a column.
    pub(crate) fn without(&mut self, column: usize) {
        for (cell, _) in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
            cell.clear();
        }
        self.left_out.push(column);
    }

    /// Truncates the cells of a column to this width at their beginning, marked with `…`. For paths, whose beginning
    /// matters least.
    pub(crate) fn cut_beginnings(&mut self, column: usize, width: usize) {
        self.change(column, |cell| {
            words::cut_beginning(cell, width).into_owned()
        });
    }

    /// Truncates the cells of a column to this width at their end, marked with `…`.
    pub(crate) fn cut(&mut self, column: usize, width: usize) {
        self.change(column, |cell| words::cut(cell, width).into_owned());
    }

    fn change(&mut self, column: usize, change: impl Fn(&str) -> String) {
        // Skip the head.
        let rows = self.rows.iter_mut().skip(1);
        for (cell, _) in rows.filter_map(|row| row.get_mut(column)) {
            *cell = change(cell);
        }
    }

    pub(crate) fn width_of(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widths = cells.map(|(cell, _)| console::measure_text_width(cell));
        widths.max().unwrap_or(0)
    }

    /// Returns `true` if a column is hidden.
    pub(crate) fn hides(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().skip(1).filter_map(|row| row.get(column));
        self.left_out.contains(&column)
            || (self.without_empty && cells.all(|(cell, _)| cell.is_empty()))
    }

    /// Returns the width of the table without hidden columns.
    pub(crate) fn width(&self) -> usize {
        let shown = self.shown();
        let cells: usize = shown.iter().map(|column| self.width_of(*column)).sum();
        cells + GAP * shown.len().saturating_sub(1)
    }

    /// Returns the visible columns.
    fn shown(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        (0..columns).filter(|column| !self.hides(*column)).collect()
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let wide = |(cell, _): &(String, Style)| console::measure_text_width(cell);
        let shown = self.shown();
        let widths: Vec<usize> = shown.iter().map(|column| self.width_of(*column)).collect();
        for row in &self.rows {
            // Spaces before the next non-empty cell, so that lines have no trailing spaces.
            let mut blanks = 0;
            for (column, width) in shown.iter().zip(&widths) {
                let Some(cell) = row.get(*column) else {
                    break;
                };
                let fill = width - wide(cell);
                let (before, after) = if *column < self.figures {
                    (0, fill)
                } else {
                    (fill, 0)
                };
                blanks += before;
                let (text, style) = cell;
                if text.is_empty() {
                    blanks += after + GAP;
                    continue;
                }
                let blank = " ".repeat(blanks);
                write!(out, "{blank}{style}{text}{style:#}")?;
                blanks = after + GAP;
            }
            writeln!(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(table: &Table) -> String {
        let mut out = Vec::new();
        table.write(&mut out).unwrap();
        anstream::adapter::strip_str(&String::from_utf8(out).unwrap()).to_string()
    }

    fn cells<const N: usize>(cells: [&str; N]) -> [(String, Style); N] {
        cells.map(|cell| (cell.to_owned(), Style::new().bold()))
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_nothing_trails() {
        let mut table = Table::new(["NAME", "STATE", ""]);
        table.row(cells(["a", "sleeping", ""]));
        table.row(cells(["日本語", "", "late"]));
        assert_eq!(
            plain(&table),
            "NAME    STATE\na       sleeping\n日本語            late\n"
        );
    }

    #[test]
    fn a_column_may_be_wider_than_a_format_allows() {
        let mut table = Table::new(["NAME", "STATE"]);
        table.row(cells(["", "late"]));
        table.row(cells([&"x".repeat(70_000), "late"]));
        let shown = plain(&table);
        let line = shown.lines().nth(1).unwrap();
        assert_eq!(line, format!("{}late", " ".repeat(70_002)));
    }

    #[test]
    fn figures_stand_on_the_right_and_empty_columns_are_left_out() {
        let mut table = Table::new(["DAY", "INPUT", "CACHE", "COST"])
            .figures_from(1)
            .without_empty();
        table.row(cells(["2026-11-21", "7", "", "~$0.5"]));
        table.row(cells(["total", "1200", "", ""]));
        assert_eq!(
            plain(&table),
            "DAY         INPUT   COST\n2026-11-21      7  ~$0.5\ntotal        1200\n"
        );
    }
}
