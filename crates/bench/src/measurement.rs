//! The output of a benchmark: numbers, what they are compared with, and the target of the ratio.

use serde_json::{Value, json};

/// A number, what it is compared with, and its target.
pub(crate) struct Measurement {
    pub(crate) what: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    /// The ratio that counts, and its target.
    pub(crate) ratio: Option<(f64, &'static str, BenchTarget)>,
}

#[derive(Clone, Copy)]
pub(crate) enum BenchTarget {
    AtLeast(f64),
    AtMost(f64),
    None,
}

pub(crate) fn as_json(measured: &[Measurement]) -> Value {
    let one = |measured: &Measurement| {
        let mut object = json!({"what": measured.what, "value": rounded(measured.value), "unit": measured.unit});
        if let Some((ratio, of, target)) = measured.ratio {
            object["ratio"] = json!((ratio * 1_000.0).round() / 1_000.0);
            object["ratio_of"] = json!(of);
            match target {
                BenchTarget::AtLeast(least) => object["at_least"] = json!(least),
                BenchTarget::AtMost(most) => object["at_most"] = json!(most),
                BenchTarget::None => {}
            }
        }
        object
    };
    json!({"measured": measured.iter().map(one).collect::<Vec<_>>()})
}

pub(crate) fn as_table(measured: &[Measurement]) -> String {
    let mut rows: Vec<[String; 4]> = Vec::new();
    for line in measured {
        let (ratio, target) = match line.ratio {
            None => (String::new(), String::new()),
            Some((ratio, of, target)) => {
                let text = match target {
                    BenchTarget::AtLeast(least) if ratio >= least => format!("at least {least}: met"),
                    BenchTarget::AtLeast(least) => format!("at least {least}: missed"),
                    BenchTarget::AtMost(most) if ratio <= most => format!("at most {most}: met"),
                    BenchTarget::AtMost(most) => format!("at most {most}: missed"),
                    BenchTarget::None => String::new(),
                };
                (format!("{ratio:.2} {of}"), text)
            }
        };
        rows.push([line.what.clone(), format!("{} {}", grouped(line.value), line.unit), ratio, target]);
    }
    let widths: [usize; 3] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |[what, value, ratio, target]: &[String; 4]| {
        let [first, second, third] = widths;
        format!("{what:first$}  {value:second$}  {ratio:third$}  {target}").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn rounded(value: f64) -> f64 {
    if value >= 100.0 { value.round() } else { (value * 100.0).round() / 100.0 }
}

/// Groups digits by thousands.
fn grouped(value: f64) -> String {
    if value < 100.0 {
        return format!("{value:.2}");
    }
    let digits = format!("{value:.0}");
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for group in digits.as_bytes()[first..].chunks(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.extend(group.iter().map(|digit| char::from(*digit)));
    }
    text
}
