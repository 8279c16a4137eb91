//! Values as pieces of the page: JSON, deflated, in letters that mean nothing to a browser.
//!
//! What comes from a program or its sources is in the page only in this form, so none of it can
//! be taken for markup; the page's script makes text of it, never markup. A piece is unpacked when
//! it is looked at.

use flate2::{Compression, GzBuilder};
use serde_json::Value;
use std::io::Write;

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The element with a value in it. Scripts find it by its `id`.
pub fn element(id: &str, value: &Value) -> String {
    format!(
        "<script type=\"text/plain\" id=\"{id}\">{}</script>\n",
        base64(&deflated(value.to_string().as_bytes()))
    )
}

/// No time and no name in it: equal values give equal bytes.
fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzBuilder::new().write(Vec::new(), Compression::best());
    let written = out.write_all(bytes).and_then(|()| out.finish());
    written.expect("a vector takes all that is written")
}

/// Bytes as letters (RFC 4648).
pub fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |place: usize| u32::from(chunk.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            let is_filler = place > chunk.len();
            out.push(if is_filler { '=' } else { letter.into() });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_those_of_rfc_4648() {
        let shown =
            ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|it| base64(it.as_bytes()));
        let wanted = [
            "", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy",
        ];
        assert_eq!(shown, wanted);
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn whatever_the_value_nothing_in_the_element_is_markup() {
        let value = Value::from("</script><script>alert(1)</script><!--");
        let element = element("x", &value);
        assert_eq!(element.matches('<').count(), 2);
        assert_eq!(element, super::element("x", &value));
    }
}
