//! The formats: the heading of each fact, and how a text is shortened to fit.

use super::focus::SummaryFocus;
use super::{FactKind, SummaryContent, SummaryFact, SummaryFormat};
use rutter_core::time::calendar::{utc_clock, utc_date};
use std::collections::BTreeMap;

pub struct SummarySection {
    heading: Option<&'static str>,
    lines: Vec<SummaryLine>,
}

struct SummaryLine {
    text: String,
    /// If not all lines fit, the lowest ranks remain.
    rank: usize,
}

pub fn sections(account: &SummaryContent, format: SummaryFormat, focus: &SummaryFocus) -> Vec<SummarySection> {
    let mut facts: Vec<&SummaryFact> = account.facts.iter().filter(|fact| focus.wants(fact)).collect();
    let sections = match format {
        SummaryFormat::Itinerary => itinerary(&mut facts, focus),
        _ => {
            if focus.is_ranked() {
                facts.sort_by_key(|fact| focus.rank(fact));
            } else {
                facts.sort_by_key(|fact| fact.kind);
            }
            match format {
                SummaryFormat::Summary => {
                    vec![SummarySection { heading: None, lines: sentences(&facts, focus) }]
                }
                SummaryFormat::BulletPoints => {
                    vec![SummarySection { heading: None, lines: bullets(&facts, focus) }]
                }
                SummaryFormat::Structured => by_kind(&facts, focus),
                SummaryFormat::Report => report(account, &facts, focus),
                SummaryFormat::Analysis => analysis(account, &facts, focus),
                SummaryFormat::Itinerary => Vec::new(),
            }
        }
    };
    sections.into_iter().filter(|section| !section.lines.is_empty()).collect()
}

/// As prose.
fn sentences(facts: &[&SummaryFact], focus: &SummaryFocus) -> Vec<SummaryLine> {
    let sentence =
        |fact: &&SummaryFact| SummaryLine { text: format!("{}.", capital(&fact.text)), rank: focus.rank(fact) };
    facts.iter().map(sentence).collect()
}

fn bullets(facts: &[&SummaryFact], focus: &SummaryFocus) -> Vec<SummaryLine> {
    facts.iter().map(|fact| SummaryLine { text: format!("- {}", fact.text), rank: focus.rank(fact) }).collect()
}

/// One section for each kind of fact.
fn by_kind(facts: &[&SummaryFact], focus: &SummaryFocus) -> Vec<SummarySection> {
    let mut sections: Vec<(FactKind, Vec<&SummaryFact>)> = Vec::new();
    for fact in facts {
        match sections.iter_mut().find(|(kind, _)| *kind == fact.kind) {
            Some((_, facts)) => facts.push(fact),
            None => sections.push((fact.kind, vec![fact])),
        }
    }
    let section = |(kind, facts): (FactKind, Vec<&SummaryFact>)| SummarySection {
        heading: Some(kind.heading()),
        lines: bullets(&facts, focus),
    };
    sections.into_iter().map(section).collect()
}

/// Outcome, findings, the rest, and recommendations.
fn report(account: &SummaryContent, facts: &[&SummaryFact], focus: &SummaryFocus) -> Vec<SummarySection> {
    let of = |kinds: &[FactKind]| -> Vec<&SummaryFact> {
        facts.iter().filter(|fact| kinds.contains(&fact.kind)).copied().collect()
    };
    let section = |heading: &'static str, kinds: &[FactKind]| SummarySection {
        heading: Some(heading),
        lines: bullets(&of(kinds), focus),
    };
    let findings = [FactKind::Remains, FactKind::Doubt, FactKind::Failure, FactKind::Compensation, FactKind::Deviation];
    let mut recommended = bullets(&of(&[FactKind::Question]), focus);
    recommended.push(SummaryLine { text: format!("- next: {}", account.next), rank: 1 });
    vec![
        section("Outcome", &[FactKind::Outcome, FactKind::Spent]),
        section("Findings", &findings),
        section("Decisions", &[FactKind::Approval, FactKind::Decision, FactKind::Action, FactKind::Control]),
        section("Steps", &[FactKind::Step, FactKind::Plan]),
        SummarySection { heading: Some("Recommendations"), lines: recommended },
    ]
}

/// By time, with a section per day; facts without a time come first.
fn itinerary(facts: &mut Vec<&SummaryFact>, focus: &SummaryFocus) -> Vec<SummarySection> {
    let is_course = |fact: &SummaryFact| fact.at.is_some() || fact.kind == FactKind::Outcome;
    let timeless: Vec<&SummaryFact> = facts.iter().filter(|fact| fact.at.is_none()).copied().collect();
    facts.retain(|fact| fact.at.is_some());
    facts.sort_by_key(|fact| fact.at);
    let mut sections = vec![SummarySection {
        heading: None,
        lines: timeless
            .iter()
            .map(|fact| SummaryLine {
                text: format!("- {}", fact.text),
                rank: if is_course(fact) { 0 } else { focus.rank(fact) + 50 },
            })
            .collect(),
    }];
    let mut day = String::new();
    for fact in facts.iter() {
        let Some(at) = fact.at else { continue };
        let date = utc_date(at);
        if date != day {
            let text = format!("{date}:");
            sections.push(SummarySection { heading: None, lines: vec![SummaryLine { text, rank: 0 }] });
            day = date;
        }
        let line = SummaryLine { text: format!("- {} {}", utc_clock(at), fact.text), rank: focus.rank(fact) };
        if let Some(section) = sections.last_mut() {
            section.lines.push(line);
        }
    }
    sections
}

/// Counts of events, and what they suggest.
fn analysis(account: &SummaryContent, facts: &[&SummaryFact], focus: &SummaryFocus) -> Vec<SummarySection> {
    let mut counts: BTreeMap<FactKind, usize> = BTreeMap::new();
    facts.iter().for_each(|fact| *counts.entry(fact.kind).or_default() += 1);
    let fact_kinds = [FactKind::Outcome, FactKind::Spent];
    let counted = counts.iter().filter(|(kind, _)| !fact_kinds.contains(kind));
    let counted = counted
        .map(|(kind, count)| SummaryLine {
            text: format!("- {}: {count}", kind.heading().to_lowercase()),
            rank: *kind as usize,
        })
        .collect();
    let of = |kinds: &[FactKind]| -> Vec<&SummaryFact> {
        facts.iter().filter(|fact| kinds.contains(&fact.kind)).copied().collect()
    };
    let patterns =
        of(&[FactKind::Doubt, FactKind::Failure, FactKind::Compensation, FactKind::Deviation, FactKind::Spent]);
    let mut implied = bullets(&of(&[FactKind::Remains, FactKind::Question]), focus);
    implied.push(SummaryLine { text: format!("- next: {}", account.next), rank: 1 });
    let rest =
        [FactKind::Approval, FactKind::Decision, FactKind::Action, FactKind::Control, FactKind::Step, FactKind::Plan];
    vec![
        SummarySection { heading: Some("Outcome"), lines: bullets(&of(&[FactKind::Outcome]), focus) },
        SummarySection { heading: Some("Counts"), lines: counted },
        SummarySection { heading: Some("Patterns"), lines: bullets(&patterns, focus) },
        SummarySection { heading: Some("Implications"), lines: implied },
        SummarySection { heading: Some("Details"), lines: bullets(&of(&rest), focus) },
    ]
}

/// Selects the most important lines that fit, in their order, and says how many were omitted and where they are.
pub fn fit(sections: Vec<SummarySection>, chars_max: usize, uri: &str) -> String {
    let pointer = |left: usize| format!("… {left} more lines: {uri}");
    let room = chars_max.saturating_sub(pointer(9_999).chars().count() + 2);
    let mut order: Vec<(usize, usize, usize)> = Vec::new();
    for (at, section) in sections.iter().enumerate() {
        order.extend(section.lines.iter().enumerate().map(|(line, SummaryLine { rank, .. })| (*rank, at, line)));
    }
    order.sort_unstable();
    let all = order.len();
    let mut stored: Vec<Vec<bool>> = sections.iter().map(|section| vec![false; section.lines.len()]).collect();
    let mut used = 0;
    let mut count = 0;
    for (_, at, line) in order {
        let mut cost = sections[at].lines[line].text.chars().count() + 1;
        if !stored[at].contains(&true) {
            cost += sections[at].heading.map_or(0, |heading| heading.chars().count() + 5) + 1;
        }
        if used + cost > room {
            continue;
        }
        used += cost;
        count += 1;
        stored[at][line] = true;
    }
    let mut text = String::new();
    for (section, retained) in sections.iter().zip(&stored).filter(|(_, existing)| existing.contains(&true)) {
        if !text.is_empty() {
            text.push('\n');
        }
        if let Some(heading) = section.heading {
            text.push_str(&format!("## {heading}\n"));
        }
        let lines = section.lines.iter().zip(retained).filter(|(_, saved)| **saved);
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
