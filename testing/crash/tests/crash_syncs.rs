//! Each sync of the engine is needed: taken away, or passed by a write, a power cut finds something wrong.
//!
//! docs/syncs.md says of each place in which scene (`scenes`), and at which call. It is tried there; that the list has every sync of the source is
//! asked too. Where a change of the engine has moved the calls, the scene is searched.
//!
//! `VELLUM_THOROUGH=1 cargo test -p vellum-crash --test crash_syncs -- --nocapture` searches all scenes for each place anew, and prints the list;
//! `VELLUM_SYNC` and `VELLUM_SCENE` name a part of the places and the scenes.

mod backups;
mod engine;
mod scenes;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use vellum_crash::scene::Scene;
use vellum_crash::sites::Sites;
use vellum_crash::syncs::{Place, Syncs};
use vellum_io::{Lie, PowerCut};
use vellum_model::run::thorough;

const DOCUMENT: &str = include_str!("../../../docs/syncs.md");

/// Syncs that no scene misses, and why.
const COVERED: [(&str, &str, &str); 0] = [];

/// How a sync is taken away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    Omitted,
    Late,
}

/// How many changes pass a late sync, at most.
const PASSING: u32 = 10;

impl Kind {
    fn lies(self) -> Vec<Lie> {
        let late = |torn| (1..=PASSING).map(move |changes| Lie::Late { changes, torn });
        match self {
            Self::Omitted => vec![Lie::Omitted],
            Self::Late => late(false).chain(late(true)).collect(),
        }
    }
}

fn words(how: Lie) -> String {
    match how {
        Lie::Omitted => "Omitted".to_owned(),
        Lie::Late { changes, torn } => {
            let part = if torn { ", in part" } else { "" };
            format!("Late by {changes}{part}")
        }
    }
}

/// A line of the list.
#[derive(Clone, Debug)]
struct Row {
    how: Lie,
    place: String,
    scene: String,
    call: u64,
}

/// The lines of the document that say where a place is missed.
fn rows() -> Vec<Row> {
    let read = |line: &str| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        let how = cells.next()?;
        let lies = [Kind::Omitted, Kind::Late].into_iter().flat_map(Kind::lies);
        let how = lies.into_iter().find(|lie| words(*lie) == how)?;
        let (place, scene) = (cells.next()?.to_owned(), cells.next()?.to_owned());
        let call = cells.next()?.split(' ').next()?.parse().ok()?;
        Some(Row {
            how,
            place,
            scene,
            call,
        })
    };
    DOCUMENT.lines().filter_map(read).collect()
}

fn kind_of(how: Lie) -> Kind {
    match how {
        Lie::Omitted => Kind::Omitted,
        Lie::Late { .. } => Kind::Late,
    }
}

/// A scene and its syncs.
struct Built {
    scene: Scene<'static>,
    syncs: Syncs,
}

/// Scenes that were built, by their names.
struct Stage {
    all: Vec<scenes::Named>,
    built: BTreeMap<String, Option<Built>>,
}

impl Stage {
    fn new() -> Self {
        let all = scenes::all();
        let built = BTreeMap::new();
        Self { all, built }
    }

    fn built(&mut self, name: &str) -> Option<&Built> {
        if !self.built.contains_key(name) {
            let scene = self.all.iter().find(|scene| scene.name == name);
            let scene = scene.unwrap_or_else(|| panic!("docs/syncs.md names no scene: {name}"));
            let built = (scene.build)().map(|scene| {
                let syncs = scene.syncs().expect("the scene is right without lies");
                Built { scene, syncs }
            });
            self.built.insert(name.to_owned(), built);
        }
        self.built[name].as_ref()
    }
}

fn shown(kind: PowerCut) -> String {
    let PowerCut {
        keep,
        torn,
        reorder,
    } = kind;
    let order = if reorder { "out of order" } else { "in order" };
    format!("keep {keep:?}, torn {torn:?}, {order}")
}

/// Tries a place in a scene; the line of the list if it is missed there.
fn try_in(
    stage: &mut Stage,
    (name, place): (&str, &Place),
    lies: &[Lie],
    near: Option<u64>,
) -> Option<String> {
    let built = stage.built(name)?;
    let calls = built.syncs.get(place)?;
    // What another copy of the database syncs is tried there.
    for how in lies {
        let verdict = built.scene.search(calls, *how, near);
        let verdict = verdict.unwrap_or_else(|what| panic!("{name}, {place}: {what}"));
        if let Some(caught) = verdict.caught {
            let what = caught.what.lines().next().unwrap_or_default();
            let what = what.replace('|', "\\|");
            let (how, cut) = (words(*how), shown(caught.kind));
            let call = caught.call;
            return Some(format!(
                "| {how} | {place} | {name} | {call} ({cut}) | {what} |"
            ));
        }
    }
    None
}

/// Every sync that stands in the source is on the list, both ways, and no other.
fn is_complete(met: &BTreeSet<(Kind, String)>) {
    let sites = Sites::of_product().expect("the sources are there");
    for kind in [Kind::Omitted, Kind::Late] {
        let mut places: BTreeSet<&str> = met
            .iter()
            .filter(|(of, _)| *of == kind)
            .map(|(_, place)| place.as_str())
            .collect();
        for (function, count) in sites.iter() {
            for at in 1..=count {
                let sync = match count {
                    1 => String::new(),
                    _ => format!(", sync {at} of {count},"),
                };
                let before = places.len();
                places.retain(|place| {
                    let (functions, _) = place.rsplit_once(" of ").unwrap_or_default();
                    let innermost = functions.split(" < ").next().unwrap_or_default();
                    let innermost = innermost.split(", sync ").next().unwrap_or_default();
                    innermost != function || !format!("{functions} ").contains(&format!("{sync} "))
                });
                assert!(
                    places.len() < before,
                    "docs/syncs.md lacks {kind:?}: sync {at} of {count} in {function}"
                );
            }
        }
        assert!(places.is_empty(), "docs/syncs.md has more: {places:?}");
    }
}

fn covered(kind: Kind, place: &str) -> Option<&'static str> {
    let of = format!("{kind:?}");
    let found = COVERED
        .iter()
        .find(|(how, name, _)| *how == of && *name == place);
    found.map(|(.., why)| *why)
}

/// Tries what the list says.
fn try_the_list() {
    let mut stage = Stage::new();
    let mut met = BTreeSet::new();
    for row in rows() {
        let began = Instant::now();
        let built = stage.built(&row.scene);
        let built = built.unwrap_or_else(|| panic!("{} does not come about", row.scene));
        let place = built
            .syncs
            .keys()
            .find(|place| place.to_string() == row.place);
        let place = place.cloned();
        let place = place.unwrap_or_else(|| panic!("{} does not come to {}", row.scene, row.place));
        let line = try_in(&mut stage, (&row.scene, &place), &[row.how], Some(row.call));
        let line = line.unwrap_or_else(|| panic!("nothing misses it: {row:?}"));
        eprintln!("{line} {:.1} s", began.elapsed().as_secs_f32());
        met.insert((kind_of(row.how), row.place));
    }
    for (how, place, _) in COVERED {
        let kind = [Kind::Omitted, Kind::Late].into_iter();
        let mut kind = kind.filter(|kind| format!("{kind:?}") == how);
        met.insert((kind.next().expect("one of the two"), place.to_owned()));
    }
    is_complete(&met);
}

/// Searches all scenes, and prints the list.
fn search_everywhere() {
    let mut stage = Stage::new();
    let part = |of: &str| std::env::var(of).unwrap_or_default();
    let (filter, scenes) = (part("VELLUM_SYNC"), part("VELLUM_SCENE"));
    let names = stage.all.iter().map(|scene| scene.name.clone());
    let names: Vec<String> = names.filter(|name| name.contains(&scenes)).collect();
    let known = rows();
    let mut found: BTreeMap<(Kind, String), String> = BTreeMap::new();
    let mut met: BTreeSet<(Kind, String)> = BTreeSet::new();
    for kind in [Kind::Omitted, Kind::Late] {
        // Where it was missed before comes first.
        let mut order: Vec<(&String, Option<&Row>)> = known
            .iter()
            .filter(|row| kind_of(row.how) == kind || kind == Kind::Late)
            .filter_map(|row| {
                let name = names.iter().find(|name| **name == row.scene)?;
                Some((name, Some(row)))
            })
            .collect();
        order.extend(names.iter().map(|name| (name, None)));
        for (name, row) in order {
            let Some(built) = stage.built(name) else {
                continue;
            };
            let places: Vec<Place> = built.syncs.keys().cloned().collect();
            for place in places {
                let text = place.to_string();
                met.insert((kind, text.clone()));
                let wanted = row.is_none_or(|row| row.place == text) && text.contains(&filter);
                if !wanted || found.contains_key(&(kind, text.clone())) {
                    continue;
                }
                let near = row
                    .filter(|row| kind_of(row.how) == kind)
                    .map(|row| row.call);
                let began = Instant::now();
                let line = try_in(&mut stage, (name, &place), &kind.lies(), near);
                let seconds = began.elapsed().as_secs_f32();
                match line {
                    Some(line) => {
                        eprintln!("{line}");
                        found.insert((kind, text), line);
                    }
                    None if seconds > 5.0 => eprintln!("{kind:?} {text}: {name}: {seconds:.0} s"),
                    None => {}
                }
            }
        }
    }
    eprintln!("\nThe list:");
    let mut missing = Vec::new();
    for of in &met {
        match (found.get(of), covered(of.0, &of.1)) {
            (Some(line), None) => eprintln!("{line}"),
            (None, Some(why)) => eprintln!("| {:?} | {} | covered: {why} |", of.0, of.1),
            (Some(line), Some(_)) => missing.push(format!("said to be covered: {line}")),
            (None, None) => missing.push(format!("nothing misses it: {of:?}")),
        }
    }
    missing.retain(|what| what.contains(&filter));
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    if scenes.is_empty() {
        is_complete(&met);
    }
}

#[test]
fn crash_every_sync_that_is_taken_away_or_passed_is_missed() {
    if thorough() {
        search_everywhere();
    } else {
        try_the_list();
    }
}
