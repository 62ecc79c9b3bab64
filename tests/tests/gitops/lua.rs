//! Runs Lua scripts like Argo CD (`util/lua`): with the same libraries, and the same conversion of objects.

use jiff::Timestamp;
use mlua::{Lua, LuaOptions, StdLib, Table, Value as LuaValue};
use serde_json::{Map, Value, json};

/// Name of a script in errors of Lua.
const SCRIPT: &str = "script";

/// Runs a script on an object and returns its result. Of the libraries that are not in the base of Lua, it can use
/// `table`, and through `require` the functions `date` and `time` of `os`. There is no global `os` and no `string`.
pub(crate) fn run(script: &str, object: &Value) -> Value {
    try_run(script, object).unwrap_or_else(|refusal| panic!("{refusal}\n{script}"))
}

/// Runs a script like [`run`]. If the script ends with `error(text, 0)`, returns this text; other errors are bugs.
pub(crate) fn try_run(script: &str, object: &Value) -> Result<Value, String> {
    let lua = machine(object);
    // With `=`, Lua uses the name as it is.
    let chunk = lua.load(script).set_name(format!("={SCRIPT}"));
    match chunk.call::<LuaValue>(()) {
        Ok(returned) => Ok(encoded(&returned)),
        // Lua adds the position to its own errors.
        Err(mlua::Error::RuntimeError(text)) if !text.starts_with(&format!("{SCRIPT}:")) => {
            Err(text.lines().next().unwrap_or_default().to_owned())
        }
        Err(error) => panic!("{error}\n{script}"),
    }
}

/// Returns a Lua with the libraries that Argo CD opens, and the object.
fn machine(object: &Value) -> Lua {
    let lua = Lua::new_with(StdLib::TABLE | StdLib::PACKAGE, LuaOptions::new()).unwrap();
    let package: Table = lua.globals().get("package").unwrap();
    let preload: Table = package.get("preload").unwrap();
    let loader = lua.create_function(|lua, _: String| safe_os(lua)).unwrap();
    preload.set("os", loader).unwrap();
    lua.globals().set("obj", decoded(&lua, object)).unwrap();
    lua
}

/// Returns the functions of `os` that Argo CD allows.
fn safe_os(lua: &Lua) -> mlua::Result<Table> {
    let date = lua.create_function(|_, format: String| {
        let format = format
            .strip_prefix('!')
            .ok_or_else(|| mlua::Error::runtime("a date without time zone depends on the server"))?;
        Ok(Timestamp::now().strftime(format).to_string())
    })?;
    let time = lua.create_function(|_, ()| Ok(Timestamp::now().as_second()))?;
    let os = lua.create_table()?;
    os.set("date", date)?;
    os.set("time", time)?;
    Ok(os)
}

fn decoded(lua: &Lua, value: &Value) -> LuaValue {
    match value {
        Value::Null => LuaValue::Nil,
        Value::Bool(truth) => LuaValue::Boolean(*truth),
        Value::Number(number) => LuaValue::Number(number.as_f64().unwrap()),
        Value::String(text) => LuaValue::String(lua.create_string(text).unwrap()),
        Value::Array(items) => {
            let table = lua.create_table().unwrap();
            for item in items {
                table.raw_push(decoded(lua, item)).unwrap();
            }
            LuaValue::Table(table)
        }
        Value::Object(fields) => {
            let table = lua.create_table().unwrap();
            for (name, field) in fields {
                table.raw_set(name.as_str(), decoded(lua, field)).unwrap();
            }
            LuaValue::Table(table)
        }
    }
}

fn encoded(value: &LuaValue) -> Value {
    match value {
        LuaValue::Nil => Value::Null,
        LuaValue::Boolean(truth) => json!(truth),
        LuaValue::Integer(number) => json!(number),
        LuaValue::Number(number) => json!(number),
        LuaValue::String(text) => json!(text.to_string_lossy()),
        LuaValue::Table(table) => of_table(table),
        other => panic!("a script returned a {}", other.type_name()),
    }
}

/// Encodes a table. An empty one becomes a list, because Lua has no empty objects.
fn of_table(table: &Table) -> Value {
    let mut fields = Map::new();
    let mut items = 0;
    for pair in table.pairs::<LuaValue, LuaValue>() {
        match pair.unwrap() {
            (LuaValue::String(name), field) => {
                fields.insert(name.to_string_lossy(), encoded(&field));
            }
            _ => items += 1,
        }
    }
    if items == 0 && !fields.is_empty() {
        return Value::Object(fields);
    }
    assert!(
        fields.is_empty() && items == table.raw_len(),
        "a table that is neither a list nor an object"
    );
    let items = (1..=items).map(|index| encoded(&table.raw_get::<LuaValue>(index).unwrap()));
    Value::Array(items.collect())
}

#[test]
fn only_the_text_of_an_error_is_returned() {
    let script = r#"error("nothing to " .. obj.action, 0)"#;
    let refusal = try_run(script, &json!({ "action": "retry" }));
    assert_eq!(refusal, Err("nothing to retry".to_owned()));
}

#[test]
#[should_panic(expected = "script:1:")]
fn an_error_of_lua_is_a_bug() {
    let _ = try_run("return obj.spec.replicas", &json!({}));
}

#[test]
fn scripts_have_no_other_library() {
    let script = r#"
        local os = require("os")
        local found = {}
        for _, name in ipairs({ "string", "io", "os", "debug", "math", "table", "require" }) do
          if _G[name] ~= nil then
            table.insert(found, name)
          end
        end
        return { found = found, date = os.date("!%Y"), execute = os.execute == nil }
    "#;
    let returned = run(script, &json!({}));
    assert_eq!(returned["found"], json!(["table", "require"]));
    assert_eq!(returned["execute"], json!(true));
    assert_eq!(returned["date"].as_str().unwrap().len(), 4);
}
