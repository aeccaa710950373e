//! Pictures, looked at as text.

use super::*;

fn lines() -> Chart {
    Chart {
        title: "a < b & \"c\"".to_owned(),
        x: "seconds".to_owned(),
        y: "tx/s".to_owned(),
        data: Data::Lines(vec![
            ("one".to_owned(), vec![(0.0, 0.0), (10.0, 100.0)]),
            (
                "two".to_owned(),
                vec![(0.0, 50.0), (f64::NAN, 1.0), (10.0, 50.0)],
            ),
            ("three".to_owned(), vec![(5.0, 20.0)]),
        ]),
        marks: vec![(5.0, "snapshot".to_owned())],
    }
}

/// Elements that are opened are closed, in order.
fn check_xml(text: &str) {
    let mut open = Vec::new();
    for part in text.split('<').skip(1) {
        let (tag, _) = part.split_once('>').expect("a tag ends");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn lines_go_from_corner_to_corner() {
    let picture = picture(&[lines()]);
    check_xml(&picture);
    let (left, right) = (LEFT, WIDTH - RIGHT);
    let (top, bottom) = (TOP, HEIGHT - BOTTOM);
    let diagonal = format!("<path d=\"M{left:.1} {bottom:.1}L{right:.1} {top:.1}\"");
    assert!(picture.contains(&diagonal), "{picture}");
    let middle = (top + bottom) / 2.0;
    let flat = format!("<path d=\"M{left:.1} {middle:.1}L{right:.1} {middle:.1}\"");
    assert!(
        picture.contains(&flat),
        "without what is no number: {picture}"
    );
    assert!(picture.contains("a &lt; b &amp; &quot;c&quot;"));
    assert!(picture.contains("<circle") && picture.contains(">snapshot<"));
    assert!(picture.contains(">three<"), "in the legend");
}

#[test]
fn bars_are_as_high_as_their_numbers() {
    let chart = Chart {
        data: Data::Bars(
            vec!["left".to_owned(), "right".to_owned()],
            vec![
                ("one".to_owned(), vec![100.0.into(), 50.0.into()]),
                ("two".to_owned(), vec![25.0.into()]),
            ],
        ),
        ..lines()
    };
    let picture = picture(&[chart.clone(), chart]);
    check_xml(&picture);
    let full = HEIGHT - BOTTOM - TOP;
    for part in [1.0, 0.5, 0.25, 0.0] {
        let height = format!("height=\"{:.1}\" fill=\"#", full * part);
        assert_eq!(picture.matches(&height).count(), 2, "{height}");
    }
}

#[test]
fn a_bar_is_cut_with_a_mark_and_all_have_their_numbers_and_whiskers() {
    let groups = ["slow", "mid", "fast"].map(str::to_owned).to_vec();
    let chart = |slow| Chart {
        data: Data::Bars(
            groups.clone(),
            vec![(
                String::new(),
                vec![
                    Bar::from(slow),
                    Bar::with_spread(20.0, 15.0, 22.0),
                    Bar::with_spread(10.0, 5.0, 900.0),
                ],
            )],
        ),
        ..lines()
    };
    let cut = picture(&[chart(5000.0)]);
    check_xml(&cut);
    assert_eq!(cut.matches("class=\"cut\"").count(), 1);
    assert_eq!(cut.matches("class=\"spread\"").count(), 2);
    for number in [">5000<", ">20.0<", ">10.0<"] {
        assert!(cut.contains(number), "{number}: {cut}");
    }
    // The others are read against each other: one is twice as high.
    let full = HEIGHT - BOTTOM - TOP;
    for part in [20.0 / 30.0, 10.0 / 30.0] {
        let height = format!("height=\"{:.1}\" fill=\"#", full * part);
        assert_eq!(cut.matches(&height).count(), 1, "{height}");
    }
    // A whisker beyond the picture has no end there.
    assert_eq!(cut.matches(&format!("V{TOP:.1}")).count(), 1);
    assert_eq!(picture(&[chart(70.0)]).matches("class=\"cut\"").count(), 0);
}

#[test]
fn names_below_bars_are_no_wider_than_their_group() {
    let groups: Vec<String> = (0..10).map(|at| format!("a long name {at}")).collect();
    let picture = picture(&[Chart {
        data: Data::Bars(groups, vec![(String::new(), vec![Bar::from(1.0); 10])]),
        ..lines()
    }]);
    check_xml(&picture);
    let room = (WIDTH - RIGHT - LEFT) / 10.0 * 0.95;
    let narrow = format!("textLength=\"{room:.1}\"");
    assert_eq!(picture.matches(&narrow).count(), 10, "{picture}");
}

#[test]
fn empty_chart_is_a_picture() {
    check_xml(&picture(&[Chart::default()]));
    check_xml(&picture(&[]));
}
