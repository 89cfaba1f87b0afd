//! Expansion of `${NAME}` and `${NAME:-default}`.

use super::server::Problem;

/// Returns the text with its variables replaced. Errors contain no value.
pub(super) fn expand(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<String, Problem> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        expanded.push_str(before);
        let Some(end) = from.find('}') else {
            rest = from;
            break;
        };
        let inner = &from[2..end];
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        if is_name(name) {
            match variables(name).or_else(|| default.map(str::to_owned)) {
                Some(value) => expanded.push_str(&value),
                None => {
                    return Err(Problem::Unset(format!("the variable {name} is not set")));
                }
            }
            rest = &from[end + 1..];
        } else if let Some(foreign) = foreign(inner) {
            return Err(Problem::Other(format!(
                "`${{{foreign}:…}}` is not understood here, only ${{NAME}} and ${{NAME:-default}}"
            )));
        } else {
            // Something else, such as a part of a shell script.
            expanded.push_str("${");
            rest = &from[2..];
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Escapes a text so that [`expand`] returns it unchanged, unless the variable `TEAMSTER_DOLLAR` is set.
pub(super) fn escape(text: &str) -> String {
    text.replace("${", "${TEAMSTER_DOLLAR:-$}{")
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns the kind of another program's variable, such as `input` of `${input:token}`.
fn foreign(inner: &str) -> Option<&str> {
    let (kind, name) = inner.split_once(':')?;
    let is_word = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphabetic());
    // `${1:0:2}` and `${x:-y}` of a shell are something else.
    (is_word(kind) && name.starts_with(|c: char| c.is_ascii_alphabetic())).then_some(kind)
}
