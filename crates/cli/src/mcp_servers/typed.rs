//! Parses the value of `--mcp NAME=VALUE`.

use anyhow::{anyhow, bail};
use serde_json::{Map, Value, json};

/// Shell operators.
const OPERATORS: [&str; 18] = [
    "|", "||", "|&", "&", "&&", ";", ";;", ">", ">>", ">|", "<", "<<", "<<<", "&>", "2>", "2>>",
    "2>&1", ">&2",
];

/// Converts the value to a server's JSON. Errors do not show the value, which may contain a secret.
pub(super) fn server(name: &str, value: &str) -> anyhow::Result<Value> {
    if let Some(server) = address(name, value.trim())? {
        return Ok(server);
    }
    let words = shell_words::split(value)
        .map_err(|_| anyhow!("--mcp {name}: a quotation mark in the command is not closed"))?;
    if let Some(operator) = operator(value) {
        bail!(
            "--mcp {name}: `{operator}` needs a shell, and the command is run without one; \
            use {name}=\"sh -c '…'\""
        );
    }
    let variables = words.iter().take_while(|word| assignment(word).is_some());
    let (env, command) = words.split_at(variables.count());
    let Some(program) = command.first() else {
        bail!("--mcp {name}: the command is missing");
    };
    if let Some(server) = address(name, program)? {
        if words.len() > 1 {
            bail!("--mcp {name}: a URL takes no variables or arguments");
        }
        return Ok(server);
    }
    // Most likely the name is missing. Also, a program's name is visible to all users, unlike the value of a
    // variable.
    if program.contains("${") {
        let advice = if env.is_empty() {
            let variable = plain_variable(program).unwrap_or("${…}");
            format!("add a name: --mcp NAME='{name}={variable} COMMAND'")
        } else {
            "name the program itself".to_owned()
        };
        bail!("--mcp {name}: the program would be the value of a variable; {advice}");
    }
    let env = env.iter().filter_map(|word| assignment(word));
    let env: Map<_, _> = env.map(|(key, value)| (key.into(), value.into())).collect();
    Ok(json!({ "type": "stdio", "command": command, "env": env }))
}

/// Returns the server's JSON if the text is a URL.
fn address(name: &str, text: &str) -> anyhow::Result<Option<Value>> {
    let Some((scheme, rest)) = text.split_once("://").filter(|(it, _)| is_scheme(it)) else {
        return Ok(None);
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        bail!("--mcp {name}: unsupported URL: expected http:// or https://");
    }
    if rest.contains(char::is_whitespace) {
        bail!("--mcp {name}: a URL takes no variables or arguments");
    }
    let url = format!("{scheme}://{rest}");
    Ok(Some(json!({ "type": "http", "url": url })))
}

/// Returns `true` for a valid URI scheme (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// Returns the first word that is a shell operator without any quoting.
fn operator(text: &str) -> Option<&'static str> {
    let mut word = String::new();
    let (mut quote, mut escaped) = (None, false);
    // The added space ends the last word.
    for char in text.chars().chain([' ']) {
        let plain = quote.is_none() && !escaped;
        if plain && matches!(char, ' ' | '\t' | '\n') {
            if let Some(operator) = OPERATORS.into_iter().find(|it| *it == word) {
                return Some(operator);
            }
            word.clear();
            continue;
        }
        // Quotation marks stay in the word, so it matches no operator.
        word.push(char);
        if escaped {
            escaped = false;
        } else if char == '\\' && quote != Some('\'') {
            escaped = true;
        } else if quote == Some(char) {
            quote = None;
        } else if quote.is_none() && matches!(char, '\'' | '"') {
            quote = Some(char);
        }
    }
    None
}

/// Returns the text if it is exactly `${NAME}`.
fn plain_variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    is_key(name).then_some(text)
}

/// Splits a `KEY=VALUE` before a command.
fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(key, _)| is_key(key))
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
