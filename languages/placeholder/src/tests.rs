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

/// Checks rows: `Ok` contains the output, `Err` a part of the message.
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

/// Checks rows of one line each: `=>` with the output, or `=!` with a part of the message.
fn check_lines(render: Render, lines: &str) {
    let row = |line| match str::split_once(line, " =! ") {
        Some((text, words)) => (text, Err(words)),
        None => str::split_once(line, " => ")
            .map(|(text, output)| (text, Ok(output)))
            .unwrap(),
    };
    let lines = lines.trim().lines().map(str::trim);
    check(render, &lines.map(row).collect::<Vec<_>>());
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
    check_lines(
        Template::render_url,
        r"
        http://{{args.ip}}:9091/metrics => http://10.0.0.1:9091/metrics
        http://{{args.ip6}}:80/ => http://[fd00::1]:80/
        http://{{args.ip6}} => http://[fd00::1]
        http://[{{args.ip6}}]:80/ => http://[fd00::1]:80/
        http://{{args.bracketed}}/ => http://[fd00::1]/
        http://{{args.address}}/x => http://10.0.0.1:8080/x
        http://{{args.plain}}.{{args.host}}:{{args.port}}/x => http://gd-abcde.game.svc:9091/x
        http://u:{{args.odd}}@{{args.ip}}/ => http://u:a%20b%26c%3Dd%2Fe%3Ff%23g%40h@10.0.0.1/
        http://h/{{args.odd}}/y => http://h/a%20b%26c%3Dd%2Fe%3Ff%23g%40h/y
        http://h/y?a={{args.odd}}&b=1 => http://h/y?a=a%20b%26c%3Dd%2Fe%3Ff%23g%40h&b=1
        http://h/#{{args.slash}} => http://h/#a%2Fb
        http://h/{{args.empty}}/y => http://h//y
        HTTP://h/{{args.crlf}} => HTTP://h/a%0D%0AX-Evil%3A%201
        {{args.url}} => https://h/x?a=b
        {{args.base}}/x => http://10.0.0.1:80/x
        {{args.deep}}/{{args.slash}}?q => https://10.0.0.1/base/a%2Fb?q
        {{args.url}}/x =! args.url is at the start of the URL
        {{args.deep}}x =! /, ? or # must follow
        {{args.deep}}{{args.slash}} =! /, ? or # must follow
        {{args.base}}{{args.slash}} =! args.base
        {{args.ip}}:80/x =! args.ip is at the start of the URL and must start with http://
        {{args.ip}} =! whole URL
        ftp://h/{{args.ip}} =! must start with http:// or https://
        {{args.plain}}://h/ =! scheme
        http://{{args.odd}}/ =! args.odd
        http://{{args.slash}}/ =! args.slash
        http://{{args.empty}}/ =! args.empty
        http://{{args.ip}}{{args.slash}} =! args.slash must be part of a host name
        http://h:{{args.plain}}/ =! args.plain must be a port
        http://{{args.address}}:80/ =! args.address
        http://{{args.int}}/ =! args.int
        http://{{args.dots}}.svc/ =! args.dots
        http://h/{{args.dots}}/x =! args.dots makes `..` a path segment
        http://h/%2e{{args.dot}} =! args.dot makes `..` a path segment
        http://h/{{args.dot}}{{args.dot}}?x =! args.dot makes
        http://h/a%2{{args.plain}} =! percent escape
        http://h/a\{{args.plain}} =! backslash
        http://h/x?p={{args.dots}} => http://h/x?p=..
        ",
    );
}

#[test]
fn headers() {
    check_lines(
        Template::render_header,
        "
        Bearer {{args.odd}} => Bearer a b&c=d/e?f#g@h
        Bearer {{args.crlf}} =! args.crlf contains the control character U+000D at byte 8
        ",
    );
    let words = "the header's text contains the control character U+000A at byte 1";
    check(Template::render_header, &[("a\n{{args.ip}}", Err(words))]);
}

#[test]
fn json_bodies() {
    check_lines(
        Template::render_json,
        r#"
        {"a":"{{args.quote}}"} => {"a":"say \"hi\" it's \\ `x`\n"}
        {"a":{{args.number}}} => {"a":-1.5e3}
        {"a":{{args.true}}} => {"a":true}
        {"a":{{args.plain}}} =! args.plain is not a number, true, false or null
        {"a":{{args.empty}}} =! args.empty is not a number
        {"a":"\\{{args.quote}}"} => {"a":"\\say \"hi\" it's \\ `x`\n"}
        {"a":"\{{args.quote}}"} =! follows a backslash
        {"a":"\u00{{args.int}}"} =! follows a backslash
        {"a":"\u0041{{args.int}}"} => {"a":"\u004130"}
        {"a":"{{args.ip}}" =! jsonBody is not valid JSON at line 1
        "#,
    );
}

#[test]
fn promql() {
    check_lines(
        Template::render_promql,
        r#"
        up{pod="{{args.quote}}"} => up{pod="say \"hi\" it's \\ `x`\n"}
        up{pod='{{args.quote}}'} => up{pod='say "hi" it\'s \\ `x`\n'}
        up{pod=`{{args.odd}}`} => up{pod=`a b&c=d/e?f#g@h`}
        up{pod=`{{args.quote}}`} =! backtick
        up{pod="\{{args.quote}}"} =! follows a backslash
        rate(x_{{args.plain}}[{{args.int}}m]) => rate(x_gd-abcde[30m])
        up{pod={{args.odd}}} =! args.odd is outside of a string in the query, so it may contain only
        up # {{args.crlf}} =! args.crlf
        "#,
    );
    let (text, rendered) = (
        "# it's\nup{pod=\"{{args.quote}}\"}",
        "# it's\nup{pod=\"say \\\"hi\\\" it's \\\\ `x`\\n\"}",
    );
    check(Template::render_promql, &[(text, Ok(rendered))]);
}

#[test]
fn conditions() {
    check_lines(
        Template::render_condition,
        r#"
        result == "{{args.quote}}" => result == "say \"hi\" it's \\ `x`\n"
        result == '{{args.quote}}' => result == 'say "hi" it\'s \\ `x`\n'
        result == `{{args.odd}}` => result == `a b&c=d/e?f#g@h`
        result == `{{args.quote}}` =! args.quote contains a backtick
        result > {{args.int}} => result > 30
        result > {{args.number}} * 2 => result > (-1.5e3) * 2
        result in 1..{{args.int}} => result in 1..30
        result == {{args.true}} => result == true
        result == {{args.plain}} =! args.plain is not a number; put the placeholder in quotes
        result == {{args.empty}} =! args.empty is not a number
        result > 1{{args.int}} =! args.int is not separated
        result > {{args.int}}{{args.int}} =! args.int is not separated
        asInt(result){{args.number}} =! args.number is not separated
        all(result, #{{args.int}}) =! args.int is not separated
        result > 1 // it's {{args.int}} " => result > 1 // it's 30 "
        1 /* ' */ == '{{args.odd}}' => 1 /* ' */ == 'a b&c=d/e?f#g@h'
        6 / 2 == "{{args.odd}}" => 6 / 2 == "a b&c=d/e?f#g@h"
        "\{{args.quote}}" =! follows a backslash
        "#,
    );
}

#[test]
fn what_a_template_renders_to_is_bounded() {
    let template = Template::parse(&"{{args.x}}".repeat(10)).unwrap();
    let error = template.render(&|_| Some("x".repeat(1 << 20))).unwrap_err();
    assert!(error.message.contains("longer than"), "{error}");
}
