//! Azure OpenAI's errors. The gateway sends `{"error":{"code","message"}}`; what comes from the model's server has
//! OpenAI's envelope.

use std::time::Duration;

use serde_json::json;

use super::{filter, version};
use crate::{
    dialect::{
        Context, Dialect, Told,
        openai::{Envelope, OpenAi, retry},
    },
    limit::{Dimension, RetryAfter, rounded_up},
    question::{Form, Task},
    refusal::Refusal,
};

/// What a request that can never pass is told to wait: alex-wolf-ps/dbchatprov2#2 and jasonacox/TinyLLM#17.
const NEVER: Duration = Duration::from_hours(24);

/// A refusal as Azure tells it.
pub(super) fn told(refusal: &Refusal, context: &Context<'_>) -> Told {
    match refusal {
        // A version that is missing and a method that is wrong match no operation either.
        Refusal::UnknownPath { .. } | Refusal::WrongMethod { .. } | Refusal::MissingVersion => {
            gateway(404, "404", "Resource not found")
        }
        // Quoted in MuiseDestiny/zotero-gpt#412.
        Refusal::MissingKey | Refusal::Unauthenticated => Told::json(
            401,
            &json!({
                "statusCode": 401,
                "message": "Unauthorized. Access token is missing, invalid, audience is incorrect \
                            (https://cognitiveservices.azure.com), or have expired.",
            }),
        ),
        // Quoted in SciSharp/BotSharp#386.
        Refusal::WrongKey => gateway(
            401,
            "401",
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key \
             for an active subscription and use a correct regional API endpoint for your resource.",
        ),
        // Quoted in Azure-Samples/azure-sql-db-chatbot#3.
        Refusal::Forbidden => gateway(403, "403", "Access denied due to Virtual Network/Firewall rules."),
        // Quoted in chatboxai/chatbox#646.
        Refusal::ModelNotFound => gateway(
            404,
            "DeploymentNotFound",
            "The API deployment for this resource does not exist. If you created the deployment within the last 5 \
             minutes, please wait a moment and try again.",
        ),
        Refusal::RejectedPrompt => content_filter(),
        Refusal::RateLimited(exceeded) => {
            rate_limited(exceeded.dimension, exceeded.wait.unwrap_or(NEVER), context)
        }
        // Azure has no limits of a day and none of 0: both are a wait of a day.
        Refusal::DayQuota | Refusal::ZeroQuota => rate_limited(Dimension::Tokens, NEVER, context),
        // Quoted in markusylisiurunen/tau#79.
        Refusal::Overloaded => Envelope::new(
            429,
            "too_many_requests",
            "The system is currently experiencing high demand and cannot process your request. Your request exceeds \
             the maximum usage size allowed during peak load. For improved capacity reliability, consider switching \
             to Provisioned Throughput.",
        )
        .code("too_many_requests")
        .told(),
        // Quoted in Azure/azure-sdk-for-python#40812.
        Refusal::InternalError => Envelope::new(
            500,
            "server_error",
            format!(
                "The server had an error processing your request. Sorry about that! You can retry your request, or \
                 contact us through an Azure support request at: https://go.microsoft.com/fwlink/?linkid=2213926 if \
                 you keep seeing this error. (Please include the request ID {} in your email.)",
                context.id.as_uuid()
            ),
        )
        .told(),
        // Quoted in langgenius/dify-official-plugins#2199.
        Refusal::DeadlineExceeded => gateway(408, "Timeout", "The operation was timeout."),
        Refusal::TooLarge(_)
        | Refusal::UnreadableBody(_)
        | Refusal::Missing(_)
        | Refusal::Unsupported { .. }
        | Refusal::InvalidRequest
        | Refusal::InsufficientQuota
        | Refusal::SpendLimit
        | Refusal::AllSlotsTaken
        | Refusal::BadGateway
        | Refusal::Unavailable
        | Refusal::SlowDown => OpenAi.refusal(refusal, context),
    }
}

fn gateway(status: u16, code: &str, message: &str) -> Told {
    Told::json(status, &json!({ "error": { "code": code, "message": message } }))
}

/// Source: <https://learn.microsoft.com/en-us/azure/ai-foundry/openai/concepts/content-filter>.
fn content_filter() -> Told {
    Told::json(
        400,
        &json!({
            "error": {
                "message": "The response was filtered due to the prompt triggering Azure OpenAI's content management \
                            policy. Please modify your prompt and retry. To learn more about our content filtering \
                            policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
                "type": null,
                "param": "prompt",
                "code": "content_filter",
                "status": 400,
                "innererror": {
                    "code": "ResponsibleAIPolicyViolation",
                    "content_filter_result": filter::prompt(true),
                },
            },
        }),
    )
}

/// The message is quoted in microsoft/PubSec-Info-Assistant#479 (requests) and alex-wolf-ps/dbchatprov2#2 (tokens). It
/// always says how long to wait, if the server does; the headers say it twice where they count milliseconds.
fn rate_limited(dimension: Dimension, wait: Duration, context: &Context<'_>) -> Told {
    let limit = match dimension {
        Dimension::Requests => "call rate limit",
        Dimension::Tokens => "token rate limit",
    };
    let operation = match context.question.map(|question| question.task) {
        Some(Task::Write(Form::Response)) => "Responses_Create",
        Some(Task::Write(Form::Completion)) => "Completions_Create",
        Some(Task::Embed) => "Embeddings_Create",
        Some(Task::Write(Form::Chat) | Task::Moderate) | None => "ChatCompletions_Create",
    };
    let style = context.limits.retry_after;
    let retry_in = match style {
        RetryAfter::None => String::new(),
        _ => format!("Please retry after {} seconds. ", rounded_up(wait, 1_000)),
    };
    let message = format!(
        "Requests to the {operation} Operation under Azure OpenAI API version {} have exceeded {limit} of your \
         current OpenAI S0 pricing tier. {retry_in}Please go here: https://aka.ms/oai/quotaincrease if you would \
         like to further increase the default rate limit.",
        version(context.uri).unwrap_or("v1")
    );
    let mut told = gateway(429, "429", &message);
    told.headers.extend(retry(style, wait, context.now));
    if style == RetryAfter::Milliseconds {
        told.headers.extend(retry(RetryAfter::Seconds, wait, context.now));
    }
    told
}
