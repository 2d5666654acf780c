//! Names and ids. Each is its own type, so that one cannot be passed for another.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Defines a newtype for a text id.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: &str) -> $name {
                $name(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
    };
}

text_id! {
    /// A step of a plan, unique within it.
    StepId
}
text_id! {
    /// `server.tool`.
    ToolName
}
text_id! {
    /// An execution, `exec_…`.
    ExecutionId
}
text_id! {
    /// A plan, `plan_…`; its revisions share it.
    PlanId
}
text_id! {
    /// A process that drives executions.
    WorkerId
}
text_id! {
    /// Who owns plans, executions and journals.
    TenantId
}

/// A step, or one item of a step that fans out: `charge`, `update[12]`.
///
/// This is the unit that has attempts, results and compensations.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartId {
    pub step: StepId,
    pub item: Option<u32>,
}

impl PartId {
    pub fn whole(step: StepId) -> PartId {
        PartId { step, item: None }
    }

    pub fn parse(text: &str) -> Option<PartId> {
        let Some(open) = text.rfind('[') else {
            return (!text.is_empty()).then(|| PartId::whole(StepId::new(text)));
        };
        let digits = text[open + 1..].strip_suffix(']')?;
        let canonical = digits == "0" || (!digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit()));
        let item = digits.parse().ok().filter(|_| canonical && open > 0)?;
        Some(PartId { step: StepId::new(&text[..open]), item: Some(item) })
    }
}

impl fmt::Display for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.item {
            None => f.write_str(self.step.as_str()),
            Some(item) => write!(f, "{}[{item}]", self.step),
        }
    }
}

impl fmt::Debug for PartId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for PartId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PartId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PartId, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        PartId::parse(&text).ok_or_else(|| de::Error::custom("expected a step id, or step[item]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_as_they_are_read() {
        for text in ["charge", "update[0]", "update[12]"] {
            assert_eq!(PartId::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "[1]", "a[", "a[x]", "a[01]", "a[1", "a[-1]", "a[99999999999]"] {
            assert_eq!(PartId::parse(text), None, "{text}");
        }
    }
}
