//! The listener of figures.

use std::time::Duration;

use teamster_metrics::Metrics;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

#[tokio::test]
async fn a_listener_has_the_figures_and_nothing_else() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = Metrics::new("1.2.3");
    let serving = tokio::spawn(teamster_metrics::serve(listener, move || {
        let metrics = metrics.clone();
        async move { metrics.text() }
    }));
    let ask = async |request: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream
            .write_all(format!("{request} HTTP/1.1\r\nHost: w\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        // The connection ends with the answer.
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = ask("GET /metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.contains("content-type: text/plain; version=0.0.4; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains("\nteamster_build_info{version=\"1.2.3\"} 1\n"),
        "{answer}"
    );
    assert!(ask("GET /v1/runs").await.starts_with("HTTP/1.1 404 "));
    assert!(ask("POST /metrics").await.starts_with("HTTP/1.1 405 "));
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_read_lose_their_places() {
    /// The number of connections at once.
    const PLACES: usize = 16;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // More than the buffers of a socket have room for.
    let serving = tokio::spawn(teamster_metrics::serve(listener, || async {
        "x".repeat(16 << 20)
    }));
    let mut clients = Vec::new();
    let mut last = [0; 12];
    for _ in 0..=PLACES {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(address).await.unwrap();
        let request = b"GET /metrics HTTP/1.1\r\nHost: w\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let answer = stream.read_exact(&mut last);
        // Time is paused, and passes at once while nothing else can be done.
        timeout(Duration::from_mins(1), answer)
            .await
            .unwrap()
            .unwrap();
        clients.push(stream);
    }
    assert_eq!(&last, b"HTTP/1.1 200");
    serving.abort();
}
