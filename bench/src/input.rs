//! Inputs: lines whose request bodies all have one length, in both formats.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
};

use clap::ValueEnum;

/// Bytes of a request body.
pub(crate) const BODY_BYTES: usize = 600;

/// The model that every line asks for.
pub(crate) const MODEL: &str = "bench";

/// Ends outside of any escape sequence wherever it is cut behind its first third.
const TEXT: &str = "the customer writes that \\\"the invoice of last month\\\" was charged twice.\\nShe has sent the \
    receipt, asks for the money back, and wants to know when it arrives.\\nSort this ticket into one of: billing, \
    delivery, account, product, other. Answer with that one word and nothing else. The history of this customer: four \
    orders in the last two years, one of them returned because the size did not fit, no complaint before this one, and a \
    newsletter that was cancelled in spring. The shop is in the north of the country, and the parcel went by ordinary \
    post, which takes two days as a rule and five before the holidays. Nobody has answered this ticket so far.";

/// The format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Prompts,
    OpenAi,
}

impl Format {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Prompts, Self::OpenAi];

    /// Its name in words and file names.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Prompts => "prompts",
            Self::OpenAi => "openai",
        }
    }
}

/// The body that is sent for line `number`. Of a prompt, Penstock makes the same body.
pub(crate) fn body(number: u64) -> String {
    format!(r#"{{"model":"{MODEL}","messages":[{{"role":"user","content":"{}"}}]}}"#, content(number))
}

/// The prompt of line `number`, escaped: it makes the body [`BODY_BYTES`] long, and stands in no other line.
fn content(number: u64) -> String {
    const AROUND: usize = r#"{"model":"bench","messages":[{"role":"user","content":""}]}"#.len();
    let mut content = format!("Ticket {number}: ");
    content.push_str(&TEXT[..BODY_BYTES - AROUND - content.len()]);
    content
}

/// Writes an input of `lines` lines.
pub(crate) fn write(path: &Path, format: Format, lines: u64) -> io::Result<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for number in 0..lines {
        match format {
            Format::Prompts => {
                writeln!(file, r#"{{"prompt_id":{number},"prompt":"{}"}}"#, content(number))?;
            }
            Format::OpenAi => writeln!(
                file,
                r#"{{"custom_id":"ticket-{number}","method":"POST","url":"/v1/chat/completions","body":{}}}"#,
                body(number)
            )?,
        }
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_body_is_json_of_the_same_length() {
        for number in [0, 7, 12_345, 9_999_999, u64::from(u32::MAX)] {
            let body = body(number);
            assert_eq!(body.len(), BODY_BYTES);
            let read: serde_json::Value = serde_json::from_str(&body).unwrap();
            let content = read["messages"][0]["content"].as_str().unwrap();
            assert!(content.starts_with(&format!("Ticket {number}: ")), "{content}");
        }
    }
}
