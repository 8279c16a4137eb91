//~ routes: lines
//~ args: 60
//~ optimised: -C opt-level=1, -C opt-level=2, -C opt-level=3
struct Counter {
    calls: u32,
    sum: u64,
}

fn apply(times: u64, mut work: impl FnMut(u64) -> bool) -> u64 {
    let mut done = 0;                           //~ 2
    for i in 0..times {
        if work(i) {                            //~ 120
            done += 1;                          //~ 55
        }
    }
    done                                        //~ 2
}

fn main() {
    let times: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut counter = Counter { calls: 0, sum: 0 };
    let done = apply(times, |i| {
        counter.calls += 1;                     //~ 60
        counter.sum += i;                       //~ 60
        i % 4 == 1                              //~ 60
    });
    let more = apply(times, |i| {
        if i < 20 {                             //~ 60
            return false;                       //~ 20
        }
        counter.sum ^= i;                       //~ 40
        true                                    //~ 40
    });
    println!("{done} {more} {} {}", counter.calls, counter.sum);
}
