//! Image files of runs and turns.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use teamster_core::{
    AgentRuntime, ErrorCode, ErrorKind, EventStream, ExecuteParams, Image, RunStatus, Turn,
};
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::Script;

use super::talker::{prepared, say};
use crate::engine::{END, LIMIT, Scratch, agent, finish};

fn pipe(scratch: &Scratch) -> PathBuf {
    let pipe = scratch.path("pipe");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    pipe
}

fn turn(file: &Path) -> Turn {
    let mut turn = Turn::new("look");
    turn.images = vec![Image::file("image/png", file)];
    turn
}

#[tokio::test]
async fn files_are_read_for_a_run_and_only_found_for_its_check() {
    let scratch = Scratch::new();
    let file = scratch.path("a.png");
    fs::write(&file, "png").unwrap();
    let gif = Image::bytes("image/gif", *b"gif");
    let mut params = ExecuteParams::new("look");
    for reads_images in [true, false] {
        let mut run = agent(&Script::new().line(END));
        run.provider.reads_images = reads_images;
        let launched = run.provider.images.clone();
        let runtime = run.runtime();
        let png = Image::file("image/png", &file);
        params.images = vec![png.clone(), gif.clone()];
        let launched_with = |bytes: &str| {
            let read = Image::bytes("image/png", bytes);
            let png = if reads_images { &read } else { &png };
            assert_eq!(*launched.lock().unwrap(), [png.clone(), gif.clone()]);
        };
        runtime.check(&params).unwrap();
        launched_with("");
        let story = finish(runtime.execute(params.clone())).await;
        assert_eq!(story.result.status, RunStatus::Completed);
        launched_with("png");

        for missing in [scratch.path("none.png"), scratch.path("")] {
            params.images = vec![Image::file("image/png", &missing)];
            let refused = runtime.check(&params).unwrap_err();
            let story = finish(runtime.execute(params.clone())).await;
            assert_eq!(*story.error(), refused);
            assert_eq!(refused.kind, ErrorKind::NotFound);
            let begin = format!("images: {} cannot be read: ", missing.display());
            assert!(refused.message.starts_with(&begin), "{refused}");
        }
    }
}

#[tokio::test]
async fn turns_keep_their_order_while_a_file_is_read() {
    let scratch = Scratch::new();
    let file = pipe(&scratch);
    let session = prepared().open();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let play = |stream: EventStream| {
        let ended = ended.clone();
        tokio::spawn(async move {
            let text = finish(stream).await.result.text;
            ended.lock().unwrap().push(text);
        })
    };
    let first = play(session.send(turn(&file)));
    tokio::task::yield_now().await;
    let second = play(session.send(Turn::new("id")));
    tokio::task::yield_now().await;
    let writer = thread::spawn(move || fs::write(file, "png"));
    first.await.unwrap();
    second.await.unwrap();
    assert_eq!(*ended.lock().unwrap(), ["png", "fresh"]);
    writer.join().unwrap().unwrap();
}

/// A Tokio runtime waits at its end for the threads of its blocking pool.
#[test]
fn neither_an_abort_nor_the_end_of_the_runtime_waits_for_a_file() {
    let scratch = Scratch::new();
    // Nothing writes to the pipe, so a read of it does not return.
    let unread = pipe(&scratch);
    let (ended, has_ended) = mpsc::channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let session = prepared().open();
            let unread = session.send(turn(&unread));
            let abort = unread.abort_handle();
            let unread = tokio::spawn(finish(unread));
            tokio::task::yield_now().await;
            abort.abort();
            assert_eq!(unread.await.unwrap().result.status, RunStatus::Aborted);
            // The next turn does not wait either.
            assert_eq!(say(&*session, "id").await.result.text, "fresh");
        });
        drop(runtime);
        ended.send(()).unwrap();
    });
    has_ended.recv_timeout(LIMIT).unwrap();
}

#[tokio::test]
async fn image_unreadable_within_the_start_limit_is_refused() {
    let scratch = Scratch::new();
    let mut run = agent(&Script::new().line(END));
    run.provider.reads_images = true;
    run.params.images = vec![Image::file("image/png", pipe(&scratch))];
    run.params.timeouts.startup = Some(Duration::from_millis(20));
    let story = finish(run.runtime().execute(run.params.clone())).await;
    assert_eq!(story.error().code, ErrorCode::StartupTimeout);
    assert_eq!(
        story.error().message,
        "the images could not be read within 20ms; give files that are complete"
    );
}

#[tokio::test]
async fn endless_image_is_refused_and_not_read_after_an_abort() {
    const MIB: usize = 1 << 20;
    let scratch = Scratch::new();
    let session = prepared().open();
    let story = finish(session.send(turn(Path::new("/dev/zero")))).await;
    assert_eq!(
        story.error().message,
        "images: /dev/zero has more than 64 MiB; give a smaller image"
    );
    assert_types(&story.events, "error done");

    let file = pipe(&scratch);
    let stream = session.send(turn(&file));
    let abort = stream.abort_handle();
    let (aborted, is_aborted) = mpsc::channel();
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let writer = thread::spawn(move || {
        let mut pipe = fs::OpenOptions::new().write(true).open(file).unwrap();
        let mut written = 0;
        while let Ok(()) = pipe.write_all(&vec![0; MIB]) {
            written += MIB;
            if written == MIB {
                begun.send(()).unwrap();
                is_aborted.recv().unwrap();
            }
        }
        written
    });
    let unread = tokio::spawn(finish(stream));
    has_begun.recv().await.unwrap();
    abort.abort();
    assert_eq!(unread.await.unwrap().result.status, RunStatus::Aborted);
    aborted.send(()).unwrap();
    let written = writer.join().unwrap();
    assert!(written < 8 * MIB, "{written}");
}

#[tokio::test]
async fn a_turn_with_a_missing_file_starts_no_process() {
    let scratch = Scratch::new();
    for opens_image_files in [false, true] {
        let mut prepared = prepared();
        prepared.talker.opens_image_files = opens_image_files;
        let session = prepared.open();
        let story = finish(session.send(turn(&scratch.path("none.png")))).await;
        assert_types(&story.events, "error done");
        assert_eq!(story.error().kind, ErrorKind::NotFound);
        assert!(!session.is_live());
        assert_eq!(say(&*session, "id").await.result.text, "fresh");
    }
}

#[tokio::test]
async fn a_cli_that_opens_files_gets_their_paths() {
    let scratch = Scratch::new();
    let file = scratch.path("a.png");
    fs::write(&file, "png").unwrap();
    let mut prepared = prepared();
    prepared.talker.opens_image_files = true;
    let session = prepared.open();
    let story = finish(session.send(turn(&file))).await;
    assert_eq!(story.result.text, file.display().to_string());
}
