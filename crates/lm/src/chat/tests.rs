use super::*;
use crate::tokenizer::SpecialTokens;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::time::{Duration, Instant};

const PLAIN: &str = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}";
const LIMIT: u64 = 1 << 20;

fn compiled(source: &str) -> Result<ChatTemplate, ChatError> {
    ChatTemplate::new(source.to_owned(), SpecialTokens::default())
}

fn messages(json: &Value) -> ChatMessages {
    serde_json::from_value(json.clone()).unwrap()
}

fn talk() -> ChatMessages {
    messages(&json!([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]))
}

fn render(source: &str, messages: &ChatMessages) -> Result<RenderedChat, ChatError> {
    compiled(source)?.render(messages, LIMIT)
}

#[test]
fn contents_of_the_assistant_are_spans() {
    let said = |content: &str| json!({"role": "assistant", "content": content});
    let asked = |content: &str| json!({"role": "user", "content": content});
    for (talk, expected) in [
        (json!([asked("\u{e9}"), said("yes")]), vec!["yes"]),
        (json!([said(" first "), asked("b"), said("a")]), vec!["first", "a"]),
        (json!([asked("a"), said(" \n"), asked("assistant"), said("assistant")]), vec!["assistant"]),
        (json!([asked("a\0"), said("b\0c")]), vec!["b\0c"]),
        (
            json!([said("AssistantContent0Turn"), said("AssistantContent0Turn0End")]),
            vec!["AssistantContent0Turn", "AssistantContent0Turn0End"],
        ),
    ] {
        let RenderedChat { text, spans } = render(PLAIN, &messages(&talk)).unwrap();
        let characters: Vec<char> = text.chars().collect();
        let contents: Vec<String> =
            spans.iter().map(|[start, end]| characters[*start..*end].iter().collect()).collect();
        assert_eq!(contents, expected, "{text:?}");
    }
}

#[test]
fn parts_of_a_content_are_joined() {
    let parts =
        json!([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]);
    assert_eq!(messages(&parts).as_slice()[0].content, "ab");
}

#[test]
fn what_is_no_conversation_is_named() {
    let many = vec![json!({"role": "user", "content": ""}); 10_000];
    for (json, words) in [
        (json!([]), "the list of messages is empty"),
        (json!(many), "at most 256"),
        (json!("a"), "invalid type: string"),
        (json!([{"role": 7, "content": "a"}]), "invalid type: integer `7`, expected a string"),
        (
            json!([{"role": "assistant", "content": null, "tool_calls": []}]),
            "the content is null, as in a message that only calls tools",
        ),
        (json!([{"role": "assistant", "content": "a", "tool_calls": []}]), "unknown field `tool_calls`"),
        (json!([{"role": "assistant"}]), "missing field `content`"),
        (json!([{"role": "assistant", "content": 7}]), "a text or a list of parts"),
        (json!([{"role": "user", "content": [{"type": "image_url", "text": ""}]}]), "`image_url`"),
    ] {
        let error = serde_json::from_value::<ChatMessages>(json).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    let asked = messages(&json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": " "}]));
    assert_eq!(render(PLAIN, &asked), Err(ChatError::NothingToScore));
}

#[test]
fn templates_that_hide_the_contents_are_refused() {
    for (source, expected) in [
        ("{% for m in messages %}{{ m.role }}{% endfor %}", ChatError::Changed { turn: 1 }),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", ChatError::Changed { turn: 1 }),
        ("{% for m in messages %}{{ m.content[:3] }}{% endfor %}", ChatError::Changed { turn: 1 }),
        (
            "{% for m in messages | reverse %}<{{ m.role }}>{{ m.content }}{% endfor %}",
            ChatError::NotAppended { turn: 1 },
        ),
        (
            "{{ messages | length }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}",
            ChatError::NotAppended { turn: 1 },
        ),
        (
            "{% if add_generation_prompt %}!{% endif %}{% for m in messages %}{{ m.content }}{% endfor %}",
            ChatError::NotAppended { turn: 1 },
        ),
    ] {
        assert_eq!(render(source, &talk()), Err(expected), "{source}");
    }
    let error = ChatError::NotAppended { turn: 1 };
    assert!(error.to_string().contains("does not render turns one after another") && error.turn() == Some(1));
}

/// A header that stands before the content of the last turn only, as that of a reasoning model does.
#[test]
fn a_content_is_found_behind_what_contains_it() {
    let source = "{% for m in messages %}<{{ m.role }}>{% if loop.last and not add_generation_prompt %}(because){% endif %}{{ m.content }}{% endfor %}\
                  {% if add_generation_prompt %}<assistant>{% endif %}";
    let talk = messages(&json!([{"role": "user", "content": "q"}, {"role": "assistant", "content": "because"}]));
    let RenderedChat { text, spans } = render(source, &talk).unwrap();
    assert_eq!((text.as_str(), spans), ("<user>q<assistant>(because)because", vec![[27, 34]]));
}

#[test]
fn what_a_template_raises_is_told_and_bounded() {
    let error = render("{{ raise_exception('no ' ~ messages[0].role) }}", &talk()).unwrap_err();
    assert_eq!(error, ChatError::Raised("no user".to_owned()));
    let ChatError::Raised(message) =
        render(&format!("{{{{ raise_exception('{}') }}}}", "x".repeat(5_000)), &talk()).unwrap_err()
    else {
        panic!()
    };
    assert_eq!(message.chars().count(), 303);
    let error = render("\n\n{{ messages[0].no.such }}", &talk()).unwrap_err().to_string();
    assert!(error.contains("undefined value") && error.contains("chat_template:3"), "{error}");
}

#[test]
fn the_present_date_is_refused_unless_the_template_does_without() {
    assert_eq!(render("{{ strftime_now('%d %b %Y') }}", &talk()), Err(ChatError::Date));
    let source = "{% if strftime_now is defined %}{{ strftime_now('%d') }}{% else %}26 Jul 2024{% endif %}";
    assert!(render(&format!("{source}{PLAIN}"), &talk()).unwrap().text.starts_with("26 Jul 2024<user>"));
}

#[test]
fn hostile_templates_end() {
    let loops = "{% for i in range(100000) %}{% for j in range(100000) %}";
    let ends = "{% endfor %}{% endfor %}";
    let doubled =
        |body: &str| format!("{{% set ns = namespace(x='ab') %}}{{% for i in range(100) %}}{body}{{% endfor %}}");
    let begun = Instant::now();
    for source in [
        format!("{loops}{ends}"),
        format!("{loops}{}{ends}", "x".repeat(1_000)),
        doubled("{% set ns.x = ns.x + ns.x %}"),
        doubled("{% set ns.x = ns.x ~ ns.x %}"),
        doubled("{% set ns.x = ns.x.replace('a', 'aa') %}"),
        doubled("{% set ns.x = ns.x | replace('b', ns.x) %}"),
        doubled("{% set ns.x = ns.x.join(ns.x) %}"),
        "{{ '%1000000000d' | format(1) }}".to_owned(),
        "{{ 'a' | indent(1000000000) }}{{ 'a\nb' | indent(1000000000) }}".to_owned(),
        "{{ messages | tojson(indent=1000000000) }}".to_owned(),
        format!("{loops}{{% if messages[0].content.find('zz') %}}{{% endif %}}{ends}"),
        format!("{loops}{{% if messages[0].content.count('zz') %}}{{% endif %}}{ends}"),
    ] {
        let long =
            messages(&json!([{"role": "user", "content": "z".repeat(500_000)}, {"role": "assistant", "content": "a"}]));
        assert_eq!(render(&source, &long), Err(ChatError::Exhausted), "{source}");
        assert!(begun.elapsed() < Duration::from_secs(60), "{source}");
    }
    let error = render("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", &talk()).unwrap_err().to_string();
    assert!(error.contains("recursion limit"), "{error}");
    let error = render("{{ '{:>99999999999999}'.format(1) }}", &talk()).unwrap_err().to_string();
    assert!(error.contains("`str.format` is not supported"), "{error}");
    let limited = compiled(PLAIN).unwrap().render(&talk(), 10);
    assert!(matches!(limited, Err(ChatError::TooLong { limit: 10, .. })));
}

/// Fuel does not bound what a list of lists costs: shared a hundred times, it has no end.
#[test]
fn values_that_nest_without_end_are_refused_before_they_are_made() {
    for source in [
        "{% set x = ['a'] %}{% set x = [x, x] %}",
        "{{ messages * 100000 }}",
        "{{ 'x' * 100000000 }}",
        "{{ messages[0].content.split('zz') * 100000 }}",
        "{% set x = 'a' %}{% set y = (x, x) %}",
        "{% set x = 'a' %}{% set y = {'a': x} %}",
        "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
        "{% set ns = namespace() %}{% set other = ns %}",
        "{% set ns = namespace(x=namespace()) %}",
        "{% set f = namespace %}{% set ns = f() %}",
        "{% macro f(x) %}{% endmacro %}{% set ns = namespace() %}{{ f(ns) }}",
    ] {
        let error = compiled(source).unwrap_err();
        assert!(
            error.is_of_template() && error.to_string().contains("whose size nothing would bound"),
            "{source}: {error}"
        );
    }
    for source in
        ["{{ messages | batch(1) }}", "{{ messages | zip(messages) }}", "{{ dict(a=messages) }}", "{{ debug() }}"]
    {
        assert!(render(source, &talk()).unwrap_err().to_string().contains("unknown"), "{source}");
    }
    for source in ["{{ messages + messages }}", "{{ (messages[0].content | list) + ['a'] }}"] {
        assert!(
            render(source, &talk()).unwrap_err().to_string().contains("`+` takes two texts or two numbers"),
            "{source}"
        );
    }
    assert!(compiled("{% set x = ['a', {'b': [1, (2, 3)]}] %}{% if x[0] in ['a', 'b'] %}{% endif %}").is_ok());
}

/// The library recurses over them, when it compiles them and when it forgets them.
#[test]
fn long_chains_leave_the_process_alone() {
    let rest = PLAIN;
    for chain in [
        format!("{{% if false %}}{{{{ m{} }}}}{{% endif %}}", ".b".repeat(5_000)),
        format!("{{% if false %}}{{{{ {}m }}}}{{% endif %}}", "not ".repeat(5_000)),
        format!("{{% if false %}}{{{{ m{} }}}}{{% endif %}}", "~m".repeat(5_000)),
        format!("{{% if false %}}{}{{% endif %}}", "{% elif m %}".repeat(5_000)),
    ] {
        let template = compiled(&(chain + rest)).unwrap();
        assert!(template.render(&talk(), LIMIT).is_ok());
    }
}

#[test]
fn filters_write_no_more_than_their_fuel() {
    for (source, words) in [
        (format!("{{{{ range(9000) | tojson(separators=['{}', ':']) }}}}", "x".repeat(9)), "at most 8 bytes"),
        ("{{ ['a'] | map('default', messages, true) | list }}".to_owned(), "too many arguments"),
        (
            "{{ messages | map(attribute='q', default=messages) | list }}".to_owned(),
            "unknown keyword argument 'default'",
        ),
        ("{{ [['a']] | sum(start=[]) }}".to_owned(), "unknown filter"),
    ] {
        let error = render(&source, &talk()).unwrap_err().to_string();
        assert!(error.contains(words), "{source}: {error}");
    }
    let mapped = "{{ messages | map(attribute='role') | map('upper') | join(',') }}";
    assert!(matches!(render(mapped, &talk()), Err(ChatError::Changed { .. })));
}

#[test]
fn marks_are_found_in_one_pass() {
    let content: String = (0..40_000).map(|number| format!("AssistantContent{number}Turn ")).collect();
    let talk = messages(&json!([{"role": "user", "content": content}, {"role": "assistant", "content": "Because."}]));
    let begun = Instant::now();
    let rendered = compiled(PLAIN).unwrap().render(&talk, 8 << 20).unwrap();
    assert!(rendered.text.contains("AssistantContent39999Turn") && begun.elapsed() < Duration::from_secs(20));
    assert_eq!(rendered.spans.len(), 1);
}

#[test]
fn deep_expressions_are_refused() {
    for source in [format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000)), "{% if 1 %}".repeat(20_000)] {
        assert!(matches!(compiled(&source), Err(ChatError::Template(_))));
    }
    assert!(
        matches!(compiled(&"x".repeat(300_000)), Err(ChatError::Template(detail)) if detail.contains("at most 65536"))
    );
}

#[test]
fn the_template_is_that_of_the_file_or_the_default_one() {
    let from = |files: &[(&'static str, Value)]| {
        let find = |name: &str| -> Result<Option<Vec<u8>>, Infallible> {
            let file = files.iter().find(|(known, _)| *known == name);
            Ok(file.map(|(_, content)| match content {
                Value::String(text) => text.clone().into_bytes(),
                json => json.to_string().into_bytes(),
            }))
        };
        ChatTemplate::from_files(find).and_then(|template| template.render(&talk(), LIMIT))
    };
    let text = |files: &[(&'static str, Value)]| from(files).map(|rendered| rendered.text);
    let template = |before: &str| format!("{before}{PLAIN}");
    let rest = "<user>Why?\n\n<assistant>Because.\n\n";
    let config = json!({"chat_template": template("{{ bos_token }}|{{ eos_token }}|"), "bos_token": "<s>", "eos_token": {"content": "</s>"}});
    let named =
        json!({"chat_template": [{"name": "rag", "template": "rag"}, {"name": "default", "template": template("d")}]});
    assert_eq!(text(&[("tokenizer_config.json", config.clone())]).unwrap(), format!("<s>|</s>|{rest}"));
    assert_eq!(text(&[("tokenizer_config.json", named)]).unwrap(), format!("d{rest}"));
    let file = ("chat_template.jinja", Value::from(template("f{{ bos_token }}")));
    assert_eq!(text(&[("tokenizer_config.json", config), file]).unwrap(), format!("f<s>{rest}"));
    let old = [
        ("tokenizer_config.json", json!({"chat_template": template("{{ bos_token }}")})),
        ("special_tokens_map.json", json!({"bos_token": "<bos>"})),
    ];
    assert_eq!(text(&old).unwrap(), format!("<bos>{rest}"));
    assert_eq!(from(&[]), Err(ChatError::NoTemplate));
    for (content, words) in [
        (json!({"chat_template": 7}), "expected a text or a list"),
        (json!({"chat_template": [{"name": "rag", "template": "a"}]}), "has the `name` \"default\""),
        (json!("{"), "tokenizer_config.json: EOF"),
        (json!({"chat_template": "{% if %}"}), "syntax error"),
        (json!({"chat_template": "{% nonsense %}"}), "unknown statement nonsense"),
    ] {
        let error = from(&[("tokenizer_config.json", content)]).unwrap_err();
        assert!(error.is_of_template() && error.to_string().contains(words), "{error}");
    }
}
