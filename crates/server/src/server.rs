//! The server as a whole.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use tokio_util::sync::CancellationToken;

use crate::auth::Keys;
use crate::callbacks::Callbacks;
use crate::feed::Feed;
use crate::index::Index;
use crate::{Backend, Problem, ProblemCode, ServerConfig, guard, routes};

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) config: ServerConfig,
    pub(crate) keys: Keys,
    pub(crate) index: Index,
    pub(crate) backend: Box<dyn Backend>,
    /// The server is to end: streams end.
    pub(crate) ending: CancellationToken,
    pub(crate) starts: routes::Starts,
    pub(crate) feed: Feed,
    pub(crate) callbacks: Callbacks,
}

impl Shared {
    /// Tells the program of something that went wrong without a request.
    pub(crate) fn warn(&self, text: &str) {
        (self.config.on_warning)(text);
    }
}

/// The server. It runs where it is [bound](Server::bind).
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) router: Router,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("config", &self.shared.config)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server with this configuration.
    pub fn new(config: ServerConfig, backend: impl Backend) -> Self {
        let shared = Arc::new(Shared {
            keys: Keys::new(config.owner.as_ref(), config.tokens.clone()),
            index: Index::new(config.runs.clone()),
            backend: Box::new(backend),
            ending: CancellationToken::new(),
            starts: routes::Starts::default(),
            feed: Feed::default(),
            callbacks: Callbacks::new(config.tokens.folder()),
            config,
        });
        let router = routes::router(&shared)
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(from_fn_with_state(shared.clone(), guard::check))
            .layer(map_response(headers));
        Self { shared, router }
    }

    /// Ends the server: streams end at once, other requests are finished.
    pub fn end(&self) {
        self.shared.ending.cancel();
    }
}

async fn not_found(uri: Uri) -> Problem {
    let detail = format!(
        "there is no {}; GET /v1/openapi.json describes all paths",
        uri.path()
    );
    Problem::new(ProblemCode::NotFound, detail)
}

async fn method_not_allowed(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not have the method {method}", uri.path());
    Problem::new(ProblemCode::MethodNotAllowed, detail)
}

/// Headers of every response.
async fn headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-store, no-transform"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // No page of another origin can load it as a script or an image.
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        let value = HeaderValue::from_static(value);
        headers.entry(name).or_insert(value);
    }
    response
}
