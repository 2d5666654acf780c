//! Parses HTML tag by tag, and checks that pages contain only allowed markup.

/// A tag with its attributes, in order.
#[derive(Debug)]
pub struct Tag {
    pub name: String,
    pub attributes: Vec<(String, String)>,
}

impl Tag {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Every opening tag of a page.
pub fn tags(html: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let is_name = rest.starts_with(|c: char| c.is_ascii_alphabetic());
        if !is_name {
            assert!(rest.starts_with('/') || rest.starts_with("!doctype"), "a stray < before {:.60}", rest);
            continue;
        }
        let (tag, after) = tag(rest);
        tags.push(tag);
        rest = after;
    }
    tags
}

fn tag(text: &str) -> (Tag, &str) {
    let end = text.find(|c: char| c.is_whitespace() || c == '>' || c == '/').unwrap_or(text.len());
    let mut tag = Tag { name: text[..end].to_ascii_lowercase(), attributes: Vec::new() };
    let mut rest = text[end..].trim_start_matches(|c: char| c.is_whitespace() || c == '/');
    while !rest.is_empty() && !rest.starts_with('>') {
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '=' | '>' | '/')).unwrap_or(rest.len());
        let name = rest[..end].to_ascii_lowercase();
        rest = rest[end..].trim_start();
        let mut value = String::new();
        if let Some(after) = rest.strip_prefix('=') {
            let quoted = after.strip_prefix('"').unwrap_or_else(|| panic!("{name} is not quoted: {after:.60}"));
            let end = quoted.find('"').unwrap_or_else(|| panic!("{name} does not end: {quoted:.60}"));
            value = quoted[..end].to_owned();
            rest = &quoted[end + 1..];
        }
        assert!(!name.is_empty(), "no attribute: {rest:.60}");
        tag.attributes.push((name, value));
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
    }
    (tag, rest.strip_prefix('>').unwrap_or(rest))
}

const TAGS: &str = "a body br button caption circle code datalist dd desc details dialog div dl dt fieldset form g h1 h2 h3 \
    head header html input kbd label legend li line link main meta nav option p path pre progress rect script section \
    select span summary svg symbol table tbody td text textarea th thead time title tr ul use";

/// Asserts that a page has only known tags, no inline script or style, and no external URL.
pub fn check(path: &str, html: &str) {
    for tag in tags(html) {
        assert!(TAGS.split_whitespace().any(|known| known == tag.name), "{path} has {tag:?}");
        if tag.name == "script" {
            assert!(tag.get("src").is_some_and(|src| src.starts_with("/assets/")), "{path} has {tag:?}");
        }
        for (name, value) in &tag.attributes {
            assert!(!name.starts_with("on") && name != "style" && name != "srcdoc", "{path} has {tag:?}");
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == ':';
            let is_plain = name.chars().all(|c| plain(c.to_ascii_lowercase()));
            assert!(is_plain, "{path} has {tag:?}");
            if matches!(name.as_str(), "href" | "src" | "action" | "formaction") {
                let is_ours = value.starts_with('#') || (value.starts_with('/') && !value.starts_with("//"));
                assert!(is_ours, "{path} has {tag:?}");
            }
        }
    }
    assert_eq!(html.matches("</script>").count(), 1, "{path} has one script, and it is empty");
    assert!(html.contains("></script>"), "{path}");
}
