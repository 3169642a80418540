//! The names of what the operator makes for a job. Each is the job's own name, with a suffix where there are several.

/// The longest name of a BatchJob. A name that is derived from it must fit into a label of a pod.
pub const MAX_NAME_LENGTH: usize = 52;

/// The longest value of a label; the Job controller puts the name of a Job into one.
pub const MAX_LABEL_LENGTH: usize = 63;

/// What the operator makes for a BatchJob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Child {
    /// The Job whose pod runs it.
    Executor,
    /// The Job whose pod validates its input.
    Validation,
    /// The Job whose pod only publishes, when no executor can run any more.
    Finalizer,
    /// The ConfigMap with the job file and the certificate authority of the progress call.
    JobFile,
}

impl Child {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Executor, Self::Validation, Self::Finalizer, Self::JobFile];

    /// Its name.
    pub fn name(self, batch_job: &str) -> String {
        match self {
            Self::Executor => batch_job.to_owned(),
            Self::Validation => format!("{batch_job}-validate"),
            Self::Finalizer => format!("{batch_job}-finalize"),
            Self::JobFile => format!("{batch_job}-job-file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_derived_name_fits_into_a_label_and_differs_from_the_others() {
        let longest = "a".repeat(MAX_NAME_LENGTH);
        let mut names = Child::ALL.map(|child| child.name(&longest)).to_vec();
        assert!(names.iter().all(|name| name.len() <= MAX_LABEL_LENGTH), "{names:?}");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), Child::ALL.len());
    }
}
