//! What the server refuses: foreign hosts and origins, tricks in paths, broken, huge and slow requests.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use teamster_api::either;
use teamster_server::Scope;
use teamster_testkit::http::{Request, Stream};

use super::served::{LIMIT, Served};

#[test]
fn every_error_is_a_problem() {
    let served = Served::start();
    let anonymous = Request::new(&served.address, "GET", "/v1/runs").send();
    anonymous.is_problem(401, "UNAUTHORIZED");
    assert_eq!(anonymous.header("www-authenticate"), Some("Bearer"));
    let wrong = Request::new(&served.address, "GET", "/v1/runs")
        .header("Authorization", "Bearer tms_wrong");
    wrong.send().is_problem(401, "UNAUTHORIZED");
    served.get("/v1/nothing").is_problem(404, "NOT_FOUND");
    let method = served.request("DELETE", "/v1/runs").send();
    method.is_problem(405, "METHOD_NOT_ALLOWED");
    assert!(method.header("allow").unwrap().contains("POST"));

    let post = |body: &str| {
        let request = served
            .request("POST", "/v1/runs")
            .header("Content-Type", "application/json");
        request.body(body).send()
    };
    post("{").is_problem(400, "INVALID_BODY");
    post("\u{feff}nonsense").is_problem(400, "INVALID_BODY");
    // What the document forbids too is in the tests of its constraints.
    for (field, value, named) in [
        ("promt", json!(1), "promt"),
        ("provider", json!("unknown-agent"), "unknown-agent"),
        ("provider", json!("--help"), "--help"),
        ("workingDirectory", json!("src"), "workingDirectory"),
        ("outputSchema", json!("/etc/passwd"), "outputSchema"),
        ("permission", json!("all"), "all"),
        ("maxBudgetUsd", json!(-1), "0"),
        ("maxTurns", json!(0), "maxTurns"),
    ] {
        let mut body = json!({"provider": "claude", "prompt": "x"});
        body[field] = value;
        let refused = post(&body.to_string());
        refused.is_problem(422, "INVALID_PARAMS");
        assert!(refused.body.contains(named), "{body}: {}", refused.body);
        // The service of these tests names no field.
        if field != "provider" {
            assert_eq!(refused.json()["parameter"], field, "{}", refused.body);
        }
    }
    let form = served
        .request("POST", "/v1/runs")
        .header("Content-Type", "text/plain");
    form.body("{}")
        .send()
        .is_problem(415, "UNSUPPORTED_MEDIA_TYPE");
    post(&"x".repeat((8 << 20) + 1)).is_problem(413, "BODY_TOO_LARGE");
    let unknown = served.get("/v1/runs?stat=ended");
    unknown.is_problem(422, "INVALID_PARAMS");
    assert_eq!(served.get("/v1/runs").json(), json!({"runs": []}));
}

#[test]
fn two_places_of_a_run_are_refused() {
    let served = Served::start();
    let body = json!({
        "provider": "claude", "prompt": "x", "workingDirectory": "/", "workspace": {"kind": "empty"},
    });
    let refused = served.post("/v1/runs", &body);
    let detail = refused.json()["detail"].to_string();
    assert!(
        detail.contains("workspace: excludes `workingDirectory`"),
        "{detail}"
    );
    assert_eq!(refused.json()["parameter"], "workspace");
    refused.is_problem(422, "INVALID_PARAMS");
    let body = json!({"provider": "claude", "prompt": "x", "newSession": true});
    served
        .post("/v1/runs", &body)
        .is_problem(422, "INVALID_PARAMS");
    assert_eq!(served.get("/v1/runs").json(), json!({"runs": []}));
}

#[test]
fn bypass_and_commands_need_a_flag_of_the_server() {
    let served = Served::start();
    let bypass =
        json!({"provider": "claude", "prompt": "x", "permission": "bypass", "askTimeoutMs": 0});
    served
        .post("/v1/runs", &bypass)
        .is_problem(403, "BYPASS_NOT_ALLOWED");
    let command = json!({"provider": "cmd:cat", "prompt": "x", "askTimeoutMs": 0});
    served
        .post("/v1/runs", &command)
        .is_problem(403, "COMMAND_NOT_ALLOWED");
    let fallback = json!({"provider": "claude", "prompt": "x", "fallback": [" CMD:cat"]});
    served
        .post("/v1/runs", &fallback)
        .is_problem(403, "COMMAND_NOT_ALLOWED");
    served.end();

    let served = Served::with(|config| {
        (config.allow_bypass, config.allow_commands) = (true, true);
    });
    assert_eq!(served.post("/v1/runs", &bypass).status, 201);
    let started = served.post_and_wait("/v1/runs", &command);
    assert_eq!(
        (started.status, &started.json()["result"]["text"]),
        (201, &"x".into())
    );
    // Even then, not for a token that may only run.
    let runner = served.request_of(&served.add(&[Scope::Run]), "POST", "/v1/runs");
    runner
        .json(&bypass)
        .send()
        .is_problem(403, "BYPASS_NOT_ALLOWED");
}

#[test]
fn variables_servers_and_pushes_need_a_flag_of_the_server() {
    let run = |trusted: Value| json!({"provider": "claude", "prompt": "x", "trusted": trusted});
    let env = run(json!({"env": {"CI": "1"}}));
    let url = json!({"name": "u", "transport": {"http": {"url": "http://localhost:1/"}}});
    let command = json!({"name": "c", "transport": {"stdio": {"command": "cat", "args": []}}});
    let by_url = run(json!({"mcpServers": [url], "mcpStrict": true}));
    let by_command = run(json!({"mcpServers": [url, command]}));
    let push = json!({"provider": "claude", "prompt": "x", "worktree": true, "trusted": {"push": "origin"}});
    let container = json!({"engine": "docker", "image": "agents:1"});
    let contained = run(json!({"container": container}));
    let refused = |served: &Served, body: &Value, text: &str| {
        let refused = served.post("/v1/runs", body);
        let problem = refused.json();
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(text), "{detail}");
        let field = problem["parameter"].as_str().unwrap();
        assert!(detail.starts_with(&format!("{field}: ")), "{problem}");
        refused.is_problem(422, "INVALID_PARAMS");
    };
    let served = Served::start();
    refused(
        &served,
        &env,
        "trusted.env: the server does not let a run set CI",
    );
    refused(&served, &by_url, "trusted.mcpServers: MCP servers need");
    refused(&served, &by_command, "--allow-commands");
    let needs = "trusted.push: it needs a server that was started with --allow-push";
    refused(&served, &push, needs);
    let needs = "trusted.container: the server does not let a run use docker:agents:1";
    refused(&served, &contained, needs);
    served.end();

    let served = Served::with(|config| {
        (config.allow_mcp, config.allow_env) = (true, vec!["CI".to_owned()]);
    });
    assert_eq!(served.post("/v1/runs", &env).status, 201);
    assert_eq!(served.post("/v1/runs", &by_url).status, 201);
    refused(&served, &by_command, "--allow-commands");
    let other = run(json!({"env": {"CI": "1", "PATH": "/x"}}));
    refused(&served, &other, "does not let a run set PATH");
    let program = run(json!({"env": {"CI": "1"}, "program": "/bin/sh"}));
    refused(&served, &program, "trusted.program: not over HTTP");
    let strict = run(json!({"mcpStrict": true}));
    refused(&served, &strict, "trusted.mcpStrict: not over HTTP");
    served.end();

    let served = Served::with(|config| {
        (config.allow_mcp, config.allow_commands) = (true, true);
        config.allow_env = vec!["*".to_owned()];
        config.allow_containers = vec!["docker:agents:1".to_owned()];
    });
    assert_eq!(served.post("/v1/runs", &contained).status, 201);
    let another = run(json!({"container": {"engine": "podman", "image": "agents:1"}}));
    refused(&served, &another, "does not let a run use podman:agents:1");
    let mut mounted = contained;
    mounted["trusted"]["container"]["mounts"] = json!([{"source": "/", "target": "/host"}]);
    refused(&served, &mounted, "trusted.container: mounts");
    assert_eq!(served.post("/v1/runs", &by_command).status, 201);
    assert_eq!(served.post("/v1/runs", &other).status, 201);
    served.end();

    let served = Served::with(|config| config.allow_callbacks = false);
    let callback = json!({"provider": "claude", "prompt": "x", "callback": "https://example.com/"});
    refused(
        &served,
        &callback,
        "callback: this server ends with its client",
    );
}

#[test]
fn place_in_a_trace_is_a_variable_if_allowed() {
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let run = json!({"provider": "claude", "prompt": "x"});
    let session = json!({"provider": "claude"});
    for (allowed, expected) in [("TRACEPARENT", Some(PARENT)), ("CI", None)] {
        let served = Served::with(|config| config.allow_env = vec![allowed.to_owned()]);
        for (method, path, body) in [
            ("POST", "/v1/runs", &run),
            ("PUT", "/v1/runs/of-a-trace", &run),
            ("POST", "/v1/sessions", &session),
            ("PUT", "/v1/sessions/session-of-a-trace", &session),
        ] {
            let request = served.request(method, path);
            let request = request.header("traceparent", PARENT);
            let started = request.header("tracestate", "a=b").json(body).send();
            assert_eq!(started.status, 201, "{}", started.body);
            let id = started.json()["runId"].as_str().unwrap().to_owned();
            let spec = served.runs.spec(&id).unwrap();
            let env = &either!(&spec, spec => &spec.trusted).env;
            assert_eq!(env.get("TRACEPARENT").map(String::as_str), expected);
            assert!(!env.contains_key("TRACESTATE"));
        }
        served.end();
    }
}

#[test]
fn place_in_a_trace_of_the_body_is_not_that_of_a_header() {
    let served = Served::with(|config| config.allow_env = vec!["*".to_owned()]);
    let env = json!({"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"});
    let body = json!({"provider": "claude", "prompt": "x", "trusted": {"env": env}});
    let request = served.request("PUT", "/v1/runs/of-a-body");
    let other = "00-1af7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01";
    let request = request.header("traceparent", other);
    let started = request.header("tracestate", "a=b").json(&body).send();
    assert_eq!(started.status, 201, "{}", started.body);
    let spec = served.runs.spec("of-a-body").unwrap();
    let trusted = either!(&spec, spec => &spec.trusted);
    assert_eq!(json!(trusted.env), env);
    served.end();
}

#[test]
fn names_and_pages_of_others_are_refused() {
    let served = Served::with(|config| config.hosts = vec!["box.example".to_owned()]);
    let port = served.address.rsplit_once(':').unwrap().1.to_owned();
    let get = |host: Option<&str>| served.request("GET", "/v1/runs").host(host).send();
    for host in [
        "localhost",
        &format!("localhost:{port}"),
        "box.example",
        &format!("[::1]:{port}"),
    ] {
        assert_eq!(get(Some(host)).status, 200, "{host}");
    }
    for host in [
        "evil.example",
        &format!("evil.example:{port}"),
        "",
        "127.0.0.1.evil.example",
    ] {
        get(Some(host)).is_problem(421, "HOST_NOT_ALLOWED");
    }
    get(None).is_problem(421, "HOST_NOT_ALLOWED");
    let health = Request::new(&served.address, "GET", "/healthz").host(Some("evil.example"));
    health.send().is_problem(421, "HOST_NOT_ALLOWED");

    let body = json!({"provider": "claude", "prompt": "x", "askTimeoutMs": 0});
    let post = |origin: &str| {
        served
            .request("POST", "/v1/runs")
            .header("Origin", origin)
            .json(&body)
            .send()
    };
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://evil.example",
    ] {
        post(origin).is_problem(403, "ORIGIN_NOT_ALLOWED");
    }
    assert_eq!(post(&format!("http://{}", served.address)).status, 201);
    // No header lets a page of another origin read a response.
    let read = served
        .request("GET", "/v1/runs")
        .header("Origin", "http://evil.example")
        .send();
    assert_eq!(read.header("access-control-allow-origin"), None);
    let preflight = served
        .request("OPTIONS", "/v1/runs")
        .header("Origin", "http://evil.example");
    preflight.send().is_problem(403, "ORIGIN_NOT_ALLOWED");
}

#[test]
fn connections_without_a_token_take_no_place_of_others() {
    let served = Served::start();
    // More than there are places for connections with a token.
    let idle: Vec<_> = (0..1100)
        .map(|_| TcpStream::connect(&served.address).unwrap())
        .collect();
    for _ in 0..3 {
        assert_eq!(served.get("/v1/runs").status, 200);
    }
    drop(idle);
    served.end();
}

#[test]
fn a_request_without_an_end_delays_no_other() {
    let served = Served::start();
    let mut slow = TcpStream::connect(&served.address).unwrap();
    slow.write_all(b"GET /v1/runs HTTP/1.1\r\nHost: local")
        .unwrap();
    let began = Instant::now();
    assert_eq!(served.get("/healthz").status, 200);
    slow.set_read_timeout(Some(LIMIT)).unwrap();
    // The server closes it, with or without a word.
    let mut rest = Vec::new();
    let _ = slow.read_to_end(&mut rest);
    assert!(began.elapsed() < LIMIT && began.elapsed() > Duration::from_secs(5));

    // A head without an end, and one that is too large.
    let mut huge = TcpStream::connect(&served.address).unwrap();
    huge.set_read_timeout(Some(LIMIT)).unwrap();
    let _ =
        huge.write_all(format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(200_000)).as_bytes());
    assert_eq!(Stream::read(huge).status, 431);
    assert_eq!(served.get("/healthz").status, 200);
}
