//! A server as a person types it.

use serde_json::{Map, Value, json};

/// Reason that a typed server cannot be used. It contains nothing of the typed text but its name, because the rest may be a
/// secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypedError {
    /// There is no name.
    #[error("expected NAME=COMMAND or NAME=URL")]
    NoName,
    /// A quotation mark in the command is not closed.
    #[error("a quotation mark in the command is not closed")]
    OpenQuote,
    /// The command has an operator of a shell.
    #[error(
        "`{operator}` needs a shell, and the command is run without one; use {name}=\"sh -c '…'\""
    )]
    Operator {
        /// The operator.
        operator: &'static str,
        /// The name of the server.
        name: String,
    },
    /// There is no command.
    #[error("the command is missing")]
    NoCommand,
    /// There is something beside a URL.
    #[error("a URL takes no variables or arguments")]
    BesideUrl,
    /// The URL is not one of HTTP.
    #[error("unsupported URL: expected http:// or https://")]
    OtherUrl,
    /// The program is the value of a variable, which every user of the machine could read.
    #[error("the program would be the value of a variable; name the program itself")]
    VariableAsProgram,
    /// The name of the server is most likely missing, so that the name of a variable stands for it.
    #[error("the program would be the value of a variable; add a name: NAME='{typed} COMMAND'")]
    VariableAsName {
        /// The variable and its value, if that is no secret.
        typed: String,
    },
}

/// Shell operators.
const OPERATORS: [&str; 18] = [
    "|", "||", "|&", "&", "&&", ";", ";;", ">", ">>", ">|", "<", "<<", "<<<", "&>", "2>", "2>>",
    "2>&1", ">&2",
];

/// Converts the value to a server's JSON. Errors do not show the value, which may contain a secret.
pub(super) fn server(name: &str, value: &str) -> Result<Value, TypedError> {
    if let Some(server) = address(value.trim())? {
        return Ok(server);
    }
    let words = shell_words::split(value).map_err(|_| TypedError::OpenQuote)?;
    if let Some(operator) = operator(value) {
        let name = name.to_owned();
        return Err(TypedError::Operator { operator, name });
    }
    let variables = words.iter().take_while(|word| assignment(word).is_some());
    let (env, command) = words.split_at(variables.count());
    let program = command.first().ok_or(TypedError::NoCommand)?;
    if let Some(server) = address(program)? {
        if words.len() > 1 {
            return Err(TypedError::BesideUrl);
        }
        return Ok(server);
    }
    // Most likely the name is missing. Also, a program's name is visible to all users, unlike the value of a
    // variable.
    if program.contains("${") {
        return Err(if env.is_empty() {
            let variable = plain_variable(program).unwrap_or("${…}");
            let typed = format!("{name}={variable}");
            TypedError::VariableAsName { typed }
        } else {
            TypedError::VariableAsProgram
        });
    }
    let env = env.iter().filter_map(|word| assignment(word));
    let env: Map<_, _> = env.map(|(key, value)| (key.into(), value.into())).collect();
    Ok(json!({ "type": "stdio", "command": command, "env": env }))
}

/// Returns the server's JSON if the text is a URL.
fn address(text: &str) -> Result<Option<Value>, TypedError> {
    let Some((scheme, rest)) = text.split_once("://").filter(|(it, _)| is_scheme(it)) else {
        return Ok(None);
    };
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "http" && scheme != "https" {
        return Err(TypedError::OtherUrl);
    }
    if rest.contains(char::is_whitespace) {
        return Err(TypedError::BesideUrl);
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
