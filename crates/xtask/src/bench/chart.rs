//! The chart of a comparison, as SVG: a bar for each figure that has something asked of it, as long as our number is in
//! relation to what must be reached, so that the line at 1 is the goal for all of them.

use super::report::{OURS, Row, summarize};
use super::shapes::Shape;
use super::{Bar, Better};
use crate::svg::Svg;

const ROW_PX: usize = 22;
const LABEL_PX: usize = 470;
const GOAL_PX: f64 = 300.0;
const LONGEST: f64 = 1.5;

/// Draws everything measured.
pub fn draw(measured: &[(&Shape, Vec<Row>)]) -> String {
    let mut rows = Vec::new();
    for (shape, servers) in measured {
        for (column, figure) in shape.figures.iter().enumerate() {
            let summary = summarize(figure, column, servers);
            let ours = summary.servers.iter().find(|(name, _)| name == OURS).map(|(_, spread)| spread.median);
            let (number, goal, of) = match figure.bar {
                Bar::None => continue,
                Bar::Ratio { bar, .. } => (summary.ratio, bar, "of the best peer"),
                Bar::Value { bar, .. } => (ours, bar, "absolute"),
            };
            let Some(number) = number else { continue };
            let part = match figure.better {
                Better::Less if goal == 0.0 => f64::from(u8::from(number > 0.0)) * LONGEST,
                Better::Less => number / goal,
                // Turned over, so that short is good everywhere.
                Better::More => goal / number.max(f64::MIN_POSITIVE),
            };
            let text = format!("{}: {}", shape.name, figure.name);
            rows.push((text, part, format!("{number:.2} (goal {goal}, {of})")));
        }
    }
    let height = (rows.len() + 2) * ROW_PX;
    let mut svg = Svg::new(1200, height);
    svg.title(10.0, 15.0, "What was reached: a bar that ends before the line reached its goal");
    for (place, (text, part, number)) in rows.iter().enumerate() {
        let top = ((place + 1) * ROW_PX) as f64;
        let color = if *part <= 1.0 { "#2a7" } else { "#c63" };
        let length = part.min(LONGEST) * GOAL_PX;
        svg.text(10.0, top + 14.0, text);
        svg.rect([LABEL_PX as f64, top, length, ROW_PX as f64 - 5.0], color);
        svg.text(LABEL_PX as f64 + length + 6.0, top + 14.0, number);
    }
    let goal = LABEL_PX as f64 + GOAL_PX;
    svg.dashes([goal, ROW_PX as f64, goal, height as f64], "black");
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::super::shapes::shapes;
    use super::*;

    #[test]
    fn each_figure_with_a_goal_has_a_bar() {
        let shape = shapes().find(|shape| shape.name == "xadd-50x1").expect("a shape");
        let row = |server: &str, cpu| Row { server: server.into(), rounds: vec![vec![Some(cpu), Some(1.0)]] };
        let svg = draw(&[(shape, vec![row(OURS, 4.1), row("redis", 10.0)])]);
        assert_eq!(svg.matches("fill=\"#2a7\"").count(), 1, "{svg}");
        assert!(svg.contains("0.41 (goal 0.82, of the best peer)"), "{svg}");
        let svg = draw(&[(shape, vec![row(OURS, 9.0), row("redis", 10.0)])]);
        assert_eq!(svg.matches("fill=\"#c63\"").count(), 1, "{svg}");
    }
}
