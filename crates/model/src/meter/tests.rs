use proptest::prelude::*;

use super::*;

const HIGH: Service = Service { priority: Priority::High, bucket: None };
const LOW: Service = Service { priority: Priority::Low, bucket: None };

fn tariff(ru_per_second: u32) -> Tariff {
    Tariff { rate: Rate::of(ru_per_second, 1), ..Tariff::default() }
}

/// How many requests of this charge are admitted in a row, up to so many.
fn admitted(meter: &mut Meter, tariff: &Tariff, charge: f64, most: usize) -> usize {
    (0..most)
        .take_while(|_| {
            let is_admitted = meter.admit(tariff, HIGH).is_ok();
            if is_admitted {
                meter.take(tariff, HIGH, Units::of(charge));
            }
            is_admitted
        })
        .count()
}

/// Rows B19, B20 and B22.
#[test]
fn a_meter_goes_into_debt_once_and_says_when_to_come_again() {
    let (tariff, mut meter) = (tariff(400), Meter::default());
    assert_eq!(admitted(&mut meter, &tariff, 6.95, 100), 58);
    assert_eq!(meter.level(&tariff), Units::of(-3.10));
    assert_eq!(meter.admit(&tariff, HIGH), Err(Throttled { by_share: false, wait_ms: 11 }));
    assert_eq!(meter.pass(&tariff, 11), Units::ZERO);
    assert_eq!(meter.admit(&tariff, HIGH), Ok(()));

    let mut meter = Meter::default();
    meter.take(&tariff, HIGH, Units::of(399.0));
    assert_eq!(meter.admit(&tariff, HIGH), Ok(()));
    meter.take(&tariff, HIGH, Units::of(57.0));
    assert_eq!(meter.admit(&tariff, HIGH), Err(Throttled { by_share: false, wait_ms: 143 }));
}

#[test]
fn what_comes_when_it_is_full_overflows() {
    let (tariff, mut meter) = (tariff(400), Meter::default());
    assert_eq!(meter.pass(&tariff, 1500), Units::of(600.0));
    meter.take(&tariff, HIGH, Units::of(100.0));
    assert_eq!(meter.pass(&tariff, 250), Units::ZERO);
    assert_eq!(meter.pass(&tariff, 1), Units::of(0.4));
    assert_eq!(meter.level(&tariff), Units::of(400.0));
}

/// Row B27.
#[test]
fn the_last_half_second_is_for_high_priority() {
    let (tariff, mut meter) = (tariff(400), Meter::default());
    meter.take(&tariff, HIGH, Units::of(199.0));
    assert_eq!(meter.admit(&tariff, LOW), Ok(()));
    meter.take(&tariff, HIGH, Units::of(101.0));
    assert_eq!(meter.admit(&tariff, HIGH), Ok(()));
    assert_eq!(meter.admit(&tariff, LOW), Err(Throttled { by_share: false, wait_ms: 253 }));
    meter.pass(&tariff, 253);
    assert_eq!(meter.admit(&tariff, LOW), Ok(()));
}

/// Row B29.
#[test]
fn a_throughput_bucket_has_its_share_and_no_more() {
    let mut tariff = tariff(400);
    tariff.shares[1] = Some(20);
    let second = Service { bucket: Some(2), ..HIGH };
    let mut meter = Meter::default();
    for _ in 0..8 {
        assert_eq!(meter.admit(&tariff, second), Ok(()));
        meter.take(&tariff, second, Units::of(10.0));
    }
    assert_eq!(meter.admit(&tariff, second), Err(Throttled { by_share: true, wait_ms: 13 }));
    assert_eq!(meter.admit(&tariff, HIGH), Ok(()));
    assert_eq!(meter.admit(&tariff, Service { bucket: Some(3), ..HIGH }), Ok(()));
    meter.pass(&tariff, 13);
    assert_eq!(meter.admit(&tariff, second), Ok(()));
}

/// Whoever has spent a share of what is spent by others, too, is not told to come before there
/// is something for all.
#[test]
fn who_waits_for_a_share_waits_for_the_rest_too() {
    let mut tariff = tariff(400);
    tariff.shares[1] = Some(50);
    let second = Service { bucket: Some(2), ..HIGH };
    let mut meter = Meter::default();
    meter.take(&tariff, second, Units::of(200.0));
    assert_eq!(meter.admit(&tariff, second), Err(Throttled { by_share: true, wait_ms: 5 }));
    meter.take(&tariff, HIGH, Units::of(1000.0));
    // 801 at 0.4.
    assert_eq!(meter.admit(&tariff, second), Err(Throttled { by_share: true, wait_ms: 2003 }));
    assert_eq!(meter.admit(&tariff, HIGH), Err(Throttled { by_share: false, wait_ms: 2003 }));
    meter.pass(&tariff, 2003);
    assert_eq!(meter.admit(&tariff, second), Ok(()));
}

/// Row B30: (120,000 + 400) / (3,000 − 400) seconds.
#[test]
fn a_burst_spends_what_five_minutes_left() {
    let tariff = Tariff { burst: true, ..tariff(400) };
    let mut meter = Meter::rested(&tariff, 300_000);
    let mut milliseconds = 0;
    while meter.admit(&tariff, HIGH).is_ok() {
        meter.take(&tariff, HIGH, Units::of(3.0));
        meter.pass(&tariff, 1);
        milliseconds += 1;
    }
    assert!((46_000..47_000).contains(&milliseconds), "{milliseconds}");
    // All at once it gives no more than 3,000.
    let mut meter = Meter::rested(&tariff, 300_000);
    assert_eq!(admitted(&mut meter, &tariff, 10.0, 1000), 300);
    assert_eq!(meter.admit(&tariff, HIGH), Err(Throttled { by_share: false, wait_ms: 1 }));
}

#[test]
fn a_change_of_the_rate_neither_forgives_nor_invents_a_debt() {
    let (small, large) = (tariff(400), tariff(1000));
    let mut meter = Meter::default();
    meter.take(&small, HIGH, Units::of(500.0));
    meter.change(&small, &large);
    assert_eq!(meter.level(&large), Units::of(500.0));
    meter.change(&large, &small);
    assert_eq!(meter.level(&small), Units::of(400.0));
    let mut full = Meter::default();
    full.change(&large, &small);
    assert_eq!(full, Meter::default());
}

#[test]
fn parts_of_a_charge_are_all_of_it() {
    let charge = Units::of(10.0);
    assert_eq!((0..3).map(|place| charge.part(place, 3)).sum::<Units>(), charge);
}

/// What happens to a meter: time passes, and then somebody asks for so much.
#[derive(Clone, Copy, Debug)]
struct Ask {
    after_ms: u64,
    hundredths: u32,
    low: bool,
    bucket: Option<u8>,
}

impl Ask {
    fn service(&self) -> Service {
        Service { bucket: self.bucket, ..if self.low { LOW } else { HIGH } }
    }

    fn charge(&self) -> Units {
        Units::of(f64::from(self.hundredths) / 100.0)
    }
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let buckets = prop::option::of(1..=u8::try_from(BUCKETS).unwrap());
    let ask = (0..2000_u64, 100..50_000_u32, any::<bool>(), buckets);
    let ask = ask.prop_map(|(after_ms, hundredths, low, bucket)| Ask {
        after_ms,
        hundredths,
        low,
        bucket,
    });
    prop::collection::vec(ask, 1..200)
}

fn tariffs() -> impl Strategy<Value = Tariff> {
    let shares = prop::array::uniform5(prop::option::of(1..=100_u8));
    (400..20_000_u32, any::<bool>(), shares).prop_map(|(rate, burst, shares)| Tariff {
        burst,
        shares,
        ..tariff(rate)
    })
}

/// Whether there is less than a unit of something that a request needs.
fn lacks_a_unit(meter: &Meter, tariff: &Tariff, service: Service) -> bool {
    let share = tariff.share(service);
    let of_share = share.map(|(place, share)| share.cap() - meter.shares[place]);
    let is_low = service.priority == Priority::Low;
    let kept = if is_low { tariff.rate.cap().0 / 2 } else { 0 };
    let of_rest = meter.level(tariff) - Units(kept);
    let of_reserve = BURST.cap() - meter.peak;
    let bursts = meter.has_reserve(tariff) && !is_low;
    of_share.is_some_and(|left| left < Units::ONE)
        || (of_rest < Units::ONE && !(bursts && of_reserve >= Units::ONE))
}

proptest! {
    /// Over any t seconds the admitted charges are at most R·t + R + the largest one.
    #[test]
    fn no_window_admits_more_than_the_rate_and_one_second(
        rate in 400..20_000_u32,
        asks in asks(),
    ) {
        let (tariff, mut meter, mut now) = (tariff(rate), Meter::default(), 0);
        let mut admitted: Vec<(u64, Units)> = Vec::new();
        for ask in asks {
            now += ask.after_ms;
            meter.pass(&tariff, ask.after_ms);
            let service = ask.service();
            if meter.admit(&tariff, service).is_ok() {
                let charge = ask.charge();
                meter.take(&tariff, service, charge);
                admitted.push((now, charge));
            }
        }
        let largest = admitted.iter().map(|(_, charge)| *charge).max().unwrap_or_default();
        for (first, (from, _)) in admitted.iter().enumerate() {
            let mut sum = Units::ZERO;
            for (at, charge) in &admitted[first..] {
                sum += *charge;
                let most = tariff.rate.over(at - from) + tariff.rate.cap() + largest;
                prop_assert!(sum <= most, "{sum:?} from {from} to {at}");
            }
        }
    }

    /// Whoever waits as long as told is admitted, and a millisecond before there is no unit yet
    /// for it.
    #[test]
    fn the_time_to_wait_is_true(tariff in tariffs(), asks in asks(), rested_ms in 0..400_000_u64) {
        let mut meter = Meter::rested(&tariff, rested_ms);
        for ask in asks {
            meter.pass(&tariff, ask.after_ms);
            let service = ask.service();
            if let Err(throttled) = meter.admit(&tariff, service) {
                let after = |passed_ms: u64| {
                    let mut later = meter.clone();
                    later.pass(&tariff, passed_ms);
                    later
                };
                let later = after(throttled.wait_ms);
                prop_assert_eq!(later.admit(&tariff, service), Ok(()));
                prop_assert!(!lacks_a_unit(&later, &tariff, service));
                prop_assert!(lacks_a_unit(&after(throttled.wait_ms - 1), &tariff, service));
            } else {
                meter.take(&tariff, service, ask.charge());
            }
        }
    }

    /// When somebody looks makes no difference, and nothing that comes is lost or made.
    #[test]
    fn time_passes_alike_in_one_piece_and_in_many(
        rate in 1..1_000_000_u32,
        spent in 0..3_000_000_u32,
        pieces in prop::collection::vec(0..5000_u64, 1..20),
    ) {
        let tariff = Tariff { burst: true, shares: [Some(10); BUCKETS], ..tariff(rate) };
        let mut meter = Meter::default();
        meter.take(&tariff, Service { bucket: Some(1), ..HIGH }, Units::of(f64::from(spent)));
        let mut whole = meter.clone();
        let before = meter.level(&tariff);
        let overflow: Units = pieces.iter().map(|piece| meter.pass(&tariff, *piece)).sum();
        prop_assert_eq!(whole.pass(&tariff, pieces.iter().sum()), overflow);
        prop_assert_eq!(&whole, &meter);
        let gained = tariff.rate.over(pieces.iter().sum());
        prop_assert_eq!(meter.level(&tariff) - before + overflow, gained);
        prop_assert!(meter.level(&tariff) <= tariff.rate.cap());
    }
}
