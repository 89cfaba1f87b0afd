//! Following a log.

use std::time::Duration;

use teamster_api::{Change, ProblemCode};
use teamster_client::{ClientError, ClientErrorKind, Follow};
use tokio::time::timeout;

use crate::fake::{END, Fake, LIMIT, Reply, done, text, view};

/// Returns the numbers of the entries, and the error at the end.
async fn read(mut follow: Follow) -> (Vec<u64>, Option<ClientError>) {
    let mut seqs = Vec::new();
    loop {
        match timeout(LIMIT, follow.next()).await.unwrap() {
            Ok(Some(line)) => seqs.push(line.seq()),
            Ok(None) => return (seqs, None),
            Err(error) => return (seqs, Some(error)),
        }
    }
}

#[tokio::test]
async fn log_continues_after_cuts_and_proxy_pages_and_ends_with_token() {
    let fake = Fake::steps([
        Reply::stream(&[text(1)]).and(r#"data: {"seq":2,"#),
        Reply::raw(""),
        Reply::new(502, "text/html", "<html>"),
        Reply::problem(503, "TOO_MANY_CONNECTIONS"),
        Reply::problem(500, "INTERNAL"),
        // The last entry again, and new ones.
        Reply::stream(&[text(1), text(2), text(3)]),
        Reply::problem(401, "UNAUTHORIZED"),
    ])
    .await;
    let client = fake.client().with_reconnect_limit(LIMIT);
    let (seqs, error) = read(client.follow("a", 0)).await;
    assert_eq!(seqs, [1, 2, 3]);
    let error = error.unwrap();
    assert_eq!(error.code, Some(ProblemCode::Unauthorized));
    assert!(!error.retryable);
    let after = |request: &String| request.split_once("after=").unwrap().1[..1].to_owned();
    let requests = fake.requests();
    let after: Vec<_> = requests.iter().map(after).collect();
    assert_eq!(after, ["0", "1", "1", "1", "1", "1", "3"]);
    assert!(
        requests[0].contains("accept: text/event-stream\r\n"),
        "{}",
        requests[0]
    );
}

#[tokio::test]
async fn the_end_is_the_last_entry_or_what_the_server_says() {
    for (reply, seqs) in [
        // A later entry is none of this log.
        (
            Reply::stream(&[text(1), done(2), text(3)]).open(),
            &[1, 2][..],
        ),
        // The log of a run that was killed has no last entry.
        (Reply::stream(&[text(1)]).and(END).open(), &[1]),
        (Reply::new(204, "", ""), &[]),
        // An event of a later version, and the end of a turn.
        (
            Reply::stream(&[text(1)])
                .and("event: new\ndata: {}\n\n")
                .and("data: {\"seq\":2,\"runId\":\"a.1\",\"type\":\"done\"}\n\n")
                .and(END),
            &[1, 2],
        ),
    ] {
        let fake = Fake::steps([reply]).await;
        assert_eq!(
            read(fake.client().follow("a", 0)).await,
            (seqs.to_vec(), None)
        );
        assert_eq!(fake.requests().len(), 1);
    }
}

#[tokio::test]
async fn an_entry_is_missing_only_where_the_log_says_so() {
    let reset = r#"{"seq":5,"atMs":1,"runId":"a","type":"reset"}"#.to_owned();
    let damaged = r#"{"seq":8,"atMs":1,"runId":"a","type":"damaged"}"#.to_owned();
    let fake = Fake::steps([Reply::stream(&[reset, text(6), damaged, done(9)])]).await;
    let read_to_end = read(fake.client().follow("a", 2)).await;
    assert_eq!(read_to_end, (vec![5, 6, 8, 9], None));

    for entry in [
        text(3),
        r#"{"atMs":1}"#.to_owned(),
        "5".to_owned(),
        r#"{"seq":2"#.to_owned(),
    ] {
        let fake = Fake::steps([Reply::stream(&[text(1), entry]).open()]).await;
        let client = fake.client().with_reconnect_limit(LIMIT);
        let (seqs, error) = read(client.follow("a", 0)).await;
        assert_eq!(
            (seqs, error.unwrap().kind),
            (vec![1], ClientErrorKind::Unexpected)
        );
    }
}

#[tokio::test]
async fn server_away_for_too_long_is_a_retryable_error() {
    let fake = Fake::steps([Reply::stream(&[text(1)]), Reply::new(502, "text/html", "")]).await;
    let (seqs, error) = read(fake.client().follow("a", 0)).await;
    let error = error.unwrap();
    assert_eq!((seqs, error.retryable), (vec![1], true), "{error}");
    assert!(error.to_string().contains("502"), "{error}");
    assert!(fake.requests().len() > 2);
}

#[tokio::test]
async fn a_connection_without_entries_shows_that_the_server_is_there() {
    // A proxy cuts a quiet stream again and again, for longer than the limit.
    let quiet = || Reply::stream(&[]).and(": \n\n");
    let snapshot = r#"{"type":"snapshot","runs":[]}"#.to_owned();
    let fake = Fake::steps([
        Reply::stream(&[text(1)]),
        quiet(),
        quiet(),
        quiet(),
        Reply::stream(&[done(2)]),
    ])
    .await;
    assert_eq!(read(fake.client().follow("a", 0)).await, (vec![1, 2], None));
    let fake = Fake::steps([quiet(), quiet(), quiet(), Reply::stream(&[snapshot]).open()]).await;
    let mut changes = fake.client().changes();
    let change = timeout(LIMIT, changes.next()).await.unwrap();
    assert!(
        matches!(change, Ok(Some(Change::Snapshot { .. }))),
        "{change:?}"
    );
}

#[tokio::test]
async fn a_stream_that_a_proxy_holds_back_is_replaced_by_pages() {
    for begin in [Reply::raw("").open(), Reply::stream(&[]).open()] {
        let fake = Fake::new(move |_, request| {
            if request.contains("after=0&wait=") {
                let page = format!(r#"{{"entries":[{}],"next":1,"ended":false}}"#, text(1));
                Reply::json(200, &page)
            } else if request.contains("after=1&wait=") {
                let page = format!(
                    r#"{{"entries":[{},{}],"next":3,"ended":true}}"#,
                    text(2),
                    done(3)
                );
                Reply::json(200, &page)
            } else {
                begin.clone()
            }
        })
        .await;
        let short = Duration::from_millis(50);
        let client = fake
            .client()
            .with_response_limit(short)
            .with_silence_limit(short);
        assert_eq!(read(client.follow("a", 0)).await, (vec![1, 2, 3], None));
        assert_eq!(fake.requests().len(), 3);
    }
}

#[tokio::test]
async fn the_bytes_of_an_entry_are_those_of_the_log() {
    // Made by hand: spaces and an escape that no serializer of this workspace writes.
    let odd = r#"{"seq":1, "type":"text",  "text":"\u00fc"}"#;
    for reply in [
        Reply::stream(&[odd.to_owned()]).and(END),
        Reply::json(
            200,
            &format!(r#"{{"entries":[{odd}],"next":1,"ended":true}}"#),
        ),
    ] {
        let fake = Fake::new(move |_, request| {
            if reply.is_stream() || request.contains("wait=") {
                reply.clone()
            } else {
                Reply::raw("").open()
            }
        })
        .await;
        let client = fake.client().with_response_limit(Duration::from_millis(50));
        let mut follow = client.follow("a", 0);
        let line = follow.next().await.unwrap().unwrap();
        assert_eq!(line.json(), odd.as_bytes());
    }
}

#[tokio::test]
async fn a_log_that_is_left_closes_its_connection() {
    let fake = Fake::steps([Reply::stream(&[text(1)]).open()]).await;
    let mut follow = fake.client().follow("a", 0);
    assert_eq!(follow.next().await.unwrap().unwrap().seq(), 1);
    drop(follow);
    fake.closed().await;
}

#[tokio::test]
async fn the_end_of_a_run_is_its_last_entry() {
    let fake = Fake::new(|_, request| {
        if request.contains("/events?after=6 ") {
            Reply::stream(&[text(7), done(8)]).and(END)
        } else {
            Reply::json(200, &view(7))
        }
    })
    .await;
    let last = fake.client().wait("a").await.unwrap().unwrap();
    assert_eq!((last.seq(), last.is_end()), (8, true));
}

#[tokio::test]
async fn changes_begin_with_a_snapshot_and_skip_what_is_unknown() {
    let snapshot = r#"{"type":"snapshot","runs":[]}"#.to_owned();
    let later = r#"{"type":"later","x":1}"#.to_owned();
    let gone = r#"{"type":"gone","runId":"a"}"#.to_owned();
    let fake = Fake::steps([
        Reply::stream(&[snapshot.clone(), later, gone]),
        Reply::stream(&[snapshot]),
        Reply::problem(401, "UNAUTHORIZED"),
    ])
    .await;
    let mut changes = fake.client().with_reconnect_limit(LIMIT).changes();
    let empty = || Change::Snapshot {
        runs: Vec::new(),
        agents: None,
    };
    let gone = Change::Gone {
        run_id: "a".to_owned(),
    };
    for expected in [empty(), gone, empty()] {
        let change = timeout(LIMIT, changes.next()).await.unwrap();
        assert_eq!(change, Ok(Some(expected)));
    }
    let error = changes.next().await.unwrap_err();
    assert_eq!(error.code, Some(ProblemCode::Unauthorized));
    assert_eq!(changes.next().await, Ok(None));
}
