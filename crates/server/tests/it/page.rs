//! The page. What it does in a browser is tested by `.ci/page`.

use teamster_testkit::http::Request;

use super::served::Served;

#[test]
fn the_page_needs_no_token_and_loads_nothing_from_elsewhere() {
    let served = Served::start();
    let get = |path: &str| Request::new(&served.address, "GET", path).send();
    let page = get("/");
    assert_eq!(
        (page.status, page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'self';"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!(
        page.header("cross-origin-resource-policy"),
        Some("same-origin")
    );
    // All that it names is there, and is of this server.
    let named: Vec<_> = (page.body.split(['"', '#']))
        // A picture is no text, which this client reads.
        .filter(|word| word.starts_with("page/") && !word.contains(".png"))
        .collect();
    assert!(named.len() > 3, "{named:?}");
    for path in named {
        let file = get(&format!("/{path}"));
        assert_eq!(file.status, 200, "{path}");
        let media = file.header("content-type").unwrap();
        assert!(
            [
                "text/css",
                "text/javascript",
                "image/svg+xml",
                "application/manifest+json"
            ]
            .iter()
            .any(|known| media.starts_with(known)),
            "{path}: {media}"
        );
    }
    assert!(!page.body.contains("http://") && !page.body.contains("https://"));
    for path in ["/page/", "/page/nothing.js", "/page/../Cargo.toml", "/page"] {
        get(path).is_problem(404, "NOT_FOUND");
    }
    Request::new(&served.address, "POST", "/")
        .send()
        .is_problem(405, "METHOD_NOT_ALLOWED");
    // Its files are all that needs no token.
    get("/v1/runs").is_problem(401, "UNAUTHORIZED");
    served.end();
}
