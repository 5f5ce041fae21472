//! The examples in the help of each command. Those with files of the repository run in a clone of it.

/// The examples of a command; none of one that is not listed.
pub fn examples(command: &str) -> Option<&'static str> {
    let examples = match command {
        "serve" => {
            "  pdr-audit serve --model EleutherAI/pythia-160m
  pdr-audit serve --port 9000 --model demo
  pdr-audit serve --config deploy/config.example.toml --check"
        }
        "score" => {
            "  pdr-audit score models/demo/audit.jsonl --methods loss,min_k_plus_plus --format table
  pdr-audit score models/demo/audit.jsonl --methods min_k --k 0.1,0.2 --decay none,linear --alpha 0.5,1 --output scores.csv
  pdr-audit score mybook.epub --model EleutherAI/pythia-160m --cut 64 --output scores.parquet"
        }
        "audit" => {
            "  pdr-audit audit models/demo/audit.jsonl
  pdr-audit audit mybook.txt --calibration others/ --model ./my-model
  pdr-audit audit labelled.parquet --model ./my-model --reference EleutherAI/pythia-70m --words 64"
        }
        "plan" => {
            "  pdr-audit plan models/demo/audit.jsonl --methods ref,min_k_plus_plus --out plan.json
  pdr-audit plan models/demo/audit.jsonl --preset paper_alpha --out plan.json
  pdr-audit plan labelled.csv --model ./my-model --control none --out plan.json"
        }
        "dataset" => {
            "  pdr-audit dataset models/demo/audit.jsonl --words 32 --output short.parquet
  pdr-audit dataset texts.csv --text-column content --label-column seen --output samples.ndjson
  pdr-audit dataset hub:swj0419/WikiMIA:WikiMIA_length64 --output wikimia_64.ndjson"
        }
        "count-tokens" => {
            "  pdr-audit count-tokens models/demo/audit.jsonl --output demo.counts.json
  pdr-audit count-tokens corpus-1.txt.gz corpus-2.ndjson --model ./my-model --output my.counts.json
  pdr-audit count-tokens - --model demo --output demo.counts.json"
        }
        "finetune" => {
            "  pdr-audit finetune non-members.jsonl --model demo --output tuned
  pdr-audit finetune non-members.jsonl --model ./my-model --rank 16 --epochs 2 --output tuned
  pdr-audit finetune --request request.json --format table"
        }
        "test" => {
            "  pdr-audit test dataset suspects.jsonl held-out.jsonl --model ./my-model
  pdr-audit test di suspects.jsonl held-out.jsonl --model ./my-model --control EleutherAI/pythia-70m
  pdr-audit test order shards.jsonl --model demo --shuffles 20"
        }
        "compare" => {
            "  pdr-audit compare before/ after/
  pdr-audit compare retain/ unlearned/ --question retain
  pdr-audit compare retain/ unlearned/ --question retain --format json"
        }
        "memorization" => {
            "  pdr-audit memorization book.txt --control another-book.txt --model EleutherAI/pythia-1.4b
  pdr-audit memorization models/demo/audit.jsonl --prefix 16 --suffix 8
  pdr-audit memorization --request request.json --format table"
        }
        "calibration" => {
            "  pdr-audit calibration --request request.json --config pdr-audit.toml
  pdr-audit calibration --request - < request.json
  PDR_AUDIT__STORE__URL=sqlite://pdr-audit.db pdr-audit calibration --request request.json"
        }
        "canary" => {
            "  pdr-audit canary make --out canaries
  pdr-audit canary make --count 20 --twins 19 --words 16 --out canaries
  pdr-audit canary open canaries/private.json --model demo"
        }
        "texts" => {
            "  pdr-audit texts mybook.epub
  pdr-audit texts shelf/ --cut 64 --at sentence --format table
  pdr-audit texts shelf.zip --output passages.ndjson"
        }
        "sign" => {
            "  pdr-audit sign run/report.dsse.json --signing-key second.pem --output run/report.dsse.json
  pdr-audit sign test.json --signing-key report-key.pem --output test.dsse.json
  pdr-audit sign job.json --scores scores.ndjson --signing-key report-key.pem"
        }
        "verify" => {
            "  pdr-audit verify run/report.dsse.json --key report-key.pub.pem
  pdr-audit verify run/report.dsse.json --key report-key.pub.pem --dataset models/demo/audit.jsonl --model demo
  pdr-audit verify report.dsse.json --key report-key.pub.pem --proof proof.json"
        }
        "prove" => {
            "  pdr-audit prove run/report.dsse.json --scores run/scores.ndjson --dataset models/demo/audit.jsonl --index 7
  pdr-audit prove run/report.dsse.json --scores run/scores.ndjson --dataset models/demo/audit.jsonl --index 7 --with-scores
  pdr-audit prove report.dsse.json --scores scores.ndjson --dataset labelled.csv --index 0 --output proof.json"
        }
        "methods" => {
            "  pdr-audit methods --wide
  pdr-audit methods min_k_plus_plus
  pdr-audit methods --format json"
        }
        "key" => {
            "  pdr-audit key new --name alice --scopes score,audit --keys keys.toml
  pdr-audit key list --keys keys.toml
  pdr-audit key revoke --name alice --keys keys.toml"
        }
        "record" => {
            "  pdr-audit record verify access.ndjson
  pdr-audit record verify access-20261122T101500.123456Z.ndjson access.ndjson
  pdr-audit record verify access.ndjson | tail -n 1"
        }
        "report" => {
            "  pdr-audit report run/report.json --output report.html
  pdr-audit report audit.json --scores scores.ndjson --output report.html
  pdr-audit report memorization.json > memorization.html"
        }
        "store" => {
            "  pdr-audit store check --config pdr-audit.toml
  pdr-audit store backup pdr-audit.backup --config pdr-audit.toml
  pdr-audit store restore pdr-audit.backup --config pdr-audit.toml"
        }
        "openapi" => {
            "  pdr-audit openapi
  pdr-audit openapi > openapi.json
  pdr-audit openapi | head -n 5"
        }
        _ => return None,
    };
    Some(examples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::JobKinds;
    use crate::cli::command;

    /// The arguments of an example, without variables before it and what the shell does after it.
    fn arguments(example: &str) -> Vec<&str> {
        let words = example.split_whitespace().skip_while(|word| *word != "pdr-audit");
        words.take_while(|word| !["<", ">", "|"].contains(word)).collect()
    }

    #[test]
    fn every_command_has_three_examples_that_it_accepts() {
        let program = command(&JobKinds::all());
        for name in program.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name) {
            let Some(examples) = examples(name) else {
                panic!("{name} has no examples");
            };
            assert_eq!(examples.lines().count(), 3, "{name}");
            for example in examples.lines() {
                let arguments = arguments(example);
                assert_eq!(arguments[1], name, "{example}");
                let parsed = program.clone().try_get_matches_from(arguments);
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }

    #[test]
    fn every_command_says_what_it_does() {
        let program = command(&JobKinds::all());
        let mut seen = std::collections::HashSet::new();
        for command in program.get_subcommands() {
            let about = command.get_about().map(ToString::to_string);
            assert!(about.clone().is_some_and(|about| seen.insert(about)), "{}: {about:?}", command.get_name());
        }
    }
}
