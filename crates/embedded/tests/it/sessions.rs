//! Sessions: resumed, forked and live.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use teamster_core::{AgentEvent, AgentRuntime, ErrorKind, Image, PermissionMode, RunStatus, Turn};

use crate::stage::{MODELS, Stage, read, read_with, wait_for};

const COLOUR: &str = r#"
[[turn]]
parts = [{ text = "Noted: blue." }]
usage = { input = 200, output = 10 }
[[turn]]
parts = [{ shell = "echo it was blue" }]
[[turn]]
parts = [{ text = "It was blue." }]
[[turn]]
parts = [{ text = "Still." }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_by_any_protocol() {
    for (first, second) in [(0, 0), (1, 1), (2, 2), (3, 4), (0, 1), (1, 2), (2, 0)] {
        let stage = Stage::new(COLOUR).await;
        let (begun, _) = stage
            .play(stage.params(MODELS[first], "My colour is blue."))
            .await;
        let id = begun.session_id.clone().unwrap();
        let file = stage.state().join(format!("{id}.ndjson"));
        for (path, expected) in [(&file, 0o600), (&stage.state(), 0o700)] {
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, expected, "{}", path.display());
        }
        let mut params = stage.params(MODELS[second], "Which is it?");
        params.session_id = Some(id.to_string());
        let (result, _) = stage.play(params).await;
        assert_eq!(
            result.text, "It was blue.",
            "{first} {second}: {:?}",
            result.errors
        );
        assert_eq!(result.session_id, Some(id));
        // Usage of the run, not of the session.
        assert_eq!(
            result.usage.unwrap().input_tokens,
            Some(200),
            "{first} {second}"
        );
        let body = stage.request(2).to_string();
        for part in [
            "My colour is blue.",
            "Noted: blue.",
            "Which is it?",
            "it was blue",
        ] {
            assert!(body.contains(part), "{first} {second}: {part}: {body}");
        }
        let kept = fs::read_to_string(&file).unwrap();
        assert!(!kept.contains("sk-mock"), "{kept}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_leaves_the_session_as_it_is_and_ids_can_be_given() {
    let stage = Stage::new(COLOUR).await;
    let mut params = stage.params(MODELS[1], "My colour is blue.");
    params.new_session_id = Some("0190B0B6-1f4e-7cc3-98c4-dc0c0c07398f".into());
    let (begun, _) = stage.play(params).await;
    let id = begun.session_id.unwrap();
    assert_eq!(&*id, "0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f");
    let file = stage.state().join(format!("{id}.ndjson"));
    let before = fs::read(&file).unwrap();
    let mut params = stage.params(MODELS[1], "Which is it?");
    params.session_id = Some(id.to_string());
    params.fork = true;
    let (forked, _) = stage.play(params).await;
    assert_eq!(forked.text, "It was blue.");
    assert_ne!(forked.session_id, Some(id));
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_session_is_reported_without_a_request() {
    let stage = Stage::new(COLOUR).await;
    for id in [
        "0190aaaa-bbbb-7ccc-8ddd-eeeeffff0000",
        "latest",
        "../../etc/passwd",
    ] {
        let mut params = stage.params(MODELS[1], "Go on.");
        params.session_id = Some(id.into());
        let (result, _) = stage.play(params).await;
        assert_eq!(
            result.error().unwrap().kind,
            ErrorKind::SessionNotFound,
            "{id}"
        );
        assert_eq!(result.session_id, None);
    }
    assert!(stage.model.requests().is_empty());
}

/// Nothing writes to the pipe at first, so a read of it does not return.
#[tokio::test(flavor = "multi_thread")]
async fn neither_an_abort_nor_a_close_waits_for_an_image_file() {
    let stage = Stage::new(COLOUR).await;
    let pipe = stage.work().join("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let images = vec![Image::file("image/png", "pipe")];
    let mut params = stage.params(MODELS[1], "Look.");
    params.images.clone_from(&images);
    let run = stage.runtime.execute(params);
    let abort = run.abort_handle();
    let run = tokio::spawn(read(run));
    tokio::task::yield_now().await;
    abort.abort();
    assert_eq!(run.await.unwrap().0.status, RunStatus::Aborted);

    let session = stage.session();
    let mut turn = Turn::new("Look.");
    turn.images = images;
    let turn = tokio::spawn(read(session.send(turn)));
    while session.steer("Now.".into()).await.is_err() {
        tokio::task::yield_now().await;
    }
    session.close().await;
    assert_eq!(turn.await.unwrap().0.status, RunStatus::Aborted);
    assert!(stage.model.requests().is_empty());

    fs::write(stage.work().join("a.png"), b"\x00\x01\x02").unwrap();
    let mut turn = Turn::new("Look.");
    turn.images = vec![Image::file("image/png", "a.png")];
    let (result, _) = read(session.send(turn)).await;
    assert_eq!(result.text, "Noted: blue.");
    assert!(stage.request(0).to_string().contains("AAEC"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_session_plays_many_turns_and_one_at_a_time() {
    let stage = Stage::new(COLOUR).await;
    let session = stage.session();
    assert_eq!((session.id(), session.is_live()), (None, false));
    let mut turn = Turn::new("My colour is blue.");
    turn.images = vec![Image::bytes("image/png", *b"\x00\x01\x02")];
    let mut first = session.send(turn);
    first.next().await.unwrap();
    // The second turn waits for the first.
    let second = tokio::spawn(read(session.send(Turn::new("Which is it?"))));
    let first = first.result().await;
    let second = second.await.unwrap().0;
    assert_eq!(
        (first.text.as_str(), second.text.as_str()),
        ("Noted: blue.", "It was blue.")
    );
    assert_eq!(first.session_id, session.id());
    assert_eq!(second.session_id, session.id());
    assert_eq!(second.usage.unwrap().input_tokens, Some(200));
    assert!(session.is_live());
    assert!(stage.request(0).to_string().contains("AAEC"));

    // Another process cannot write to the session at the same time.
    let mut params = stage.params(MODELS[1], "Me too.");
    params.session_id = session.id().map(|id| id.to_string());
    let (result, _) = stage.play(params).await;
    assert!(
        result
            .error()
            .unwrap()
            .message
            .starts_with("another run is writing")
    );

    session.close().await;
    assert!(!session.is_live());
    let before = session.id();
    // Another turn continues the session.
    session.set_model(MODELS[0].into()).await.unwrap();
    session
        .set_permission(PermissionMode::ReadOnly)
        .await
        .unwrap();
    let (again, _) = read(session.send(Turn::new("And now?"))).await;
    assert_eq!(again.text, "Still.");
    assert_eq!(again.model.as_deref(), Some(MODELS[0]));
    assert_eq!(session.id(), before);
    assert_eq!(
        session
            .set_model("nobody".into())
            .await
            .unwrap_err()
            .parameter(),
        Some("model")
    );
    session.clear().await.unwrap();
    assert_eq!(session.id(), None);
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_can_be_interrupted_and_steered() {
    let script = r#"
[[turn]]
parts = [{ shell = "touch begun; while ! test -e go; do sleep 0.02; done" }]
[[turn]]
parts = [{ text = ["This continues "] }, "stall"]
[[turn]]
parts = [{ text = "I am." }]
"#;
    let stage = Stage::new(script).await;
    let session = stage.session();
    assert!(session.steer("x".into()).await.is_err());
    let stream = session.send(Turn::new("Begin."));
    let playing = read_with(stream, |event| {
        if matches!(event, AgentEvent::Text(_)) {
            session.interrupt();
        }
    });
    let steering = async {
        stage.model.wait_for_requests(1).await;
        tokio::task::block_in_place(|| wait_for("the command", || stage.file("begun").is_some()));
        session.steer("Use the other file.".into()).await.unwrap();
        fs::write(stage.work().join("go"), "").unwrap();
        stage.model.wait_for_requests(2).await;
        assert!(stage.request(1).to_string().contains("Use the other file."));
    };
    let ((result, _), ()) = tokio::join!(playing, steering);
    assert_eq!(result.status, RunStatus::Aborted);
    let (result, _) = read(session.send(Turn::new("Are you there?"))).await;
    assert_eq!(result.text, "I am.", "{:?}", result.errors);
    session.close().await;
}

#[test]
fn a_stream_can_be_read_without_a_runtime() {
    let own = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let stage = own.block_on(Stage::new("[[turn]]\nparts = [{ text = \"Hello.\" }]"));
    let stream = stage.runtime.execute(stage.params(MODELS[1], "Hi."));
    // An executor that is independent of Tokio.
    let result = futures_executor(stream.result());
    assert_eq!(result.text, "Hello.", "{:?}", result.errors);
}

fn futures_executor<F: Future>(future: F) -> F::Output {
    use std::sync::Arc;
    use std::task::{Context, Poll, Wake, Waker};
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park_timeout(std::time::Duration::from_secs(30)),
        }
    }
}
