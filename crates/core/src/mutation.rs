//! Deliberate mistakes, so that the simulator can show that it would notice them.
//!
//! Without the feature `mutations` every question here is answered "no" at compile time; only the test
//! kit turns the feature on.

/// A mistake somebody could make in this crate or in what drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    RetryOnceAfterLostAnswer,
    RetryOnceAfterCrash,
    NewKeyOnRetry,
    UndoInPlanOrder,
    ForgetTouched,
    IgnorePause,
    ApprovalNotBoundToCall,
    ApprovalUsedTwice,
    DropDoubtOnReplan,
    WakeByAnotherRule,
    StartBeforeNeedsEnd,
    CancelShownTooEarly,
    LateAnswerOverwrites,
    UndoTwice,
    SkipConditionIgnored,
    FallbackAfterMaybe,
    IgnorePlaces,
    ContinueWhileHeld,
    ForgetRetiredEffects,
    EndWithDoubt,
    ForgetTicket,
    LoseDespiteTicket,
    AgentAnswersForPerson,
}

impl Mutation {
    pub const ALL: [Mutation; 23] = [
        Mutation::RetryOnceAfterLostAnswer,
        Mutation::RetryOnceAfterCrash,
        Mutation::NewKeyOnRetry,
        Mutation::UndoInPlanOrder,
        Mutation::ForgetTouched,
        Mutation::IgnorePause,
        Mutation::ApprovalNotBoundToCall,
        Mutation::ApprovalUsedTwice,
        Mutation::DropDoubtOnReplan,
        Mutation::WakeByAnotherRule,
        Mutation::StartBeforeNeedsEnd,
        Mutation::CancelShownTooEarly,
        Mutation::LateAnswerOverwrites,
        Mutation::UndoTwice,
        Mutation::SkipConditionIgnored,
        Mutation::FallbackAfterMaybe,
        Mutation::IgnorePlaces,
        Mutation::ContinueWhileHeld,
        Mutation::ForgetRetiredEffects,
        Mutation::EndWithDoubt,
        Mutation::ForgetTicket,
        Mutation::LoseDespiteTicket,
        Mutation::AgentAnswersForPerson,
    ];

    #[cfg(feature = "mutations")]
    pub fn is_active(self) -> bool {
        ACTIVE.get() == Some(self)
    }

    #[cfg(not(feature = "mutations"))]
    #[inline(always)]
    pub const fn is_active(self) -> bool {
        false
    }
}

#[cfg(feature = "mutations")]
thread_local! {
    static ACTIVE: std::cell::Cell<Option<Mutation>> = const { std::cell::Cell::new(None) };
}

/// Turns one mistake on, or all off, for this thread.
#[cfg(feature = "mutations")]
pub fn activate(mutation: Option<Mutation>) {
    ACTIVE.set(mutation);
}
