use serde_json::{Value, json};

use super::*;

fn find(path: &str, document: &Value) -> Result<Found, String> {
    find_as(path, Rules::Strict, document)
}

fn find_as(path: &str, rules: Rules, document: &Value) -> Result<Found, String> {
    JsonPath::parse_as(path, rules)
        .and_then(|path| path.find(document))
        .map_err(|error| error.message)
}

fn document() -> Value {
    json!({
        "age": 32, "name": "joe", "nil": null, "l": [1, 2, 3], "e": [], "k-d": "dash", "a.b": "dot", "k d": "blank",
        "a": {"b": {"c": "deep"}}, "big": 9_007_199_254_740_993_i64, "": "none", "nest": [[1, 2], [3, 4, 5]],
        "items": [
            {"name": "n1", "v": 1, "ok": true, "tags": ["x"]},
            {"name": "n2", "v": 2, "ok": false, "tags": []},
            {"name": "n3", "v": 10, "ok": true, "w": null},
        ],
    })
}

/// `one`: the value; `many`: the list; `nothing`; anything else: a part of the error's message.
fn expect(path: &str, rules: Rules, document: &Value, expected: &str) {
    let found = match find_as(path, rules, document) {
        Ok(Found::One(value)) => format!("one {value}"),
        Ok(Found::Many(values)) => format!("many {}", Value::from(values)),
        Ok(Found::Nothing) => "nothing".to_owned(),
        Err(error) if error.contains(expected) => expected.to_owned(),
        Err(error) => error,
    };
    assert_eq!(found, expected, "{path} on {document}");
}

fn check(rows: &[(&str, &str)]) {
    for (path, expected) in rows {
        expect(path, Rules::Strict, &document(), expected);
    }
}

#[test]
fn keys_and_their_spellings() {
    check(&[
        ("{$.age}", "one 32"),
        ("{.age}", "one 32"),
        ("$.age", "one 32"),
        (".age", "one 32"),
        (" .age ", "one 32"),
        ("{ $.age }", "one 32"),
        ("{['age']}", "one 32"),
        ("{.k-d}", "one \"dash\""),
        ("{.a\\.b}", "one \"dot\""),
        ("{['a\\.b']}", "one \"dot\""),
        ("{['a.b'].c}", "one \"deep\""),
        ("{.k\\ d}", "one \"blank\""),
        ("{['k\\ d']}", "one \"blank\""),
        ("{.a['b']['c']}", "one \"deep\""),
        ("{['age','name']}", "many [32,\"joe\"]"),
        ("{['age', 'name']}", "many [32,\"joe\"]"),
        ("{.}", "one \"none\""),
        ("{.nil}", "one null"),
        ("{.big}", "one 9007199254740993"),
    ]);
    assert!(matches!(
        find("{}", &document()),
        Ok(Found::One(Value::Object(_)))
    ));
    assert!(matches!(find("{$}", &json!(5)), Ok(Found::One(Value::Number(_)))));
    assert_eq!(find("{@}", &Value::Null), Ok(Found::One(Value::Null)));
}

#[test]
fn a_missing_key_is_an_error_that_names_it() {
    check(&[
        (
            "{.missing}",
            "key \"missing\" not found; existing keys: , a, a.b, age, big, e, items, k d, … (at byte 1 of jsonPath)",
        ),
        (
            "{.a.b.x}",
            "key \"x\" not found; existing keys: c (at byte 5 of jsonPath)",
        ),
        ("{.name.x}", "its parent is text, not an object"),
        ("{.nil.x}", "its parent is null"),
        ("{.l.length}", "its parent is a list"),
        (
            "{.items[*].missing}",
            "key \"missing\" not found in element 1 of 3; existing keys: name, ok, tags, v",
        ),
        (
            "{.items[*].w}",
            "key \"w\" not found in element 1 of 3; existing keys: name, ok, tags, v",
        ),
        ("{.items[*].nam}", "did you mean \"name\"?"),
        ("{.items..w}", "one null"),
        ("{.items..gone}", "not found at any level"),
        ("{.e[*].x}", "nothing"),
        ("{['age','gone']}", "key \"gone\" not found"),
        ("{.age}{.missing}", "key \"missing\" not found"),
    ]);
}

#[test]
fn indexes_and_slices() {
    check(&[
        ("{.l[0]}", "one 1"),
        ("{.l[]}", "one 1"),
        ("{.l[-1]}", "one 3"),
        ("{.l[-3]}", "one 1"),
        ("{.l[3]}", "index out of range: [3] in a list of length 3"),
        ("{.l[-4]}", "index out of range"),
        ("{.l[9223372036854775807]}", "index out of range"),
        ("{.l[-9223372036854775808]}", "index out of range"),
        ("{.l[*]}", "many [1,2,3]"),
        ("{.l[:]}", "many [1,2,3]"),
        ("{.l[1:]}", "many [2,3]"),
        ("{.l[:-1]}", "many [1,2]"),
        ("{.l[::2]}", "many [1,3]"),
        ("{.l[3:]}", "nothing"),
        ("{.l[1:1]}", "nothing"),
        ("{.l[2:1]}", "index out of range"),
        ("{.l[0:4]}", "index out of range"),
        ("{.l[0,2]}", "many [1,3]"),
        ("{.l[0,9]}", "index out of range"),
        ("{.e[*]}", "nothing"),
        ("{.nil[*]}", "[*] needs a list, not null"),
        ("{.age[0]}", "[0] needs a list, not a number"),
        ("{.a[*]}", "an object is not a list; use .* or a key"),
        ("{.nest[*][0]}", "many [1,3]"),
        ("{.nest[*][1:-1]}", "one 4"),
    ]);
    assert!(find("{[0]}", &Value::Null).is_err());
}

#[test]
fn wildcards_and_descent() {
    check(&[
        ("{.a.*}", "one {\"c\":\"deep\"}"),
        ("{..c}", "one \"deep\""),
        ("{...c}", "one \"deep\""),
        ("{.items..tags}", "many [[\"x\"],[]]"),
        (
            "{.a..}",
            "many [{\"b\":{\"c\":\"deep\"}},{\"c\":\"deep\"},\"deep\"]",
        ),
        ("{.name.*}", ".* needs an object or a list, not text"),
        ("{..*}", "unexpected '*'; write .* or [*]"),
        ("{....c}", "`..` must not follow `..`"),
        ("{..gone}", "not found at any level"),
    ]);
}

#[test]
fn filters_and_their_types() {
    check(&[
        ("{.items[?(@.name==\"n2\")].v}", "one 2"),
        ("{.items[?( @.name == 'n2' )].v}", "one 2"),
        ("{.items[?('n2'==@.name)].v}", "one 2"),
        ("{.items[?(@.name!=\"n2\")].v}", "many [1,10]"),
        ("{.items[?(@.v>=2.0)].name}", "many [\"n2\",\"n3\"]"),
        ("{.items[?(@.v<2.0)].name}", "one \"n1\""),
        ("{.items[?(@.v==2)].name}", "write 2.0"),
        (
            "{.items[?(@.v==\"2\")].name}",
            "a number cannot be compared with text",
        ),
        ("{.items[?(@.ok==true)].name}", "many [\"n1\",\"n3\"]"),
        ("{.items[?(@.ok<true)].name}", "have no order"),
        ("{.items[?(@.tags)].name}", "many [\"n1\",\"n2\"]"),
        ("{.items[?(@.gone==\"x\")].name}", "key \"gone\" not found"),
        ("{.items[?(@.name==\"zz\")].name}", "nothing"),
        ("{.items[?(@.tags==\"x\")].name}", "a list cannot be compared"),
        ("{.items[?(@.tags[0])].name}", "index out of range"),
        ("{.l[?(@>1.0)]}", "many [2,3]"),
        ("{.items[?()].v}", "many [1,2,10]"),
        ("{.age[?(@.v==1.0)]}", "a filter needs a list, not a number"),
        (
            "{.items[?(@.name==\"n1\" && @.ok)].v}",
            "unexpected '&'; filters do not support `&&`",
        ),
        ("{.items[?(@.name=~\"n.\")].v}", "`=` is not an operator"),
        ("{.items[?(@.name==n1)].v}", "`n1` is not a path"),
        ("{.items[?(@.name==)].v}", "nothing follows `==`"),
        ("{.items[?(@.name==\"n1\"].v}", "has no closing `)]`"),
        ("{.items[0,?(@.name=='n3')].v}", "many [1,10]"),
    ]);
    let exact = json!([{"a": 9_007_199_254_740_993_i64, "b": 9_007_199_254_740_992_i64}]);
    assert_eq!(find("{[?(@.a==@.b)]}", &exact), Ok(Found::Nothing));
    let closing = json!([{"b": ")", "c": 1}]);
    assert_eq!(find("{[?(@.b==\")\")].c}", &closing), Ok(Found::One(json!(1))));
    let escaped = json!([{"b": "a\"\u{e9}\n", "c": 1}]);
    assert_eq!(
        find(r#"{[?(@.b=="a\"\u00e9\n")].c}"#, &escaped),
        Ok(Found::One(json!(1)))
    );
}

/// Columns: path, document, strict rules, rules of client-go.
fn check_both(rows: &[(&str, &str, &str, &str)]) {
    for (path, document, strict, client_go) in rows {
        let document = serde_json::from_str(document).unwrap();
        expect(path, Rules::Strict, &document, strict);
        expect(path, Rules::ClientGo, &document, client_go);
    }
}

#[test]
fn text_numbers_booleans_and_null_have_no_elements() {
    let servers = r#"{"servers":[{"rooms":[{"players":0}]},{"rooms":null}]}"#;
    let scalar_rooms = r#"{"servers":[{"rooms":[0]},{"rooms":5}]}"#;
    let ranges = r#"{"rooms":[{"players":[1]},{"players":null}]}"#;
    check_both(&[
        (
            "{.rooms.*}",
            r#"{"rooms":"hi"}"#,
            ".* needs an object or a list, not text (at byte 7 of jsonPath)",
            "many [104,105]",
        ),
        ("{.rooms.*}", r#"{"rooms":""}"#, "not text", "nothing"),
        ("{.rooms.*}", r#"{"rooms":7}"#, "not a number", "nothing"),
        ("{.rooms.*}", r#"{"rooms":true}"#, "not true or false", "nothing"),
        ("{.rooms.*}", r#"{"rooms":null}"#, "not null", "nothing"),
        (
            "{.rooms..}",
            r#"{"rooms":7}"#,
            ".. needs an object or a list, not a number",
            "nothing",
        ),
        ("{.rooms..}", r#"{"rooms":"hi"}"#, "not text", "one \"hi\""),
        ("{.rooms..players}", r#"{"rooms":5}"#, "not a number", "nothing"),
        ("{.rooms..players}", r#"{"rooms":null}"#, "not null", "nothing"),
        ("{..players}", "503", "not a number", "nothing"),
        ("{..players}", "null", "not null", "nothing"),
        (
            "{.rooms[*].players}",
            r#"{"rooms":null}"#,
            "[*] needs a list, not null",
            "nothing",
        ),
        (
            "{.rooms[1:].players}",
            r#"{"rooms":null}"#,
            "[1:] needs a list, not null",
            "nothing",
        ),
        (
            "{.rooms[0]}",
            r#"{"rooms":null}"#,
            "[0] needs a list, not null",
            "nothing",
        ),
        (
            "{.servers[*].rooms[*].players}",
            servers,
            "[*] needs a list, not null in element 2 of 2",
            "one 0",
        ),
        (
            "{.servers[*].rooms.*}",
            scalar_rooms,
            "not a number in element 2 of 2",
            "one 0",
        ),
        (
            "{['a','b'][*]}",
            r#"{"a":[1],"b":null}"#,
            "not null in element 2 of 2",
            "one 1",
        ),
        ("{range .rooms[*]}{.players[*]}{end}", ranges, "not null", "one 1"),
        (
            "{...*}",
            r#"{"a":"x"}"#,
            "not text in element 2 of 2",
            "many [\"x\",120]",
        ),
        // Empty lists and objects have no elements either, which is no mistake.
        ("{.rooms[*].players}", r#"{"rooms":[]}"#, "nothing", "nothing"),
        ("{.rooms.*}", r#"{"rooms":{}}"#, "nothing", "nothing"),
        ("{.rooms.*}", r#"{"rooms":[]}"#, "nothing", "nothing"),
        ("{.rooms[*]}", r#"{"rooms":[null]}"#, "one null", "one null"),
    ]);
}

#[test]
fn a_search_must_find_its_key_under_each_of_its_starting_points() {
    let rooms = r#"{"rooms":[{"players":0},{"error":"timeout"}]}"#;
    check_both(&[
        (
            "{..players}",
            "{}",
            ".. finds nothing, because the value is empty",
            "nothing",
        ),
        ("{..players}", "[]", ".. finds nothing", "nothing"),
        ("{..[*].players}", "{}", ".. finds nothing", "nothing"),
        ("{..['a','b']}", "{}", ".. finds nothing", "nothing"),
        (
            "{.rooms[*]..players}",
            rooms,
            "key \"players\" not found at any level in element 2 of 2",
            "one 0",
        ),
        ("{.rooms[*]..players}", r#"{"rooms":[]}"#, "nothing", "nothing"),
    ]);
}

#[test]
fn a_filter_whose_key_no_element_has_is_an_error() {
    let servers = r#"{"servers":[{"rooms":[{"id":1}]},{"rooms":[{"id":2,"busy":false}]}]}"#;
    let nowhere = "no element matches the filter";
    check_both(&[
        (
            "{.rooms[?(@.buzy)].id}",
            r#"{"rooms":[{"id":1,"busy":true}]}"#,
            "no element matches the filter: key \"buzy\" not found; existing keys: busy, id; did you mean \"busy\"? \
             (at byte 11 of jsonPath)",
            "nothing",
        ),
        (
            "{.rooms[?(@.busy)].id}",
            r#"{"rooms":[{"id":1,"busy":null},{"id":2}]}"#,
            nowhere,
            "one 1",
        ),
        (
            "{.rooms[?(@.busy)].id}",
            r#"{"rooms":[{"id":1,"busy":null},{"id":2,"busy":true}]}"#,
            "one 2",
            "many [1,2]",
        ),
        ("{.servers[*].rooms[?(@.busy)].id}", servers, "one 2", "one 2"),
        ("{.rooms[?(@.busy)].id}", r#"{"rooms":[]}"#, "nothing", "nothing"),
        (
            "{.rooms[?(@.tags[*])]}",
            r#"{"rooms":[{"tags":[]}]}"#,
            "nothing",
            "nothing",
        ),
        (
            "{.rooms[?(@.tags[*])]}",
            r#"{"rooms":[{"tags":null}]}"#,
            nowhere,
            "nothing",
        ),
        (
            "{.rooms[?(@.tags.*)]}",
            r#"{"rooms":[{"tags":5},{"tags":["x"]}]}"#,
            ".* needs an object or a list, not a number",
            "one {\"tags\":[\"x\"]}",
        ),
        (
            "{.rooms[?(@..busy)]}",
            r#"{"rooms":[{"a":1}]}"#,
            nowhere,
            "nothing",
        ),
        ("{.rooms[0,?(@.buzy)]}", r#"{"rooms":[1]}"#, nowhere, "one 1"),
        // Comparisons of what is missing or null are errors by either rules.
        (
            "{.rooms[?(@.busy==true)]}",
            r#"{"rooms":[{"id":1}]}"#,
            "not found",
            "not found",
        ),
        (
            "{.rooms[?(@.busy!=true)]}",
            r#"{"rooms":[{"busy":null}]}"#,
            "null cannot be compared",
            "null cannot be compared",
        ),
    ]);
}

#[test]
fn templates_bind_what_their_first_block_finds() {
    check(&[
        ("{.age}x", "one 32"),
        ("{.age}-{.name}", "one 32"),
        ("{.e[*]}{.name}", "one \"joe\""),
        ("{.e[*]}x", "one \"x\""),
        ("x{.age}", "one \"x\""),
        ("{'x'}{.age}", "one \"x\""),
        ("{'x'}", "one \"x\""),
        ("{1.5}", "one 1.5"),
        ("{-1}", "one -1"),
        ("{true}", "one true"),
        ("{range .items[*]}{.name}{end}", "one \"n1\""),
        ("{range .nest[*]}{range [*]}{@}{end}{end}", "one 1"),
        ("{range .e[*]}{.name}{end}", "key \"name\" not found"),
        ("{range .e[*]}{@}{end}{.age}", "one 32"),
        ("{range .items[*]}{.gone}{end}", "key \"gone\" not found"),
        ("{end}", "{end} without a {range}"),
        ("{.age 1}", "a constant cannot be mixed with a path"),
    ]);
    let notice = |path: &str| JsonPath::parse(path).unwrap().notice().unwrap_or("none");
    assert_eq!(notice("{.age}"), "none");
    assert_eq!(notice("$.age"), "none");
    assert!(notice("{'x'}").contains("constant"));
    for parts in ["{.age}-{.name}", "x{.age}", "{'x'}{.age}", "{.e[*]}x"] {
        assert!(notice(parts).contains("several parts"), "{parts}");
    }
    assert!(notice("{range .items[*]}{.name}{end}").contains("{.items[*].name}"));
}

#[test]
fn a_path_that_cannot_be_read_says_where_and_what_to_write() {
    for (path, position, words) in [
        ("", 0, "write {} for the whole document"),
        ("age", 0, "write {.age}"),
        ("{age}", 1, "{.age}"),
        ("{.age", 5, "without a closing `}`"),
        ("{.a['b}", 3, "without a closing `]`"),
        ("{.a[\"b\"]}", 3, "single quotes"),
        ("{.l[ 0 ]}", 3, "remove the spaces"),
        ("{.l[1.5]}", 3, "write a number"),
        ("{.l[::0]}", 3, "must be greater than 0"),
        ("{.l[9999999999999999999]}", 3, "9999999999999999999"),
        ("{{.age}}", 1, "braces must not be nested"),
        ("{.age,.name}", 5, "['a','b']"),
        ("{.a\n}", 3, "line breaks"),
        ("{.k d}", 4, "keys end at a space"),
        ("{['a}b']}", 4, "\\}"),
        ("{'a}", 1, "without a closing"),
        ("{\"\\q\"}", 1, "unknown escape"),
        ("$.age}", 5, "\\}"),
    ] {
        let error = JsonPath::parse(path).expect_err(path);
        assert!(error.message.contains(words), "{path}: {error}");
        assert_eq!(error.position, Some(position), "{path}: {error}");
    }
}

#[test]
fn hostile_paths_and_documents_end_in_an_error() {
    assert!(
        JsonPath::parse(&"{.a}".repeat(300))
            .unwrap_err()
            .message
            .contains("the limit is 1024")
    );
    assert!(
        JsonPath::parse(&"{range .a}".repeat(5))
            .unwrap_err()
            .message
            .contains("more than 4 nested ranges")
    );
    let many = json!({ "l": vec![0; MAX_FOUND + 1] });
    assert!(find("{.l[*]}", &many).unwrap_err().contains("the limit is 10000"));
    let pair = json!([[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]);
    let doubling = format!("{{{}}}", "[0,0]".repeat(20));
    assert!(find(&doubling, &pair).unwrap_err().contains("visits more than"));
    let list = json!({ "l": vec![json!({"s": "x".repeat(1000)}); 9_000] });
    assert!(find("{.l[*]['s','s']}", &list).is_err());
    let wide = format!("{{[{}]}}", vec!["'s'"; 200].join(","));
    assert!(
        find(&wide, &json!({ "s": "x".repeat(1 << 20) }))
            .unwrap_err()
            .contains("the values that jsonPath matches are larger than")
    );
    let mut nested = json!("text");
    for _ in 0..100 {
        nested = json!([nested]);
    }
    let multiplying = format!("{{{}}}", "...*".repeat(30));
    assert!(
        find_as(&multiplying, Rules::ClientGo, &nested)
            .unwrap_err()
            .contains("visits more than")
    );
    let mut deep = Value::Null;
    for _ in 0..100_000 {
        deep = Value::Array(vec![deep]);
    }
    assert!(find("{..x}", &deep).is_err());
    assert!(find("{$}", &deep).unwrap_err().contains("levels"));
    // Dropping the document would recurse.
    std::mem::forget(deep);
}

#[test]
fn the_first_field_is_known_where_the_path_can_read_no_other() {
    for (path, first) in [
        ("{.metadata.labels['a/b']}", Some("metadata")),
        ("{$.status.phase}", Some("status")),
        (".status.items[*].ready", Some("status")),
        ("{['metadata'].name}", Some("metadata")),
        ("{['metadata','spec']}", None),
        ("{.*}", None),
        ("{..name}", None),
        ("{$}", None),
        ("{.metadata.name}{.spec}", None),
        ("{range .metadata}{end}", None),
    ] {
        assert_eq!(JsonPath::parse(path).unwrap().first_field(), first, "{path}");
    }
}
