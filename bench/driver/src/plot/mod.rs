//! Pictures of a run: lines and bars as SVG, written by hand, with nothing to install.
//!
//! Axes begin at zero and are linear: a line that looks flat is flat, a bar twice as high is twice as much; one that is very much longer
//! than the others is cut, with a mark, so that they can be told from each other. The number is written at each. A picture is a column of
//! charts that share a width.

mod axis;
mod bars;
mod text;

use axis::Axis;
pub(crate) use bars::Bar;
use std::fmt::Write;
use text::escaped;

/// Width of a picture, in pixels.
const WIDTH: f64 = 860.0;
/// Height of a chart with its title and axes.
const HEIGHT: f64 = 320.0;
/// Room left of, above, right of and below the data.
const LEFT: f64 = 84.0;
const TOP: f64 = 44.0;
const RIGHT: f64 = 150.0;
const BOTTOM: f64 = 52.0;

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito), from dark to light.
const COLOURS: [&str; 7] = [
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00",
];
/// And lines differ by more than colour.
const DASHES: [&str; 3] = ["none", "7 4", "2 3"];

/// One chart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What the axes measure, with the unit.
    pub(crate) x: String,
    pub(crate) y: String,
    pub(crate) data: Data,
    /// Vertical lines with a word each.
    pub(crate) marks: Vec<(f64, String)>,
}

/// What a chart shows.
#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// Named lines through points.
    Lines(Vec<(String, Vec<(f64, f64)>)>),
    /// Groups of bars: the names of the groups, and for each name of a bar its height in each group.
    Bars(Vec<String>, Vec<(String, Vec<Bar>)>),
}

impl Default for Data {
    fn default() -> Self {
        Self::Lines(Vec::new())
    }
}

impl Data {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Lines(lines) => lines.iter().map(|(name, _)| name.as_str()).collect(),
            Self::Bars(_, bars) => bars.iter().map(|(name, _)| name.as_str()).collect(),
        }
    }

    /// The largest numbers on the two axes.
    fn bounds(&self) -> (f64, f64) {
        let mut bounds = (0.0_f64, 0.0_f64);
        match self {
            Self::Lines(lines) => {
                for (x, y) in lines.iter().flat_map(|(_, points)| points) {
                    bounds = (bounds.0.max(*x), bounds.1.max(*y));
                }
            }
            Self::Bars(groups, bars) => {
                bounds.0 = groups.len() as f64;
                bounds.1 = bars::bound(bars.iter().flat_map(|(_, heights)| heights));
            }
        }
        bounds
    }
}

/// The picture of `charts`, one below the other.
pub(crate) fn picture(charts: &[Chart]) -> String {
    let height = HEIGHT * charts.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for (index, chart) in charts.iter().enumerate() {
        let top = HEIGHT * index as f64;
        let _ = writeln!(out, "<g transform=\"translate(0 {top})\">");
        Drawing::new(chart, &mut out).draw();
        out.push_str("</g>\n");
    }
    out.push_str("</svg>\n");
    out
}

/// A chart that is being drawn. Writing to a string cannot fail, so results of `write!` are dropped.
struct Drawing<'d> {
    chart: &'d Chart,
    x: Axis,
    y: Axis,
    out: &'d mut String,
}

impl<'d> Drawing<'d> {
    fn new(chart: &'d Chart, out: &'d mut String) -> Self {
        let (x, y) = chart.data.bounds();
        let marks = chart.marks.iter().map(|(x, _)| *x);
        let x = marks.fold(x, f64::max);
        Self {
            chart,
            x: match chart.data {
                Data::Lines(_) => Axis::to(x, LEFT, WIDTH - RIGHT),
                Data::Bars(..) => Axis::exact(x, LEFT, WIDTH - RIGHT),
            },
            y: Axis::to(y, HEIGHT - BOTTOM, TOP),
            out,
        }
    }

    fn draw(mut self) {
        self.frame();
        match &self.chart.data {
            Data::Lines(lines) => self.lines(lines),
            Data::Bars(groups, bars) => self.bars(groups, bars),
        }
        for (x, word) in &self.chart.marks {
            let at = self.x.place(*x);
            let bottom = HEIGHT - BOTTOM;
            let _ = writeln!(
                self.out,
                "<line x1=\"{at:.1}\" y1=\"{TOP}\" x2=\"{at:.1}\" y2=\"{bottom}\" stroke=\"#666\" stroke-dasharray=\"4 3\"/>"
            );
            self.text(at + 4.0, TOP + 12.0, "start", word);
        }
        self.legend();
    }

    fn text(&mut self, x: f64, y: f64, anchor: &str, text: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.out,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        );
    }

    /// Title, axes and their numbers.
    fn frame(&mut self) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let title = escaped(&self.chart.title);
        let _ = writeln!(
            self.out,
            "<text x=\"{LEFT}\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{title}</text>"
        );
        for (number, label) in self.y.ticks() {
            let at = self.y.place(number);
            let _ = writeln!(
                self.out,
                "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>"
            );
            self.text(LEFT - 6.0, at + 4.0, "end", &label);
        }
        if matches!(self.chart.data, Data::Lines(_)) {
            for (number, label) in self.x.ticks() {
                let at = self.x.place(number);
                let _ = writeln!(
                    self.out,
                    "<line x1=\"{at:.1}\" y1=\"{bottom}\" x2=\"{at:.1}\" y2=\"{}\" stroke=\"black\"/>",
                    bottom + 4.0
                );
                self.text(at, bottom + 18.0, "middle", &label);
            }
        }
        let _ = writeln!(
            self.out,
            "<path d=\"M{LEFT} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"black\"/>"
        );
        let (x, y) = (self.chart.x.clone(), escaped(&self.chart.y));
        self.text((LEFT + right) / 2.0, bottom + 40.0, "middle", &x);
        let _ = writeln!(
            self.out,
            "<text transform=\"translate(16 {:.1}) rotate(-90)\" text-anchor=\"middle\">{y}</text>",
            (TOP + bottom) / 2.0
        );
    }

    fn lines(&mut self, lines: &[(String, Vec<(f64, f64)>)]) {
        for (index, (_, points)) in lines.iter().enumerate() {
            let mut path = String::new();
            for (x, y) in points
                .iter()
                .filter(|(x, y)| x.is_finite() && y.is_finite())
            {
                let letter = if path.is_empty() { 'M' } else { 'L' };
                let (x, y) = (self.x.place(*x), self.y.place(*y));
                let _ = write!(path, "{letter}{x:.1} {y:.1}");
            }
            let (colour, dash) = (colour(index), dash(index));
            let _ = writeln!(
                self.out,
                "<path d=\"{path}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>"
            );
            // A line of one point would not be seen.
            if let [(x, y)] = points[..] {
                let (x, y) = (self.x.place(x), self.y.place(y));
                let _ = writeln!(
                    self.out,
                    "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>"
                );
            }
        }
    }

    fn legend(&mut self) {
        let names = self.chart.data.names();
        if names.len() < 2 {
            return;
        }
        let (x, is_lines) = (
            WIDTH - RIGHT + 12.0,
            matches!(self.chart.data, Data::Lines(_)),
        );
        for (index, name) in names.into_iter().enumerate() {
            let y = TOP + 10.0 + 18.0 * index as f64;
            let (colour, dash) = (colour(index), dash(index));
            let _ = match is_lines {
                true => writeln!(
                    self.out,
                    "<line x1=\"{x}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>",
                    x + 24.0
                ),
                false => writeln!(
                    self.out,
                    "<rect x=\"{x}\" y=\"{}\" width=\"24\" height=\"10\" fill=\"{colour}\"/>",
                    y - 5.0
                ),
            };
            self.text(x + 30.0, y + 4.0, "start", name);
        }
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

fn dash(index: usize) -> &'static str {
    DASHES[index % DASHES.len()]
}

#[cfg(test)]
mod tests;
