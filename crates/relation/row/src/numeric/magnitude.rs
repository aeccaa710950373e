//! Arithmetic of non-negative whole numbers in base 10000, most significant digit first.
//!
//! Runs may have leading zeros. Costs are those of schoolbook methods: products and quotients take
//! (digits of a) x (digits of b) / 16 steps.

use super::digits::BASE;
use std::cmp::Ordering;

/// The run without its leading zeros.
pub(super) fn trim(run: &[u16]) -> &[u16] {
    let zeros = run.iter().take_while(|digit| **digit == 0).count();
    &run[zeros..]
}

pub(super) fn compare(a: &[u16], b: &[u16]) -> Ordering {
    let (a, b) = (trim(a), trim(b));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

pub(super) fn add(a: &[u16], b: &[u16]) -> Vec<u16> {
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = Vec::with_capacity(long.len() + 1);
    let mut carry = 0;
    let low = short.iter().rev().chain(std::iter::repeat(&0));
    for (x, y) in long.iter().rev().zip(low) {
        let sum = u32::from(*x) + u32::from(*y) + carry;
        out.push((sum % BASE) as u16);
        carry = sum / BASE;
    }
    out.push(carry as u16);
    out.reverse();
    out
}

/// a - b, where a >= b.
pub(super) fn subtract(a: &[u16], b: &[u16]) -> Vec<u16> {
    debug_assert!(compare(a, b) != Ordering::Less);
    let mut out = Vec::with_capacity(a.len());
    let mut borrow = 0;
    let low = trim(b).iter().rev().chain(std::iter::repeat(&0));
    for (x, y) in a.iter().rev().zip(low) {
        let difference = BASE + u32::from(*x) - u32::from(*y) - borrow;
        out.push((difference % BASE) as u16);
        borrow = u32::from(difference < BASE);
    }
    debug_assert_eq!(borrow, 0);
    out.reverse();
    out
}

pub(super) fn multiply(a: &[u16], b: &[u16]) -> Vec<u16> {
    multiply_while(a, b, &|| true).unwrap_or_default()
}

/// How often somebody is asked whether to go on: once for so many products of digits, about.
const PRODUCTS_BETWEEN: usize = 1 << 20;

/// The product, if `go_on` says so as long as it takes.
pub(super) fn multiply_while(a: &[u16], b: &[u16], go_on: &dyn Fn() -> bool) -> Option<Vec<u16>> {
    let rows = PRODUCTS_BETWEEN / b.len().max(1) + 1;
    let mut sums = vec![0u64; a.len() + b.len()];
    for (i, x) in a.iter().enumerate().filter(|(_, x)| **x != 0) {
        if i % rows == rows - 1 && !go_on() {
            return None;
        }
        // Each sum grows by at most 10^8 a row, so 2^37 rows fit; numbers have at most 2^16 digits.
        for (sum, y) in sums[i + 1..].iter_mut().zip(b) {
            *sum += u64::from(*x) * u64::from(*y);
        }
    }
    let mut carry = 0;
    for sum in sums.iter_mut().rev() {
        let total = *sum + carry;
        *sum = total % u64::from(BASE);
        carry = total / u64::from(BASE);
    }
    debug_assert_eq!(carry, 0);
    Some(sums.into_iter().map(|digit| digit as u16).collect())
}

/// Quotient and remainder; the divisor is not zero.
pub(super) fn divide(a: &[u16], b: &[u16]) -> (Vec<u16>, Vec<u16>) {
    divide_while(a, b, &|| true).unwrap_or_default()
}

/// The same, if `go_on` says so as long as it takes. Knuth's algorithm D.
pub(super) fn divide_while(
    a: &[u16],
    b: &[u16],
    go_on: &dyn Fn() -> bool,
) -> Option<(Vec<u16>, Vec<u16>)> {
    let b = trim(b);
    debug_assert!(!b.is_empty());
    let a = trim(a);
    if a.len() < b.len() {
        return Some((Vec::new(), a.to_vec()));
    }
    if let [divisor] = b {
        return Some(divide_by_digit(a, u32::from(*divisor)));
    }
    let rows = PRODUCTS_BETWEEN / b.len() + 1;
    // Scaled so that the divisor's first digit is at least half the base: then the guess of a
    // quotient's digit from two digits is at most two too large.
    let factor = BASE / (u32::from(b[0]) + 1);
    let scale = |run: &[u16]| -> Vec<u32> {
        let mut out = vec![0; run.len() + 1];
        let mut carry = 0;
        for (digit, place) in run.iter().rev().zip(out.iter_mut().rev()) {
            let product = u32::from(*digit) * factor + carry;
            *place = product % BASE;
            carry = product / BASE;
        }
        out[0] = carry;
        out
    };
    let mut rest = scale(a);
    let divisor = scale(b);
    let divisor = &divisor[1..];
    let n = divisor.len();
    let mut quotient = Vec::with_capacity(rest.len() - n);
    for at in 0..rest.len() - n {
        if at % rows == rows - 1 && !go_on() {
            return None;
        }
        let head = rest[at] * BASE + rest[at + 1];
        let mut guess = (head / divisor[0]).min(BASE - 1);
        let below = |guess: u32| {
            let left = u64::from(head - guess * divisor[0]);
            u64::from(guess) * u64::from(divisor[1])
                <= left * u64::from(BASE) + u64::from(rest[at + 2])
        };
        while !below(guess) {
            guess -= 1;
        }
        let mut borrow = 0i64;
        for i in (0..n).rev() {
            let value = i64::from(rest[at + 1 + i]) - i64::from(guess * divisor[i]) + borrow;
            let digit = value.rem_euclid(i64::from(BASE));
            rest[at + 1 + i] = digit as u32;
            borrow = (value - digit) / i64::from(BASE);
        }
        let head = i64::from(rest[at]) + borrow;
        rest[at] = 0;
        if head < 0 {
            guess -= 1;
            let mut carry = 0;
            for i in (0..n).rev() {
                let sum = rest[at + 1 + i] + divisor[i] + carry;
                rest[at + 1 + i] = sum % BASE;
                carry = sum / BASE;
            }
            debug_assert_eq!(carry, 1);
        }
        quotient.push(guess as u16);
    }
    let mut carry = 0;
    let mut remainder = Vec::with_capacity(n);
    for digit in &rest[rest.len() - n..] {
        let value = carry * BASE + digit;
        remainder.push((value / factor) as u16);
        carry = value % factor;
    }
    debug_assert_eq!(carry, 0);
    Some((quotient, remainder))
}

fn divide_by_digit(a: &[u16], divisor: u32) -> (Vec<u16>, Vec<u16>) {
    let mut rest = 0;
    let mut quotient = Vec::with_capacity(a.len());
    for digit in a {
        let value = rest * BASE + u32::from(*digit);
        quotient.push((value / divisor) as u16);
        rest = value % divisor;
    }
    (quotient, vec![rest as u16])
}

/// The whole part of the square root. As a factor of four doubles the root, and a digit more multiplies it by a hundred, the number is brought to the form
/// that [`root_and_rest`] asks for.
pub(super) fn square_root(a: &[u16]) -> Vec<u16> {
    let mut a = trim(a).to_vec();
    if a.is_empty() {
        return a;
    }
    let odd = !a.len().is_multiple_of(2);
    if odd {
        a.push(0);
    }
    let mut divisor = 1;
    while a[0] < BASE as u16 / 4 {
        a = trim(&multiply(&a, &[4])).to_vec();
        divisor *= 2;
    }
    let (mut root, _) = root_and_rest(&a);
    if odd {
        root = divide_by_digit(&root, 100).0;
    }
    trim(&divide_by_digit(&root, divisor).0).to_vec()
}

/// The root of an even number of digits, the first a quarter of the base at least, and what it leaves: of half of the digits by itself, the other half by one
/// division, which is off by one at most. As much work as that division, where a root's digits would be divided by for each bit that it gains.
///
/// Paper: Zimmermann, "Karatsuba Square Root", 1999, algorithm SqrtRem.
fn root_and_rest(a: &[u16]) -> (Vec<u16>, Vec<u16>) {
    debug_assert!(a.len().is_multiple_of(2) && a[0] >= BASE as u16 / 4);
    if let [first, second] = *a {
        let whole = u32::from(first) * BASE + u32::from(second);
        let root = whole.isqrt();
        let rest = whole - root * root;
        let digits = [rest / BASE, rest % BASE].map(|digit| digit as u16);
        return (vec![root as u16], digits.to_vec());
    }
    let low = a.len() / 4;
    let (high, rest) = a.split_at(a.len() - 2 * low);
    let (above, below) = rest.split_at(low);
    let (root, left) = root_and_rest(high);
    let (quotient, left) = divide(&[&left[..], above].concat(), &add(&root, &root));
    let mut root = add(&[&root[..], &vec![0; low]].concat(), &quotient);
    let mut rest = [&left[..], below].concat();
    let square = multiply(&quotient, &quotient);
    if compare(&rest, &square) == Ordering::Less {
        rest = subtract(&add(&add(&rest, &root), &root), &[1]);
        root = subtract(&root, &[1]);
    }
    (root, subtract(&rest, &square))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_base::random::Random;

    fn value(run: &[u16]) -> u128 {
        run.iter().fold(0, |value, digit| {
            value * u128::from(BASE) + u128::from(*digit)
        })
    }

    fn run(random: &mut Random, digits: u64) -> Vec<u16> {
        let edge = [0, 1, 4999, 5000, 9999];
        (0..random.below(digits + 1))
            .map(|_| {
                if random.chance(1, 2) {
                    edge[random.below(5) as usize]
                } else {
                    random.below(10_000) as u16
                }
            })
            .collect()
    }

    #[test]
    fn prop_whole_numbers_compute_as_machine_integers_do() {
        let mut random = crate::seed::random();
        for _ in 0..20_000 {
            let (a, b) = (run(&mut random, 8), run(&mut random, 8));
            let (x, y) = (value(&a), value(&b));
            assert_eq!(compare(&a, &b), x.cmp(&y));
            assert_eq!(value(&add(&a, &b)), x + y);
            if x >= y {
                assert_eq!(value(&subtract(&a, &b)), x - y);
            }
            if let Some(product) = x.checked_mul(y) {
                assert_eq!(value(&multiply(&a, &b)), product);
            }
            if let Some(expected) = x.checked_div(y) {
                let (quotient, remainder) = divide(&a, &b);
                assert_eq!(value(&quotient), expected);
                assert_eq!(value(&remainder), x - expected * y);
            }
            assert_eq!(value(&square_root(&a)), x.isqrt());
        }
    }

    #[test]
    fn prop_a_long_product_divided_by_a_factor_is_the_other() {
        let mut random = crate::seed::random();
        for _ in 0..300 {
            let (a, b) = (run(&mut random, 60), run(&mut random, 40));
            if trim(&b).is_empty() {
                continue;
            }
            let rest = run(&mut random, b.len() as u64 / 2);
            if compare(&rest, &b) == Ordering::Less {
                let product = add(&multiply(&a, &b), &rest);
                let (quotient, remainder) = divide(&product, &b);
                assert_eq!(trim(&quotient), trim(&a));
                assert_eq!(trim(&remainder), trim(&rest));
            }
        }
    }

    /// The root of the longest number took a minute: a division of all of its digits for each bit of the root.
    #[test]
    fn regress_prop_a_long_root_is_the_largest_whose_square_fits() {
        let mut random = crate::seed::random();
        let check = |a: &[u16]| {
            let root = square_root(a);
            let next = add(&root, &[1]);
            assert_ne!(
                compare(&multiply(&root, &root), a),
                Ordering::Greater,
                "{a:?}"
            );
            assert_eq!(
                compare(&multiply(&next, &next), a),
                Ordering::Greater,
                "{a:?}"
            );
        };
        for _ in 0..2_000 {
            let whole = run(&mut random, 40);
            check(&whole);
            let square = multiply(&whole, &whole);
            check(&square);
            if !trim(&square).is_empty() {
                check(&subtract(&square, &[1]));
            }
        }
        check(&[9999; 4001]);
    }
}
