//! Columns of objects as `kubectl get` shows them. The API server prints them from its cache, so that a test that waits
//! does not read megabytes again and again.

use std::collections::BTreeMap;

use serde_json::Value;
use test_kit::eventually;

use crate::PATIENCE;
use crate::api::{Kind, RawApi};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Cells of an object by the names of their columns; empty without a value.
pub(crate) type Row = BTreeMap<String, String>;
/// Rows by the names of their objects.
pub(crate) type Rows = BTreeMap<String, Row>;

/// Client that reads tables.
pub(crate) struct Printer {
    http: reqwest::Client,
    url: String,
}

impl Printer {
    pub(crate) fn of(api: &RawApi) -> Self {
        Self {
            http: test_kit::http_client().unwrap(),
            url: api.proxy.url(),
        }
    }

    /// Returns the rows of all objects of a kind of the group in a namespace.
    pub(crate) async fn rows(&self, kind: Kind, namespace: &str) -> Result<Rows, String> {
        let (version, plural) = (kind.api_version(), kind.name().to_lowercase() + "s");
        let path = format!("/apis/{version}/namespaces/{namespace}/{plural}");
        let url = format!("{}{path}?includeObject=None&resourceVersion=0", self.url);
        let answer = self.http.get(url).header("accept", TABLE).send().await;
        let answer = answer.map_err(|error| format!("{error:?}"))?;
        let table = answer.text().await.map_err(|error| format!("{error:?}"))?;
        let table: Value = serde_json::from_str(&table).map_err(|error| error.to_string())?;
        let columns = list(&table["columnDefinitions"]).map(|column| text(&column["name"]));
        let columns: Vec<String> = columns.collect();
        let rows = list(&table["rows"]).map(|row| {
            let cells = columns.iter().cloned().zip(list(&row["cells"]).map(text));
            let cells: Row = cells.collect();
            (cells["Name"].clone(), cells)
        });
        Ok(rows.collect())
    }

    /// Waits until the rows satisfy the predicate.
    pub(crate) async fn until(&self, kind: Kind, namespace: &str, wanted: impl Fn(&Rows) -> bool) -> Rows {
        eventually(PATIENCE, || async {
            let rows = self.rows(kind, namespace).await?;
            if wanted(&rows) {
                Ok(rows)
            } else {
                Err(format!("{rows:?}"))
            }
        })
        .await
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the text of a cell.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
