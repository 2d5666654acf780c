//! The output of the program, and checks of it.

use serde_json::Value;

#[derive(Debug)]
pub struct Answer {
    /// `None` if it was killed.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The JSON, if it ended with this code and status.
    #[track_caller]
    pub fn ended(&self, code: i32, status: &str) -> Value {
        assert_eq!(self.code, Some(code), "{self:?}");
        let json = self.json();
        assert_eq!(json["status"], status, "{self:?}");
        json
    }

    /// The execution that `run` printed, even if it was killed afterwards.
    #[track_caller]
    pub fn execution(&self) -> String {
        let named = self.stderr.split_whitespace().find(|word| word.starts_with("exec_"));
        named.unwrap_or_else(|| panic!("no execution is named: {self:?}")).to_owned()
    }

    /// The code of the error with which it refused.
    #[track_caller]
    pub fn refused(&self) -> String {
        assert_ne!(self.code, Some(0), "{self:?}");
        let json = [&self.stdout, &self.stderr].into_iter().find_map(|text| serde_json::from_str(text).ok());
        let answer: Value = json.unwrap_or_else(|| panic!("no error as JSON: {self:?}"));
        answer["error"]["code"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

/// The status of every step, as `step=status`.
pub fn steps(json: &Value) -> Vec<String> {
    let steps = json["steps"].as_array().unwrap();
    steps.iter().map(|step| format!("{}={}", text(&step["id"]), text(&step["status"]))).collect()
}

/// The questions of one kind.
pub fn questions<'a>(json: &'a Value, kind: &str) -> Vec<&'a Value> {
    json["questions"].as_array().unwrap().iter().filter(|question| question["kind"] == kind).collect()
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text"))
}
