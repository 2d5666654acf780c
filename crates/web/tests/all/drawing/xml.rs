//! Parses SVG as strictly as a browser parses XML, and finds what a strict content security policy would refuse.

/// Panics unless elements are nested correctly, every `&` begins a known entity, and there is no style or script.
pub fn check(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some(start) = rest.find('<') {
        check_text(&rest[..start]);
        let end = start + rest[start..].find('>').expect("a tag that never ends");
        let tag = &rest[start + 1..end];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in the wrong order");
        } else {
            check_text(tag);
            let name = tag.split([' ', '/']).next().unwrap();
            assert!(!["style", "script", "foreignObject", "image"].contains(&name), "{tag}");
            for attribute in [" style=", " on", "javascript:"] {
                assert!(!outside_quotes(tag).contains(attribute), "{tag}");
            }
            assert_eq!(outside_quotes(tag).matches('"').count() % 2, 0, "{tag}");
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && rest.is_empty(), "left open: {open:?}");
}

/// The ids of elements, which must be unique for fragments to be replaced.
pub fn ids(svg: &str) -> Vec<&str> {
    let mut ids: Vec<&str> = svg.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    ids.sort_unstable();
    ids
}

fn check_text(text: &str) {
    for rest in text.split('&').skip(1) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        assert!(known.iter().any(|entity| rest.starts_with(entity)), "a bare & in {text}");
    }
}

fn outside_quotes(tag: &str) -> String {
    tag.split('"').enumerate().map(|(place, part)| if place % 2 == 0 { part } else { "\"\"" }).collect()
}
