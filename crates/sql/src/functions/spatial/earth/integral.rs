//! Summing up a smooth function.

/// Where a function is looked at, and what that counts: Gauss and Legendre.
const LOOKS: [(f64, f64); 5] = [
    (0.148_874_338_981_631_2, 0.295_524_224_714_752_9),
    (0.433_395_394_129_247_2, 0.269_266_719_309_996_3),
    (0.679_409_568_299_024_4, 0.219_086_362_515_982_04),
    (0.865_063_366_688_984_5, 0.149_451_349_150_580_6),
    (0.973_906_528_517_171_7, 0.066_671_344_308_688_14),
];

/// The integral of a smooth function.
pub(super) fn integral(from: f64, to: f64, function: impl Fn(f64) -> f64) -> f64 {
    let (middle, half) = (f64::midpoint(from, to), (to - from) / 2.0);
    let look = |(place, weight): &(f64, f64)| {
        weight * (function(middle - half * place) + function(middle + half * place))
    };
    LOOKS.iter().map(look).sum::<f64>() * half
}
