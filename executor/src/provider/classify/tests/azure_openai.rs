//! Refusals of Azure OpenAI.

use super::*;

#[test]
fn refusals_have_their_consequences() {
    check(
        ProviderKind::AzureOpenAi,
        &[
            (
                400,
                r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry. To learn more about our content filtering policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"},"violence":{"filtered":false,"severity":"safe"}}}}}"#,
                "failed content_filter",
            ),
            (
                400,
                r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}"#,
                "failed context_length_exceeded",
            ),
            (
                400,
                r#"{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}"#,
                "failed unsupported_parameter",
            ),
            (
                401,
                r#"{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource."}}"#,
                "blocked CredentialsRefused",
            ),
            (
                401,
                r#"{"statusCode":401,"message":"Unauthorized. Access token is missing or invalid."}"#,
                "blocked CredentialsRefused",
            ),
            (
                403,
                r#"{"error":{"code":"403","message":"Access denied due to Virtual Network/Firewall rules."}}"#,
                "blocked CredentialsRefused",
            ),
            (404, r#"{"error":{"code":"404","message":"Resource not found"}}"#, "failed http_404"),
            (
                404,
                r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again."}}"#,
                "failed DeploymentNotFound",
            ),
            (408, r#"{"error":{"code":"Timeout","message":"The operation was timeout."}}"#, "retry Timeout"),
            (
                429,
                r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-02-01 have exceeded call rate limit of your current OpenAI S0 pricing tier. Please retry after 9 seconds."}}"#,
                "throttled Some(Requests) Some(9s)",
            ),
            (
                429,
                r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-05-01-preview have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 44 seconds."}}"#,
                "throttled Some(Tokens) Some(44s)",
            ),
            // As seen where one request is larger than the limit: vanderschaarlab/climb#1, alex-wolf-ps/dbchatprov2#2
            (
                429,
                r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-05-01-preview have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 86400 seconds. Please go here: https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit."}}"#,
                "blocked BillingOrZeroQuota, or failed alone",
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}"#,
                "blocked BillingOrZeroQuota",
            ),
            (
                429,
                r#"{"error":{"message":"The system is currently experiencing high demand and cannot process your request. Your request exceeds the maximum usage size allowed during peak load.","type":"too_many_requests","param":null,"code":"too_many_requests"}}"#,
                "overloaded",
            ),
            (
                503,
                r#"{"error":{"message":"Slow Down","type":"server_error","param":null,"code":"slow_down"}}"#,
                "slow down",
            ),
            (
                500,
                r#"{"error":{"code":"InternalServerError","message":"Backend returned unexpected response. Please contact Microsoft for help."}}"#,
                "retry InternalServerError",
            ),
            (
                503,
                r#"{"error":{"code":"ServiceUnavailable","message":"The service is temporarily unable to process your request. Please try again later."}}"#,
                "retry ServiceUnavailable",
            ),
        ],
    );
}

#[test]
fn milliseconds_in_the_headers_go_before_seconds_in_the_text() {
    let body = r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded call rate limit of your current OpenAI S0 pricing tier. Please retry after 2 seconds."}}"#;
    let mut refusal = answer(429, body);
    refusal.retry_after = Some(Duration::from_millis(1_412));
    let dialect = Dialect::new(ProviderKind::AzureOpenAi, Format::Prompts, Endpoint::ChatCompletions);
    assert_eq!(summary_in(dialect, &Ok(refusal.clone())), "throttled Some(Requests) Some(1.412s)");
    refusal.retry_after = Some(Duration::from_hours(9));
    assert_eq!(summary_in(dialect, &Ok(refusal.clone())), "blocked DayQuotaExhausted after 32400s");
    refusal.retry_after = Some(Duration::from_hours(24));
    assert_eq!(summary_in(dialect, &Ok(refusal)), "blocked BillingOrZeroQuota, or failed alone");
}
