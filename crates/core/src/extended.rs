//! Numbers as INCRBYFLOAT counts with them: binary floating point with 64 bits of mantissa, the `long double` of the
//! machines that Redis runs on. Clients see the digits (0.1 + 0.2 is 0.3), and replay must come to the same ones
//! everywhere, so it is done in integers here. Covers what that one command needs: read, add, write.
//!
//! Not covered: hexadecimal digits, and numbers so small that they would be written as 0 anyway.

use std::cmp::Ordering;

/// A finite number or an infinity: `±mantissa · 2^exponent`. The mantissa has its top bit set, or is 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extended {
    negative: bool,
    mantissa: u64,
    exponent: i32,
    infinite: bool,
}

/// Greatest exponent of a finite number, for a mantissa below 2^64.
const EXPONENT_MAX: i32 = 16384 - 64;
/// Least exponent, top bit included, of what is not rounded to 0.
const EXPONENT_MIN: i32 = -16446;
/// Longest text that is read as a number, as in Redis.
const TEXT_MAX_BYTES: usize = 5 * 1024 - 1;
/// Powers of ten beyond this are infinite or 0, whatever digits stand before them.
const POWER_MAX: i64 = 5000 + TEXT_MAX_BYTES as i64;
/// Digits behind the point.
const DECIMALS: usize = 17;
const SCALE: u128 = 10u128.pow(DECIMALS as u32);

impl Extended {
    const ZERO: Extended = Extended { negative: false, mantissa: 0, exponent: 0, infinite: false };

    /// `±mantissa · 2^exponent`, to the nearest, of two equally near ones to the even one. `None` if it is too large.
    fn rounded(negative: bool, mantissa: u128, exponent: i32) -> Option<Extended> {
        if mantissa == 0 {
            return Some(Extended::ZERO);
        }
        let surplus = 64 - mantissa.leading_zeros() as i32;
        let (mut kept, mut exponent) = if surplus <= 0 {
            ((mantissa as u64) << -surplus, exponent + surplus)
        } else {
            let (kept, rest) = ((mantissa >> surplus) as u64, mantissa & ((1 << surplus) - 1));
            let up = match rest.cmp(&(1 << (surplus - 1))) {
                Ordering::Less => false,
                Ordering::Equal => kept & 1 == 1,
                Ordering::Greater => true,
            };
            (kept.wrapping_add(up.into()), exponent + surplus)
        };
        if kept == 0 {
            // All ones, rounded up.
            (kept, exponent) = (1 << 63, exponent + 1);
        }
        (exponent <= EXPONENT_MAX).then_some(Extended { negative, mantissa: kept, exponent, infinite: false })
    }

    /// Reads a decimal number; `None` for anything else, for NaN, and for what is too large or too small.
    pub fn parse(text: &[u8]) -> Option<Extended> {
        if text.len() > TEXT_MAX_BYTES {
            return None;
        }
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(Extended { negative, infinite: true, ..Extended::ZERO });
        }
        let mut number = Natural::default();
        let (mut digits, mut point, mut power) = (0, false, 0i64);
        // Up to nine digits go into the number at once.
        let (mut part, mut scale) = (0, 1);
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'0'..=b'9' => {
                    (part, scale) = (10 * part + u32::from(byte - b'0'), 10 * scale);
                    if scale == 1_000_000_000 {
                        number.multiply_add(scale, part);
                        (part, scale) = (0, 1);
                    }
                    digits += 1;
                    power -= i64::from(point);
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        number.multiply_add(scale, part);
        if digits == 0 {
            return None;
        }
        if let Some(&(b'e' | b'E')) = text.get(at) {
            let (minus, written) = match &text[at + 1..] {
                [b'-', rest @ ..] => (true, rest),
                [b'+', rest @ ..] => (false, rest),
                rest => (false, rest),
            };
            if written.is_empty() || !written.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let value = written.iter().fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(1 << 30));
            power += if minus { -value } else { value };
            at = text.len();
        }
        if at != text.len() {
            return None;
        }
        if number.is_zero() {
            return Some(Extended::ZERO);
        }
        if power.abs() > POWER_MAX {
            return None;
        }
        let (mantissa, exponent) = number.times_power_of_ten(power as i32)?;
        Extended::rounded(negative, mantissa, exponent).filter(|number| number.exponent + 63 >= EXPONENT_MIN)
    }

    /// The sum; `None` if it is infinite or no number.
    pub fn plus(self, other: Extended) -> Option<Extended> {
        if self.infinite || other.infinite {
            return None;
        }
        if self.mantissa == 0 {
            return Some(other);
        }
        if other.mantissa == 0 {
            return Some(self);
        }
        let (large, small) = if (self.exponent, self.mantissa) >= (other.exponent, other.mantissa) {
            (self, other)
        } else {
            (other, self)
        };
        // 62 more bits, of which the last notes whether anything was cut off below it.
        const GUARD: i32 = 62;
        let gap = (large.exponent - small.exponent) as u32;
        let upper = u128::from(large.mantissa) << GUARD;
        let lower = u128::from(small.mantissa) << GUARD;
        let shifted = lower.checked_shr(gap).unwrap_or(0);
        let cut = gap >= 128 || shifted << gap != lower;
        let lower = shifted | u128::from(cut);
        let sum = if large.negative == small.negative { upper + lower } else { upper - lower };
        Extended::rounded(large.negative, sum, large.exponent - GUARD)
    }

    /// The digits: up to 17 behind the point, without zeros at the end.
    pub fn text(self) -> String {
        let mut text = if self.exponent >= 0 {
            let mut number = Natural::default();
            number.add_shifted(self.mantissa, self.exponent as u32);
            number.decimal()
        } else {
            let scaled = u128::from(self.mantissa) * SCALE;
            let shift = self.exponent.unsigned_abs();
            let whole = scaled.checked_shr(shift).unwrap_or(0);
            let rest = if shift < 128 { scaled - (whole << shift) } else { 0 };
            let half = if shift < 128 { 1u128 << (shift - 1) } else { u128::MAX };
            let up = rest > half || (rest == half && whole & 1 == 1);
            let whole = whole + u128::from(up);
            let fraction = format!("{:0DECIMALS$}", whole % SCALE);
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{}{point}{fraction}", whole / SCALE)
        };
        if self.negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

/// A natural number of any size: parts of 32 bits, the least significant first, no zeros at the end.
#[derive(Default)]
struct Natural(Vec<u32>);

impl Natural {
    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    fn multiply_add(&mut self, factor: u32, summand: u32) {
        let mut carry = u64::from(summand);
        for part in &mut self.0 {
            carry += u64::from(*part) * u64::from(factor);
            *part = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            self.0.push(carry as u32);
        }
    }

    /// Divides; answers the remainder.
    fn divide(&mut self, divisor: u32) -> u32 {
        let mut rest = 0u64;
        for part in self.0.iter_mut().rev() {
            rest = rest << 32 | u64::from(*part);
            *part = (rest / u64::from(divisor)) as u32;
            rest %= u64::from(divisor);
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        rest as u32
    }

    /// From zero: `value · 2^shift`.
    fn add_shifted(&mut self, value: u64, shift: u32) {
        debug_assert!(self.is_zero());
        if value == 0 {
            return;
        }
        self.0.resize((shift / 32) as usize, 0);
        let value = u128::from(value) << (shift % 32);
        self.0.extend([value as u32, (value >> 32) as u32, (value >> 64) as u32]);
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    /// The number times a power of ten as `mantissa · 2^exponent`; the lowest bit of the mantissa, far below what is
    /// kept, notes whether anything was cut off.
    fn times_power_of_ten(mut self, power: i32) -> Option<(u128, i32)> {
        /// The greatest power of five in 32 bits.
        const FIVES: u32 = 13;
        // Ten is two times five; the twos go to the exponent.
        let (mut exponent, mut cut) = (power, false);
        let mut fives = power.unsigned_abs();
        if power < 0 {
            // Room for the quotient to have 96 bits and more.
            let room = (fives * 7 / 3 + 128).div_ceil(32) as usize;
            self.0.splice(0..0, std::iter::repeat_n(0, room));
            exponent -= 32 * room as i32;
        }
        while fives > 0 {
            let step = fives.min(FIVES);
            if power > 0 {
                self.multiply_add(5u32.pow(step), 0);
            } else {
                cut |= self.divide(5u32.pow(step)) != 0;
            }
            fives -= step;
        }
        let below = self.0.len().saturating_sub(4);
        cut |= self.0[..below].iter().any(|&part| part != 0);
        let top = self.0[below..].iter().rev().fold(0u128, |top, &part| top << 32 | u128::from(part));
        exponent += 32 * below as i32;
        (exponent <= EXPONENT_MAX + 64).then_some((top | u128::from(cut), exponent))
    }

    fn decimal(mut self) -> String {
        const PART: u32 = 1_000_000_000;
        let mut parts = Vec::new();
        while !self.is_zero() {
            parts.push(self.divide(PART));
        }
        let Some(first) = parts.pop() else { return "0".into() };
        let mut text = first.to_string();
        for part in parts.iter().rev() {
            text.push_str(&format!("{part:09}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(a: &str, b: &str) -> Option<String> {
        Some(Extended::parse(a.as_bytes())?.plus(Extended::parse(b.as_bytes())?)?.text())
    }

    /// What Redis 8.2.3 answers on x86-64.
    #[test]
    fn sums_are_those_of_redis() {
        for (a, b, text) in [
            ("10.50", "0.1", "10.6"),
            ("10.6", "-5", "5.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("0.1", "0.2", "0.3"),
            ("3", "1.1", "4.1"),
            ("4.1", "1e20", "100000000000000000008"),
            ("100000000000000000008", "1e-20", "100000000000000000008"),
            ("0", "1e-20", "0"),
            ("0", "1e-5", "0.00001"),
            ("123456789012345678", "0.5", "123456789012345678.5"),
            ("0", "0.1234567890123456789", "0.12345678901234568"),
            ("0", "-0.0", "0"),
            ("1e17", "1.5", "100000000000000001.5"),
            ("0.5", "-1", "-0.5"),
            ("-1", "1", "0"),
            ("+1.", ".5", "1.5"),
        ] {
            assert_eq!(sum(a, b).as_deref(), Some(text), "{a} + {b}");
        }
        let large = sum("1.7e308", "1.7e308").unwrap();
        assert!(
            large.starts_with("340000000000000000006273556050395193590540427779388267466087171526404912102411641988")
        );
        assert_eq!(large.len(), 309);
        let largest = sum("1.7e4931", "0").unwrap();
        assert!(largest.starts_with("170000000000000000007472768755657554084490558103459233214778565764083048578474"));
        assert!(largest.ends_with("432500282434916104856755112108757101212068332041263847633570314278599730418155520"));
        assert_eq!(largest.len(), 4932);
    }

    #[test]
    fn what_is_no_number() {
        for text in [
            "",
            " 1",
            "1 ",
            "nan",
            "-nan",
            "abc",
            "1e",
            "1e+",
            "1e+-1",
            "--1",
            ".",
            "e5",
            "1.2.3",
            "1e5000",
            "1e999999999999",
        ] {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(Extended::parse(&[b'1'; 5 * 1024]), None);
        assert!(Extended::parse(b"inf").is_some_and(|n| n.plus(Extended::ZERO).is_none()));
        assert_eq!(sum("1.1e4932", "1.1e4932"), None, "the sum is infinite");
        assert_eq!(sum("0", "1e-4000").as_deref(), Some("0"));
        assert_eq!(Extended::parse(b"1e-4999"), None, "too small for any digits");
        assert_eq!(sum("0", &format!("1{}e-5000", "0".repeat(5000))).as_deref(), Some("1"));
        assert_eq!(sum("0", &format!("0.{}1e5001", "0".repeat(5000))).as_deref(), Some("1"));
    }

    /// Where 53 bits are enough and the sum is exact, it is that of `f64`.
    #[test]
    fn agrees_with_the_machine() {
        let mut x = 88_172_645_463_325_252u64;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x % 2_000_001) as f64 / 64.0 - 15_000.0
        };
        for _ in 0..2000 {
            let (a, b) = (next(), next());
            assert_eq!(sum(&a.to_string(), &b.to_string()), Some((a + b + 0.0).to_string()), "{a} + {b}");
        }
    }
}
