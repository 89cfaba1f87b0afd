//! A server as it is typed after `--mcp NAME=`.

use anyhow::{anyhow, bail};
use serde_json::{Map, Value, json};

/// Words with a meaning only to a shell.
const OPERATORS: [&str; 18] = [
    "|", "||", "|&", "&", "&&", ";", ";;", ">", ">>", ">|", "<", "<<", "<<<", "&>", "2>", "2>>",
    "2>&1", ">&2",
];

/// The server as JSON. No error shows what was typed, which may hold a secret.
pub(super) fn server(name: &str, what: &str) -> anyhow::Result<Value> {
    if let Some(server) = address(name, what.trim())? {
        return Ok(server);
    }
    let words = shell_words::split(what)
        .map_err(|_| anyhow!("--mcp {name}: a quotation mark in the command is not closed"))?;
    if let Some(operator) = operator(what) {
        bail!(
            "--mcp {name}: no shell reads it, and `{operator}` means something only to one; \
             use {name}=\"sh -c '…'\""
        );
    }
    let variables = words.iter().take_while(|word| assignment(word).is_some());
    let (env, command) = words.split_at(variables.count());
    let Some(program) = command.first() else {
        bail!("--mcp {name}: there is no command");
    };
    if let Some(server) = address(name, program)? {
        if words.len() > 1 {
            bail!("--mcp {name}: an address stands alone, without variables or arguments");
        }
        return Ok(server);
    }
    // The name was forgotten, most likely; and a program's name is for all to see, unlike the value
    // of a variable.
    if program.contains("${") {
        let instead = if env.is_empty() {
            let variable = plain_variable(program).unwrap_or("${…}");
            format!("a name goes before: --mcp NAME='{name}={variable} COMMAND'")
        } else {
            "name the program itself".to_owned()
        };
        bail!("--mcp {name}: its program would be the value of a variable; {instead}");
    }
    let env = env.iter().filter_map(|word| assignment(word));
    let env: Map<_, _> = env.map(|(key, value)| (key.into(), value.into())).collect();
    Ok(json!({ "type": "stdio", "command": command, "env": env }))
}

/// The server at this address, if it is one.
fn address(name: &str, text: &str) -> anyhow::Result<Option<Value>> {
    let Some((scheme, rest)) = text.split_once("://").filter(|(it, _)| is_scheme(it)) else {
        return Ok(None);
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        bail!("--mcp {name}: an address begins with http:// or https://; no other is taken");
    }
    if rest.contains(char::is_whitespace) {
        bail!("--mcp {name}: an address stands alone, without variables or arguments");
    }
    let url = format!("{scheme}://{rest}");
    Ok(Some(json!({ "type": "http", "url": url })))
}

/// Whether an address can begin so (RFC 3986, section 3.1).
fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
}

/// The first word that is an operator of a shell and not quoted, not even in part.
fn operator(text: &str) -> Option<&'static str> {
    let mut word = String::new();
    let (mut quote, mut escaped) = (None, false);
    // A space after the end ends the last word.
    for char in text.chars().chain([' ']) {
        let plain = quote.is_none() && !escaped;
        if plain && matches!(char, ' ' | '\t' | '\n') {
            if let Some(operator) = OPERATORS.into_iter().find(|it| *it == word) {
                return Some(operator);
            }
            word.clear();
            continue;
        }
        // With its quotation marks it is none of the operators.
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

/// The text if it is `${NAME}` and nothing else.
fn plain_variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    is_key(name).then_some(text)
}

/// `KEY=VALUE` before a command.
fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(key, _)| is_key(key))
}

fn is_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
