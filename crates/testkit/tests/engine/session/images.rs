//! Image files of runs and turns.

use std::fs;
use std::path::Path;
use std::thread;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use teamster_core::{AgentRuntime, ErrorKind, ExecuteParams, Image, RunStatus, Turn};
use teamster_testkit::fake_agent::Script;

use super::talker::{prepared, say};
use crate::engine::{END, Place, agent, finish};

fn turn(file: &Path) -> Turn {
    let mut turn = Turn::new("look");
    turn.images = vec![Image::file("image/png", file)];
    turn
}

#[tokio::test]
async fn files_are_read_for_a_run_and_only_found_for_its_check() {
    let place = Place::new();
    let file = place.path("a.png");
    fs::write(&file, "png").unwrap();
    let mut run = agent(&Script::new().line(END));
    run.provider.reads_images = true;
    let launched = run.provider.images.clone();
    let runtime = run.runtime();
    let mut params = ExecuteParams::new("look");
    params.images = vec![
        Image::file("image/png", &file),
        Image::bytes("image/gif", *b"gif"),
    ];
    let with = |png: &str, gif: &str| {
        vec![
            Image::bytes("image/png", png),
            Image::bytes("image/gif", gif),
        ]
    };
    runtime.check(&params).unwrap();
    assert_eq!(*launched.lock().unwrap(), with("", ""));
    let story = finish(runtime.execute(params.clone())).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(*launched.lock().unwrap(), with("png", "gif"));

    for missing in [place.path("none.png"), place.path("")] {
        params.images = vec![Image::file("image/png", &missing)];
        let refused = runtime.check(&params).unwrap_err();
        let story = finish(runtime.execute(params.clone())).await;
        assert_eq!(*story.error(), refused);
        assert_eq!(refused.kind, ErrorKind::NotFound);
        let begin = format!("images: {} cannot be read: ", missing.display());
        assert!(refused.message.starts_with(&begin), "{refused}");
    }
}

#[tokio::test]
async fn a_turn_does_not_block_others_while_its_file_is_read() {
    let place = Place::new();
    let pipes = [place.path("first"), place.path("second")];
    for pipe in &pipes {
        mkfifo(pipe, Mode::S_IRWXU).unwrap();
    }
    let session = prepared().open();
    // Nothing has written to the pipe, so a read of it does not return.
    let unread = session.send(turn(&pipes[0]));
    let abort = unread.abort_handle();
    let unread = tokio::spawn(finish(unread));
    tokio::task::yield_now().await;
    abort.abort();
    assert_eq!(unread.await.unwrap().result.status, RunStatus::Aborted);
    let writer = thread::spawn(move || pipes.map(|pipe| fs::write(pipe, "png").map(drop)));
    let story = finish(session.send(turn(&place.path("second")))).await;
    assert_eq!(story.result.text, "png");
    for written in writer.join().unwrap() {
        written.unwrap();
    }
}

#[tokio::test]
async fn a_turn_with_a_missing_file_starts_no_process() {
    let place = Place::new();
    for opens_image_files in [false, true] {
        let mut prepared = prepared();
        prepared.talker.opens_image_files = opens_image_files;
        let session = prepared.open();
        let story = finish(session.send(turn(&place.path("none.png")))).await;
        assert_eq!(story.types(), ["error", "done"]);
        assert_eq!(story.error().kind, ErrorKind::NotFound);
        assert!(!session.is_live());
        assert_eq!(say(&*session, "id").await.result.text, "fresh");
    }
}

#[tokio::test]
async fn a_cli_that_opens_files_gets_their_paths() {
    let place = Place::new();
    let file = place.path("a.png");
    fs::write(&file, "png").unwrap();
    let mut prepared = prepared();
    prepared.talker.opens_image_files = true;
    let session = prepared.open();
    let story = finish(session.send(turn(&file))).await;
    assert_eq!(story.result.text, file.display().to_string());
}
