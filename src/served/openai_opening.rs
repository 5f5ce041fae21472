//! What a server of the kind `openai` accepts, found out by a probe when a model is opened.
//!
//! Forms of a request are tried one after another, the best first: lists of ids, one list of ids, one text. The first whose answer makes
//! sense is the one that is used. Then the order of the log-probabilities is checked: an echo may be off by one position, as that of
//! llama-cpp-python is for models without a token for the beginning of texts, and all its numbers are possible ones.

use super::dialect::{EchoDialect, LeadingToken, PromptForm};
use super::openai_answer::{EchoChoice, WITHOUT_PROMPT};
use super::openai_requests::{EchoRequest, OpenAiServer, Prompts, only_choice, text_of, wrong};
use super::probed::PROBE_BEST;
use super::server::{Patience, unreached};
use lm::models::ModelError;
use lm::tokenizer::{Encoded, Tokenizer};

/// The number of ids of the probe.
const PROBE_IDS: usize = 64;
/// Forms of a request in the order in which they are tried, with the number of tokens to generate. For texts 1 comes first:
/// llama-cpp-python takes 0 for as many as the context holds.
const FORMS: [(PromptForm, usize); 6] = [
    (PromptForm::IdLists, 0),
    (PromptForm::IdLists, 1),
    (PromptForm::Ids, 0),
    (PromptForm::Ids, 1),
    (PromptForm::Text, 1),
    (PromptForm::Text, 0),
];
/// Numbers of most probable tokens in the order in which they are tried.
const BEST: [usize; 2] = [PROBE_BEST, 1];
/// The number of places at which the order is checked, and the fewest at which a difference tells something.
const ORDER_PLACES: usize = 8;
const FEWEST_PLACES: usize = 3;
/// Log-probabilities of the most probable token that differ by less are of the same position, computed in another batch.
const SAME_POSITION: f64 = 0.1;

/// The text of the probe, some of whose words can be foretold.
const PROBE_TEXT: &str = "One, two, three, four, five, six, seven, eight, nine, ten. Monday, Tuesday, Wednesday, Thursday, Friday, Saturday \
     and Sunday are the days of the week. The capital of France is Paris, and the capital of Italy is Rome. Once upon a time there was a \
     king who had a daughter. He said to her: the sun rises in the east and sets in the west. January, February, March, April, May.";

/// At most `most` ids of the probe's text, with the token for the beginning of texts if servers report one. Any text would do whose
/// tokens are the same when it is cut behind them.
pub fn probe_ids(most: usize, tokenizer: &Tokenizer, leading: LeadingToken) -> Result<Vec<u32>, ModelError> {
    let ids = match leading {
        LeadingToken::Reported => tokenizer.encode(PROBE_TEXT).map(|encoded| encoded.ids.to_vec()),
        LeadingToken::Absent | LeadingToken::LeftOut => tokenizer.plain_ids(PROBE_TEXT),
    };
    let ids = ids.map_err(|error| unreached(error.to_string()))?;
    let lengths = (2..=ids.len().min(most)).rev();
    let cut = lengths.map(|length| &ids[..length]).find(|ids| text_of(ids, tokenizer, leading).is_ok());
    cut.map(<[u32]>::to_vec)
        .ok_or_else(|| unreached("the tokenizer reads no part of the probe's text as it reads the whole"))
}

/// Returns the first form of a request that the server answers as it should.
pub fn find_dialect(
    server: &OpenAiServer,
    tokenizer: &Tokenizer,
    context: Option<usize>,
) -> Result<EchoDialect, ModelError> {
    let most = context.map_or(PROBE_IDS, |context| context.min(PROBE_IDS));
    let ids = probe_ids(most, tokenizer, LeadingToken::Absent)?;
    let mut reasons: Vec<String> = Vec::new();
    for (prompts, max_tokens) in FORMS {
        for best in BEST {
            let dialect = EchoDialect { prompts, max_tokens, best, leading: LeadingToken::Absent };
            match answered(server, tokenizer, &ids, dialect) {
                Ok((dialect, echo)) => {
                    check_order(server, tokenizer, &ids, dialect, &echo)?;
                    return Ok(dialect);
                }
                // It says nothing of the form.
                Err(error @ ModelError::Unavailable { had_batch: false, .. }) => return Err(error),
                Err(error) => {
                    let reason = format!("asked with {prompts} and max_tokens {max_tokens}: {error}");
                    let is_refused = matches!(error, ModelError::Forward(_));
                    reasons.push(reason);
                    // Fewer most probable tokens help where the request is refused, and not where its answer is wrong.
                    if !is_refused {
                        break;
                    }
                }
            }
        }
    }
    if reasons.iter().any(|reason| reason.contains(WITHOUT_PROMPT)) {
        return Err(unreached(WITHOUT_PROMPT));
    }
    reasons.dedup();
    Err(unreached(reasons.join("; ")))
}

/// Returns the dialect with the leading token that the answer shows, and the answer.
fn answered(
    server: &OpenAiServer,
    tokenizer: &Tokenizer,
    ids: &[u32],
    dialect: EchoDialect,
) -> Result<(EchoDialect, EchoChoice), ModelError> {
    let fits = |choice: EchoChoice, ids: &[u32], text: Option<&str>, dialect: EchoDialect| {
        let sent = server.sent(ids, text, tokenizer, dialect);
        match choice.parting(&sent) {
            Some(parting) => Err(wrong(parting)),
            None => choice.stats(&sent).map(|_| (dialect, choice)).map_err(wrong),
        }
    };
    let echo = |prompts: Prompts| server.echo(prompts, ids.len(), dialect, dialect.best, Patience::Description);
    match dialect.prompts {
        PromptForm::IdLists => fits(only_choice(echo(Prompts::IdLists(&[ids]))?).map_err(wrong)?, ids, None, dialect),
        PromptForm::Ids => fits(only_choice(echo(Prompts::Ids(ids))?).map_err(wrong)?, ids, None, dialect),
        PromptForm::Text => {
            let text = text_of(ids, tokenizer, LeadingToken::Absent)?;
            let answer = echo(Prompts::Text(&text))?;
            let read = answer.prompt_tokens();
            let choice = only_choice(answer).map_err(wrong)?;
            let whole = tokenizer.encode(&text).map_err(|error| unreached(error.to_string()))?;
            let adds_one = whole.specials_before == 1 && whole.specials_after == 0;
            let candidates: &[LeadingToken] = match adds_one {
                true => &[LeadingToken::Reported, LeadingToken::LeftOut],
                false => &[LeadingToken::Absent],
            };
            for &leading in candidates {
                let ids = if leading == LeadingToken::Reported { &whole.ids } else { ids };
                let expected = whole.specials_before + text_ids(ids, leading);
                let is_told = read.map_or(leading != LeadingToken::LeftOut, |read| read == expected);
                if is_told && choice.parting(&server.sent(ids, Some(&text), tokenizer, dialect)).is_none() {
                    return fits(choice, ids, Some(&text), EchoDialect { leading, ..dialect });
                }
            }
            let parting = choice.parting(&server.sent(ids, Some(&text), tokenizer, dialect));
            Err(wrong(parting.unwrap_or_else(|| other_beginning(read, ids.len(), &whole))))
        }
    }
}

/// Number of ids that are those of the text itself.
fn text_ids(ids: &[u32], leading: LeadingToken) -> usize {
    ids.len() - usize::from(leading == LeadingToken::Reported)
}

fn other_beginning(read: Option<usize>, plain: usize, whole: &Encoded) -> String {
    let read = read.map_or("a number of tokens that it does not report".to_owned(), |read| format!("{read} tokens"));
    format!(
        "it reads a text in {read}, which has {plain} here and {} special ones before it: the server and the tokenizer do not begin texts \
         alike",
        whole.specials_before
    )
}

/// Checks that the log-probabilities of the echo belong to the positions that they are given for: what the echo has as the most probable
/// token at a place is what the server writes behind the tokens before it.
///
/// # Errors
/// Where that fails at most places. Without most probable tokens nothing is checked.
fn check_order(
    server: &OpenAiServer,
    tokenizer: &Tokenizer,
    ids: &[u32],
    dialect: EchoDialect,
    echo: &EchoChoice,
) -> Result<(), ModelError> {
    if !server.top_logprobs {
        return Ok(());
    }
    let patience = server.server.shared(Patience::Description);
    let before = usize::from(dialect.leading == LeadingToken::Reported);
    let (mut compared, mut different) = (0, Vec::new());
    for place in (1..=ORDER_PLACES).map(|part| part * ids.len() / (ORDER_PLACES + 1)).filter(|&place| place > 0) {
        let prefix = &ids[..place];
        let text = match dialect.prompts {
            PromptForm::Text => match text_of(prefix, tokenizer, LeadingToken::Absent) {
                Ok(text) => Some(text),
                Err(_) => continue,
            },
            PromptForm::IdLists | PromptForm::Ids => None,
        };
        let request = EchoRequest {
            model: &server.server.name,
            prompt: match (&text, dialect.prompts) {
                (Some(text), _) => Prompts::Text(text),
                (None, PromptForm::IdLists) => Prompts::IdLists(&[prefix]),
                (None, _) => Prompts::Ids(prefix),
            },
            max_tokens: 1,
            temperature: 0.0,
            logprobs: 1,
            echo: false,
            return_token_ids: false,
            return_tokens_as_token_ids: dialect.prompts == PromptForm::IdLists,
        };
        let written = only_choice(server.ask(&request, place + 1, patience)?).map_err(wrong)?;
        let (Some((token, lp)), Some((first, first_lp))) = (written.first_choice(0), echo.first_choice(place + before))
        else {
            continue;
        };
        compared += 1;
        if token != first && (lp - first_lp).abs() > SAME_POSITION {
            different.push(format!("{place} tokens it writes {token:?}, and its echo has {first:?} there"));
        }
    }
    match different.first() {
        Some(difference) if compared >= FEWEST_PLACES && different.len() * 2 > compared => Err(unreached(format!(
            "its log-probabilities of prompts are those of other positions: behind {difference}, in {} of {compared} places \
             (llama-cpp-python answers so for models without a token for the beginning of texts)",
            different.len()
        ))),
        _ => Ok(()),
    }
}
