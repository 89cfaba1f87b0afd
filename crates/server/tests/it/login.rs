//! The cookie of a page.

use serde_json::json;
use teamster_testkit::http::Request;

use super::served::Served;

#[test]
fn a_page_trades_its_token_for_a_cookie() {
    let served = Served::start();
    let login = |token: &str| {
        Request::new(&served.address, "POST", "/v1/login")
            .header("Origin", &format!("http://{}", served.address))
            .json(&json!({ "token": token }))
            .send()
    };
    login("wrong").is_problem(401, "UNAUTHORIZED");
    let answer = login(&served.token);
    assert_eq!(answer.status, 204, "{}", answer.body);
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(
        !cookie.contains(&served.token) && !cookie.contains("Secure"),
        "{cookie}"
    );
    let pair = cookie.split(';').next().unwrap().to_owned();
    let get = |served: &Served, pair: &str| {
        Request::new(&served.address, "GET", "/v1/runs")
            .header("Cookie", &format!("a=b; {pair}"))
            .send()
    };
    assert_eq!(get(&served, &pair).status, 200);
    get(&served, &format!("{pair}x")).is_problem(401, "UNAUTHORIZED");
    let (name, value) = pair.split_once('=').unwrap();
    let later = value.replacen(|c: char| c.is_ascii_digit(), "9", 1);
    get(&served, &format!("{name}={later}")).is_problem(401, "UNAUTHORIZED");
}
