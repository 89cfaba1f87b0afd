//! Failures of the connection, the client and the server.

use std::time::Duration;

use teamster_mock_model::MockModel;

use crate::server::client::{Connection, ask, conversation, script, server, tasks};

/// Number of the server's own tasks.
const SERVER: usize = 1;

#[tokio::test]
async fn a_cut_is_a_body_without_its_end() {
    let model = server("[[turn]]\nparts = [{ text = [\"half\", \" of\"] }, \"cut\"]").await;
    let mut connection = Connection::to(&model).await;
    connection.ask(&conversation(0, true)).await;
    let answer = connection.answer().await.unwrap();
    assert_eq!((answer.status, answer.complete), (200, false));
    assert!(
        answer.body.ends_with("\"text\":\" of\"}}\n\n"),
        "{answer:?}"
    );
    assert!(connection.is_over().await);
    tasks(SERVER).await;
}

#[tokio::test]
async fn a_cut_of_an_answer_that_is_not_streamed_is_no_answer() {
    let model = server("[[turn]]\nparts = [{ text = \"half\" }, \"cut\"]").await;
    let mut connection = Connection::to(&model).await;
    connection.ask(&conversation(0, false)).await;
    assert!(connection.answer().await.is_none());
    assert_eq!(model.requests()[0].status, 0);
    tasks(SERVER).await;
}

#[tokio::test]
async fn an_error_without_a_stream_is_an_http_error() {
    let model = server("[[turn]]\nparts = [{ text = \"half\" }, { error = \"overloaded\" }]").await;
    let streamed = ask(&model, &conversation(0, true)).await;
    assert_eq!((streamed.status, streamed.complete), (200, true));
    assert!(streamed.body.contains("event: error\n"), "{streamed:?}");
    let complete = ask(&model, &conversation(0, false)).await;
    assert_eq!(complete.status, 529);
    assert_eq!(complete.json()["error"]["type"], "overloaded_error");
}

/// Each of these would continue for an hour.
const ENDLESS: [(&str, bool); 5] = [
    ("parts = [{ text = \"half\" }, \"stall\"]", true),
    ("parts = [{ text = \"half\" }, \"stall\"]", false),
    (
        "parts = [{ text = \"half\" }, { pause_ms = 3600000 }]",
        true,
    ),
    ("delay_ms = 3600000", true),
    ("delay_ms = 3600000", false),
];

#[tokio::test]
async fn answer_of_a_lost_client_is_dropped() {
    for (turn, stream) in ENDLESS {
        let model = server(&format!("[[turn]]\n{turn}")).await;
        let mut connection = Connection::to(&model).await;
        connection.ask(&conversation(0, stream)).await;
        model.wait_for_requests(1).await;
        if stream && turn.starts_with("parts") {
            connection.head().await.unwrap();
            while !connection.chunk().await.unwrap().contains("half") {}
        }
        drop(connection);
        tasks(SERVER).await;
        // Other clients are still served.
        let mut other = Connection::to(&model).await;
        other.send("GET", "/", b"").await;
        assert_eq!(other.answer().await.unwrap().status, 200);
        drop((other, model));
        tasks(0).await;
    }
}

#[tokio::test]
async fn a_server_that_is_dropped_ends_its_connections() {
    for (turn, stream) in ENDLESS {
        let model = server(&format!("[[turn]]\n{turn}")).await;
        let address = model.address();
        let mut connection = Connection::to(&model).await;
        connection.ask(&conversation(0, stream)).await;
        model.wait_for_requests(1).await;
        let mut idle = Connection::to(&model).await;
        drop(model);
        tasks(0).await;
        assert!(
            !connection
                .answer()
                .await
                .is_some_and(|answer| answer.complete)
        );
        assert!(idle.is_over().await);
        assert!(tokio::net::TcpStream::connect(address).await.is_err());
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_nothing_up() {
    let texts = vec![format!("\"{}\"", "x".repeat(1 << 20)); 16].join(",");
    let text = format!("[[turn]]\nparts = [{{ text = [{texts}] }}]");
    let model = MockModel::start(script(&text)).await.unwrap();
    let mut slow = Connection::to(&model).await;
    slow.ask(&conversation(0, true)).await;
    model.wait_for_requests(1).await;
    let mut other = Connection::to(&model).await;
    other.send("GET", "/", b"").await;
    assert_eq!(other.answer().await.unwrap().status, 200);
    // Its writer has not finished, and ends with it.
    drop((slow, other));
    tasks(SERVER).await;
    assert!(model.requests().iter().all(|seen| seen.status == 200));
    tokio::time::timeout(Duration::from_secs(5), model.wait_for_requests(2))
        .await
        .unwrap();
}
