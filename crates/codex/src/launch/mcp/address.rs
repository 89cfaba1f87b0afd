//! Addresses and headers of servers that speak HTTP.

use std::collections::BTreeMap;

/// Parts of a query parameter's name that mark it as a credential.
const PARTS: &[&str] = &[
    "token",
    "secret",
    "passw",
    "apikey",
    "credential",
    "signature",
    "oauth",
    "authoriz",
];
/// Words of a name that mark a credential. They are also parts of harmless words.
const WORDS: &[&str] = &[
    "key", "sig", "auth", "pass", "pwd", "jwt", "bearer", "pat", "session", "sid",
];

/// Refuses an address that contains credentials. It becomes an argument, which every user of the machine can read, or
/// part of the user's file. The error names the field but no value.
pub(super) fn check(url: &str) -> Result<(), String> {
    let (base, query) = match url
        .split_once('#')
        .map_or(url, |(url, _)| url)
        .split_once('?')
    {
        Some((base, query)) => (base, query),
        None => (url, ""),
    };
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    if host.contains('@') {
        return Err(
            "url: user and password in it could be read by others; give them as the \
                    header Authorization"
                .to_owned(),
        );
    }
    for parameter in query.split('&') {
        let name = parameter.split('=').next().unwrap_or_default();
        if is_credential(name) {
            return Err(format!(
                "url: {name:?} in it looks like a credential, and could be read by others; give it \
                 as a header"
            ));
        }
    }
    Ok(())
}

fn is_credential(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let letters: String = lower.chars().filter(char::is_ascii_alphanumeric).collect();
    if PARTS.iter().any(|part| letters.contains(part)) {
        return true;
    }
    // Split `signingKey` into words as `signing_key`.
    let mut spaced = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            spaced.push(' ');
        }
        spaced.push(c.to_ascii_lowercase());
    }
    [lower, spaced].iter().any(|text| {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .any(|word| WORDS.contains(&word))
    })
}

/// Names of headers without a value, and names and values of the others. The CLI omits a header whose variable is
/// empty or not a valid header value.
type Sorted<'a> = (Vec<&'a str>, Vec<(&'a str, &'a str)>);

/// Sorts headers by how the CLI can get them. The error names the field.
pub(super) fn sorted(headers: &BTreeMap<String, String>) -> Result<Sorted<'_>, String> {
    let (mut empty, mut full) = Sorted::default();
    for (name, value) in headers {
        if value.chars().any(|c| c != '\t' && c.is_ascii_control()) {
            return Err(format!(
                "headers.{name}: it has a control character, which a header cannot contain"
            ));
        }
        if value.trim().is_empty() {
            empty.push(name.as_str());
        } else {
            full.push((name.as_str(), value.as_str()));
        }
    }
    Ok((empty, full))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_refused_without_being_shown() {
        for url in [
            "https://me:s3cr3t@example.com/mcp",
            "https://s3cr3t@example.com",
            "https://example.com/mcp?key=s3cr3t",
            "https://example.com/mcp?x=1&api_key=s3cr3t",
            "https://example.com/mcp?apiKey=s3cr3t",
            "https://example.com/mcp?APIKEY=s3cr3t",
            "https://example.com/mcp?signingKey=s3cr3t",
            "https://example.com/mcp?access_token=s3cr3t#x",
            "https://example.com/mcp?X-Amz-Signature=s3cr3t",
            "https://example.com/mcp?sig=s3cr3t",
            "https://example.com/mcp?auth=s3cr3t",
            "https://example.com/mcp?pat=s3cr3t",
            "https://example.com/mcp?sessionId=s3cr3t",
            "https://example.com/mcp?client_secret=s3cr3t",
            "https://example.com/mcp?password=s3cr3t",
            "https://example.com?token=s3cr3t",
        ] {
            let problem = check(url).unwrap_err();
            assert!(problem.starts_with("url: "), "{problem}");
            assert!(problem.contains("header"), "{problem}");
            assert!(!problem.contains("s3cr3t"), "{problem}");
        }
    }

    #[test]
    fn other_addresses_are_taken() {
        for url in [
            "https://example.com/mcp",
            "http://[::1]:8080/a@b/key?x=1&y",
            "https://example.com/mcp?author=me&keyword=x&design=1&page=2#token=no",
            "https://example.com/mcp#?key=in_the_fragment",
        ] {
            assert_eq!(check(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn a_header_without_a_value_needs_no_variable() {
        let headers = [("A", ""), ("B", " \t"), ("C", " x\té ")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let (empty, full) = sorted(&headers).unwrap();
        assert_eq!(empty, ["A", "B"]);
        assert_eq!(full, [("C", " x\té ")]);
        let headers = [("A".to_owned(), "s3cr3t\u{1}".to_owned())].into();
        let problem = sorted(&headers).unwrap_err();
        assert_eq!(
            problem,
            "headers.A: it has a control character, which a header cannot contain"
        );
    }
}
