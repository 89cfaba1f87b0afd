//! Web Push: what browsers get by their push service, which is a stand-in on loopback.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{
    ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey as PeerKey, agree_ephemeral,
};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};
use teamster_server::{Scope, ServerConfig, Tokens};
use teamster_testkit::http::Response;
use teamster_testkit::proc::wait_until;

use super::came::{Came, answer};
use super::document::Document;
use super::served::{LIMIT, Served};

const PATH: &str = "/v1/web-push/subscriptions";

/// A push service whose answer follows from the path (`/gone/…` is 410, and 503 for a request at `/busy/…`); where it is.
fn push_service() -> (String, Receiver<Came>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (send, came) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let request = Came::read(&stream);
            let status = match &*request.path {
                path if path.starts_with("/gone/") => 410,
                path if path.starts_with("/busy/") && request.headers["urgency"] == "high" => 503,
                _ => 201,
            };
            // Before the answer: what was answered has come.
            if send.send(request).is_err() {
                return;
            }
            answer(&stream, status);
        }
    });
    (url, came)
}

/// A browser. Its key decrypts one message.
struct Browser {
    key: EphemeralPrivateKey,
    auth: [u8; 16],
}

impl Browser {
    fn new() -> Self {
        let key = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
        Self { key, auth: [7; 16] }
    }

    /// The body of its subscription at this address.
    fn subscription(&self, endpoint: &str) -> Value {
        let key = self.key.compute_public_key().unwrap();
        json!({"endpoint": endpoint, "keys": {
            "p256dh": URL_SAFE_NO_PAD.encode(key),
            "auth": URL_SAFE_NO_PAD.encode(self.auth),
        }})
    }

    /// Decrypts a message, from what RFC 8291 has for the receiver.
    fn decrypt(self, body: &[u8]) -> Value {
        let own = self.key.compute_public_key().unwrap();
        let (salt, rest) = body.split_at(16);
        assert_eq!(rest[..5], [0, 0, 16, 0, 65]);
        let (sender, sealed) = rest[5..].split_at(65);
        let derive = |salt: &[u8], secret: &[u8], info: &[&[u8]]| {
            let key = Salt::new(HKDF_SHA256, salt).extract(secret);
            let mut bytes = [0; 32];
            let derived = key.expand(info, HKDF_SHA256).unwrap();
            derived.fill(&mut bytes).unwrap();
            bytes
        };
        let peer = PeerKey::new(&ECDH_P256, sender);
        let shared = agree_ephemeral(self.key, &peer, |secret| {
            let info: [&[u8]; 3] = [b"WebPush: info\0", own.as_ref(), sender];
            derive(&self.auth, secret, &info)
        })
        .unwrap();
        let key = derive(
            salt,
            &shared,
            &[b"Content-Encoding: aes128gcm\0".as_slice()],
        );
        let nonce = derive(salt, &shared, &[b"Content-Encoding: nonce\0".as_slice()]);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..16]).unwrap());
        let nonce = Nonce::try_assume_unique_for_key(&nonce[..12]).unwrap();
        let mut sealed = sealed.to_vec();
        let plain = key.open_in_place(nonce, Aad::empty(), &mut sealed).unwrap();
        let (delimiter, message) = plain.split_last().unwrap();
        assert_eq!(*delimiter, 2);
        serde_json::from_slice(message).unwrap()
    }
}

impl Came {
    /// Checks the headers, and the signature by the server's key.
    #[track_caller]
    fn is_from(&self, served: &Served, service: &str, urgency: &str) {
        for (name, value) in [
            ("content-encoding", "aes128gcm"),
            ("content-type", "application/octet-stream"),
            ("ttl", "86400"),
            ("urgency", urgency),
        ] {
            assert_eq!(self.headers[name], value, "{name}");
        }
        assert_eq!(self.headers["topic"].len(), 32);
        let value = self.headers["authorization"].strip_prefix("vapid t=");
        let (token, key) = value.unwrap().split_once(", k=").unwrap();
        assert_eq!(served.get("/v1/web-push").json()["key"], key);
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).unwrap();
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, decode(key));
        key.verify(signed.as_bytes(), &decode(signature)).unwrap();
        let (_, claims) = signed.split_once('.').unwrap();
        let claims: Value = serde_json::from_slice(&decode(claims)).unwrap();
        assert_eq!(claims["aud"], service);
    }
}

fn configure(config: &mut ServerConfig) {
    config.web_push = true;
    config.allow_private_callbacks = true;
}

/// The addresses of the subscriptions that are kept.
fn kept(served: &Served) -> Vec<String> {
    let json = fs::read(served.folder().join("web-push.json")).unwrap_or_default();
    let content: Value = serde_json::from_slice(&json).unwrap_or_default();
    let list = content["subscriptions"].as_array().cloned();
    let list = list.unwrap_or_default().into_iter();
    list.map(|one| one["endpoint"].as_str().unwrap().to_owned())
        .collect()
}

#[track_caller]
fn until_kept(served: &Served, expected: &[String]) {
    let is_kept = wait_until(LIMIT, || kept(served) == expected);
    assert!(is_kept, "{:?}", kept(served));
}

/// Subscribes a browser at this address.
#[track_caller]
fn subscribe(served: &Served, browser: &Browser, endpoint: &str) -> Response {
    let subscribed = served.post(PATH, &browser.subscription(endpoint));
    assert_eq!(subscribed.status, 201, "{}", subscribed.body);
    subscribed
}

/// Allows what the run asks for.
#[track_caller]
fn allow(served: &Served, id: &str) {
    let path = format!("/v1/requests/{id}/1");
    let answer = served.post(&path, &json!({"decision": "allow"}));
    assert_eq!(answer.status, 204, "{}", answer.body);
}

#[test]
fn browsers_get_a_request_and_the_end_encrypted_once_each() {
    let served = Served::with(configure);
    let mut document = Document::of(&served);
    let (service, came) = push_service();
    let browsers = [Browser::new(), Browser::new()];
    let endpoints = ["/first", "/second"].map(|path| format!("{service}{path}"));
    for (browser, endpoint) in browsers.iter().zip(&endpoints) {
        let subscribed = subscribe(&served, browser, endpoint);
        document.has("POST", PATH, &subscribed);
        // Another tab of the browser has the same subscription.
        let again = subscribe(&served, browser, endpoint);
        assert_eq!(again.json(), subscribed.json());
    }
    document.has("GET", "/v1/web-push", &served.get("/v1/web-push"));
    assert_eq!(kept(&served), endpoints);
    for file in ["web-push.json", "web-push-key"] {
        let about = fs::metadata(served.folder().join(file)).unwrap();
        assert_eq!(about.permissions().mode() & 0o777, 0o600, "{file}");
    }
    let body = json!({"provider": "claude", "prompt": "write", "title": "Write a file"});
    let id = served.post("/v1/runs", &body).json()["runId"].clone();
    let both = || {
        let mut both: Vec<Came> = (0..2).map(|_| came.recv_timeout(LIMIT).unwrap()).collect();
        both.sort_by(|one, other| one.path.cmp(&other.path));
        assert_eq!([&*both[0].path, &*both[1].path], ["/first", "/second"]);
        both
    };
    let [first, second] = browsers;
    let asked = both();
    asked[0].is_from(&served, &service, "high");
    let request = format!("{}/1", id.as_str().unwrap());
    assert_eq!(
        first.decrypt(&asked[0].body),
        json!({
            "runId": id, "requestId": request, "title": "Write a file",
            "text": "claude asks for permission",
        })
    );
    allow(&served, id.as_str().unwrap());
    let ended = both();
    ended[1].is_from(&served, &service, "normal");
    assert_eq!(ended[1].headers["topic"], asked[1].headers["topic"]);
    assert_eq!(
        second.decrypt(&ended[1].body),
        json!({"runId": id, "title": "Write a file", "text": "completed"})
    );
    served.until_delivered();
    assert!(came.try_recv().is_err());
    served.end();
}

#[test]
fn a_subscription_outlives_the_server_and_ends_with_its_browser() {
    let served = Served::with(configure);
    let (service, came) = push_service();
    let browser = Browser::new();
    let [stays, gone] = ["/stays", "/gone/1"].map(|path| format!("{service}{path}"));
    for (browser, endpoint) in [(&browser, &stays), (&Browser::new(), &gone)] {
        subscribe(&served, browser, endpoint);
    }
    let key = served.get("/v1/web-push").json();
    let served = served.restart_after(|_, _| (), configure);
    assert_eq!(served.get("/v1/web-push").json(), key);
    let id = served.run("write");
    let mut asked: Vec<_> = (0..2).map(|_| came.recv_timeout(LIMIT).unwrap()).collect();
    asked.sort_by(|one, other| one.path.cmp(&other.path));
    assert_eq!([&*asked[0].path, &*asked[1].path], ["/gone/1", "/stays"]);
    assert_eq!(browser.decrypt(&asked[1].body)["runId"], *id);
    until_kept(&served, &[stays]);
    allow(&served, &id);
    assert_eq!(came.recv_timeout(LIMIT).unwrap().path, "/stays");
    served.until_delivered();
    assert!(came.try_recv().is_err());
    served.end();
}

#[test]
fn a_browser_that_has_a_message_gets_it_once() {
    let served = Served::with(configure);
    let (service, came) = push_service();
    for path in ["/busy/1", "/takes"] {
        subscribe(&served, &Browser::new(), &format!("{service}{path}"));
    }
    let id = served.run("write");
    // Kept of one browser, while the delivery to the other one is repeated.
    let record = served.folder().join(format!("callbacks/0/{id}.json"));
    let settled = format!("\"settled\":[\"{id}/1\"]");
    let is_kept = || fs::read_to_string(&record).is_ok_and(|it| it.contains(&settled));
    assert!(wait_until(LIMIT, is_kept));
    let served = served.restart_after(|_, _| (), configure);
    allow(&served, &id);
    served.until_delivered();
    let taken: Vec<_> = came.try_iter().filter(|it| it.path == "/takes").collect();
    let urgencies: Vec<_> = taken.iter().map(|it| &*it.headers["urgency"]).collect();
    assert_eq!(urgencies, ["high", "normal"]);
    served.end();
}

#[test]
fn a_browser_without_token_or_subscription_is_not_notified() {
    let served = Served::with(configure);
    let (service, came) = push_service();
    let [own, others, left] = ["/own", "/others", "/left"].map(|path| format!("{service}{path}"));
    let token = served.add(&[Scope::Read]);
    let subscribed = served
        .request_of(&token, "POST", PATH)
        .json(&Browser::new().subscription(&others))
        .send();
    assert_eq!(subscribed.status, 201);
    let left = subscribe(&served, &Browser::new(), &left).json();
    subscribe(&served, &Browser::new(), &own);
    Tokens::at(served.folder()).revoke("read").unwrap();
    let one = format!("{PATH}/{}", left["id"].as_str().unwrap());
    for _ in 0..2 {
        assert_eq!(served.request("DELETE", &one).send().status, 204);
    }
    // What a person stops is not reported.
    let stopped = served.run("wait");
    served.cancel(&stopped);
    served.until(&format!("/v1/runs/{stopped}"), "ended");
    let id = served.run("write");
    assert_eq!(came.recv_timeout(LIMIT).unwrap().path, "/own");
    until_kept(&served, &[own]);
    allow(&served, &id);
    assert_eq!(came.recv_timeout(LIMIT).unwrap().path, "/own");
    served.until_delivered();
    assert!(came.try_recv().is_err());
    served.end();
}

#[test]
fn a_repeated_delivery_ends_when_its_token_is_revoked() {
    let served = Served::with(configure);
    let (service, came) = push_service();
    let token = served.add(&[Scope::Read]);
    let subscribed = served
        .request_of(&token, "POST", PATH)
        .json(&Browser::new().subscription(&format!("{service}/busy/1")))
        .send();
    assert_eq!(subscribed.status, 201, "{}", subscribed.body);
    let id = served.run("write");
    assert_eq!(came.recv_timeout(LIMIT).unwrap().path, "/busy/1");
    Tokens::at(served.folder()).revoke("read").unwrap();
    until_kept(&served, &[]);
    allow(&served, &id);
    served.until_delivered();
    served.end();
}

#[test]
fn a_request_is_not_repeated_after_the_end_of_its_run() {
    let served = Served::with(configure);
    let (service, came) = push_service();
    subscribe(&served, &Browser::new(), &format!("{service}/busy/1"));
    let id = served.run("write");
    assert_eq!(came.recv_timeout(LIMIT).unwrap().headers["urgency"], "high");
    allow(&served, &id);
    served.until_delivered();
    assert_eq!(came.try_iter().last().unwrap().headers["urgency"], "normal");
    served.end();
}

#[test]
fn subscriptions_that_lead_elsewhere_or_have_no_key_are_refused() {
    let served = Served::with(|config| config.web_push = true);
    let browser = Browser::new();
    for endpoint in [
        "http://8.8.8.8/push",
        "https://127.0.0.1/push",
        "https://localhost/push",
        "https://169.254.169.254/",
        "https://user:secret@example.com/",
        "https://",
        "ftp://example.com/",
    ] {
        let refused = served.post(PATH, &browser.subscription(endpoint));
        refused.is_problem(422, "INVALID_PARAMS");
        assert!(refused.body.contains("endpoint"), "{}", refused.body);
    }
    let long = format!("https://8.8.8.8/{}", "x".repeat(2048));
    let refused = served.post(PATH, &browser.subscription(&long));
    refused.is_problem(422, "INVALID_PARAMS");
    let body = browser.subscription("https://8.8.8.8/push");
    let key = body["keys"]["p256dh"].as_str().unwrap().to_owned();
    // One that is too short, one of another alphabet, and one that is no point of the curve.
    for (name, value) in [
        ("auth", "AAAA".to_owned()),
        ("p256dh", "=".repeat(87)),
        ("p256dh", format!("{}AAAAAAAAAA", &key[..77])),
    ] {
        let mut other = body.clone();
        other["keys"][name] = value.into();
        let refused = served.post(PATH, &other);
        refused.is_problem(422, "INVALID_PARAMS");
        assert!(refused.body.contains("P-256"), "{}", refused.body);
    }
    let mut unknown = body;
    unknown["topic"] = "x".into();
    served
        .post(PATH, &unknown)
        .is_problem(422, "INVALID_PARAMS");
    assert_eq!(kept(&served), Vec::<String>::new());
    served.end();
}
