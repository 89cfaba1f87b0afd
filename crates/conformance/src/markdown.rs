//! Tables in Markdown.

/// Appends the head of a table.
pub(crate) fn head(page: &mut String, cells: impl IntoIterator<Item = impl AsRef<str>>) {
    let mut count = 0;
    row(page, cells.into_iter().inspect(|_| count += 1));
    page.push('|');
    page.push_str(&"---|".repeat(count));
    page.push('\n');
}

/// Appends a row of a table.
pub(crate) fn row(page: &mut String, cells: impl IntoIterator<Item = impl AsRef<str>>) {
    for cell in cells {
        page.push_str("| ");
        page.push_str(cell.as_ref());
        if !cell.as_ref().is_empty() {
            page.push(' ');
        }
    }
    page.push_str("|\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_one_rule_per_column() {
        let mut page = String::new();
        head(&mut page, ["", "b"]);
        row(&mut page, ["a".to_owned(), String::new()]);
        assert_eq!(page, "| | b |\n|---|---|\n| a | |\n");
    }
}
