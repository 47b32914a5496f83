//! The chart of a comparison, as SVG: a bar for each figure that has something asked of it, as long as our number is in
//! relation to what must be reached, so that the line at 1 is the goal for all of them.

use super::report::{OURS, Row, summarize};
use super::shapes::Shape;
use super::{Bar, Better};

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
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"{height}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"10\" y=\"15\" font-weight=\"bold\">What was reached: a bar that ends before the line reached its goal\
         </text>\n"
    );
    for (place, (text, part, number)) in rows.iter().enumerate() {
        let top = (place + 1) * ROW_PX;
        let color = if *part <= 1.0 { "#2a7" } else { "#c63" };
        out.push_str(&format!(
            "<text x=\"10\" y=\"{}\">{}</text><rect x=\"{LABEL_PX}\" y=\"{top}\" width=\"{:.0}\" height=\"{}\" \
             fill=\"{color}\"/><text x=\"{:.0}\" y=\"{}\">{}</text>\n",
            top + 14,
            escaped(text),
            part.min(LONGEST) * GOAL_PX,
            ROW_PX - 5,
            LABEL_PX as f64 + part.min(LONGEST) * GOAL_PX + 6.0,
            top + 14,
            escaped(number),
        ));
    }
    let goal = LABEL_PX as f64 + GOAL_PX;
    out.push_str(&format!(
        "<line x1=\"{goal}\" y1=\"{ROW_PX}\" x2=\"{goal}\" y2=\"{height}\" stroke=\"black\" stroke-dasharray=\"3\"/>\n</svg>\n"
    ));
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
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
