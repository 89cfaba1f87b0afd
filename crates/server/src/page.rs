//! The web page: static files that are compiled in. The page uses only the API.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, Response};
use axum::routing::get;

use crate::state::Shared;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// Forbids resources of other origins, inline scripts, and embedding in frames.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file: path, media type, content.
type File = (&'static str, &'static str, &'static str);

macro_rules! file {
    ($name:literal, $media:expr) => {
        (
            concat!("/page/", $name),
            $media,
            include_str!(concat!("../page/", $name)),
        )
    };
}

const FILES: &[File] = &[
    ("/", HTML, include_str!("../page/index.html")),
    file!("style.css", CSS),
    file!("icon.svg", SVG),
    file!("icon-waiting.svg", SVG),
    file!("icons.svg", SVG),
    file!("agents.js", SCRIPT),
    file!("api.js", SCRIPT),
    file!("attention.js", SCRIPT),
    file!("changes.js", SCRIPT),
    file!("cost.js", SCRIPT),
    file!("diff.js", SCRIPT),
    file!("dom.js", SCRIPT),
    file!("edit.js", SCRIPT),
    file!("entries.js", SCRIPT),
    file!("fleet.js", SCRIPT),
    file!("follow.js", SCRIPT),
    file!("form.js", SCRIPT),
    file!("history.js", SCRIPT),
    file!("main.js", SCRIPT),
    file!("marks.js", SCRIPT),
    file!("now.js", SCRIPT),
    file!("request.js", SCRIPT),
    file!("run.js", SCRIPT),
    file!("session.js", SCRIPT),
    file!("settle.js", SCRIPT),
    file!("start.js", SCRIPT),
    file!("state.js", SCRIPT),
    file!("text.js", SCRIPT),
];

/// Adds the routes of the page. They need no token: the files contain no user data.
pub(crate) fn mount(router: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    FILES.iter().fold(router, |router, (path, media, content)| {
        router.route(path, get(async || response(media, content)))
    })
}

fn response(media: &'static str, content: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_page_is_served_and_every_module_that_is_imported_is_there() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let on_disk = std::fs::read_dir(folder).unwrap();
        for entry in on_disk {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let found = FILES
                .iter()
                .any(|(path, _, _)| path.ends_with(&format!("/{name}")));
            assert!(found || name == "index.html", "{name} is not served");
        }
        for (path, _, content) in FILES {
            for line in content.lines() {
                let from = line.split_once(" from './");
                let Some((name, _)) = from.and_then(|(_, rest)| rest.split_once('\'')) else {
                    continue;
                };
                let imported = format!("/page/{name}");
                assert!(
                    FILES.iter().any(|(path, _, _)| *path == imported),
                    "{path} imports {name}"
                );
            }
        }
    }

    /// These APIs would interpret an agent's text as markup.
    #[test]
    fn no_module_makes_markup_of_text() {
        for (path, _, content) in FILES {
            for word in [
                ".innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "srcdoc",
            ] {
                assert!(!content.contains(word), "{path} has {word}");
            }
        }
    }
}
