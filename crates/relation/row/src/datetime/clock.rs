//! The parts of dates and times that say what they are: clocks, fractions of a second, offsets.

use super::tokens::Fault;

/// The number at the front of text, and the rest.
pub(super) fn leading_number(text: &str) -> Result<(i32, &str), Fault> {
    let signed = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(Fault::Format);
    }
    let end = text.len() - signed.len() + digits;
    let value = text[..end].parse().map_err(|_| Fault::Field)?;
    Ok((value, &text[end..]))
}

/// The same; zero if there is no digit.
pub(super) fn number_or_zero(text: &str) -> Result<(i32, &str), Fault> {
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        leading_number(text)
    } else {
        Ok((0, text))
    }
}

/// `.5` in microseconds, rounded; 1,000,000 if it rounds up to a second.
pub(super) fn fraction(text: &str) -> Result<i32, Fault> {
    debug_assert!(text.starts_with('.'));
    if !text[1..].bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    if text.len() == 1 {
        return Ok(0);
    }
    let value: f64 = text.parse().map_err(|_| Fault::Format)?;
    Ok((value * 1e6).round_ties_even() as i32)
}

/// Hours, minutes, seconds and microseconds of `hh:mm[:ss[.f]]`; `mm:ss.f` if there is just one colon
/// and a fraction.
pub(super) fn clock(text: &str) -> Result<(i64, i32, i32, i32), Fault> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let hour: i64 = text[..digits].parse().map_err(|_| Fault::Field)?;
    let rest = text[digits..].strip_prefix(':').ok_or(Fault::Format)?;
    let (minute, rest) = number_or_zero(rest)?;
    let clock = match rest.as_bytes().first() {
        None => (hour, minute, 0, 0),
        Some(b'.') => {
            let fraction = fraction(rest)?;
            (
                0,
                i32::try_from(hour).map_err(|_| Fault::Field)?,
                minute,
                fraction,
            )
        }
        Some(b':') => {
            let (second, rest) = number_or_zero(&rest[1..])?;
            match rest.as_bytes().first() {
                None => (hour, minute, second, 0),
                Some(b'.') => (hour, minute, second, fraction(rest)?),
                Some(_) => return Err(Fault::Format),
            }
        }
        Some(_) => return Err(Fault::Format),
    };
    let (_, minute, second, micros) = clock;
    let sound = (0..=59).contains(&minute)
        && (0..=60).contains(&second)
        && (0..=1_000_000).contains(&micros);
    if sound { Ok(clock) } else { Err(Fault::Field) }
}

/// Seconds east of `+hh`, `+hhmm`, `+hh:mm`, `+hh:mm:ss`.
pub(super) fn displacement(text: &str) -> Result<i32, Fault> {
    let negative = match text.as_bytes().first() {
        Some(b'+') => false,
        Some(b'-') => true,
        _ => return Err(Fault::Format),
    };
    let (mut hour, mut rest) = leading_number(&text[1..]).map_err(|fault| match fault {
        Fault::Field => Fault::Displacement,
        other => other,
    })?;
    let (mut minute, mut second) = (0, 0);
    if let Some(more) = rest.strip_prefix(':') {
        (minute, rest) = leading_number(more)?;
        if let Some(more) = rest.strip_prefix(':') {
            (second, rest) = leading_number(more)?;
        }
    } else if rest.is_empty() && text.len() > 3 {
        (hour, minute) = (hour / 100, hour % 100);
    }
    if !(0..=15).contains(&hour) || !(0..60).contains(&minute) || !(0..60).contains(&second) {
        return Err(Fault::Displacement);
    }
    if !rest.is_empty() {
        return Err(Fault::Format);
    }
    let seconds = (hour * 60 + minute) * 60 + second;
    Ok(if negative { -seconds } else { seconds })
}
