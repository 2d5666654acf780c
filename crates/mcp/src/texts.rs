//! Built-in texts: the guide, the plan format in short, the examples.

/// What an agent should know, in four kilobytes.
pub(crate) const GUIDE: &str = include_str!("texts/guide.md");

/// The plan format by example; enough to write a plan that `save_plan` then checks.
pub(crate) const PLAN: &str = include_str!("texts/plan.md");

pub(crate) struct ExamplePlan {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
}

macro_rules! examples {
    ($($name:literal: $path:literal),* $(,)?) => {
        &[$(ExamplePlan { name: $name, source: include_str!(concat!("../../../examples/", $path)) }),*]
    };
}

pub(crate) const EXAMPLES: &[ExamplePlan] = examples! {
    "bulk-update": "bulk-update.yaml",
    "database-migration": "database-migration.yaml",
    "document-pipeline": "document-pipeline.yaml",
    "incident": "incident.yaml",
    "off-boarding": "off-boarding.yaml",
    "order": "order.yaml",
    "parcel": "parcel/plan.yaml",
    "release": "release.yaml",
    "trip": "trip.yaml",
};

pub(crate) fn example(name: &str) -> Option<&'static ExamplePlan> {
    EXAMPLES.iter().find(|example| example.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_guide_and_the_plan_in_short_stay_short() {
        assert!(GUIDE.len() <= 4_096, "{}", GUIDE.len());
        assert!(PLAN.len() <= 3_072, "{}", PLAN.len());
    }

    #[test]
    fn every_example_is_here() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let is_plan = path.extension().is_some_and(|end| end == "yaml") || path.join("plan.yaml").exists();
            assert_eq!(example(&name).is_some(), is_plan, "{name}");
        }
    }
}
