//! The formats: which facts stand under which heading, and how a text is made to fit.

use super::focus::Focus;
use super::{Account, Fact, Format, Kind, moment};
use std::collections::BTreeMap;

pub(super) struct Section {
    heading: Option<&'static str>,
    lines: Vec<Line>,
}

struct Line {
    text: String,
    /// When there is no room for all lines, the lowest are kept.
    rank: usize,
}

pub(super) fn sections(account: &Account, format: Format, focus: &Focus) -> Vec<Section> {
    let mut facts: Vec<&Fact> = account.facts.iter().filter(|fact| focus.wants(fact)).collect();
    let sections = match format {
        Format::Itinerary => itinerary(&mut facts, focus),
        _ => {
            if focus.is_ranked() {
                facts.sort_by_key(|fact| focus.rank(fact));
            } else {
                facts.sort_by_key(|fact| fact.kind);
            }
            match format {
                Format::Summary => vec![Section { heading: None, lines: sentences(&facts, focus) }],
                Format::BulletPoints => vec![Section { heading: None, lines: bullets(&facts, focus) }],
                Format::Structured => by_kind(&facts, focus),
                Format::Report => report(account, &facts, focus),
                Format::Analysis => analysis(account, &facts, focus),
                Format::Itinerary => Vec::new(),
            }
        }
    };
    sections.into_iter().filter(|section| !section.lines.is_empty()).collect()
}

/// One after the other, as prose.
fn sentences(facts: &[&Fact], focus: &Focus) -> Vec<Line> {
    let sentence = |fact: &&Fact| Line { text: format!("{}.", capital(&fact.text)), rank: focus.rank(fact) };
    facts.iter().map(sentence).collect()
}

fn bullets(facts: &[&Fact], focus: &Focus) -> Vec<Line> {
    facts.iter().map(|fact| Line { text: format!("- {}", fact.text), rank: focus.rank(fact) }).collect()
}

/// A heading for each kind of fact.
fn by_kind(facts: &[&Fact], focus: &Focus) -> Vec<Section> {
    let mut sections: Vec<(Kind, Vec<&Fact>)> = Vec::new();
    for fact in facts {
        match sections.iter_mut().find(|(kind, _)| *kind == fact.kind) {
            Some((_, facts)) => facts.push(fact),
            None => sections.push((fact.kind, vec![fact])),
        }
    }
    let section = |(kind, facts): (Kind, Vec<&Fact>)| Section {
        heading: Some(kind.heading()),
        lines: bullets(&facts, focus),
    };
    sections.into_iter().map(section).collect()
}

/// Outcome, findings, the rest, and what to do.
fn report(account: &Account, facts: &[&Fact], focus: &Focus) -> Vec<Section> {
    let of = |kinds: &[Kind]| -> Vec<&Fact> {
        facts.iter().filter(|fact| kinds.contains(&fact.kind)).copied().collect()
    };
    let section = |heading: &'static str, kinds: &[Kind]| Section {
        heading: Some(heading),
        lines: bullets(&of(kinds), focus),
    };
    let findings = [Kind::Remains, Kind::Doubt, Kind::Failure, Kind::Compensation, Kind::Deviation];
    let mut recommended = bullets(&of(&[Kind::Question]), focus);
    recommended.push(Line { text: format!("- next: {}", account.next), rank: 1 });
    vec![
        section("Outcome", &[Kind::Outcome, Kind::Spent]),
        section("Findings", &findings),
        section("Decisions", &[Kind::Approval, Kind::Decision, Kind::Action, Kind::Control]),
        section("Steps", &[Kind::Step, Kind::Plan]),
        Section { heading: Some("Recommendations"), lines: recommended },
    ]
}

/// By time, a day under its date; what has no time stands first.
fn itinerary(facts: &mut Vec<&Fact>, focus: &Focus) -> Vec<Section> {
    let is_course = |fact: &Fact| fact.at.is_some() || fact.kind == Kind::Outcome;
    let timeless: Vec<&Fact> = facts.iter().filter(|fact| fact.at.is_none()).copied().collect();
    facts.retain(|fact| fact.at.is_some());
    facts.sort_by_key(|fact| fact.at);
    let mut sections = vec![Section {
        heading: None,
        lines: timeless
            .iter()
            .map(|fact| Line {
                text: format!("- {}", fact.text),
                rank: if is_course(fact) { 0 } else { focus.rank(fact) + 50 },
            })
            .collect(),
    }];
    let mut day = String::new();
    for fact in facts.iter() {
        let Some(at) = fact.at else { continue };
        let date = moment::date(at);
        if date != day {
            let text = format!("{date}:");
            sections.push(Section { heading: None, lines: vec![Line { text, rank: 0 }] });
            day = date;
        }
        let line = Line { text: format!("- {} {}", moment::clock(at), fact.text), rank: focus.rank(fact) };
        if let Some(section) = sections.last_mut() {
            section.lines.push(line);
        }
    }
    sections
}

/// How often what happened, and what that points at.
fn analysis(account: &Account, facts: &[&Fact], focus: &Focus) -> Vec<Section> {
    let mut counts: BTreeMap<Kind, usize> = BTreeMap::new();
    facts.iter().for_each(|fact| *counts.entry(fact.kind).or_default() += 1);
    let told = [Kind::Outcome, Kind::Spent];
    let counted = counts.iter().filter(|(kind, _)| !told.contains(kind));
    let counted = counted
        .map(|(kind, count)| Line {
            text: format!("- {}: {count}", kind.heading().to_lowercase()),
            rank: *kind as usize,
        })
        .collect();
    let of = |kinds: &[Kind]| -> Vec<&Fact> {
        facts.iter().filter(|fact| kinds.contains(&fact.kind)).copied().collect()
    };
    let patterns = of(&[Kind::Doubt, Kind::Failure, Kind::Compensation, Kind::Deviation, Kind::Spent]);
    let mut implied = bullets(&of(&[Kind::Remains, Kind::Question]), focus);
    implied.push(Line { text: format!("- next: {}", account.next), rank: 1 });
    let rest = [Kind::Approval, Kind::Decision, Kind::Action, Kind::Control, Kind::Step, Kind::Plan];
    vec![
        Section { heading: Some("Outcome"), lines: bullets(&of(&[Kind::Outcome]), focus) },
        Section { heading: Some("Counts"), lines: counted },
        Section { heading: Some("Patterns"), lines: bullets(&patterns, focus) },
        Section { heading: Some("Implications"), lines: implied },
        Section { heading: Some("Behind it"), lines: bullets(&of(&rest), focus) },
    ]
}

/// Keeps the most pressing lines that fit, in their order, and says how many were left out and where they are.
pub(super) fn fit(sections: Vec<Section>, chars_max: usize, uri: &str) -> String {
    let pointer = |left: usize| format!("… {left} more lines: {uri}");
    let room = chars_max.saturating_sub(pointer(9_999).chars().count() + 2);
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        order.extend(section.lines.iter().enumerate().map(|(line, Line { rank, .. })| (*rank, at, line)));
    }
    order.sort_unstable();
    let all = order.len();
    let mut kept: Vec<Vec<bool>> = sections.iter().map(|section| vec![false; section.lines.len()]).collect();
    let mut used = 0;
    let mut count = 0;
    for (_, at, line) in order {
        let mut cost = sections[at].lines[line].text.chars().count() + 1;
        if !kept[at].contains(&true) {
            cost += sections[at].heading.map_or(0, |heading| heading.chars().count() + 5) + 1;
        }
        if used + cost > room {
            continue;
        }
        used += cost;
        count += 1;
        kept[at][line] = true;
    }
    let mut text = String::new();
    for (section, kept) in sections.iter().zip(&kept).filter(|(_, kept)| kept.contains(&true)) {
        if !text.is_empty() {
            text.push('\n');
        }
        if let Some(heading) = section.heading {
            text.push_str(&format!("## {heading}\n"));
        }
        let lines = section.lines.iter().zip(kept).filter(|(_, kept)| **kept);
        lines.for_each(|(line, _)| {
            text.push_str(&line.text);
            text.push('\n');
        });
    }
    if count < all {
        text.push_str(&pointer(all - count));
    }
    text.trim_end().to_owned()
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
