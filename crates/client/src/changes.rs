//! Changes of all runs and agents of a server.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde::Deserialize;
use teamster_api::Change;
use tokio::sync::mpsc;

use crate::Client;
use crate::call::{Call, Media};
use crate::error::{ClientError, ClientErrorKind};
use crate::follow::Events;
use crate::http::Http;
use crate::patience::Patience;

/// The maximum number of changes buffered for the reader.
const BUFFERED: usize = 64;

/// The changes that this version knows.
const KINDS: [&str; 4] = ["snapshot", "run", "gone", "agents"];

/// The head of a change.
#[derive(Deserialize)]
struct Kind {
    r#type: String,
}

/// The state of all runs and agents of a server, and its changes, from [`Client::changes`]. Also a [`Stream`], which
/// never ends without an error.
///
/// The first change is a snapshot, and so is the first one after a lost connection.
#[must_use = "nothing is read before the stream is polled"]
#[derive(Debug)]
pub struct Changes {
    changes: mpsc::Receiver<Result<Change, ClientError>>,
}

impl Changes {
    /// Returns the next change; `None` after an error. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses to show its state, or cannot be reached for too long.
    pub async fn next(&mut self) -> Result<Option<Change>, ClientError> {
        self.changes.recv().await.transpose()
    }
}

impl Stream for Changes {
    type Item = Result<Change, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.changes.poll_recv(cx)
    }
}

impl Client {
    /// Watches all runs, requests and agents: a snapshot, then its changes.
    ///
    /// To be called in a Tokio runtime: a task reads them.
    pub fn changes(&self) -> Changes {
        let (sender, changes) = mpsc::channel(BUFFERED);
        let http = self.http.clone();
        tokio::spawn(async move {
            tokio::select! {
                error = read(http, &sender) => {
                    // Fails only if the reader is gone.
                    let _ = sender.send(Err(error)).await;
                }
                () = sender.closed() => {}
            }
        });
        Changes { changes }
    }
}

/// Passes changes on until no further attempt is to be made.
async fn read(http: Arc<Http>, sender: &mpsc::Sender<Result<Change, ClientError>>) -> ClientError {
    let mut patience = Patience::new(http.clone());
    loop {
        let error = match connection(&http, sender, &mut patience).await {
            Ok(()) => {
                let message = format!("{} closed the connection", http.url());
                ClientError::new(ClientErrorKind::Disconnected, message)
            }
            Err(error) => error,
        };
        if let Err(error) = patience.wait(error).await {
            return error;
        }
    }
}

/// Passes the changes of one connection on.
async fn connection(
    http: &Arc<Http>,
    sender: &mpsc::Sender<Result<Change, ClientError>>,
    patience: &mut Patience,
) -> Result<(), ClientError> {
    let call = Call::get(&["events"])?.with_media(Media::Stream);
    let mut events = Events::new(http.clone(), http.send(&call).await?.into_body());
    while let Some(event) = events.next(patience).await? {
        if matches!(&*event.name, b"" | b"message") {
            let kind: Kind = http.read(&event.data)?;
            if !KINDS.contains(&&*kind.r#type) {
                continue;
            }
            let change = http.read(&event.data)?;
            patience.advanced();
            // Fails only if the reader is gone, which ends this task too.
            let _ = sender.send(Ok(change)).await;
        }
    }
    Ok(())
}
