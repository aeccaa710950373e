//! An axis: numbers from zero to a round one, and where they stand.

/// Labelled numbers of an axis, at most.
const TICKS: f64 = 6.0;

/// A linear axis from zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    end: f64,
    step: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Up to the next round number at or above `largest`, between two places of the picture.
    pub(super) fn to(largest: f64, from: f64, to: f64) -> Self {
        let largest = if largest.is_finite() && largest > 0.0 {
            largest
        } else {
            1.0
        };
        let step = round_step(largest / (TICKS - 1.0));
        // A hair of rounding error must not add a step.
        let end = (largest / step - 1e-9).ceil() * step;
        Self {
            end,
            step,
            from,
            to,
        }
    }

    /// Up to `end` exactly.
    pub(super) fn exact(end: f64, from: f64, to: f64) -> Self {
        let end = end.max(1.0);
        Self {
            end,
            step: 1.0,
            from,
            to,
        }
    }

    /// Where `number` stands.
    pub(super) fn place(&self, number: f64) -> f64 {
        self.from + (self.to - self.from) * number / self.end
    }

    /// How long `number` is.
    pub(super) fn length(&self, number: f64) -> f64 {
        self.place(number) - self.from
    }

    /// Numbers to be written at the axis.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let count = (self.end / self.step).round() as u32;
        (0..=count)
            .map(|index| {
                let number = self.step * f64::from(index);
                (number, label(number, self.step))
            })
            .collect()
    }
}

/// 1, 2 or 5 times a power of ten, at or above `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| *step >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// A number with as many digits as the steps need, large ones in thousands or millions.
fn label(number: f64, step: f64) -> String {
    let (unit, letter) = match step {
        1e6.. => (1e6, " M"),
        1e3.. => (1e3, " k"),
        _ => (1.0, ""),
    };
    if number == 0.0 {
        return "0".to_owned();
    }
    let digits = (-(step / unit).log10().floor()).max(0.0) as usize;
    format!("{:.digits$}{letter}", number / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(largest: f64) -> Vec<String> {
        let axis = Axis::to(largest, 0.0, 100.0);
        assert!(axis.end >= largest && axis.place(0.0) == 0.0);
        assert!((axis.place(axis.end) - 100.0).abs() < 1e-9);
        axis.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn axis_begins_at_zero_and_ends_at_a_round_number() {
        assert_eq!(labels(100.0), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(101.0), ["0", "50", "100", "150"]);
        assert_eq!(labels(7.0), ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(0.3), ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(
            labels(412_345.0),
            ["0", "100 k", "200 k", "300 k", "400 k", "500 k"]
        );
        assert_eq!(labels(9e6), ["0", "2 M", "4 M", "6 M", "8 M", "10 M"]);
    }

    #[test]
    fn axis_of_nothing_is_drawn() {
        for nothing in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let axis = Axis::to(nothing, 0.0, 10.0);
            assert_eq!(axis.place(1.0), 10.0);
        }
    }
}
