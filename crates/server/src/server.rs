//! The server.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{CACHE_CONTROL, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method, Uri};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::Response;
use teamster_api::{MachineService, ProblemCode, RunService};
use teamster_core::sync::ByName;
use tokio_util::sync::CancellationToken;

use crate::callbacks::Callbacks;
use crate::feed::AgentsFeed;
use crate::figures::Figures;
use crate::keys::Keys;
use crate::state::Shared;
use crate::web_push::WebPush;
use crate::{ApiError, ServerConfig, guard, routes};

/// An HTTP server. It serves on each listener that it is [bound](Server::bind) to.
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
    pub(crate) router: Router,
}

teamster_core::debug_fields!(Server |it| { config: it.shared.config });

impl Server {
    /// Creates a server of these runs and this machine. It listens once it is [bound](Self::bind).
    pub fn new(
        config: ServerConfig,
        runs: Arc<dyn RunService>,
        machine: Arc<dyn MachineService>,
    ) -> Self {
        let config = Arc::new(config);
        let ending = CancellationToken::new();
        let keys = Arc::new(Keys::new(config.owner.as_ref(), config.tokens.clone()));
        let web_push = (config.web_push).then(|| Arc::new(WebPush::new(&config, keys.clone())));
        let callbacks = Callbacks::new(
            config.clone(),
            runs.clone(),
            web_push.clone(),
            ending.clone(),
        );
        let shared = Arc::new(Shared {
            keys,
            figures: Figures::new(
                config.figures.clone(),
                runs.clone(),
                machine.clone(),
                ending.clone(),
            ),
            runs,
            starts: ByName::new(),
            agents: Arc::new(AgentsFeed::new(machine.clone(), ending.clone())),
            callbacks: Arc::new(callbacks),
            web_push,
            machine,
            ending,
            config,
        });
        let router = routes::router(&shared)
            .fallback(not_found)
            .method_not_allowed_fallback(method_not_allowed)
            .layer(from_fn_with_state(shared.clone(), guard::check))
            .layer(map_response(headers));
        Self { shared, router }
    }

    /// Ends the server: streams end at once, other requests may finish.
    pub fn end(&self) {
        self.shared.ending.cancel();
    }
}

async fn not_found(uri: Uri) -> ApiError {
    let detail = format!(
        "no such path: {}; GET /v1/openapi.json describes all paths",
        uri.path()
    );
    ApiError::new(ProblemCode::NotFound, detail)
}

async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    let detail = format!("{} does not support the method {method}", uri.path());
    ApiError::new(ProblemCode::MethodNotAllowed, detail)
}

/// Adds the headers of every response.
async fn headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (CACHE_CONTROL, "no-store, no-transform"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        // Other origins cannot load responses as scripts or images.
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
