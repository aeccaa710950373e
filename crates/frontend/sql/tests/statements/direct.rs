//! Statements of the program itself: values, transactions, Arrow batches.

use vellum::{Config, Database};
use vellum_io::MemoryDirectory;
use vellum_sql::arrow::array::{Array, AsArray};
use vellum_sql::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Int32Type, TimestampMicrosecondType,
};
use vellum_sql::{Sql, TransactionStatus, Type, Value};

fn database() -> Database {
    let config = Config::default()
        .pool_bytes(16 << 20)
        .background_threads(false);
    Database::open_directory(std::sync::Arc::new(MemoryDirectory::new()), config).unwrap()
}

fn state<T: std::fmt::Debug>(done: vellum_sql::Result<T>) -> String {
    done.unwrap_err().sqlstate().to_string()
}

#[test]
fn values_go_in_and_rows_come_out() {
    let database = database();
    let made = database.sql(
        "create table t (id bigint primary key, name text, n numeric(6,2))",
        &[],
    );
    assert_eq!(made.unwrap().affected(), 0);
    let insert = "insert into t values ($1, $2, $3::text::numeric) returning n";
    let row = |id: i32, name: &str, n: &str| {
        // An integer is as good as the bigint that is wanted.
        let values = [Value::Int4(id), Value::text(name), Value::text(n)];
        database.sql(insert, &values)
    };
    assert_eq!(row(1, "one", "1.5").unwrap().affected(), 1);
    assert_eq!(row(2, "it's", "2").unwrap().len(), 1);
    assert_eq!(state(row(1, "again", "3")), "23505");
    let rows = database
        .sql("select name, n from t where id = $1", &[Value::Int8(2)])
        .unwrap();
    assert_eq!(rows.columns()[1].ty, Type::Numeric);
    assert_eq!(rows.get(0, 0), &Value::text("it's"));
    assert_eq!(rows.iter().count(), 1);
    let shown = database.sql("show server_version_num", &[]).unwrap();
    assert_eq!(shown.get(0, 0), &Value::text("150000"));
    assert_eq!(state(database.sql("select $1::int", &[])), "08P01");
    assert_eq!(state(database.sql("select 1; select 2", &[])), "42601");
    assert_eq!(state(database.sql("copy t to stdout", &[])), "0A000");
    assert!(database.sql("", &[]).unwrap().is_empty());
    let null = database
        .sql("select $1::int is null", &[Value::Null])
        .unwrap();
    assert_eq!(null.get(0, 0), &Value::Bool(true));
}

/// Symptom: every statement opened the catalog anew, and the next value of a sequence was 33 after 1.
#[test]
fn regress_statements_without_a_connection_share_one_catalog() {
    let directory = std::sync::Arc::new(MemoryDirectory::new());
    let open = || {
        let config = Config::default()
            .pool_bytes(16 << 20)
            .background_threads(false);
        Database::open_directory(directory.clone(), config).unwrap()
    };
    let database = open();
    let other = database.clone();
    database
        .sql("create table t (id serial primary key, a int)", &[])
        .unwrap();
    for (number, database) in (1..).zip([&database, &other, &database]) {
        let rows = database.sql("insert into t (a) values (0) returning id", &[]);
        assert_eq!(rows.unwrap().get(0, 0), &Value::Int4(number));
    }
    // A connection keeps what it needs; the last of all gives the directory back.
    let mut connection = database.connect().unwrap();
    drop((database, other));
    assert_eq!(connection.sql("select * from t", &[]).unwrap().len(), 3);
    drop(connection);
    let again = open();
    assert_eq!(again.sql("select * from t", &[]).unwrap().len(), 3);
    again.close().unwrap();
    drop(open());
}

#[test]
fn a_connection_has_transactions_and_all_see_one_catalog() {
    let database = database();
    let mut one = database.connect().unwrap();
    let mut two = database.connect().unwrap();
    one.sql("create table t (id int primary key)", &[]).unwrap();
    assert!(two.sql("select * from t", &[]).unwrap().is_empty());
    one.sql("begin", &[]).unwrap();
    one.sql("insert into t values (1)", &[]).unwrap();
    assert_eq!(one.status(), TransactionStatus::InBlock);
    assert!(two.sql("select * from t", &[]).unwrap().is_empty());
    assert_eq!(state(one.sql("insert into t values (1)", &[])), "23505");
    assert_eq!(state(one.sql("select 1", &[])), "25P02");
    one.sql("rollback", &[]).unwrap();
    one.sql("begin", &[]).unwrap();
    one.sql("insert into t values (2)", &[]).unwrap();
    drop(one);
    assert!(
        two.sql("select * from t", &[]).unwrap().is_empty(),
        "what was not committed is gone"
    );
}

#[test]
fn rows_are_arrow_batches_of_arrows_own_types() {
    let database = database();
    let table = "create table t (i int, n numeric(5,2), wide numeric, t text, b bytea, d date, at timestamptz, span interval, u uuid, ok boolean,
         list int[], clock time)";
    database.sql(table, &[]).unwrap();
    let insert = "insert into t values (7, 1.5, 1.5, 'é', '\\x00ff', '2024-02-29', '1970-01-01 00:00:01+00', '1 month 2 days 3 seconds',
         '00112233-4455-6677-8899-aabbccddeeff', true, '{1,2}', '00:00:01'), (null, null, null, null, null, null, null, null, null, null, null, null),
         (9, -0.01, 2, 'x', '', null, null, null, null, false, null, null)";
    database.sql(insert, &[]).unwrap();
    let query = "select * from t";
    let rows = database.sql(query, &[]).unwrap();
    let batches = rows.batches(2).unwrap();
    assert_eq!(
        batches
            .iter()
            .map(|batch| batch.num_rows())
            .collect::<Vec<_>>(),
        [2, 1]
    );
    let first = &batches[0];
    let types: Vec<String> = first
        .schema()
        .fields()
        .iter()
        .map(|field| field.data_type().to_string())
        .collect();
    assert_eq!(types[0], DataType::Int32.to_string());
    assert_eq!(
        first.schema().field(1).data_type(),
        &DataType::Decimal128(5, 2),
        "{types:?}"
    );
    let ints = first.column(0).as_primitive::<Int32Type>();
    assert_eq!((ints.value(0), ints.is_null(1)), (7, true));
    assert_eq!(
        first.column(1).as_primitive::<Decimal128Type>().value(0),
        150
    );
    assert_eq!(
        batches[1]
            .column(1)
            .as_primitive::<Decimal128Type>()
            .value(0),
        -1
    );
    assert_eq!(first.column(2).as_string::<i32>().value(0), "1.5");
    assert_eq!(first.column(3).as_string::<i32>().value(0), "é");
    assert_eq!(first.column(4).as_binary::<i32>().value(0), [0, 255]);
    assert_eq!(
        first.column(5).as_primitive::<Date32Type>().value(0),
        19_782
    );
    assert_eq!(
        first
            .column(6)
            .as_primitive::<TimestampMicrosecondType>()
            .value(0),
        1_000_000
    );
    assert_eq!(
        first.column(8).as_fixed_size_binary().value(0)[..2],
        [0x00, 0x11]
    );
    assert!(first.column(9).as_boolean().value(0));
    assert_eq!(first.column(10).as_string::<i32>().value(0), "{1,2}");
    let none = database
        .sql("select 1 as a where false", &[])
        .unwrap()
        .batches(10)
        .unwrap();
    assert_eq!(
        (none.len(), none[0].num_rows(), none[0].num_columns()),
        (1, 0, 1)
    );
    let nan = database.sql("select 'NaN'::numeric(5,2)", &[]).unwrap();
    assert_eq!(state(nan.batches(1)), "22003");
}

#[test]
fn regress_texts_of_batches_are_what_the_session_writes() {
    // Symptom: enums came as numbers, times in arrays in UTC, arrays of regclass as oids. Cause: batches were written with the settings of no session.
    let database = database();
    let mut session = database.connect().unwrap();
    let made = [
        "create type mood as enum ('sad', 'glad')",
        "create table t (m mood, ms mood[], at timestamptz[], r regclass[], b bytea[])",
        "set timezone = 'Asia/Tokyo'",
        "set bytea_output = 'escape'",
        "insert into t values ('glad', '{sad,glad}', '{2024-01-01 00:00:00+00}', '{t,pg_class,1}', array['\\x41'::bytea])",
    ];
    for text in made {
        session.sql(text, &[]).unwrap();
    }
    let rows = session.sql("select *, row(m, at) from t", &[]).unwrap();
    // What is changed behind it changes nothing.
    session.sql("set timezone = 'UTC'", &[]).unwrap();
    let batches = rows.batches(10).unwrap();
    let text = |column: usize| {
        let column = batches[0].column(column);
        column.as_string::<i32>().value(0).to_owned()
    };
    assert_eq!(text(0), "glad");
    assert_eq!(text(1), "{sad,glad}");
    assert_eq!(text(2), "{\"2024-01-01 09:00:00+09\"}");
    assert_eq!(text(3), "{t,pg_class,1}");
    assert_eq!(text(4), "{A}");
    assert_eq!(text(5), "(glad,\"{\"\"2024-01-01 09:00:00+09\"\"}\")");
}
