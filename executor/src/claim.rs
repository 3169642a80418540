//! Claim (C1-C5 of the job protocol): take the next epoch, or find out that there is nothing to take.
//!
//! Nothing is sent here. The newcomer wins: an older executor learns at its next checkpoint that its claim is gone.

mod adopt;
mod rejected;
mod seal;

use penstock_batchfile::Position;
use penstock_job::{
    Epoch, Incarnation, OrdinalSet, Receipt, State, Step, Validation,
    layout::{self, PartName},
    state::{
        Discarded, EPOCHS_KEPT, EpochRecord, PartOutcomes, Phase, Requests, StateFormat, StateInput,
        StateJob, ValidationReference,
    },
    usage::Usage,
};
use penstock_storage::Generation;

use crate::{
    board::Board,
    clock::now_ms,
    error::{RunError, check_identity},
    job::Job,
    output::Output,
    scratch,
    state_object::{OnRefusal, StateObject},
};

/// What a claim found.
#[derive(Debug)]
pub(crate) enum Claim {
    /// The job is over (C1).
    Published(Box<Receipt>),
    /// The job is ours to run or to finish.
    Taken(Box<Claimed>),
}

/// A job that this incarnation holds.
#[derive(Debug)]
pub(crate) struct Claimed {
    /// The state as last written.
    pub(crate) state: State,
    /// Where it was written.
    pub(crate) object: StateObject,
    /// The validation that it rests on.
    pub(crate) validation: Validation,
    /// The lines that validation rejected.
    pub(crate) rejected: OrdinalSet,
}

/// Takes the job over: claims, adopts what earlier epochs left, seals them.
///
/// A run that is alive writes its own state, and a claim may meet such a write. Then it is begun anew, since the newcomer
/// wins; against another newcomer it loses.
pub(crate) async fn claim(job: &Job, output: &Output, board: &Board) -> Result<Claim, RunError> {
    let mut held_by = None;
    for _ in 1..job.claims {
        match attempt(job, output, board, held_by).await? {
            Attempt::Over(claim) => return Ok(claim),
            Attempt::Met(epoch) => held_by = Some(epoch),
        }
    }
    match attempt(job, output, board, held_by).await? {
        Attempt::Over(claim) => Ok(claim),
        Attempt::Met(_) => Err(RunError::ClaimLost),
    }
}

/// What one attempt to claim came to.
enum Attempt {
    Over(Claim),
    /// Somebody has written the state meanwhile, which was of this epoch before.
    Met(Epoch),
}

/// `held_by` is the epoch of the state that an earlier attempt has met.
async fn attempt(
    job: &Job,
    output: &Output,
    board: &Board,
    held_by: Option<Epoch>,
) -> Result<Attempt, RunError> {
    let ours = (&job.identity, &job.canonical);
    // C1
    if let Some((receipt, _)) = output.document::<Receipt>().await? {
        check_identity(&receipt.job.identity, &receipt.job.spec, ours)?;
        return Ok(Attempt::Over(Claim::Published(Box::new(receipt))));
    }
    // C2
    let (validation, validation_generation) =
        output.document::<Validation>().await?.ok_or(RunError::NotValidated)?;
    check_identity(&validation.identity, &validation.spec, ours)?;
    // C3
    let incarnation = job.incarnation;
    let found = output.document::<State>().await?;
    let (mut state, generation) = match found {
        Some((state, generation)) => {
            check_identity(&state.job.identity, &state.job.spec, ours)?;
            (state, Some(generation))
        }
        None => (fresh(job, output, &validation, &validation_generation, incarnation).await?, None),
    };
    output.steps().after(Step::Look).await;
    let before = state.epoch;
    if held_by.is_some_and(|epoch| epoch != before) {
        return Err(RunError::ClaimLost);
    }
    // C4
    take_next_epoch(&mut state, incarnation)?;
    if state.phase == Phase::Running {
        state.usage.renew(&job.spec.budget, job.spec.prices.as_ref());
    }
    let mut object = StateObject::new(output.clone(), incarnation, generation);
    match object.write(Step::Claim, &mut state, board, OnRefusal::Fail).await {
        Err(RunError::ClaimLost) => return Ok(Attempt::Met(before)),
        written => written?,
    }
    match output.document::<Validation>().await? {
        Some((_, generation)) if generation == validation_generation => {}
        Some((other, _)) => return Err(RunError::occupied(&other.spec, &job.canonical)),
        None => return Err(RunError::NotValidated),
    }
    board.claimed(state.epoch.0, state.input.lines, state.input.rejected);
    board.checkpointed();
    tracing::info!(epoch = %state.epoch, %incarnation, identity = %job.identity, "claimed");

    let rejected = rejected::read(output, &validation).await?;
    let mut claimed = Claimed { state, object, validation, rejected };
    // C5: what is frozen can only be published.
    if claimed.state.phase == Phase::Running {
        output.steps().before(Step::Adopt).await;
        let adopted = adopt::adopt(output, &mut claimed).await?;
        output.steps().after(Step::Adopt).await;
        seal::seal(&mut claimed, adopted, board).await?;
    }
    board.adopted(claimed.state.outcomes);
    Ok(Attempt::Over(Claim::Taken(Box::new(claimed))))
}

/// The state of a job that has none. Finals without a state cannot be explained; parts and files in scratch without one
/// are of epochs that were, and are adopted and recovered anew.
async fn fresh(
    job: &Job,
    output: &Output,
    validation: &Validation,
    validation_generation: &Generation,
    incarnation: Incarnation,
) -> Result<State, RunError> {
    let mut highest = scratch::highest_epoch(&job.scratch).await;
    for object in output.list("", None).await? {
        let name = object.name.as_str();
        if layout::is_final(name) || name.starts_with(layout::COMPOSE) {
            return Err(RunError::Unexplained { name: name.to_owned() });
        }
        if let Ok(part) = name.parse::<PartName>() {
            highest = highest.max(part.epoch);
        }
    }
    let now = now_ms();
    let metadata = &job.spec.metadata;
    Ok(State {
        format: StateFormat,
        job: StateJob {
            identity: job.identity.clone(),
            spec: job.canonical.clone(),
            uid: metadata.uid.clone(),
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone(),
        },
        created_at_ms: now,
        epoch: highest,
        sealed: Epoch::NONE,
        incarnation,
        write: 0,
        phase: Phase::Running,
        ending: None,
        input: StateInput {
            uri: validation.input.uri.clone(),
            generation: validation.input.generation.clone(),
            size_bytes: validation.input.size_bytes,
            crc32c: validation.input.crc32c,
            lines: validation.lines,
            rejected: validation.rejected,
        },
        validation: ValidationReference {
            name: layout::VALIDATION.to_owned(),
            generation: validation_generation.as_str().to_owned(),
        },
        completed: OrdinalSet::new(),
        cursor: Position::START,
        parts: Vec::new(),
        outcomes: PartOutcomes::default(),
        requests: Requests::default(),
        usage: Usage::default(),
        discarded: Discarded::default(),
        epochs: Vec::new(),
        learner: None,
        finalization: None,
        updated_at_ms: now,
    })
}

fn take_next_epoch(state: &mut State, incarnation: Incarnation) -> Result<(), RunError> {
    // Its sequence numbers would be taken for those of the epoch to come.
    if let Some(part) = state.parts.iter().find(|part| part.name.epoch > state.epoch) {
        let problem = format!("it lists `{}`, of an epoch that nobody has claimed", part.name);
        return Err(RunError::Damaged { name: layout::STATE.to_owned(), problem });
    }
    state.epoch = state.epoch.next().ok_or(RunError::NoNextEpoch(state.epoch))?;
    // F3: what is frozen changes in its writer alone.
    if state.phase == Phase::Finalizing {
        return Ok(());
    }
    state.epochs.push(EpochRecord {
        epoch: state.epoch,
        incarnation,
        claimed_at_ms: now_ms(),
        lines_at_claim: state.completed.len(),
    });
    let surplus = state.epochs.len().saturating_sub(EPOCHS_KEPT);
    state.epochs.drain(..surplus);
    Ok(())
}
