//! The median.

/// The number in the middle, of an even number of them the mean of the middle two; those that are not finite do not count. None of none.
pub(crate) fn median(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let mut numbers: Vec<f64> = numbers.filter(|number| number.is_finite()).collect();
    numbers.sort_unstable_by(f64::total_cmp);
    let upper = *numbers.get(numbers.len() / 2)?;
    if numbers.len() % 2 == 1 {
        return Some(upper);
    }
    Some(f64::midpoint(numbers[numbers.len() / 2 - 1], upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_even_number_the_middle_two_count() {
        let of = |numbers: &[f64]| median(numbers.iter().copied());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[f64::NAN, f64::INFINITY]), None);
        assert_eq!(of(&[3.0]), Some(3.0));
        assert_eq!(of(&[4.0, 1.0]), Some(2.5));
        assert_eq!(of(&[9.0, 1.0, f64::NAN, 2.0]), Some(2.0));
        assert_eq!(of(&[9.0, 1.0, 2.0, 3.0]), Some(2.5));
    }
}
