//! What a comparison found: as a table to read, as JSON to keep.

use serde_json::{Value as Json, json};

use super::numbers::Spread;
use super::shapes::{Numbers, Shape};
use super::{Bar, Better, Figure};

/// Our own server's name; the others are its peers.
pub const OURS: &str = "impel";

/// What was measured of one server: the numbers of each round.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The server's name.
    pub server: String,
    /// One for each round.
    pub rounds: Vec<Numbers>,
}

/// One figure of a shape, summed up over rounds and servers.
#[derive(Debug, PartialEq)]
pub struct Summary {
    /// Of each server that has any number, its spread.
    pub servers: Vec<(String, Spread)>,
    /// Ours by the best peer's.
    pub ratio: Option<f64>,
    /// Whether bar and stretch are reached; `None` where there is none, or nothing to tell it by.
    pub reached: [Option<bool>; 2],
}

/// Sums up the figure in that column.
pub fn summarize(figure: &Figure, column: usize, rows: &[Row]) -> Summary {
    let spread = |row: &Row| Spread::of(row.rounds.iter().filter_map(|numbers| numbers[column]));
    let servers: Vec<(String, Spread)> =
        rows.iter().filter_map(|row| Some((row.server.clone(), spread(row)?))).collect();
    let ours = servers.iter().find(|(name, _)| name == OURS).map(|(_, spread)| spread.median);
    let peers = servers.iter().filter(|(name, _)| name != OURS).map(|(_, spread)| spread.median);
    let best = match figure.better {
        Better::Less => peers.min_by(f64::total_cmp),
        Better::More => peers.max_by(f64::total_cmp),
    };
    let ratio = ours.zip(best).filter(|(_, best)| *best != 0.0).map(|(ours, best)| ours / best);
    let (number, wanted) = match figure.bar {
        Bar::None => (None, [None, None]),
        Bar::Ratio { bar, stretch } => (ratio, [Some(bar), stretch]),
        Bar::Value { bar, stretch } => (ours, [Some(bar), stretch]),
    };
    let reached = wanted.map(|wanted| Some(figure.reaches(number?, wanted?)));
    Summary { servers, ratio, reached }
}

/// The table of one shape.
pub fn table(shape: &Shape, operations: usize, rows: &[Row]) -> String {
    let mut out = format!("\n{}: {} ({operations} operations a round)\n", shape.name, shape.about);
    for (column, figure) in shape.figures.iter().enumerate() {
        let summary = summarize(figure, column, rows);
        out.push_str(&format!("  {}\n", figure.name));
        for (server, spread) in &summary.servers {
            out.push_str(&format!("    {server:<8} {:>14} +- {:.1}%\n", shown(spread.median), spread.percent()));
        }
        if let Some(ratio) = summary.ratio {
            out.push_str(&format!("    {OURS} / best peer: {ratio:.2}\n"));
        }
        if let Some(line) = verdict(figure, &summary) {
            out.push_str(&format!("    {line}\n"));
        }
    }
    out
}

/// `bar ratio 0.55: reached; stretch 0.42: missed`.
fn verdict(figure: &Figure, summary: &Summary) -> Option<String> {
    let (kind, bar, stretch) = match figure.bar {
        Bar::None => return None,
        Bar::Ratio { bar, stretch } => ("ratio", bar, stretch),
        Bar::Value { bar, stretch } => ("value", bar, stretch),
    };
    let word = |reached: Option<bool>| match reached {
        Some(true) => "reached",
        Some(false) => "missed",
        None => "cannot be told",
    };
    let mut line = format!("bar, {kind} {bar}: {}", word(summary.reached[0]));
    if let Some(stretch) = stretch {
        line.push_str(&format!("; stretch {stretch}: {}", word(summary.reached[1])));
    }
    Some(line)
}

/// As many digits as tell something.
fn shown(number: f64) -> String {
    match number.abs() {
        n if n >= 1000.0 => format!("{number:.0}"),
        n if n >= 10.0 => format!("{number:.1}"),
        _ => format!("{number:.3}"),
    }
}

/// One shape for the file.
pub fn to_json(shape: &Shape, operations: usize, rows: &[Row]) -> Json {
    let figures = shape.figures.iter().enumerate().map(|(column, figure)| {
        let summary = summarize(figure, column, rows);
        let servers = rows.iter().map(|row| {
            let rounds: Vec<Option<f64>> = row.rounds.iter().map(|numbers| numbers[column]).collect();
            (row.server.clone(), json!(rounds))
        });
        let (kind, bar, stretch) = match figure.bar {
            Bar::None => ("none", None, None),
            Bar::Ratio { bar, stretch } => ("ratio", Some(bar), stretch),
            Bar::Value { bar, stretch } => ("value", Some(bar), stretch),
        };
        json!({
            "figure": figure.name,
            "less_is_better": figure.better == Better::Less,
            "rounds": servers.collect::<serde_json::Map<_, _>>(),
            "ratio_to_best_peer": summary.ratio,
            "bar": {"of": kind, "at": bar, "stretch": stretch, "reached": summary.reached[0]},
        })
    });
    json!({"shape": shape.name, "about": shape.about, "operations": operations, "figures": figures.collect::<Vec<_>>()})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(server: &str, numbers: &[f64]) -> Row {
        Row { server: server.into(), rounds: numbers.iter().map(|&number| vec![Some(number)]).collect() }
    }

    #[test]
    fn we_are_compared_with_the_best_peer() {
        let rows = [row(OURS, &[1.0, 2.0, 3.0]), row("redis", &[8.0]), row("valkey", &[4.0])];
        let less = summarize(&Figure::less("us").ratio(0.5, Some(0.4)), 0, &rows);
        assert_eq!((less.ratio, less.reached), (Some(0.5), [Some(true), Some(false)]));
        let more = summarize(&Figure::more("ops/s").ratio(0.3, None), 0, &rows);
        assert_eq!((more.ratio, more.reached), (Some(0.25), [Some(false), None]));
        let value = summarize(&Figure::less("bytes").value(2.0, Some(1.0)), 0, &rows[..1]);
        assert_eq!((value.ratio, value.reached), (None, [Some(true), Some(false)]));
    }

    #[test]
    fn what_a_server_does_not_know_does_not_count() {
        let unknown = Row { server: "valkey".into(), rounds: vec![vec![None]] };
        let summary = summarize(&Figure::less("us").ratio(0.5, None), 0, &[row(OURS, &[1.0]), unknown]);
        assert_eq!((summary.servers.len(), summary.ratio, summary.reached), (1, None, [None, None]));
    }
}
