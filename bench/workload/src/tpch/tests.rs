//! Sizes, seeds, and how rows refer to each other; the queries.

use super::{Field, Population, Table, queries};

fn count(population: &Population, table: Table) -> u64 {
    let mut rows = 0;
    population.rows(table, |_| rows += 1);
    rows
}

#[test]
fn tables_have_the_specifications_sizes() {
    let population = Population::new(1, 10);
    let sizes = Table::ALL.map(|table| count(&population, table));
    assert_eq!(sizes[..7], [5, 25, 100, 2000, 8000, 1500, 15_000]);
    // One to seven lines an order, four in the mean.
    assert!((58_000..62_000).contains(&sizes[7]), "{} lines", sizes[7]);
}

#[test]
fn the_same_seed_gives_the_same_rows_and_another_gives_others() {
    let text = |seed: u64| {
        let mut text = String::new();
        Population::new(seed, 1).copy_text(Table::Lineitem, 1 << 20, |piece| text.push_str(piece));
        text
    };
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

#[test]
fn rows_come_in_the_order_of_their_keys_and_each_key_once() {
    let population = Population::new(3, 10);
    for table in Table::ALL {
        let width = match table {
            Table::Partsupp => &[0, 1][..],
            Table::Lineitem => &[0, 3],
            _ => &[0],
        };
        let mut last = None;
        population.rows(table, |row| {
            let key: Vec<i64> = width
                .iter()
                .map(|at| match row[*at] {
                    Field::Integer(value) => value,
                    other => panic!("{other:?} in a key"),
                })
                .collect();
            assert!(
                last.as_ref() < Some(&key),
                "{table:?}: {last:?} then {key:?}"
            );
            last = Some(key);
        });
    }
}

#[test]
fn each_line_is_of_a_part_that_its_supplier_has() {
    let population = Population::new(5, 10);
    let pair = |row: &[Field<'_>], part: usize, supplier: usize| match (row[part], row[supplier]) {
        (Field::Integer(part), Field::Integer(supplier)) => (part, supplier),
        other => panic!("{other:?} for keys"),
    };
    let mut pairs = std::collections::HashSet::new();
    population.rows(Table::Partsupp, |row| {
        pairs.insert(pair(row, 0, 1));
    });
    population.rows(Table::Lineitem, |row| {
        assert!(pairs.contains(&pair(row, 1, 2)))
    });
}

#[test]
fn values_are_written_as_copy_has_them() {
    let written = |field: Field<'_>| {
        let mut text = String::new();
        field.write(&mut text);
        text
    };
    assert_eq!(written(Field::Hundredths(-5)), "-0.05");
    assert_eq!(written(Field::Hundredths(123_456)), "1234.56");
    assert_eq!(written(Field::Date(8035)), "1992-01-01");
    assert_eq!(written(Field::Date(9298)), "1995-06-17");
    assert_eq!(written(Field::Date(10_591)), "1998-12-31");
    assert_eq!(written(Field::Date(9555)), "1996-02-29");
}

#[test]
fn the_fraction_of_query_11_follows_the_scale() {
    let at = |thousandths: u32| queries(thousandths)[10].text.clone();
    assert!(at(1000).contains("* 0.0001000"));
    assert!(at(10).contains("* 0.0100000"));
}
