//! What a cloud or its library says of a failure, made fit to stand in the middle of a message.

use std::error::Error;
use std::iter;

/// The longest text that is passed on, in characters.
const LONGEST_TEXT: usize = 300;

/// A text in one line of bearable length, without the stop at its end.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{} …", &line[..end]),
        None => line.trim_end_matches('.').to_owned(),
    }
}

/// An error with its reasons, those left out that the one before has in its own text.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    for source in sources(error) {
        let reason = source.to_string();
        if !text.contains(&reason) {
            text = format!("{text}: {reason}");
        }
    }
    text
}

/// The reasons of an error, the nearest first.
pub(crate) fn sources<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    iter::successors(error.source(), |&source| source.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fits_into_one_line_of_a_message() {
        let long = "so\nlong ".repeat(1_000);
        let line = one_line(&long);
        assert!(line.chars().count() <= LONGEST_TEXT + 2 && !line.contains('\n'), "{line:?}");
        assert_eq!(one_line("The specified bucket\n does not exist."), "The specified bucket does not exist");
    }

    #[test]
    fn a_reason_is_told_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("connect")]
        struct Outer(#[source] std::io::Error);
        let refused = || std::io::Error::other("refused");
        assert_eq!(chain(&Outer(refused())), "connect: refused");
        assert_eq!(chain(&refused()), "refused");
    }
}
