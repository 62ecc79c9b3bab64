use super::*;

fn lookup(name: &str) -> Option<String> {
    let value = match name {
        "ip" => "10.0.0.1",
        "ip6" => "fd00::1",
        "bracketed" => "[fd00::1]",
        "host" => "game.svc",
        "address" => "10.0.0.1:8080",
        "port" => "9091",
        "base" => "http://10.0.0.1:80",
        "deep" => "https://10.0.0.1/base",
        "url" => "https://h/x?a=b",
        "odd" => "a b&c=d/e?f#g@h",
        "slash" => "a/b",
        "dots" => "..",
        "dot" => ".",
        "crlf" => "a\r\nX-Evil: 1",
        "quote" => "say \"hi\" it's \\ `x`\n",
        "plain" => "gd-abcde",
        "number" => "-1.5e3",
        "int" => "30",
        "true" => "true",
        "" => "noname",
        "empty" => "",
        "pod[0].a-b" => "main",
        "tpl" => "{{args.ip}}",
        _ => return None,
    };
    Some(value.to_owned())
}

type Render = fn(&Template, &dyn Fn(&str) -> Option<String>) -> Result<String, PlaceholderError>;

/// `Ok` rows give the output, `Err` rows a part of the message.
fn check(render: Render, rows: &[(&str, Result<&str, &str>)]) {
    for (text, expected) in rows {
        let rendered = Template::parse(text).and_then(|template| render(&template, &lookup));
        match (&rendered, expected) {
            (Ok(output), Ok(expected)) => assert_eq!(output, expected, "{text}"),
            (Err(error), Err(words)) => assert!(error.message.contains(words), "{text}: {error}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn tags_are_trimmed_and_names_are_verbatim() {
    check(
        Template::render,
        &[
            ("", Ok("")),
            ("plain", Ok("plain")),
            ("{{args.ip}}", Ok("10.0.0.1")),
            ("{{ args.ip }}", Ok("10.0.0.1")),
            ("{{\t\n\u{3000}args.ip\u{a0}}}", Ok("10.0.0.1")),
            ("{{\u{200b}args.ip}}", Err("unknown placeholder")),
            ("a{{args.ip}}b{{args.port}}c", Ok("a10.0.0.1b9091c")),
            ("{{args.pod[0].a-b}}", Ok("main")),
            ("{{args.}}", Ok("noname")),
            ("{{args.tpl}}", Ok("{{args.ip}}")),
            ("}}{{args.ip}}}", Ok("}}10.0.0.1}")),
            ("{ {args.ip}}", Ok("{ {args.ip}}")),
            ("{{{args.ip}}}", Err("{{{args.ip}} at byte 0")),
            ("{{ARGS.ip}}", Err("{{ARGS.ip}}")),
            (
                "{{ip}} {{x}}",
                Err("{{ip}} at byte 0, {{x}} at byte 7; write {{args.NAME}}"),
            ),
            ("{{args.ip", Err("`{{` at byte 0 has no closing `}}`")),
            ("{{args.ip}} {{", Err("`{{` at byte 12")),
        ],
    );
    let template = Template::parse("{{args.a}}-{{args.b}}").unwrap();
    assert_eq!(template.names().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(template.source(), "{{args.a}}-{{args.b}}");
    assert!(!template.is_literal() && Template::parse("x").unwrap().is_literal());
    assert_eq!(Template::parse("é{{").unwrap_err().position, Some(2));
}

#[test]
fn all_missing_arguments_are_in_one_error() {
    let template = Template::parse("http://{{args.b1}}/{{args.a1}}/{{args.b1}}/{{args.ip}}").unwrap();
    let renders: [Render; 6] = [
        Template::render,
        Template::render_url,
        Template::render_header,
        Template::render_json,
        Template::render_promql,
        Template::render_condition,
    ];
    for render in renders {
        let error = render(&template, &lookup).unwrap_err();
        assert_eq!(error.missing, ["b1", "a1"]);
        assert!(error.message.contains("args.b1, args.a1"), "{error}");
    }
    let error = check_all_supplied([("a", Some("1")), ("b", None), ("c", None)]).unwrap_err();
    assert_eq!(error.missing, ["b", "c"]);
    assert_eq!(check_all_supplied([("a", Some(""))]), Ok(()));
}

#[test]
fn urls() {
    check(
        Template::render_url,
        &[
            (
                "http://{{args.ip}}:9091/metrics",
                Ok("http://10.0.0.1:9091/metrics"),
            ),
            ("http://{{args.ip6}}:80/", Ok("http://[fd00::1]:80/")),
            ("http://{{args.ip6}}", Ok("http://[fd00::1]")),
            ("http://[{{args.ip6}}]:80/", Ok("http://[fd00::1]:80/")),
            ("http://{{args.bracketed}}/", Ok("http://[fd00::1]/")),
            ("http://{{args.address}}/x", Ok("http://10.0.0.1:8080/x")),
            (
                "http://{{args.plain}}.{{args.host}}:{{args.port}}/x",
                Ok("http://gd-abcde.game.svc:9091/x"),
            ),
            (
                "http://u:{{args.odd}}@{{args.ip}}/",
                Ok("http://u:a%20b%26c%3Dd%2Fe%3Ff%23g%40h@10.0.0.1/"),
            ),
            (
                "http://h/{{args.odd}}/y",
                Ok("http://h/a%20b%26c%3Dd%2Fe%3Ff%23g%40h/y"),
            ),
            (
                "http://h/y?a={{args.odd}}&b=1",
                Ok("http://h/y?a=a%20b%26c%3Dd%2Fe%3Ff%23g%40h&b=1"),
            ),
            ("http://h/#{{args.slash}}", Ok("http://h/#a%2Fb")),
            ("http://h/{{args.empty}}/y", Ok("http://h//y")),
            ("HTTP://h/{{args.crlf}}", Ok("HTTP://h/a%0D%0AX-Evil%3A%201")),
            ("{{args.url}}", Ok("https://h/x?a=b")),
            ("{{args.base}}/x", Ok("http://10.0.0.1:80/x")),
            (
                "{{args.deep}}/{{args.slash}}?q",
                Ok("https://10.0.0.1/base/a%2Fb?q"),
            ),
            ("{{args.url}}/x", Err("args.url begins the url")),
            ("{{args.deep}}x", Err("/, ? or # must follow")),
            ("{{args.deep}}{{args.slash}}", Err("/, ? or # must follow")),
            ("{{args.base}}{{args.slash}}", Err("args.base")),
            (
                "{{args.ip}}:80/x",
                Err("args.ip begins the url and must begin with http://"),
            ),
            ("{{args.ip}}", Err("whole url")),
            ("ftp://h/{{args.ip}}", Err("begins with http:// or https://")),
            ("{{args.plain}}://h/", Err("scheme")),
            ("http://{{args.odd}}/", Err("args.odd")),
            ("http://{{args.slash}}/", Err("args.slash")),
            ("http://{{args.empty}}/", Err("args.empty")),
            (
                "http://{{args.ip}}{{args.slash}}",
                Err("args.slash is not a part of a host name"),
            ),
            ("http://h:{{args.plain}}/", Err("args.plain is not a port")),
            ("http://{{args.address}}:80/", Err("args.address")),
            ("http://{{args.int}}/", Err("args.int")),
            ("http://{{args.dots}}.svc/", Err("args.dots")),
            (
                "http://h/{{args.dots}}/x",
                Err("args.dots makes `..` a path segment"),
            ),
            (
                "http://h/%2e{{args.dot}}",
                Err("args.dot makes `..` a path segment"),
            ),
            ("http://h/{{args.dot}}{{args.dot}}?x", Err("args.dot makes")),
            ("http://h/a%2{{args.plain}}", Err("percent escape")),
            ("http://h/a\\{{args.plain}}", Err("backslash")),
            ("http://h/x?p={{args.dots}}", Ok("http://h/x?p=..")),
        ],
    );
}

#[test]
fn headers() {
    check(
        Template::render_header,
        &[
            ("Bearer {{args.odd}}", Ok("Bearer a b&c=d/e?f#g@h")),
            (
                "Bearer {{args.crlf}}",
                Err("args.crlf has the control character U+000D at byte 8"),
            ),
            (
                "a\n{{args.ip}}",
                Err("the header's text has the control character U+000A at byte 1"),
            ),
        ],
    );
}

#[test]
fn json_bodies() {
    check(
        Template::render_json,
        &[
            (
                r#"{"a":"{{args.quote}}"}"#,
                Ok("{\"a\":\"say \\\"hi\\\" it's \\\\ `x`\\n\"}"),
            ),
            (r#"{"a":{{args.number}}}"#, Ok(r#"{"a":-1.5e3}"#)),
            (r#"{"a":{{args.true}}}"#, Ok(r#"{"a":true}"#)),
            (
                r#"{"a":{{args.plain}}}"#,
                Err("args.plain is not a number, true, false or null"),
            ),
            (r#"{"a":{{args.empty}}}"#, Err("args.empty is not a number")),
            (
                r#"{"a":"\\{{args.quote}}"}"#,
                Ok("{\"a\":\"\\\\say \\\"hi\\\" it's \\\\ `x`\\n\"}"),
            ),
            (r#"{"a":"\{{args.quote}}"}"#, Err("right after a backslash")),
            (r#"{"a":"\u00{{args.int}}"}"#, Err("right after a backslash")),
            (r#"{"a":"\u0041{{args.int}}"}"#, Ok(r#"{"a":"\u004130"}"#)),
            (r#"{"a":"{{args.ip}}""#, Err("jsonBody is not JSON at line 1")),
        ],
    );
}

#[test]
fn promql() {
    check(
        Template::render_promql,
        &[
            (
                r#"up{pod="{{args.quote}}"}"#,
                Ok("up{pod=\"say \\\"hi\\\" it's \\\\ `x`\\n\"}"),
            ),
            (
                "up{pod='{{args.quote}}'}",
                Ok("up{pod='say \"hi\" it\\'s \\\\ `x`\\n'}"),
            ),
            ("up{pod=`{{args.odd}}`}", Ok("up{pod=`a b&c=d/e?f#g@h`}")),
            ("up{pod=`{{args.quote}}`}", Err("backtick")),
            ("up{pod=\"\\{{args.quote}}\"}", Err("right after a backslash")),
            (
                "rate(x_{{args.plain}}[{{args.int}}m])",
                Ok("rate(x_gd-abcde[30m])"),
            ),
            ("up{pod={{args.odd}}}", Err("args.odd has a character other than")),
            (
                "# it's\nup{pod=\"{{args.quote}}\"}",
                Ok("# it's\nup{pod=\"say \\\"hi\\\" it's \\\\ `x`\\n\"}"),
            ),
            ("up # {{args.crlf}}", Err("args.crlf")),
        ],
    );
}

#[test]
fn conditions() {
    check(
        Template::render_condition,
        &[
            (
                "result == \"{{args.quote}}\"",
                Ok("result == \"say \\\"hi\\\" it's \\\\ `x`\\n\""),
            ),
            (
                "result == '{{args.quote}}'",
                Ok("result == 'say \"hi\" it\\'s \\\\ `x`\\n'"),
            ),
            ("result == `{{args.odd}}`", Ok("result == `a b&c=d/e?f#g@h`")),
            ("result == `{{args.quote}}`", Err("args.quote has a backtick")),
            ("result > {{args.int}}", Ok("result > 30")),
            ("result > {{args.number}} * 2", Ok("result > (-1.5e3) * 2")),
            ("result in 1..{{args.int}}", Ok("result in 1..30")),
            ("result == {{args.true}}", Ok("result == true")),
            (
                "result == {{args.plain}}",
                Err("args.plain is not a number; put the placeholder in quotes"),
            ),
            ("result == {{args.empty}}", Err("args.empty is not a number")),
            ("result > 1{{args.int}}", Err("args.int touches")),
            ("result > {{args.int}}{{args.int}}", Err("args.int touches")),
            ("asInt(result){{args.number}}", Err("args.number touches")),
            ("all(result, #{{args.int}})", Err("args.int touches")),
            (
                "result > 1 // it's {{args.int}} \"",
                Ok("result > 1 // it's 30 \""),
            ),
            (
                "1 /* ' */ == '{{args.odd}}'",
                Ok("1 /* ' */ == 'a b&c=d/e?f#g@h'"),
            ),
            ("6 / 2 == \"{{args.odd}}\"", Ok("6 / 2 == \"a b&c=d/e?f#g@h\"")),
            ("\"\\{{args.quote}}\"", Err("right after a backslash")),
        ],
    );
}

#[test]
fn what_a_template_renders_to_is_bounded() {
    let template = Template::parse(&"{{args.x}}".repeat(10)).unwrap();
    let error = template.render(&|_| Some("x".repeat(1 << 20))).unwrap_err();
    assert!(error.message.contains("longer than"), "{error}");
}
