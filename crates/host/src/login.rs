//! Marks of logins: what an account is known by, without its key.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;

use ring::hmac;
use serde_json::Value;
use teamster_api::ProviderLogin;

use crate::environment;

/// Field of the file of Codex's login with the id of the account, which is the same on all machines. The file of Claude
/// Code's login has none.
const ACCOUNT: &str = "/tokens/account_id";
/// Length of a variable from which on it is taken for a key, in bytes.
const SHORTEST_KEY: usize = 6;
/// Length of a mark, in hexadecimal digits.
const MARK: usize = 32;

/// Returns a variable's value.
pub(crate) type Variable<'a> = dyn Fn(&str) -> Option<OsString> + 'a;

/// Returns the mark of an agent's login in the environment of this process: the same on all machines that have the key,
/// or the account if its id is known. Otherwise it is one of the machine and the login's file. Without the salt, it
/// tells nothing about them.
pub fn login_mark(salt: &[u8], machine: &str, provider: &str, login: &ProviderLogin) -> String {
    let from = login.from.as_deref();
    mark(salt, machine, provider, from, &environment::variable)
}

/// Returns the mark of a login that this variable or file has, in an environment with these variables.
pub(crate) fn mark(
    salt: &[u8],
    machine: &str,
    provider: &str,
    from: Option<&str>,
    variable: &Variable<'_>,
) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, salt);
    let (kind, identity) = identity(machine, from, variable);
    let mut context = hmac::Context::with_key(&key);
    for part in [provider, kind, &identity] {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    let mut text = String::new();
    for byte in &context.sign().as_ref()[..MARK / 2] {
        // Writing into a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns what a login is known by.
fn identity(machine: &str, from: Option<&str>, variable: &Variable<'_>) -> (&'static str, String) {
    let Some(from) = from else {
        return ("machine", machine.to_owned());
    };
    if !from.contains('/') {
        return match variable(from).and_then(|key| key.into_string().ok()) {
            Some(key) if key.len() >= SHORTEST_KEY => ("key", key),
            // Not a key, but a switch such as `CLAUDE_CODE_USE_BEDROCK=1`.
            _ => ("machine", machine.to_owned()),
        };
    }
    let json = fs::read_to_string(from).ok();
    let json: Option<Value> = json.and_then(|text| serde_json::from_str(&text).ok());
    let account = json
        .as_ref()
        .and_then(|json| json.pointer(ACCOUNT)?.as_str());
    match account {
        Some(account) => ("account", account.to_owned()),
        None => ("file", format!("{machine}:{from}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_that_of_the_account_on_all_machines() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).unwrap();
            file.to_str().unwrap().to_owned()
        };
        // Made by hand: the part of Codex's file that is read.
        let one = file("1", r#"{"tokens":{"account_id":"a-1","access_token":"x"}}"#);
        let same = file("2", r#"{"tokens":{"account_id":"a-1","access_token":"y"}}"#);
        let other = file("3", r#"{"tokens":{"account_id":"a-2","access_token":"x"}}"#);
        let none = |_: &str| None;
        let of = |machine, from: &str| mark(b"salt", machine, "codex", Some(from), &none);
        assert_eq!(of("w1", &one), of("w2", &same));
        assert_ne!(of("w1", &one), of("w1", &other));
        assert_ne!(
            of("w1", &one),
            mark(b"other", "w1", "codex", Some(&one), &none)
        );
        assert_ne!(
            of("w1", &one),
            mark(b"salt", "w1", "claude", Some(&one), &none)
        );
        assert_eq!(of("w1", &one).len(), MARK);
        // An account that is not known has the limits of its file on its machine.
        let unknown = file("4", "{}");
        assert_ne!(of("w1", &unknown), of("w2", &unknown));
        assert_ne!(of("w1", &unknown), of("w1", "/no/file"));
    }

    #[test]
    fn a_mark_of_a_key_is_that_of_its_value() {
        let of = |value: &'static str| {
            mark(b"salt", "w1", "claude", Some("KEY"), &move |_: &str| {
                Some(value.into())
            })
        };
        assert_eq!(of("sk-ant-1"), of("sk-ant-1"));
        assert_ne!(of("sk-ant-1"), of("sk-ant-2"));
        // A switch is no key.
        assert_eq!(of("1"), of("true"));
    }
}
