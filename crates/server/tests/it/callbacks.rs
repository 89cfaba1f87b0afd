//! Callbacks: a request when a run has ended or needs an answer.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde_json::{Value, json};
use teamster_api::RunHandle;
use teamster_core::Stopping;
use teamster_server::ServerConfig;
use teamster_testkit::proc::wait_until;

use super::came::{Came, answer};
use super::served::{LIMIT, Served};

/// A server that takes callbacks, with these statuses one after the other and then 200; where it is.
fn receiver(statuses: &'static [u16]) -> (String, Receiver<Came>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (send, came) = channel();
    thread::spawn(move || {
        let mut statuses = statuses.iter();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let request = Came::read(&stream);
            answer(&stream, *statuses.next().unwrap_or(&200));
            if send.send(request).is_err() {
                return;
            }
        }
    });
    (url, came)
}

impl Came {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn is_signed(&self, folder: &std::path::Path) {
        let secret = fs::read_to_string(folder.join("webhook-secret")).unwrap();
        let secret = STANDARD
            .decode(secret.trim().strip_prefix("whsec_").unwrap())
            .unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let (id, at) = (
            &self.headers["webhook-id"],
            &self.headers["webhook-timestamp"],
        );
        let signed = [format!("{id}.{at}.").as_bytes(), &self.body].concat();
        let signature = self.headers["webhook-signature"]
            .strip_prefix("v1,")
            .unwrap();
        let signature = STANDARD.decode(signature).unwrap();
        hmac::verify(&key, &signed, &signature).unwrap();
    }
}

#[test]
fn callback_is_sent_for_a_request_and_at_the_end() {
    let served = Served::with(|config| config.allow_private_callbacks = true);
    // The first one fails and is sent again.
    let (url, came) = receiver(&[503]);
    let body = json!({"provider": "claude", "prompt": "write", "callback": url});
    let id = served.post("/v1/runs", &body).json()["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    // The address may be a secret, which another client does not get.
    let spec = served.get(&format!("/v1/runs/{id}/spec")).json();
    assert_eq!(spec["withheld"], json!(["callback"]));
    assert_eq!(spec["what"]["run"].get("callback"), None);
    let first = came.recv_timeout(LIMIT).unwrap();
    first.is_signed(served.folder());
    let again = came.recv_timeout(LIMIT).unwrap();
    again.is_signed(served.folder());
    assert_eq!(
        (&again.body, &again.headers["webhook-id"]),
        (&first.body, &first.headers["webhook-id"])
    );
    let message = first.json();
    assert_eq!(
        (&message["type"], &message["run"]["runId"]),
        (&"run.needs_answer".into(), &id.clone().into())
    );
    assert_eq!(message["request"]["requestId"], format!("{id}/1"));
    assert_eq!(
        served
            .post(
                &format!("/v1/requests/{id}/1"),
                &json!({"decision": "allow"})
            )
            .status,
        204
    );
    let ended = came.recv_timeout(LIMIT).unwrap();
    let message = ended.json();
    assert_eq!(
        (&message["type"], &message["run"]["status"]),
        (&"run.finished".into(), &"completed".into())
    );
    assert_ne!(ended.headers["webhook-id"], first.headers["webhook-id"]);
    // Nothing of it is kept.
    served.until_delivered();
    served.end();
}

#[test]
fn end_without_a_server_is_reported_by_the_next_one() {
    let (url, came) = receiver(&[]);
    // One of the run itself, and one of all runs.
    let (global, all) = receiver(&[]);
    let configure = |config: &mut ServerConfig| {
        config.allow_private_callbacks = true;
        config.callback = Some(global.clone());
    };
    let served = Served::with(configure);
    let body = json!({"provider": "claude", "prompt": "wait", "callback": url});
    let started = served.post("/v1/runs", &body);
    let id = started.json()["runId"].as_str().unwrap().to_owned();
    let file = served.folder().join(format!("callbacks/0/{id}.json"));
    let are_known =
        || fs::read_to_string(&file).is_ok_and(|it| it.contains(&global) && it.contains(&url));
    assert!(wait_until(LIMIT, are_known));
    let served = served.restart_after(
        |runs, runtime| {
            let run = RunHandle::new(Arc::new(runs.clone()), id);
            runtime.block_on(run.cancel(Stopping::Graceful)).unwrap();
            runtime.block_on(run.result()).unwrap();
        },
        configure,
    );
    for came in [came, all] {
        let message = came.recv_timeout(LIMIT).unwrap().json();
        assert_eq!(
            (&message["type"], &message["run"]["status"]),
            (&"run.failed".into(), &"aborted".into())
        );
    }
    served.until_delivered();
    served.end();
}

#[test]
fn each_of_two_servers_delivers_what_it_has_accepted() {
    let (global, all) = receiver(&[]);
    let configure = |config: &mut ServerConfig| {
        config.allow_private_callbacks = true;
        config.callback = Some(global.clone());
    };
    let first = Served::with(configure);
    first.run("write");
    let message = all.recv_timeout(LIMIT).unwrap().json();
    assert_eq!(message["type"], "run.needs_answer");
    // The first one continues to send, and the second one has a run with a callback of its own.
    let second = first.beside(configure);
    let (url, came) = receiver(&[]);
    let body = json!({"provider": "claude", "prompt": "hello", "callback": url});
    let started = second.post("/v1/runs", &body);
    assert_eq!(started.status, 201, "{}", started.body);
    let id = &started.json()["runId"];
    let message = came.recv_timeout(LIMIT).unwrap().json();
    assert_eq!(
        (&message["type"], &message["run"]["runId"]),
        (&"run.finished".into(), id)
    );
    // The callback of all runs is that of both, and is called once.
    let message = all.recv_timeout(LIMIT).unwrap().json();
    assert_eq!(&message["run"]["runId"], id);
    first.end();
    // The second one takes its place, and knows what was sent.
    let id = second.run("write");
    let message = all.recv_timeout(LIMIT).unwrap().json();
    assert_eq!(
        (&message["type"], &message["run"]["runId"]),
        (&"run.needs_answer".into(), &id.into())
    );
    assert!(all.try_recv().is_err());
    second.end();
}

#[test]
fn callbacks_to_private_addresses_are_refused() {
    let served = Served::start();
    let (url, came) = receiver(&[]);
    let start = |url: &str| {
        let body = json!({"provider": "claude", "prompt": "x", "askTimeoutMs": 0, "callback": url});
        served.post("/v1/runs", &body)
    };
    for url in [
        "file:///etc/passwd",
        "nonsense",
        "http://user:secret@example.com/",
        "/hook",
    ] {
        start(url).is_problem(422, "INVALID_PARAMS");
    }
    // By its address, and by a name that leads there.
    for url in [
        url.clone(),
        url.replace("127.0.0.1", "localhost"),
        url.replace("127.0.0.1", "[::1]"),
        url.replace("127.0.0.1", "2130706433"),
        "http://169.254.169.254/".to_owned(),
    ] {
        let refused = start(&url);
        refused.is_problem(422, "INVALID_PARAMS");
        assert!(
            refused.body.contains("--allow-private-callbacks"),
            "{url}: {}",
            refused.body
        );
        let session = json!({"provider": "claude", "callback": url});
        served
            .post("/v1/sessions", &session)
            .is_problem(422, "INVALID_PARAMS");
    }
    assert_eq!(served.undelivered(), 0);
    assert!(came.try_recv().is_err());
    assert_eq!(served.get("/v1/runs").json(), json!({"runs": []}));
    served.end();
}

#[test]
fn a_refused_start_has_no_callback() {
    let served = Served::with(|config| config.allow_private_callbacks = true);
    let (url, came) = receiver(&[]);
    let put = |id: &str, body: &Value| {
        let path = format!("/v1/runs/{id}");
        served.request("PUT", &path).json(body).send()
    };
    let refused = json!({"provider": "unknown-agent", "prompt": "x", "callback": url});
    put("mine", &refused).is_problem(422, "INVALID_PARAMS");
    served
        .post("/v1/runs", &refused)
        .is_problem(422, "INVALID_PARAMS");
    assert_eq!(served.undelivered(), 0);
    // Another client's run of the same id is none of it.
    let body = json!({"provider": "claude", "prompt": "hello"});
    assert_eq!(put("mine", &body).status, 201);
    served.until("/v1/runs/mine", "ended");
    let own = json!({"provider": "claude", "prompt": "hello", "callback": url});
    assert_eq!(put("own", &own).status, 201);
    let message = came.recv_timeout(LIMIT).unwrap().json();
    assert_eq!(message["run"]["runId"], "own", "{message}");
    served.until_delivered();
    served.end();
}
