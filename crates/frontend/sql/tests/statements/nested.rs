//! Expressions that read an operand in several places, in each other: what they take grows with their text, or they are refused.

use super::client::{Client, Heard};

/// An expression around itself, so many times.
fn nested(first: &str, around: (&str, &str), depth: usize) -> String {
    format!(
        "{}{first}{}",
        around.0.repeat(depth),
        around.1.repeat(depth)
    )
}

fn nest() -> Client {
    let mut client = Client::new();
    client.ok("create table nest (c bool)");
    client.ok("insert into nest values (true), (false), (null)");
    client
}

#[test]
fn rows_in_rows_are_compared_once_each() {
    let mut client = nest();
    client.ok("create table pairs (c bool, d int); insert into pairs select c, 1 from nest");
    let rows = nested("c", ("(", ", 1) < pairs"), 30);
    let shown = client.ok(&format!("select {rows} from pairs"));
    assert_eq!(shown, "t\nf\nt");
    let pairs = nested("(c, 1) < (c, 1)", ("(", ", 1) < (true, 1)"), 30);
    let shown = client.ok(&format!("select {pairs} from nest"));
    assert_eq!(shown, "f\nf\n~");
}

#[test]
fn operands_that_are_doubled_at_each_level_are_refused() {
    let mut client = nest();
    for (first, around) in [
        ("c", ("(", ") between false and true")),
        (
            "(c, 1) = (c, 1)",
            ("((", ", 1) in ((true, 1), (false, 2)))"),
        ),
        (
            "(c, 1) < (c, 1)",
            ("(row((", "), 1) between row(false, 1) and row(true, 1))"),
        ),
    ] {
        // Of what PostgreSQL runs in a moment nothing takes longer than that, whatever becomes of it.
        let text = format!("select {} from nest", nested(first, around, 60));
        let mut heard = Heard::default();
        if let Err(error) = client.session.simple_query(&text, &mut heard) {
            assert_eq!(error.sqlstate().to_string(), "54001", "{text}: {error}");
        }
    }
    let between = nested("c", ("(", ") between false and true"), 60);
    let (state, message) = client.fails(&format!("select {between} from nest"));
    assert_eq!(state, "54001", "{message}");
    let few = nested("c", ("(", ") between false and true"), 8);
    assert_eq!(
        client.ok(&format!("select count(*) from nest where {few}")),
        "2"
    );
}

#[test]
fn a_row_of_many_columns_is_no_endless_key() {
    let mut client = Client::new();
    let columns: Vec<String> = (0..1600).map(|number| format!("c{number} int")).collect();
    client.ok(&format!("create table wide ({})", columns.join(", ")));
    let many = |item: &str| vec![item; 100].join(", ");
    client.ok(&format!("select c1 from wide order by {}", many("wide")));
    let rows: Vec<String> = (0..2000)
        .map(|number| format!("row(wide, {number})"))
        .collect();
    for text in [
        format!("select c1 from wide order by {}", rows.join(", ")),
        format!("select distinct on ({}) c1 from wide", rows.join(", ")),
        format!("select distinct {} from wide", rows[..1000].join(", ")),
    ] {
        let (state, message) = client.fails(&text);
        assert!(matches!(&*state, "54000" | "54001"), "{state} {message}");
    }
}

#[test]
fn queries_that_are_looked_for_in_each_other_are_told_so_often() {
    let mut client = nest();
    // Each level is told with all that is in it.
    let long = format!("'{}'", "x".repeat(900_000));
    let inner = nested(&format!("({long} = '')"), ("(", " in (select true))"), 100);
    let (state, message) = client.fails(&format!(
        "select count(*) from nest group by {inner}, (select 1)"
    ));
    assert_eq!(state, "54001", "{message}");
    let inner = nested("c", ("(", " in (select true))"), 60);
    let shown = client.ok(&format!(
        "select count(*) from nest group by {inner} order by 1"
    ));
    assert_eq!(shown, "1\n1\n1");
}

/// Each is built on the one before: resolved from its end, this would be the cube of their number, and as deep.
#[test]
fn chains_of_windows_are_read_once_each_and_have_an_end() {
    let mut client = nest();
    let chain = |count: usize| {
        let rest: String = (1..count)
            .map(|at| format!(", w{at} as (w{})", at - 1))
            .collect();
        let last = count - 1;
        format!("select sum(1) over w{last} from nest window w0 as (partition by c){rest}")
    };
    assert_eq!(client.ok(&chain(3_000)), "1\n1\n1");
    assert_eq!(client.state(&chain(30_000)), "54000");
    // Nor does each call of a window with very many keys have all of them for itself.
    let keys = vec!["c"; 2_000].join(", ");
    let calls = vec!["count(*) over w"; 1_600].join(", ");
    let text = format!("select {calls} from nest window w as (partition by {keys})");
    assert_eq!(client.state(&text), "54000");
}

/// Symptom: casts were counted as if they stood around all that is in front of them.
#[test]
fn regress_a_sum_of_casts_is_as_deep_as_its_terms() {
    let mut client = Client::new();
    let sum = |count: usize, term: &str| format!("select {}", vec![term; count].join(" + "));
    assert_eq!(client.ok(&sum(3_900, "1::int")), "3900");
    assert_eq!(client.ok(&sum(3_900, "'1'::text::int::bigint")), "3900");
    let params: Vec<String> = (1..=2_500).map(|at| format!("${at}::int")).collect();
    client.ok(&format!("prepare p as select {}", params.join(" + ")));
    let given = vec!["2"; 2_500].join(", ");
    assert_eq!(client.ok(&format!("execute p ({given})")), "5000");
    assert_eq!(client.state(&sum(4_100, "1::int")), "54001");
}
