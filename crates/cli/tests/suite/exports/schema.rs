//! Is a document as a JSON Schema says? As much of the language as our own schema uses; a keyword
//! that is not known here is a failure.

use serde_json::Value;

/// Complains about the first thing that is not as the schema says.
pub fn check(schema: &Value, value: &Value) {
    if let Err(complaint) = valid(schema, schema, value, "$") {
        panic!("{complaint}");
    }
}

fn valid(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (keyword, wanted) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$schema" | "$id" | "$defs" | "title" | "description" => true,
            "$ref" => {
                let pointer = wanted.as_str().unwrap().trim_start_matches('#');
                let referred = root.pointer(pointer).expect(pointer);
                valid(root, referred, value, at)?;
                true
            }
            "type" => match wanted.as_array() {
                Some(several) => several.iter().any(|it| is_a(value, it)),
                None => is_a(value, wanted),
            },
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "minimum" => value
                .as_u64()
                .is_none_or(|it| it >= wanted.as_u64().unwrap()),
            "pattern" => {
                assert_eq!(wanted, "^0x[0-9a-f]+$");
                let is_address = |text: &str| {
                    let digits = text.strip_prefix("0x").unwrap_or("");
                    !digits.is_empty() && digits.chars().all(|it| "0123456789abcdef".contains(it))
                };
                value.as_str().is_none_or(is_address)
            }
            "required" => {
                let mut names = wanted.as_array().unwrap().iter();
                names.all(|it| value.get(it.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (name, schema) in wanted.as_object().unwrap() {
                    if let Some(inner) = value.get(name) {
                        valid(root, schema, inner, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(wanted, false);
                let known = schema["properties"].as_object().unwrap();
                let mut names = value.as_object().unwrap().keys();
                names.all(|it| known.contains_key(it))
            }
            "items" => {
                for (place, inner) in value.as_array().unwrap().iter().enumerate() {
                    valid(root, wanted, inner, &format!("{at}[{place}]"))?;
                }
                true
            }
            other => panic!("{at}: nobody knows the keyword {other}"),
        };
        if !holds {
            let shown: String = value.to_string().chars().take(200).collect();
            return Err(format!(
                "{at}: {keyword} {wanted} does not hold for {shown}"
            ));
        }
    }
    Ok(())
}

fn is_a(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "null" => value.is_null(),
        other => panic!("nobody knows the type {other}"),
    }
}
