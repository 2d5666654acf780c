//! Keys and links from the command line: made with a server and without one, and good for what they were made for.

use crate::stage::{Stage, told};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One request over a connection of its own: status and everything that came back.
fn ask(address: &str, first: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let length = body.len();
    let text = format!(
        "{first} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer.split(' ').nth(1).unwrap().parse().unwrap(), answer)
}

fn me(address: &str, secret: &str) -> (u16, String) {
    ask(address, "GET /api/v1/me", &format!("Authorization: Bearer {secret}\r\n"), "")
}

/// A link that lets in, and the address of the server it leads to.
fn link(stage: &Stage) -> (String, String) {
    let opened = stage.json(&["open", "--print", "--json"]);
    assert_eq!(opened["ok"], true, "{opened}");
    let link = opened["link"].as_str().unwrap().to_owned();
    let address = link.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    (link, address)
}

fn secret(answer: &Value) -> String {
    answer["secret"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_key_made_without_a_server_is_good_at_one_and_revoked_through_it() {
    let stage = Stage::new();
    let made =
        stage.rutter(&["key", "create", "--name", "build", "--scope", "read,operate", "--expires", "90d"]);
    assert!(made.status.success(), "{}", told(&made));
    let build = String::from_utf8(made.stdout).unwrap();
    assert_eq!(build.lines().count(), 1, "stdout has the secret alone: {build}");
    let (_, address) = link(&stage);
    let (status, answer) = me(&address, build.trim());
    assert_eq!(status, 200, "{answer}");
    assert!(
        answer.contains("\"build\"") && answer.contains("operate") && !answer.contains("approve"),
        "{answer}"
    );

    let looks = stage.json(&["key", "create", "--name", "screen", "--scope", "read", "--json"]);
    assert_eq!(me(&address, &secret(&looks)).0, 200, "the server knows what was made through it at once");
    let listed = stage.json(&["key", "list", "--json"]);
    let names: Vec<&str> =
        listed["keys"].as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names.contains(&"build") && names.contains(&"screen"), "{listed}");
    assert!(!listed.to_string().contains(build.trim()), "no list has a secret");
    let shown = stage.rutter(&["key", "list"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("read,operate"), "{}", told(&shown));

    let id = build.split('_').nth(1).unwrap();
    let revoked = stage.rutter(&["key", "revoke", id]);
    assert!(revoked.status.success(), "{}", told(&revoked));
    let (status, answer) = me(&address, build.trim());
    assert!(status == 401 && answer.contains("revoked"), "{answer}");
    assert!(stage.rutter(&["stop"]).status.success());
    let kept = stage.json(&["key", "list", "--json"]);
    let build = kept["keys"].as_array().unwrap().iter().find(|key| key["name"] == "build").unwrap();
    assert_eq!(build["status"], "revoked", "also without the server: {kept}");
}

#[test]
fn a_link_of_the_command_line_lets_one_browser_in_once() {
    let stage = Stage::new();
    let (link, address) = link(&stage);
    let code = link.split_once("code=").unwrap().1;
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let (status, entered) = ask(&address, "POST /enter", form, &format!("code={code}"));
    assert_eq!(status, 303, "{entered}");
    let set = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", set.split(';').next().unwrap());
    let (status, answer) = ask(&address, "GET /api/v1/me", &cookie, "");
    assert!(status == 200 && answer.contains("approve") && answer.contains("\"operator\""), "{answer}");
    assert_eq!(ask(&address, "POST /enter", form, &format!("code={code}")).0, 401);
    assert!(stage.rutter(&["stop"]).status.success());
}

#[test]
fn what_makes_no_key_is_refused_and_says_why() {
    let stage = Stage::new();
    for (words, code) in [
        (&["key", "create", "--name", "a", "--scope", "everything", "--json"][..], "command.invalid"),
        (&["key", "create", "--name", "a", "--json"], "command.invalid"),
        (
            &["key", "create", "--name", "a", "--scope", "read", "--expires", "soon", "--json"],
            "command.invalid",
        ),
        (&["key", "create", "--name", "agent", "--scope", "read", "--json"], "server.arguments"),
        (&["key", "create", "--name", "", "--scope", "read", "--json"], "server.arguments"),
        (&["key", "revoke", "000000000000", "--json"], "store.not_found"),
    ] {
        let answer = stage.json(words);
        assert_eq!(
            (&answer["ok"], &answer["error"]["code"]),
            (&false.into(), &code.into()),
            "{words:?} {answer}"
        );
    }
}
