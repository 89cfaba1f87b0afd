//! TOML files.

mod scan;

use std::fmt::Write as _;

use serde_json::Value;
use toml_edit::{Document, Item, TableLike, Value as TomlValue};

use super::splice::{Comments, back_newline, cut, line, line_start, newline, newline_after};
use super::{EditError, Node};
use scan::{Expression, Kind, items, scan};

/// Parses the text.
pub(super) fn read(body: &str) -> Result<Node, EditError> {
    let document = Document::parse(body).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(body.len()));
        EditError(format!("line {}: {}", line(body, at), error.message()))
    })?;
    Ok(table_node(document.as_table()))
}

fn table_node(table: &dyn TableLike) -> Node {
    let mut entries: Vec<(String, Node)> = table
        .iter()
        .map(|(name, item)| (name.to_owned(), item_node(item)))
        .collect();
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    Node::Table(entries)
}

fn item_node(item: &Item) -> Node {
    match item {
        Item::None => Node::Other("none".to_owned()),
        Item::Value(value) => node(value),
        Item::Table(table) => table_node(table),
        Item::ArrayOfTables(tables) => {
            Node::List(tables.iter().map(|table| table_node(table)).collect())
        }
    }
}

fn node(value: &TomlValue) -> Node {
    match value {
        TomlValue::String(text) => Node::Text(text.value().clone()),
        TomlValue::Integer(number) => Node::Number(number.value().to_string()),
        // With a decimal point or an exponent, as in JSON.
        TomlValue::Float(number) => Node::Number(format!("{:?}", number.value())),
        TomlValue::Boolean(value) => Node::Other(value.value().to_string()),
        TomlValue::Datetime(value) => Node::Other(value.value().to_string()),
        TomlValue::Array(list) => Node::List(list.iter().map(node).collect()),
        TomlValue::InlineTable(table) => table_node(table),
    }
}

/// Returns the position of the table, or of an entry in it.
pub(super) fn offsets(body: &str, key: &str, name: Option<&str>) -> Vec<usize> {
    let mut offsets = Vec::new();
    for expression in scan(body).unwrap_or_default() {
        let mut path = expression.path.iter().map(String::as_str);
        if path.next() != Some(key) {
            continue;
        }
        let found = match (name, path.next(), &expression.kind) {
            (None, ..) => true,
            (Some(name), Some(other), _) => name == other,
            (Some(name), None, Kind::Pair(value)) => items(body, value.clone())
                .unwrap_or_default()
                .iter()
                .any(|item| item.path.first().is_some_and(|other| other == name)),
            _ => false,
        };
        if found {
            offsets.push(expression.start);
        }
    }
    offsets.truncate(1);
    offsets
}

/// Returns the text with these entries, and without those named in `taken`.
pub(super) fn merge(
    body: &str,
    key: &str,
    entries: &[(String, Value)],
    taken: &[&str],
) -> Result<String, EditError> {
    let mut text = without(body, key, taken)?;
    let expressions = scan(&text)?;
    let newline = newline(body);

    // An inline table cannot be extended outside of its braces.
    let is_key = |expression: &&Expression| expression.path == [key];
    if let Some(Expression {
        kind: Kind::Pair(value),
        ..
    }) = expressions.iter().find(is_key)
    {
        let empty = items(&text, value.clone())?.is_empty();
        let open = value.start + 1;
        let mut new = String::new();
        for (i, (name, object)) in entries.iter().enumerate() {
            if !empty || i > 0 {
                new.push(' ');
            }
            let _ = write!(new, "{} = ", quoted_key(name));
            write_value(object, name, &mut new)?;
            if !empty || i + 1 < entries.len() {
                new.push(',');
            }
        }
        text.insert_str(open, &new);
        return Ok(text);
    }

    // A table that is defined by dotted keys can only be extended by such keys.
    let dotted = |expression: &&Expression| {
        expression.header == 0 && expression.path.len() > 1 && expression.path[0] == key
    };
    if let Some(last) = expressions.iter().rfind(dotted) {
        let end = line_end(&text, last.end);
        let open_end = back_newline(&text, end).is_none();
        let mut new = String::new();
        for (i, (name, object)) in entries.iter().enumerate() {
            if open_end {
                new.push_str(newline_after(if i == 0 { &text } else { "" }, newline));
            }
            let _ = write!(new, "{}.{} = ", quoted_key(key), quoted_key(name));
            write_value(object, name, &mut new)?;
            if !open_end {
                new.push_str(newline);
            }
        }
        text.insert_str(end, &new);
        return Ok(text);
    }

    // Tables with a header can be anywhere. At the end, no later key becomes a part of them.
    let mut open_end = false;
    if !text.is_empty() && !text.ends_with('\n') {
        open_end = true;
        text.push_str(newline_after(&text, newline));
    }
    for (name, object) in entries {
        if !text.is_empty() {
            text.push_str(newline);
        }
        let _ = write!(text, "[{}.{}]{newline}", quoted_key(key), quoted_key(name));
        for (inner, value) in object.as_object().into_iter().flatten() {
            let _ = write!(text, "{} = ", quoted_key(inner));
            write_value(value, &format!("{name}.{inner}"), &mut text)?;
            text.push_str(newline);
        }
    }
    if open_end {
        // No line break at the end, as a sign that the text had none.
        text.truncate(text.len() - newline.len());
    }
    Ok(text)
}

/// Returns the text without these entries and, with `table_too`, without a table that is then empty.
pub(super) fn remove(
    body: &str,
    key: &str,
    gone: &[&str],
    table_too: bool,
) -> Result<String, EditError> {
    let text = without(body, key, gone)?;
    if !table_too {
        return Ok(text);
    }
    let expressions = scan(&text)?;
    let mut found = expressions
        .iter()
        .enumerate()
        .filter(|(_, one)| one.path.first().is_some_and(|top| top == key));
    let (Some((index, table)), None) = (found.next(), found.next()) else {
        return Ok(text);
    };
    let next = expressions
        .get(index + 1)
        .map_or(text.len(), |next| next.start);
    let empty = table.path.len() == 1
        && match &table.kind {
            Kind::Header => text[table.end..next].trim().is_empty(),
            Kind::Pair(value) => {
                let line = line_end(&text, table.end);
                text[value.start + 1..value.end - 1].trim().is_empty()
                    && text[table.end..line].trim().is_empty()
            }
            Kind::ArrayHeader => false,
        };
    Ok(if empty {
        cut_expressions(&text, &[table])
    } else {
        text
    })
}

/// Returns the text without the keys of these entries. Comments in lines of their own stay.
fn without(body: &str, key: &str, names: &[&str]) -> Result<String, EditError> {
    if names.is_empty() {
        return Ok(body.to_owned());
    }
    let expressions = scan(body)?;
    let theirs = |expression: &&Expression| {
        expression.path.len() > 1
            && expression.path[0] == key
            && names.contains(&expression.path[1].as_str())
    };
    let lines: Vec<&Expression> = expressions.iter().filter(theirs).collect();
    if !lines.is_empty() {
        return Ok(cut_expressions(body, &lines));
    }

    let mut text = body.to_owned();
    loop {
        let expressions = scan(&text)?;
        let is_key = |expression: &&Expression| expression.path == [key];
        let Some(Expression {
            kind: Kind::Pair(value),
            ..
        }) = expressions.iter().find(is_key)
        else {
            return Ok(text);
        };
        let items = items(&text, value.clone())?;
        let last = items
            .iter()
            .rposition(|item| names.contains(&item.path[0].as_str()));
        let Some(last) = last else {
            return Ok(text);
        };
        let before = last.checked_sub(1).map(|before| items[before].end);
        let item = items[last].start..items[last].end;
        text = cut(
            &text,
            Comments::Toml.cut_item(&text, (value.start + 1, value.end - 1), before, item),
        );
    }
}

/// Returns the text without these expressions. The empty line before a header is removed with it.
fn cut_expressions(text: &str, expressions: &[&Expression]) -> String {
    let mut cuts: Vec<std::ops::Range<usize>> = Vec::new();
    for expression in expressions {
        let mut start = line_start(text, expression.start);
        let blank = text[expression.end..].trim_start_matches([' ', '\t']);
        let end = text.len() - blank.len();
        // A comment at the end of the line stays in its own line.
        let end = if blank.starts_with('#') {
            end
        } else {
            line_end(text, end)
        };
        if !matches!(expression.kind, Kind::Pair(_))
            && let Some(before) = back_newline(text, start)
            && (before == 0 || back_newline(text, before).is_some())
        {
            start = before;
        }
        match cuts.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => cuts.push(start..end),
        }
    }
    // The text had no line break at its end before the insertion.
    if let Some(last) = cuts.last_mut()
        && last.end == text.len()
        && !text.ends_with('\n')
        && let Some(before) = back_newline(text, last.start)
    {
        last.start = before;
    }
    cut(text, cuts)
}

/// Returns the end of this position's line, after its line break.
fn line_end(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    rest.find('\n').map_or(text.len(), |end| at + end + 1)
}

/// Returns a key, quoted if necessary.
fn quoted_key(key: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if !key.is_empty() && key.bytes().all(bare) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// Returns a quoted string in one line. JSON's escapes are a subset of TOML's, but JSON does not escape DEL.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}

/// Writes a value in one line. `field` is its name in an error.
fn write_value(value: &Value, field: &str, out: &mut String) -> Result<(), EditError> {
    match value {
        Value::Null => {
            return Err(EditError(format!(
                "`{field}` is null, which TOML does not have"
            )));
        }
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) => {
            if number.is_u64() && number.as_i64().is_none() {
                return Err(EditError(format!(
                    "`{field}` is larger than TOML's numbers are"
                )));
            }
            out.push_str(&number.to_string());
        }
        Value::String(text) => out.push_str(&quoted(text)),
        Value::Array(list) => {
            out.push('[');
            for (i, value) in list.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                write_value(value, &format!("{field}[{i}]"), out)?;
            }
            out.push(']');
        }
        Value::Object(object) if object.is_empty() => out.push_str("{}"),
        Value::Object(object) => {
            out.push_str("{ ");
            for (i, (key, value)) in object.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quoted_key(key));
                out.push_str(" = ");
                write_value(value, &format!("{field}.{key}"), out)?;
            }
            out.push_str(" }");
        }
    }
    Ok(())
}
