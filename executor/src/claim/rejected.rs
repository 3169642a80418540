//! The lines that validation rejected, read back and checked against `validation.json`.

use penstock_job::{OrdinalSet, Validation};
use penstock_storage::{Checksum, Generation};

use crate::{
    error::RunError,
    output::{Output, object_name},
};

/// The set of rejected ordinals; empty when nothing was rejected.
pub(super) async fn read(output: &Output, validation: &Validation) -> Result<OrdinalSet, RunError> {
    let Some(stored) = &validation.rejected_set else {
        return Ok(OrdinalSet::new());
    };
    let damaged = |problem: String| RunError::Damaged { name: stored.name.clone(), problem };
    let generation = Generation::new(stored.generation.as_str());
    let bytes = output.read_range(&object_name(&stored.name), &generation, 0..stored.size_bytes).await?;
    if Checksum::of(&bytes).crc32c != stored.crc32c.0 {
        return Err(damaged("its checksum is not the one in validation.json".to_owned()));
    }
    let rejected = OrdinalSet::from_bytes(&bytes).map_err(|error| damaged(error.to_string()))?;
    if rejected.len() == validation.rejected {
        Ok(rejected)
    } else {
        Err(damaged(format!(
            "it holds {} lines, validation.json says {}",
            rejected.len(),
            validation.rejected
        )))
    }
}
