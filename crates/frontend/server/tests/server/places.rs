//! Places for transactions: who gets one while all are taken.

use crate::support::{Raw, World, told};

/// Symptom: a superuser was not let in, or could not say anything, until an ordinary transaction ended.
#[test]
fn regress_superusers_have_transactions_left() {
    let world = World::trusting_with(|settings| {
        settings.transactions_max = 5;
        settings.connections_reserved = 2;
    });
    let mut chief = world.client();
    chief
        .batch_execute("create role ann login; create role bob login; create sequence s")
        .unwrap();
    chief
        .batch_execute("grant usage on sequence s to public")
        .unwrap();
    let enter = |user: &str| {
        let mut raw = Raw::new(world.address());
        raw.log_in(user);
        raw
    };
    let mut open: Vec<Raw> = (0..3).map(|_| enter("ann")).collect();
    for raw in &mut open {
        assert_eq!(raw.answers("begin; select nextval('s')"), "C T D C");
    }
    // Without a place there is a login, and a wait that hears what ends it.
    let mut bob = enter("bob");
    assert_eq!(bob.answers("set statement_timeout = 100"), "C");
    assert_eq!(bob.answers("select 1"), "E57014");
    assert_eq!(bob.answers("set statement_timeout = 0"), "C");
    bob.send(&crate::support::query("select 1"));
    let cancel = "select pg_cancel_backend(pid) from pg_stat_activity where usename = 'bob' and state = 'active'";
    let mut second = world.client();
    while second.query(cancel, &[]).unwrap().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(told(&bob.until_ready()), "E57014");
    // Nor does it matter which thread serves whom.
    for _ in 0..20 {
        second.batch_execute("begin; select 1").unwrap();
        chief
            .batch_execute("begin; select nextval('s'); commit")
            .unwrap();
        second.batch_execute("commit").unwrap();
    }
    bob.send(&crate::support::query("select 1"));
    let end =
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'ann' limit 1";
    assert_eq!(chief.query(end, &[]).unwrap().len(), 1);
    assert_eq!(told(&bob.until_ready()), "T D C");
}
