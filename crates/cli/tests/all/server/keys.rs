//! Keys and links from the command line: created with a server and without one, and valid for their scopes only.

use crate::server::fixture::{ServerFixture, output_text};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// One request over its own connection: the status and the whole response.
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

/// A sign-in link, and the address of its server.
fn link(fixture: &ServerFixture) -> (String, String) {
    let opened = fixture.json(&["open", "--print", "--json"]);
    assert_eq!(opened["ok"], true, "{opened}");
    let link = opened["link"].as_str().unwrap().to_owned();
    let address = link.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    (link, address)
}

fn secret(answer: &Value) -> String {
    answer["secret"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_key_created_without_a_server_is_valid_at_one_and_revoked_through_it() {
    let fixture = ServerFixture::new();
    let made = fixture.rutter(&["key", "create", "--name", "build", "--scope", "read,operate", "--expires", "90d"]);
    assert!(made.status.success(), "{}", output_text(&made));
    let build = String::from_utf8(made.stdout).unwrap();
    assert_eq!(build.lines().count(), 1, "stdout has the secret alone: {build}");
    let (_, address) = link(&fixture);
    let (status, answer) = me(&address, build.trim());
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"build\"") && answer.contains("operate") && !answer.contains("approve"), "{answer}");

    let looks = fixture.json(&["key", "create", "--name", "screen", "--scope", "read", "--json"]);
    assert_eq!(me(&address, &secret(&looks)).0, 200, "the server knows a key created through it at once");
    let listed = fixture.json(&["key", "list", "--json"]);
    let names: Vec<&str> = listed["keys"].as_array().unwrap().iter().map(|key| key["name"].as_str().unwrap()).collect();
    assert!(names.len() == 2 && names.contains(&"build") && names.contains(&"screen"), "{listed}");
    assert!(!listed.to_string().contains(build.trim()), "no list contains a secret");
    let output = fixture.rutter(&["key", "list"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("read,operate"), "{}", output_text(&output));

    let id = build.split('_').nth(1).unwrap();
    let revoked = fixture.rutter(&["key", "revoke", id]);
    assert!(revoked.status.success(), "{}", output_text(&revoked));
    let (status, answer) = me(&address, build.trim());
    assert!(status == 401 && answer.contains("revoked"), "{answer}");
    assert!(fixture.rutter(&["stop"]).status.success());
    let stored = fixture.json(&["key", "list", "--json"]);
    let build = stored["keys"].as_array().unwrap().iter().find(|key| key["name"] == "build").unwrap();
    assert_eq!(build["status"], "revoked", "also without the server: {stored}");
}

#[test]
fn a_link_from_the_command_line_signs_in_one_browser_once() {
    let fixture = ServerFixture::new();
    let (link, address) = link(&fixture);
    let code = link.split_once("code=").unwrap().1;
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let (status, entered) = ask(&address, "POST /enter", form, &format!("code={code}"));
    assert_eq!(status, 303, "{entered}");
    let set = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("Cookie: {}\r\n", set.split(';').next().unwrap());
    let (status, answer) = ask(&address, "GET /api/v1/me", &cookie, "");
    assert!(status == 200 && answer.contains("approve") && answer.contains("\"operator\""), "{answer}");
    assert_eq!(ask(&address, "POST /enter", form, &format!("code={code}")).0, 401);
    assert!(fixture.rutter(&["stop"]).status.success());
}

#[test]
fn an_invalid_key_request_is_refused_with_a_reason() {
    let fixture = ServerFixture::new();
    for (words, code) in [
        (&["key", "create", "--name", "a", "--scope", "everything", "--json"][..], "command.invalid"),
        (&["key", "create", "--name", "a", "--json"], "command.invalid"),
        (&["key", "create", "--name", "a", "--scope", "read", "--expires", "soon", "--json"], "command.invalid"),
        (&["key", "create", "--name", "agent", "--scope", "read", "--json"], "server.arguments"),
        (&["key", "create", "--name", "", "--scope", "read", "--json"], "server.arguments"),
        (&["key", "revoke", "000000000000", "--json"], "store.not_found"),
    ] {
        let answer = fixture.json(words);
        assert_eq!((&answer["ok"], &answer["error"]["code"]), (&false.into(), &code.into()), "{words:?} {answer}");
    }
}
