//! Bars: how high they are drawn, their numbers, and between what the runs lay.

use super::{BOTTOM, Drawing, HEIGHT, TOP, colour, escaped};
use std::fmt::Write;

/// A bar so many times as high as the next one is cut.
const CUT: f64 = 4.0;
/// Whiskers make an axis longer up to so many times the highest bar; what is beyond ends open at the top.
const WHISKER: f64 = 1.5;
/// Pixels of a letter of a number.
const LETTER: f64 = 6.5;
/// Room above the highest bar where numbers stand upright, as a share of its height.
const UPRIGHT: f64 = 0.25;

/// A bar, and what it is the middle of.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bar {
    pub(crate) height: f64,
    /// The least and the most, where there were several.
    spread: Option<(f64, f64)>,
}

impl From<f64> for Bar {
    fn from(height: f64) -> Self {
        Self {
            height,
            spread: None,
        }
    }
}

impl Bar {
    /// The median of several.
    pub(crate) fn with_spread(height: f64, least: f64, most: f64) -> Self {
        let spread = (least < most).then_some((least, most));
        Self { height, spread }
    }
}

/// The height above which bars are cut: some, less than half of them, are very much longer than the others.
fn cut_above(bars: &[Bar]) -> Option<f64> {
    let mut heights: Vec<f64> = bars.iter().map(|bar| bar.height).collect();
    heights.retain(|height| height.is_finite() && *height > 0.0);
    heights.sort_by(|one, other| other.total_cmp(one));
    let long = (1..heights.len())
        .take_while(|at| 2 * at < heights.len())
        .filter(|&at| heights[at - 1] > CUT * heights[at])
        .last()?;
    Some(heights[long])
}

/// The largest number on the axis of these bars.
pub(super) fn bound<'b>(bars: impl Iterator<Item = &'b Bar>) -> f64 {
    let bars: Vec<Bar> = bars.copied().collect();
    let cut = cut_above(&bars).unwrap_or(f64::INFINITY);
    let whole = || bars.iter().filter(|bar| bar.height <= cut);
    let highest = whole().map(|bar| bar.height).fold(0.0, f64::max);
    let most = whole().filter_map(|bar| Some(bar.spread?.1));
    let most = most.fold(highest, f64::max).min(highest * WHISKER);
    // One that is cut stands out.
    if cut.is_finite() {
        most.max(highest * (1.0 + UPRIGHT))
    } else {
        most
    }
}

/// A number as it stands at a bar.
fn number(number: f64) -> String {
    let (unit, letter) = match number {
        1e6.. => (1e6, " M"),
        1e4.. => (1e3, " k"),
        _ => (1.0, ""),
    };
    let shown = number / unit;
    let digits = match shown {
        _ if number == 0.0 => 0,
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ => 3,
    };
    format!("{shown:.digits$}{letter}")
}

impl Drawing<'_> {
    /// Groups of bars, side by side.
    pub(super) fn bars(&mut self, groups: &[String], bars: &[(String, Vec<Bar>)]) {
        let all: Vec<Bar> = bars.iter().flat_map(|(_, own)| own).copied().collect();
        let cut = cut_above(&all).unwrap_or(f64::INFINITY);
        // A fifth of a group's width stays free.
        let width = self.x.length(0.8) / bars.len().max(1) as f64;
        for (group, name) in groups.iter().enumerate() {
            let start = self.x.place(group as f64 + 0.1);
            for (index, (_, own)) in bars.iter().enumerate() {
                let bar = own.get(group).copied().unwrap_or_default();
                let left = start + width * index as f64;
                self.bar(bar, bar.height > cut, left, width, colour(index));
            }
            self.name(self.x.place(group as f64 + 0.5), name);
        }
    }

    /// The name of a group, as narrow as its neighbours ask for.
    fn name(&mut self, middle: f64, name: &str) {
        let (room, y) = (self.x.length(0.95), HEIGHT - BOTTOM + 18.0);
        if LETTER * name.chars().count() as f64 <= room {
            self.text(middle, y, "middle", name);
            return;
        }
        let name = escaped(name);
        let _ = writeln!(
            self.out,
            "<text x=\"{middle:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" textLength=\"{room:.1}\" lengthAdjust=\"spacingAndGlyphs\">{name}</text>"
        );
    }

    fn bar(&mut self, bar: Bar, is_cut: bool, left: f64, width: f64, colour: &str) {
        let bottom = HEIGHT - BOTTOM;
        let top = match is_cut {
            true => TOP,
            false => self.y.place(bar.height),
        };
        let _ = writeln!(
            self.out,
            "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{colour}\" stroke=\"white\"/>",
            bottom - top
        );
        let middle = left + width / 2.0;
        let mut above = top;
        if is_cut {
            // Two strokes across, the ground between them.
            let (from, to, at) = (left - 3.0, left + width + 3.0, TOP + 24.0);
            let _ = writeln!(
                self.out,
                "<path class=\"cut\" d=\"M{from:.1} {:.1}L{to:.1} {:.1}L{to:.1} {:.1}L{from:.1} {:.1}Z\" fill=\"white\"/>",
                at + 5.0,
                at - 5.0,
                at + 1.0,
                at + 11.0
            );
        } else if let Some((least, most)) = bar.spread {
            let (low, high) = (self.y.place(least), self.y.place(most));
            let (open, high) = (high < TOP, high.max(TOP));
            let cap = width.min(16.0) / 2.0;
            let mut path = format!("M{middle:.1} {low:.1}V{high:.1}");
            let _ = write!(path, "M{:.1} {low:.1}h{:.1}", middle - cap, 2.0 * cap);
            if !open {
                let _ = write!(path, "M{:.1} {high:.1}h{:.1}", middle - cap, 2.0 * cap);
            }
            let _ = writeln!(
                self.out,
                "<path class=\"spread\" d=\"{path}\" fill=\"none\" stroke=\"#444\"/>"
            );
            above = above.min(high);
        }
        let written = number(bar.height);
        let length = LETTER * written.chars().count() as f64;
        if length <= width * 1.25 {
            self.text(middle, above - 4.0, "middle", &written);
            return;
        }
        // Upright: above the bar, or within where there is no room for it.
        let (at, anchor) = match above - length > TOP - 12.0 {
            true => (above - 4.0, "start"),
            false => (above + 4.0, "end"),
        };
        let _ = writeln!(
            self.out,
            "<text transform=\"translate({:.1} {at:.1}) rotate(-90)\" text-anchor=\"{anchor}\" font-size=\"11\">{written}</text>",
            middle + 4.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(heights: &[f64]) -> Vec<Bar> {
        heights.iter().copied().map(Bar::from).collect()
    }

    #[test]
    fn few_bars_that_are_very_much_longer_are_cut_at_the_next_ones_height() {
        for (heights, cut) in [
            (&[10.0, 9.0, 8.0][..], None),
            (&[39.0, 10.0, 8.0], None),
            (&[41.0, 10.0, 8.0], Some(10.0)),
            (&[10.0, 800.0, 8.0, 0.0, 900.0, 7.0], Some(10.0)),
            // Half of them are the others, too.
            (&[800.0, 900.0, 10.0, 8.0], None),
            (&[900.0, 10.0], None),
            (&[900.0, 0.0, 0.0], None),
            (&[f64::NAN, f64::INFINITY], None),
            (&[], None),
        ] {
            assert_eq!(cut_above(&bars(heights)), cut, "{heights:?}");
        }
        assert_eq!(bound(bars(&[41.0, 10.0, 8.0]).iter()), 12.5);
        assert_eq!(bound(bars(&[39.0, 10.0, 8.0]).iter()), 39.0);
    }

    #[test]
    fn whiskers_lengthen_an_axis_and_one_that_is_far_out_does_not() {
        let whisker = |most| bound([Bar::with_spread(10.0, 9.0, most), Bar::from(8.0)].iter());
        assert_eq!(whisker(12.0), 12.0);
        assert_eq!(whisker(500.0), 15.0);
        assert_eq!(Bar::with_spread(1.0, 1.0, 1.0), Bar::from(1.0));
    }

    #[test]
    fn numbers_at_bars_have_three_digits() {
        let shown = [0.0, 0.123_4, 1.234, 12.34, 123.4, 1234.0, 12_340.0, 1.234e6].map(number);
        let expected = [
            "0", "0.123", "1.23", "12.3", "123", "1234", "12.3 k", "1.23 M",
        ];
        assert_eq!(shown, expected);
    }
}
