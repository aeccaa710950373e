//! What EXPLAIN tells, as JSON, YAML and XML: in PostgreSQL's forms, blank by blank.

/// What is told of something.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Told {
    Text(String),
    /// A number, or `true` and `false`: as it is.
    Plain(String),
    Group(Vec<(String, Told)>),
    /// Groups, each by the name that XML has for it.
    Groups(&'static str, Vec<Vec<(String, Told)>>),
}

/// The form that is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    Text,
    Xml,
    Json,
    Yaml,
}

impl Form {
    /// The form of a name in any case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match &*name.to_lowercase() {
            "text" => Self::Text,
            "xml" => Self::Xml,
            "json" => Self::Json,
            "yaml" => Self::Yaml,
            _ => return None,
        })
    }

    /// One statement, told in this form; in the form of texts there is nothing to be told so.
    pub fn written(self, told: &[(String, Told)]) -> String {
        let mut out = String::new();
        match self {
            Self::Text => {}
            Self::Json => {
                out.push_str("[\n  {");
                json_group(told, 2, &mut out);
                out.push_str("\n  }\n]");
            }
            Self::Yaml => {
                out.push_str("- ");
                yaml_group(told, 1, &mut out);
            }
            Self::Xml => {
                out.push_str(
                    "<explain xmlns=\"http://www.postgresql.org/2009/explain\">\n  <Query>",
                );
                xml_group(told, 2, &mut out);
                out.push_str("\n  </Query>\n</explain>");
            }
        }
        out
    }
}

fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    out.push_str(&"  ".repeat(depth));
}

/// A text in quotes, as JSON has it.
fn quoted(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            other if other < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(other))),
            other => out.push(other),
        }
    }
    out.push('"');
}

fn json_group(group: &[(String, Told)], depth: usize, out: &mut String) {
    for (number, (name, told)) in group.iter().enumerate() {
        if number > 0 {
            out.push(',');
        }
        new_line(depth, out);
        quoted(name, out);
        out.push_str(": ");
        match told {
            Told::Text(text) => quoted(text, out),
            Told::Plain(plain) => out.push_str(plain),
            Told::Group(group) => {
                out.push('{');
                json_group(group, depth + 1, out);
                new_line(depth, out);
                out.push('}');
            }
            Told::Groups(_, groups) => {
                out.push('[');
                for (number, group) in groups.iter().enumerate() {
                    if number > 0 {
                        out.push(',');
                    }
                    new_line(depth + 1, out);
                    out.push('{');
                    json_group(group, depth + 2, out);
                    new_line(depth + 1, out);
                    out.push('}');
                }
                new_line(depth, out);
                out.push(']');
            }
        }
    }
}

/// The first line of it stands where the text ends.
fn yaml_group(group: &[(String, Told)], depth: usize, out: &mut String) {
    for (number, (name, told)) in group.iter().enumerate() {
        if number > 0 {
            new_line(depth, out);
        }
        out.push_str(name);
        out.push_str(": ");
        match told {
            Told::Text(text) => quoted(text, out),
            Told::Plain(plain) => out.push_str(plain),
            Told::Group(group) => {
                new_line(depth + 1, out);
                yaml_group(group, depth + 1, out);
            }
            Told::Groups(_, groups) => {
                for group in groups {
                    new_line(depth + 1, out);
                    out.push_str("- ");
                    yaml_group(group, depth + 2, out);
                }
            }
        }
    }
}

fn xml_group(group: &[(String, Told)], depth: usize, out: &mut String) {
    for (name, told) in group {
        let tag: String = name
            .chars()
            .map(|letter| match letter {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' | '.' => letter,
                _ => '-',
            })
            .collect();
        new_line(depth, out);
        out.push_str(&format!("<{tag}>"));
        match told {
            Told::Text(text) | Told::Plain(text) => escaped(text, out),
            Told::Group(group) => {
                xml_group(group, depth + 1, out);
                new_line(depth, out);
            }
            Told::Groups(one, groups) => {
                for group in groups {
                    new_line(depth + 1, out);
                    out.push_str(&format!("<{one}>"));
                    xml_group(group, depth + 2, out);
                    new_line(depth + 1, out);
                    out.push_str(&format!("</{one}>"));
                }
                new_line(depth, out);
            }
        }
        out.push_str(&format!("</{tag}>"));
    }
}

fn escaped(text: &str, out: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#x0d;"),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Form, Told};

    /// What PostgreSQL 15 writes of such a plan.
    #[test]
    fn plans_are_written_as_postgresql_writes_them() {
        let text = |text: &str| Told::Text(text.to_owned());
        let own = |name: &str, told: Told| (name.to_owned(), told);
        let scan = vec![
            own("Node Type", text("Seq Scan")),
            own("Parallel Aware", Told::Plain("false".to_owned())),
            own("Filter", text("(a < \"b\")")),
        ];
        let sort = vec![
            own("Node Type", text("Sort")),
            own("Plans", Told::Groups("Plan", vec![scan])),
        ];
        let told = [
            own("Plan", Told::Group(sort)),
            own("Planning Time", Told::Plain("0.143".to_owned())),
            own("Triggers", Told::Groups("Trigger", Vec::new())),
        ];
        let json = r#"[
  {
    "Plan": {
      "Node Type": "Sort",
      "Plans": [
        {
          "Node Type": "Seq Scan",
          "Parallel Aware": false,
          "Filter": "(a < \"b\")"
        }
      ]
    },
    "Planning Time": 0.143,
    "Triggers": [
    ]
  }
]"#;
        assert_eq!(Form::Json.written(&told), json);
        let yaml = [
            "- Plan: ",
            "    Node Type: \"Sort\"",
            "    Plans: ",
            "      - Node Type: \"Seq Scan\"",
            "        Parallel Aware: false",
            "        Filter: \"(a < \\\"b\\\")\"",
            "  Planning Time: 0.143",
            "  Triggers: ",
        ];
        assert_eq!(Form::Yaml.written(&told), yaml.join("\n"));
        let xml = r#"<explain xmlns="http://www.postgresql.org/2009/explain">
  <Query>
    <Plan>
      <Node-Type>Sort</Node-Type>
      <Plans>
        <Plan>
          <Node-Type>Seq Scan</Node-Type>
          <Parallel-Aware>false</Parallel-Aware>
          <Filter>(a &lt; "b")</Filter>
        </Plan>
      </Plans>
    </Plan>
    <Planning-Time>0.143</Planning-Time>
    <Triggers>
    </Triggers>
  </Query>
</explain>"#;
        assert_eq!(Form::Xml.written(&told), xml);
    }
}
