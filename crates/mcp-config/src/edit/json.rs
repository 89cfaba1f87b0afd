//! JSON with comments and trailing commas.

use jsonc_parser::ast::{Object, ObjectProp, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde::Serialize as _;
use serde_json::Value;

use super::splice::{
    Comments, back_newline, begins_line, cut, indentation, line, newline, newline_after,
    skip_newline,
};
use super::{EditError, JSON_WITH_COMMENTS, Node};

const UNIT: &str = "  ";

/// Parses the top-level object with positions. Returns `None` if the text has only comments or nothing.
fn parse<'a>(body: &'a str, key: &str) -> Result<Option<Object<'a>>, EditError> {
    let parsed =
        parse_to_ast(body, &CollectOptions::default(), &JSON_WITH_COMMENTS).map_err(|error| {
            let what = error.kind().to_string();
            let (first, rest) = what.split_at_checked(1).unwrap_or_default();
            let at = line(body, error.range().start);
            EditError(format!("line {at}: {}{rest}", first.to_ascii_lowercase()))
        })?;
    let root = match parsed.value {
        None => return Ok(None),
        Some(Ast::Object(root)) => root,
        Some(other) => {
            return Err(EditError(format!(
                "line {}: this is not an object",
                line(body, other.start())
            )));
        }
    };
    let mut found = root
        .properties
        .iter()
        .filter(|prop| prop.name.as_str() == key);
    if let (Some(first), Some(second)) = (found.next(), found.next()) {
        return Err(EditError(format!(
            "line {}: duplicate key `{key}` (first in line {})",
            line(body, second.start()),
            line(body, first.start())
        )));
    }
    Ok(Some(root))
}

/// Parses the text.
pub(super) fn read(body: &str, key: &str) -> Result<Node, EditError> {
    Ok(parse(body, key)?.map_or_else(|| Node::Table(Vec::new()), |root| object_node(&root)))
}

fn object_node(object: &Object<'_>) -> Node {
    let entry = |prop: &ObjectProp<'_>| (prop.name.as_str().to_owned(), node(&prop.value));
    Node::Table(object.properties.iter().map(entry).collect())
}

fn node(value: &Ast<'_>) -> Node {
    match value {
        Ast::StringLit(text) => Node::Text(text.value.to_string()),
        Ast::NumberLit(number) => Node::Number(number.value.to_owned()),
        Ast::BooleanLit(value) => Node::Other(value.value.to_string()),
        Ast::NullKeyword(_) => Node::Other("null".to_owned()),
        Ast::Array(list) => Node::List(list.elements.iter().map(node).collect()),
        Ast::Object(object) => object_node(object),
    }
}

/// Returns the positions of the table, or of an entry in it.
pub(super) fn offsets(body: &str, key: &str, name: Option<&str>) -> Vec<usize> {
    let Ok(Some(root)) = parse(body, key) else {
        return Vec::new();
    };
    let Some(table) = root.get(key) else {
        return Vec::new();
    };
    let Some(name) = name else {
        return vec![table.start()];
    };
    let entries = table
        .value
        .as_object()
        .map_or(&[][..], |table| &table.properties);
    let found = entries.iter().filter(|prop| prop.name.as_str() == name);
    found.map(Ranged::start).collect()
}

/// Returns the text with these entries. Existing entries are replaced in place.
pub(super) fn merge(
    body: &str,
    key: &str,
    entries: &[(String, Value)],
) -> Result<String, EditError> {
    let Some(root) = parse(body, key)? else {
        let newline = newline(body);
        let root = new_root(key, entries, newline);
        return Ok(if body.is_empty() || body.ends_with('\n') {
            format!("{body}{root}{newline}")
        } else {
            // No line break after it, as a sign that the text did not end with one.
            format!("{body}{}{root}", newline_after(body, newline))
        });
    };
    let Some(table) = root.get_object(key) else {
        let table = Value::Object(entries.iter().cloned().collect());
        let style = Style::of(body, &root, None);
        return Ok(insert(body, &root, &[(key, &table)], &style, false));
    };

    let style = Style::of(body, &root, Some(table));
    let (mut new, mut there) = (Vec::new(), Vec::new());
    for (name, value) in entries {
        match table.get(name) {
            Some(prop) => there.push((prop.value.range(), value)),
            None => new.push((name.as_str(), value)),
        }
    }
    // From the end of the text to its start, so that earlier positions stay valid.
    let mut result = if new.is_empty() {
        body.to_owned()
    } else {
        insert(body, table, &new, &style, true)
    };
    there.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    for (range, value) in there {
        let one_line = style.one_line || is_one_line(body, table);
        let base = indentation(body, range.start);
        result.replace_range(range.start..range.end, &style.render(value, base, one_line));
    }
    Ok(result)
}

/// Returns the text without these entries and, with `table_too`, without a table that is then empty.
pub(super) fn remove(
    body: &str,
    key: &str,
    gone: &[&str],
    entries: &[(String, Value)],
    table_too: bool,
) -> Result<String, EditError> {
    let Some(root) = parse(body, key)? else {
        return Ok(body.to_owned());
    };
    if table_too && gone.len() == entries.len() && !gone.is_empty() {
        let text = &body[root.range.start..root.range.end];
        // An object that `merge` created in an empty file.
        if text.replace("\r\n", "\n") == new_root(key, entries, "\n") {
            let (mut start, mut end) = (root.range.start, root.range.end);
            if let Some(after) = skip_newline(body, end) {
                end = after;
            } else if let (Some(before), true) = (back_newline(body, start), end == body.len()) {
                start = before;
            }
            return Ok(cut(body, std::iter::once(start..end).collect()));
        }
    }

    let mut result = body.to_owned();
    // From the end: only the comma of the last item shows how the list ended before.
    while let Some(root) = parse(&result, key)? {
        let Some(table) = root.get_object(key) else {
            return Ok(result);
        };
        let last = table
            .properties
            .iter()
            .rposition(|prop| gone.contains(&prop.name.as_str()));
        let Some(last) = last else {
            break;
        };
        result = cut_property(&result, table, last);
    }
    if table_too && let Some(root) = parse(&result, key)? {
        let index = root
            .properties
            .iter()
            .position(|prop| prop.name.as_str() == key);
        if let Some((index, table)) = index.zip(root.get_object(key))
            && result[table.range.start + 1..table.range.end - 1]
                .trim()
                .is_empty()
        {
            result = cut_property(&result, &root, index);
        }
    }
    Ok(result)
}

fn cut_property(text: &str, object: &Object<'_>, index: usize) -> String {
    let before = index
        .checked_sub(1)
        .map(|before| object.properties[before].end());
    let item = object.properties[index].range;
    let braces = (object.range.start + 1, object.range.end - 1);
    cut(
        text,
        Comments::Json.cut_item(text, braces, before, item.start..item.end),
    )
}

/// Returns the content of a file that had none. The spaces in the outer braces are a sign of that. An editor that
/// formats the file removes them, and then the object is the user's.
fn new_root(key: &str, entries: &[(String, Value)], newline: &'static str) -> String {
    let style = Style {
        newline,
        unit: UNIT.to_owned(),
        one_line: false,
    };
    let table = Value::Object(entries.iter().cloned().collect());
    let table = style.render(&table, "", false);
    format!("{{ {}: {table} }}", quoted(key))
}

/// Formatting of the file.
struct Style {
    newline: &'static str,
    /// Indentation of one level.
    unit: String,
    /// True if the whole top-level object is in one line.
    one_line: bool,
}

impl Style {
    fn of(body: &str, root: &Object<'_>, table: Option<&Object<'_>>) -> Self {
        let unit = table.into_iter().chain([root]).find_map(|object| {
            let first = object
                .properties
                .iter()
                .find(|prop| begins_line(body, prop.start()))?;
            let inner = indentation(body, first.start());
            let more = inner.strip_prefix(indentation(body, object.range.start))?;
            (!more.is_empty()).then(|| more.to_owned())
        });
        Self {
            newline: newline(body),
            unit: unit.unwrap_or_else(|| UNIT.to_owned()),
            one_line: !root.properties.is_empty() && is_one_line(body, root),
        }
    }

    /// Renders the value. Lines after the first begin with `base`.
    fn render(&self, value: &Value, base: &str, one_line: bool) -> String {
        if one_line {
            return value.to_string();
        }
        let mut out = Vec::new();
        let formatter = serde_json::ser::PrettyFormatter::with_indent(self.unit.as_bytes());
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
        // Serializing a JSON value to a vector does not fail and writes UTF-8. The check of the result would refuse
        // anything else.
        let _ = value.serialize(&mut serializer);
        let text = String::from_utf8_lossy(&out);
        text.replace('\n', &format!("{}{base}", self.newline))
    }
}

fn is_one_line(body: &str, object: &Object<'_>) -> bool {
    !body[object.range.start..object.range.end].contains('\n')
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns the text with new properties at the end of an object.
///
/// Each form leaves a sign of the previous content, for [`remove`].
fn insert(
    body: &str,
    object: &Object<'_>,
    new: &[(&str, &Value)],
    style: &Style,
    inner: bool,
) -> String {
    let one_line = style.one_line || !object.properties.is_empty() && is_one_line(body, object);
    let (open, close) = (object.range.start + 1, object.range.end - 1);
    let outer = indentation(body, open);
    let render = |base: &str| -> Vec<String> {
        let property = |(name, value): &(&str, &Value)| {
            format!("{}: {}", quoted(name), style.render(value, base, one_line))
        };
        new.iter().map(property).collect()
    };
    let deeper = format!("{outer}{}", style.unit);
    let separator = |base: &str| {
        if one_line {
            " ".to_owned()
        } else {
            format!("{}{base}", style.newline)
        }
    };

    let Some(last) = object.properties.last() else {
        if inner && open == close && !one_line {
            // `{}` is expanded, but not at the top level: that is the form of a file that had no object.
            let sep = separator(&deeper);
            let text = render(&deeper).join(&format!(",{sep}"));
            return format!(
                "{}{sep}{text}{}{}",
                &body[..open],
                separator(outer),
                &body[close..]
            );
        }
        // Insert only the property. The existing content between the braces follows it unchanged.
        let text = render(outer).join(&format!(",{}", separator(outer)));
        return format!("{}{text}{}", &body[..open], &body[open..]);
    };

    let base = if begins_line(body, last.start()) {
        indentation(body, last.start()).to_owned()
    } else {
        deeper
    };
    let sep = separator(&base);
    let (comma, _) = Comments::Json.skip(body, last.end());
    let trailing = body[comma..].starts_with(',');
    // Comments in the line of the last property belong to it.
    let value_end = if trailing { comma + 1 } else { last.end() };
    let mut at = value_end;
    loop {
        let rest = &body[at..];
        let next = at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
        let Some((end, _)) = Comments::Json.comment(body, next) else {
            break;
        };
        // White space at the end of the comment's line would be taken for ours.
        at = next + body[next..end].trim_end().len();
    }
    let properties = render(&base);
    let mut text = body[..value_end].to_owned();
    if !trailing {
        text.push(',');
    }
    text.push_str(&body[value_end..at]);
    text.push_str(&sep);
    text.push_str(&properties.join(&format!(",{sep}")));
    if trailing {
        text.push(',');
    }
    text.push_str(&body[at..]);
    text
}
