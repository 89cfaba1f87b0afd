//! The web page: static files that are compiled in. The page uses only the API.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;

use crate::state::Shared;

/// Forbids resources of other origins, inline scripts, and embedding in frames.
const POLICY: &str =
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file: path, media type, content, content compressed by `gzip`.
type File = (&'static str, &'static str, &'static [u8], &'static [u8]);

/// The files of the page, as the build script has listed them.
const FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Adds the routes of the page. They need no token: the files contain no user data.
pub(crate) fn mount(router: Router<Arc<Shared>>) -> Router<Arc<Shared>> {
    FILES.iter().fold(router, |router, file| {
        let answer = async move |headers: HeaderMap| response(file, &headers);
        router.route(file.0, get(answer))
    })
}

/// Returns the file, or that the browser has it.
fn response((_, media, content, compressed): &'static File, request: &HeaderMap) -> Response<Body> {
    let is_compressed = accepts_gzip(request);
    let tag = tag(compressed, is_compressed);
    let mut response = if has_tag(request, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if is_compressed {
        let mut response = Response::new(Body::from(*compressed));
        let headers = response.headers_mut();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        Response::new(Body::from(*content))
    };
    let headers = response.headers_mut();
    // A browser asks each time whether its copy is that of this server.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    response
}

/// Returns the entity tag of a file: the checksum and the length at the end of its compressed form (RFC 1952, 2.3.1).
fn tag(compressed: &[u8], is_compressed: bool) -> String {
    let end = compressed.len().saturating_sub(8);
    let sum = compressed[end..]
        .iter()
        .fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
    format!("\"{sum:016x}{}\"", if is_compressed { "-gzip" } else { "" })
}

/// Returns whether the request has the entity tag (RFC 9110, 13.1.2).
fn has_tag(request: &HeaderMap, tag: &str) -> bool {
    let lists = request.get_all(IF_NONE_MATCH).into_iter();
    lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

/// Returns whether the request accepts `gzip` (RFC 9110, 12.5.3).
fn accepts_gzip(request: &HeaderMap) -> bool {
    let lists = request.get_all(ACCEPT_ENCODING).into_iter();
    lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .any(|one| {
            let (name, weight) = one.split_once(';').unwrap_or((one, ""));
            let weight = weight.trim().strip_prefix("q=").unwrap_or("1");
            name.trim().eq_ignore_ascii_case("gzip")
                && weight.parse::<f32>().is_ok_and(|weight| weight > 0.0)
        })
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    fn answer(path: &str, headers: &[(HeaderName, &str)]) -> Response<Body> {
        let file = FILES.iter().find(|file| file.0 == path).unwrap();
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        response(file, &headers.collect())
    }

    #[tokio::test]
    async fn a_file_is_compressed_where_that_is_accepted_and_sent_once() {
        let path = "/page/style.css";
        let plain = answer(path, &[]);
        assert_eq!(plain.headers()[CACHE_CONTROL], "no-cache");
        assert!(!plain.headers().contains_key(CONTENT_ENCODING));
        let tags = [plain.headers()[ETAG].clone()];
        let content = to_bytes(plain.into_body(), usize::MAX).await.unwrap();
        assert!(content.starts_with(b"/* One column"));
        for refused in ["gzip;q=0", "br", "gzip; q=0.000"] {
            let answer = answer(path, &[(ACCEPT_ENCODING, refused)]);
            assert_eq!(answer.headers()[ETAG], tags[0], "{refused}");
        }
        let gzip = (ACCEPT_ENCODING, "deflate, gzip;q=0.5, br");
        let compressed = answer(path, std::slice::from_ref(&gzip));
        assert_eq!(compressed.headers()[CONTENT_ENCODING], "gzip");
        assert_eq!(compressed.headers()[VARY], "accept-encoding");
        let tag = compressed.headers()[ETAG].to_str().unwrap().to_owned();
        assert_ne!(tag, tags[0]);
        let sent = to_bytes(compressed.into_body(), usize::MAX).await.unwrap();
        assert!(sent.starts_with(&[0x1f, 0x8b]) && sent.len() * 3 < content.len());
        for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let again = answer(path, &[gzip.clone(), (IF_NONE_MATCH, &known)]);
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(again.headers()[ETAG], tag);
            let sent = to_bytes(again.into_body(), usize::MAX).await.unwrap();
            assert!(sent.is_empty());
        }
        let other = answer("/page/main.js", &[gzip, (IF_NONE_MATCH, &tag)]);
        assert_eq!(other.status(), StatusCode::OK);
    }

    /// The files that are text.
    fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
        let texts = FILES.iter().filter(|(_, media, ..)| *media != "image/png");
        texts.map(|(path, _, content, _)| (*path, std::str::from_utf8(content).unwrap()))
    }

    #[test]
    fn the_manifest_names_icons_that_are_there_and_the_page_itself() {
        let find = |path: &str| FILES.iter().find(|file| file.0 == path).unwrap();
        let manifest: serde_json::Value =
            serde_json::from_slice(find("/page/manifest.webmanifest").2).unwrap();
        // Below the manifest's own path, so that the page may be below a path of a proxy.
        assert_eq!(manifest["start_url"], "../#/now");
        assert_eq!(manifest["scope"], "../");
        // An `id` is resolved against the origin: servers below paths of one host would be one app.
        assert_eq!(manifest.get("id"), None);
        let icons = manifest["icons"].as_array().unwrap();
        assert_eq!(icons.len(), 3);
        for icon in icons {
            let (_, media, ..) = find(&format!("/page/{}", icon["src"].as_str().unwrap()));
            assert_eq!(icon["type"], *media);
        }
        for size in [180_u32, 192, 512] {
            let (_, _, content, _) = find(&format!("/page/icon-{size}.png"));
            // Width and height are the first fields of the first chunk (PNG, 11.2.2).
            assert_eq!(content[16..24], [size.to_be_bytes(); 2].concat());
        }
    }

    #[test]
    fn page_serves_every_file_and_every_imported_module() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let on_disk = std::fs::read_dir(folder).unwrap();
        for entry in on_disk {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let found = FILES
                .iter()
                .any(|(path, ..)| path.ends_with(&format!("/{name}")));
            assert!(found || name == "index.html", "{name} is not served");
        }
        for (path, content) in texts() {
            // At once, or when a view is opened.
            for mark in [" from './", "import('./"] {
                for rest in content.split(mark).skip(1) {
                    let (name, _) = rest.split_once('\'').unwrap();
                    let imported = format!("/page/{name}");
                    assert!(
                        FILES.iter().any(|(path, ..)| *path == imported),
                        "{path} imports {name}"
                    );
                }
            }
        }
    }

    /// Files that a browser loads before it shows the first view.
    #[test]
    fn the_first_load_is_small() {
        let mut wanted = vec!["/", "/page/main.js"];
        wanted.extend(["/page/style.css", "/page/changes.css"]);
        wanted.extend(["/page/icon.svg", "/page/icons.svg"]);
        let mut size = 0;
        for at in 0.. {
            let Some(path) = wanted.get(at) else { break };
            let (_, _, _, compressed) = FILES.iter().find(|file| file.0 == *path).unwrap();
            let (_, content) = texts().find(|text| text.0 == *path).unwrap();
            size += compressed.len();
            for (path, ..) in FILES {
                let from = path.strip_prefix("/page/").unwrap_or(path);
                let import = format!(" from './{from}';");
                if content.contains(&import) && !wanted.contains(path) {
                    wanted.push(path);
                }
            }
        }
        assert!(wanted.contains(&"/page/now.js") && !wanted.contains(&"/page/cost.js"));
        assert!(size <= 40 * 1024, "{size} bytes: {wanted:?}");
    }

    /// These APIs would interpret an agent's text as markup.
    #[test]
    fn no_module_makes_markup_of_text() {
        for (path, content) in texts() {
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
