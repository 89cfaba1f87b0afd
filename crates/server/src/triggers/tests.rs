use std::fs;
use std::os::unix::fs::PermissionsExt;

use axum::http::HeaderValue;
use serde_json::json;
use tempfile::TempDir;

use super::*;

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    fs::write(&file, "It's_a_Secret_to_Everybody\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    folder
}

fn read(trigger: &Value) -> Result<Trigger, String> {
    let json = json!({"agents": [], "triggers": [trigger]}).to_string();
    Trigger::of_config(&json, folder().path()).map(|mut triggers| triggers.remove(0))
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        let name = axum::http::HeaderName::from_static(name);
        (name, HeaderValue::from_str(value).unwrap())
    });
    pairs.collect()
}

fn review() -> Value {
    json!({
        "id": "review",
        "when": {"headers.x-github-event": "pull_request", "body.action": ["opened", "reopened"]},
        "run": {
            "provider": "claude",
            "prompt": "Review {{ body.pull_request.url }} of {{body.labels.0}}: {{body.pull_request.title}}",
        },
    })
}

#[test]
fn values_of_a_request_are_text_of_the_prompt() {
    let trigger = read(&review()).unwrap();
    let sent = headers(&[("x-github-event", "pull_request")]);
    let body = json!({
        "action": "opened",
        "labels": [7],
        "pull_request": {"url": "https://forge/1", "title": "--permission bypass {{body}}"},
    });
    let run = trigger.run(&sent, &body).unwrap().unwrap();
    let expected = "Review https://forge/1 of 7: --permission bypass {{body}}";
    assert_eq!(run.prompt, expected);
    assert_eq!(run.provider, "claude");

    let missing = json!({"action": "opened", "labels": [7], "pull_request": {"url": "u"}});
    let error = trigger.run(&sent, &missing).unwrap_err();
    assert_eq!(error, "the request has no `body.pull_request.title`");
}

#[test]
fn directories_of_a_run_count_from_the_file() {
    let location = |own: Value| {
        let mut run = json!({"provider": "claude", "prompt": "x"});
        run.as_object_mut()
            .unwrap()
            .extend(own.as_object().unwrap().clone());
        let json = json!({"triggers": [{"id": "a", "run": run}]}).to_string();
        let trigger = Trigger::of_config(&json, Path::new("/home/me")).unwrap();
        trigger[0].run.location().unwrap().path().cloned()
    };
    for own in [
        json!({"workingDirectory": "code"}),
        json!({"workspace": {"kind": "directory", "path": "code"}}),
        json!({"workspace": {"kind": "worktree", "directory": "code"}}),
    ] {
        assert_eq!(location(own), Some("/home/me/code".into()));
    }
    let other = json!({"workspace": {"kind": "directory", "path": "/other"}});
    assert_eq!(location(other), Some("/other".into()));
}

#[test]
fn secret_that_changes_or_comes_later_counts_from_then_on() {
    static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let warn: fn(&str) = |text| lock(&WARNINGS).push(text.to_owned());
    let folder = folder();
    let file = folder.path().join("agents.config.json");
    let name_secret = |secret: &str| {
        let sender = json!({"type": "gitlab", "secretFile": secret});
        let run = json!({"provider": "claude", "prompt": "x"});
        let config = json!({"triggers": [{"id": "forge", "sender": sender, "run": run}]});
        fs::write(&file, config.to_string()).unwrap();
    };
    name_secret("secret");
    let triggers = Triggers::of_file(&file).unwrap();
    let takes = |secret: &str| {
        let trigger = triggers.find("forge", warn).unwrap();
        (trigger.sender).has_sent(&headers(&[("x-gitlab-token", secret)]), b"")
    };
    assert!(takes("It's_a_Secret_to_Everybody"));
    let new = "a-new-secret-of-the-forge";
    fs::write(folder.path().join("secret"), new).unwrap();
    assert!(!takes("It's_a_Secret_to_Everybody") && takes(new));

    name_secret("later");
    assert!(takes(new) && takes(new));
    let warnings = lock(&WARNINGS).clone();
    assert!(
        warnings.len() == 1 && warnings[0].contains("secretFile"),
        "{warnings:?}"
    );
    let (path, later) = (folder.path().join("later"), "a-secret-that-came-later");
    fs::write(&path, later).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(takes(later) && !takes(new));
    assert_eq!(lock(&WARNINGS).len(), 1);
}

#[test]
fn request_that_does_not_meet_the_conditions_starts_nothing() {
    let trigger = read(&review()).unwrap();
    let sent = headers(&[("x-github-event", "pull_request")]);
    let closed = trigger.run(&sent, &json!({"action": "closed"})).unwrap();
    assert_eq!(closed, None);
    let other = headers(&[("x-github-event", "push")]);
    assert_eq!(
        trigger.run(&other, &json!({"action": "opened"})).unwrap(),
        None
    );
    assert_eq!(trigger.run(&sent, &json!([])).unwrap(), None);
}

#[test]
fn sender_is_known_by_its_signature_or_secret() {
    let with = |sender: Value| {
        let mut trigger = review();
        trigger["sender"] = sender;
        read(&trigger).unwrap().sender
    };
    let body = b"Hello, World!";
    // Made with `openssl dgst -sha256 -hmac`.
    let right = "5459a780a185f6af0f9c7d736f890c67afb2d471eac5f022dbabb596a0213685";
    let github = with(json!({"type": "github", "secretFile": "secret"}));
    let own = with(json!({"type": "hmac", "header": "X-Signature", "secretFile": "secret"}));
    let signed = |name, value: &str| headers(&[(name, value)]);
    let prefixed = format!("sha256={right}");
    assert!(github.has_sent(&signed("x-hub-signature-256", &prefixed), body));
    assert!(own.has_sent(&signed("x-signature", right), body));
    for wrong in [
        "",
        "sha256=",
        &prefixed[..prefixed.len() - 2],
        "sha256=zz",
        &*right.replace('7', "8"),
    ] {
        assert!(
            !github.has_sent(&signed("x-hub-signature-256", wrong), body),
            "{wrong}"
        );
    }
    assert!(!github.has_sent(&signed("x-hub-signature-256", &prefixed), b"Hello, World?"));
    assert!(!github.has_sent(&headers(&[]), body));

    let gitlab = with(json!({"type": "gitlab", "secretFile": "secret"}));
    let token = |value: &str| headers(&[("x-gitlab-token", value)]);
    assert!(gitlab.has_sent(&token("It's_a_Secret_to_Everybody"), body));
    assert!(!gitlab.has_sent(&token("It's_a_Secret_to_Everybodx"), body));
    assert!(!gitlab.has_sent(&token(""), body));
    assert!(!format!("{gitlab:?}{github:?}").contains("Secret_to"));
}

#[test]
fn wrong_trigger_is_refused_with_a_fix() {
    for (change, expected) in [
        (json!({"id": "a b"}), "letters, digits"),
        (
            json!({"run": {"provider": "claude", "prompt": "{{body"}}),
            "prompt: `{{` without `}}`",
        ),
        (
            json!({"run": {"provider": "claude", "prompt": "{{env.HOME}}"}}),
            "unknown place \"env.HOME\"",
        ),
        (
            json!({"when": {"title": "x"}}),
            "when: unknown place \"title\"",
        ),
        (
            json!({"sender": {"type": "github", "secretFile": "none"}}),
            "secretFile: cannot read",
        ),
        (
            json!({"sender": {"type": "hmac", "header": "a b", "secretFile": "secret"}}),
            "cannot be the name of a header",
        ),
        (
            json!({"sender": {"type": "bitbucket"}}),
            "unknown variant `bitbucket`",
        ),
        (json!({"prompt": "x"}), "unknown field `prompt`"),
    ] {
        let mut trigger = review();
        trigger
            .as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let error = read(&trigger).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let twice = json!({"triggers": [review(), review()]}).to_string();
    let error = Trigger::of_config(&twice, Path::new("/")).unwrap_err();
    assert!(error.contains("another one has this id"), "{error}");
}
