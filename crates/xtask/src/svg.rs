//! Drawings as SVG text: a white sheet with rectangles, lines and words on it. Knows nothing of what is drawn.

/// A drawing.
pub struct Svg(String);

impl Svg {
    /// An empty sheet of so many pixels.
    pub fn new(width_px: usize, height_px: usize) -> Self {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width_px}\" height=\"{height_px}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
        ))
    }

    /// Words that begin at a place.
    pub fn text(&mut self, x: f64, y: f64, words: &str) {
        self.0.push_str(&format!("<text x=\"{x:.0}\" y=\"{y:.0}\">{}</text>\n", escaped(words)));
    }

    /// Words that stand out.
    pub fn title(&mut self, x: f64, y: f64, words: &str) {
        self.0.push_str(&format!("<text x=\"{x:.0}\" y=\"{y:.0}\" font-weight=\"bold\">{}</text>\n", escaped(words)));
    }

    /// A filled rectangle.
    pub fn rect(&mut self, [x, y, width, height]: [f64; 4], color: &str) {
        self.0.push_str(&format!(
            "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"{color}\"/>\n"
        ));
    }

    /// A dashed line between two points.
    pub fn dashes(&mut self, [x1, y1, x2, y2]: [f64; 4], color: &str) {
        self.0.push_str(&format!(
            "<line x1=\"{x1:.1}\" y1=\"{y1:.0}\" x2=\"{x2:.1}\" y2=\"{y2:.0}\" stroke=\"{color}\" stroke-dasharray=\"3\"/>\n"
        ));
    }

    /// A line through points.
    pub fn curve(&mut self, points: &[(f64, f64)], color: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        self.0.push_str(&format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/>\n", points.join(" ")));
    }

    /// The text of it.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_do_not_become_tags() {
        let mut svg = Svg::new(10, 20);
        svg.text(1.0, 2.0, "a < b & c");
        assert!(svg.finish().contains(">a &lt; b &amp; c</text>"));
    }
}
