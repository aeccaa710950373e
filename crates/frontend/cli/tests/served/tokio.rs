//! The program served to tokio-postgres: every type in binary, prepared statements, pipelines, portals, COPY, errors, transactions, cancelling.
//!
//! Not here: drivers of other languages (`clients.rs`).

use crate::program::{Program, command, end};
use futures::{SinkExt, StreamExt, TryStreamExt};
use rustix::process::Signal;
use std::error::Error;
use std::pin::pin;
use tokio_postgres::binary_copy::{BinaryCopyInWriter, BinaryCopyOutStream};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, NoTls};

/// The bytes of a value of any type.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Raw(Vec<u8>);

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(raw.to_vec()))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Runs a client at a new server.
fn at_a_server<F: Future<Output = ()>>(work: impl FnOnce(Config) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let server = Program::start(command(folder.path(), &[]));
    let password = std::fs::read_to_string(folder.path().join("password")).unwrap();
    let mut config = Config::new();
    config
        .host("127.0.0.1")
        .port(server.port())
        .user("vellum")
        .dbname("vellum")
        .password(password.trim_end());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work(config));
    drop(runtime);
    server.signal(Signal::TERM);
    assert_eq!(end(server.child).0, 0);
}

async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[test]
fn every_type_comes_back_as_it_was_sent_in_binary() {
    at_a_server(|config| async move {
        let client = connect(&config).await;
        client.batch_execute("set timezone = 'UTC'").await.unwrap();
        let lines = include_str!("../clients/types.txt").lines();
        let lines = lines.chain([
            "inet\t10.1.2.3",
            "inet\t10.1.2.3/8",
            "inet\t2001:db8::5/32",
            "cidr\t10.0.0.0/8",
            "cidr\t2001:db8::/32",
            "inet[]\t{10.1.2.3,NULL,::1}",
            "cidr[]\t{10.0.0.0/8}",
        ]);
        for line in lines.filter(|line| !line.starts_with('#')) {
            let (ty, text) = line.split_once('\t').unwrap();
            let query = format!("select $1::text::{ty}, $1::text::{ty}::text");
            let row = client.query_one(&query, &[&text]).await.unwrap();
            let (raw, shown): (Raw, String) = (row.get(0), row.get(1));
            let again = format!("select $1::{ty}, $1::{ty}::text, $2::{ty} is null");
            let row = client
                .query_one(&again, &[&raw, &None::<Raw>])
                .await
                .unwrap();
            assert_eq!(row.get::<_, Raw>(0), raw, "{line}");
            assert_eq!(row.get::<_, String>(1), shown, "{line}");
            assert!(row.get::<_, bool>(2), "{line}");
        }
    });
}

#[test]
fn statements_are_prepared_pipelined_and_fetched_in_pieces() {
    at_a_server(|config| async move {
        let mut client = connect(&config).await;
        client
            .batch_execute("create table t (id int primary key, name text)")
            .await
            .unwrap();
        let insert = client
            .prepare_typed("insert into t values ($1, $2)", &[Type::INT4])
            .await
            .unwrap();
        assert_eq!(insert.params(), [Type::INT4, Type::TEXT]);
        // All are sent before the first is answered.
        let names: Vec<String> = (0..500).map(|id| format!("name {id}")).collect();
        let waiting = (0..500i32).zip(&names).map(|(id, name)| {
            let (client, insert) = (&client, &insert);
            async move { client.execute(insert, &[&id, name]).await }
        });
        let done = futures::future::join_all(waiting).await;
        assert!(done.iter().all(|done| *done.as_ref().unwrap() == 1));
        let transaction = client.transaction().await.unwrap();
        let portal = transaction
            .bind("select id from t order by id", &[])
            .await
            .unwrap();
        let mut found = Vec::new();
        loop {
            let rows = transaction.query_portal(&portal, 150).await.unwrap();
            if rows.is_empty() {
                break;
            }
            found.extend(rows.iter().map(|row| row.get::<_, i32>(0)));
        }
        assert_eq!(found, (0..500).collect::<Vec<_>>());
        transaction.commit().await.unwrap();
        let rows = client
            .query_raw("select name from t where id < $1", [10i32])
            .await
            .unwrap();
        assert_eq!(pin!(rows).count().await, 10);
    });
}

#[test]
fn copy_goes_both_ways_in_text_and_in_binary() {
    at_a_server(|config| async move {
        let client = connect(&config).await;
        client
            .batch_execute("create table t (id int primary key, name text)")
            .await
            .unwrap();
        let sink = client
            .copy_in::<_, &[u8]>("copy t from stdin")
            .await
            .unwrap();
        let mut sink = pin!(sink);
        sink.send(b"1\tone\n2\t").await.unwrap();
        sink.send(b"\\N\n").await.unwrap();
        assert_eq!(sink.finish().await.unwrap(), 2);
        let sink = client
            .copy_in("copy t from stdin (format binary)")
            .await
            .unwrap();
        let mut writer = pin!(BinaryCopyInWriter::new(sink, &[Type::INT4, Type::TEXT]));
        for id in 3..1000i32 {
            writer
                .as_mut()
                .write(&[&id, &format!("row {id}")])
                .await
                .unwrap();
        }
        assert_eq!(writer.finish().await.unwrap(), 997);
        let out = client
            .copy_out("copy (select * from t where id < 3 order by id) to stdout")
            .await
            .unwrap();
        let parts: Vec<_> = out.try_collect().await.unwrap();
        assert_eq!(parts.concat(), b"1\tone\n2\t\\N\n");
        let out = client
            .copy_out("copy t to stdout (format binary)")
            .await
            .unwrap();
        let rows: Vec<_> = BinaryCopyOutStream::new(out, &[Type::INT4, Type::TEXT])
            .try_collect()
            .await
            .unwrap();
        let sum: i64 = rows.iter().map(|row| i64::from(row.get::<i32>(0))).sum();
        assert_eq!((rows.len(), sum), (999, 499_500));
        // A COPY that is given up leaves nothing.
        let sink = client
            .copy_in::<_, &[u8]>("copy t from stdin")
            .await
            .unwrap();
        let mut sink = Box::pin(sink);
        sink.send(b"5000\tx\n").await.unwrap();
        drop(sink);
        let count = client
            .query_one("select count(*) from t", &[])
            .await
            .unwrap();
        assert_eq!(count.get::<_, i64>(0), 999);
    });
}

#[test]
fn errors_transactions_and_cancelling_are_as_at_postgresql() {
    at_a_server(|config| async move {
        let mut client = connect(&config).await;
        client
            .batch_execute(
                "create table t (id int constraint only_one primary key); insert into t values (1)",
            )
            .await
            .unwrap();
        let error = client
            .execute("insert into t values ($1)", &[&1i32])
            .await
            .unwrap_err();
        let told = error.as_db_error().unwrap();
        assert_eq!(told.code(), &SqlState::UNIQUE_VIOLATION);
        assert_eq!(
            (told.table(), told.constraint()),
            (Some("t"), Some("only_one"))
        );
        assert_eq!(told.detail(), Some("Key (id)=(1) already exists."));
        let mut transaction = client.transaction().await.unwrap();
        transaction
            .execute("insert into t values (2)", &[])
            .await
            .unwrap();
        let inner = transaction.savepoint("inner").await.unwrap();
        let error = inner
            .execute("insert into t values (2)", &[])
            .await
            .unwrap_err();
        assert_eq!(error.code(), Some(&SqlState::UNIQUE_VIOLATION));
        inner.rollback().await.unwrap();
        transaction.commit().await.unwrap();
        let transaction = client.transaction().await.unwrap();
        transaction.execute("delete from t", &[]).await.unwrap();
        drop(transaction);
        let count = client
            .query_one("select count(*) from t", &[])
            .await
            .unwrap();
        assert_eq!(count.get::<_, i64>(0), 2);
        let other = connect(&config).await;
        let token = client.cancel_token();
        let pid: i32 = client
            .query_one("select pg_backend_pid()", &[])
            .await
            .unwrap()
            .get(0);
        let cancel = async {
            let asleep = "select 1 from pg_stat_activity where pid = $1 and state = 'active'";
            while other.query(asleep, &[&pid]).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            token.cancel_query(NoTls).await.unwrap();
        };
        let (slept, ()) = tokio::join!(client.query("select pg_sleep(3600)", &[]), cancel);
        assert_eq!(slept.unwrap_err().code(), Some(&SqlState::QUERY_CANCELED));
        assert_eq!(client.query("select 1", &[]).await.unwrap().len(), 1);
    });
}
