//! `penstock verify`: derives a job's receipt again from its output alone and names the first contradiction.
//!
//! | module | checks |
//! |---|---|
//! | `documents` | receipt, `validation.json` and `state.json` against one another |
//! | `records` | the published files against the receipt, and every ordinal exactly once |
//! | `ids` | the ids of the records against those of the input's lines, while the input is there |
//! | `contradiction` | how a contradiction is told |
//!
//! Memory: one bit per line, and one record. It shares with the executor what the documents and records mean, and none
//! of the code that wrote them.

mod contradiction;
mod documents;
mod ids;
mod records;

use penstock_job::{
    ExitCode, Receipt, State, Validation, document::Document, receipt::ReceiptEnding, state::Outcomes,
};
use penstock_storage::{Location, StorageError};
use serde::Serialize;
use thiserror::Error;

pub(crate) use self::contradiction::Contradiction;
use self::{
    ids::InputCheck,
    records::{Tally, tally},
};
use crate::{
    arguments::OutputArguments,
    error::{CommandError, storage_exit_code},
    lines::Lines,
    output::{Output, OutputError, Standing},
    view::{grouped, outcomes, percent},
};

/// Why a receipt is not confirmed.
#[derive(Debug, Error)]
pub(crate) enum VerifyError {
    /// Something contradicts it.
    #[error(
        "confirm the receipt: {0}; restore the output from a copy, or run the job anew with another --output"
    )]
    Contradiction(#[from] Contradiction),
    /// There is none yet.
    #[error("find receipt.json: the job is not over, {0}; run its command again to go on")]
    NotOver(String),
    /// A document cannot be read.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A file cannot be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl VerifyError {
    /// What the process exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Contradiction(_) => ExitCode::StorageDamaged,
            Self::NotOver(_) => ExitCode::Configuration,
            Self::Output(error) => error.exit_code(),
            Self::Storage(error) => storage_exit_code(error),
        }
    }
}

/// What was confirmed.
#[derive(Debug, Serialize)]
struct Proof {
    /// Always `true`.
    holds: bool,
    identity: String,
    ending: ReceiptEnding,
    lines: u64,
    outcomes: Outcomes,
    files: usize,
    bytes: u64,
    /// The identity sum of the records; `null` when ids were lost with the input.
    identity_sum: Option<String>,
    decision: String,
    input: InputCheck,
}

/// What is written with `--json` where the receipt does not hold.
#[derive(Debug, Serialize)]
struct Refutation<'a> {
    /// Always `false`.
    holds: bool,
    #[serde(flatten)]
    contradiction: &'a Contradiction,
}

/// Verifies an output.
pub(crate) async fn verify(arguments: &OutputArguments) -> Result<ExitCode, CommandError> {
    let output = Output::at(Location::parse(&arguments.output).map_err(OutputError::from)?).await?;
    let proven = prove(&output).await;
    let mut stdout = Lines::stdout();
    match &proven {
        Ok(proof) if arguments.json => stdout.json(proof),
        Ok(proof) => stdout.text(&told(&output, proof)),
        Err(CommandError::Verify(VerifyError::Contradiction(contradiction))) if arguments.json => {
            stdout.json(&Refutation { holds: false, contradiction });
        }
        Err(_) => {}
    }
    let reached = stdout.flush();
    proven?;
    reached?;
    Ok(ExitCode::Completed)
}

async fn prove(output: &Output) -> Result<Proof, CommandError> {
    let receipt = receipt(output).await?;
    documents::check_receipt(&receipt).map_err(VerifyError::from)?;
    let validation = required::<Validation>(output).await?;
    documents::check_validation(&receipt, &validation).map_err(VerifyError::from)?;
    let state = required::<State>(output).await?;
    documents::check_state(&receipt, &validation, &state).map_err(VerifyError::from)?;
    let tally = tally(output, &receipt).await?;
    let input = ids::check(output, &receipt, &tally).await?;
    check_sums(&receipt, &tally).map_err(VerifyError::from)?;
    Ok(Proof {
        holds: true,
        identity: receipt.job.identity.to_string(),
        ending: receipt.ending,
        lines: receipt.lines,
        outcomes: receipt.outcomes,
        files: receipt.outputs.len(),
        bytes: receipt.outputs.iter().map(|output| output.size_bytes).sum(),
        identity_sum: receipt.identity.found.map(|sum| sum.to_string()),
        decision: receipt.decision,
        input,
    })
}

/// The receipt, or how far the job is.
async fn receipt(output: &Output) -> Result<Receipt, CommandError> {
    if let Some(receipt) = documents::understood(output.read::<Receipt>().await)? {
        return Ok(receipt);
    }
    Err(match output.standing().await? {
        Standing::Begun(state) => {
            let done = state.completed.len() + state.input.rejected;
            let lines = state.input.lines;
            let share = percent(done, lines);
            let far = format!("at least {} of {} lines are done ({share})", grouped(done), grouped(lines));
            VerifyError::NotOver(far).into()
        }
        Standing::Validated(_) => VerifyError::NotOver("nothing was sent".to_owned()).into(),
        Standing::Nothing | Standing::Over(_) => CommandError::NoJob(output.location().to_string()),
    })
}

async fn required<D: Document>(output: &Output) -> Result<D, VerifyError> {
    documents::understood(output.read::<D>().await)?
        .ok_or_else(|| Contradiction::of(D::NAME, "the file is gone, but the receipt rests on it").into())
}

/// The sums over the records' ids: as the receipt has them, and those of the input as validation saw it.
fn check_sums(receipt: &Receipt, tally: &Tally) -> Result<(), Contradiction> {
    let Some(found) = receipt.identity.found else {
        // Ids are lost only together with the input.
        let lost = receipt.outcomes.abandoned + receipt.outcomes.cancelled + receipt.outcomes.expired > 0;
        return if lost {
            Ok(())
        } else {
            Err(Contradiction::of(
                Receipt::NAME,
                "identity.found is null, but no line ended without an answer",
            ))
        };
    };
    if found != receipt.identity.expected {
        let expected = receipt.identity.expected;
        return Err(Contradiction::of(
            Receipt::NAME,
            format!("identity.expected is {expected}, but identity.found is {found}"),
        ));
    }
    if tally.identity_sum != found {
        let sum = tally.identity_sum;
        return Err(Contradiction::of(
            Receipt::NAME,
            format!("identity.found is {found}, but the ids of the records add up to {sum}"),
        ));
    }
    Ok(())
}

fn told(output: &Output, proof: &Proof) -> String {
    let Proof { lines, files, bytes, .. } = proof;
    let terms: Vec<_> = outcomes::named(&proof.outcomes)
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(word, count)| format!("{} {word}", grouped(count)))
        .collect();
    let ids = match &proof.identity_sum {
        Some(sum) => format!("sum {}… as validated", &sum[..16]),
        None => "some were lost with the input".to_owned(),
    };
    [
        format!("{}: the receipt holds", output.location()),
        format!(
            "  lines     {} = {}; each ordinal has exactly one record",
            grouped(*lines),
            terms.join(" + ")
        ),
        format!("  files     {files}, {} bytes: sizes, CRC32C and SHA-256 as recorded", grouped(*bytes)),
        format!("  ids       {ids}"),
        format!("  input     {}", proof.input),
        format!("  decision  {}…, derived again from the above", &proof.decision[..16]),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use penstock_batchfile::Ordinal;

    use super::*;
    use crate::documented;

    #[test]
    fn the_documented_fields_are_those_of_the_program() {
        let proof = |identity_sum| Proof {
            holds: true,
            identity: String::new(),
            ending: ReceiptEnding::Completed,
            lines: 1,
            outcomes: Outcomes::default(),
            files: 1,
            bytes: 1,
            identity_sum,
            decision: String::new(),
            input: InputCheck::Agrees,
        };
        let proofs = [proof(Some(String::new())), proof(None)];
        let proofs = proofs.map(|proof| serde_json::to_value(proof).unwrap());
        documented::check_fields("verify --json, the receipt holds", &proofs);
        let plain = Contradiction::of("receipt.json", "wrong");
        let precise = Contradiction::of("receipt.json", "wrong").at_line(1).about(Ordinal::new(0));
        let refutations = [plain, precise].map(|contradiction| {
            serde_json::to_value(Refutation { holds: false, contradiction: &contradiction }).unwrap()
        });
        documented::check_fields("verify --json, something contradicts it", &refutations);
    }
}
