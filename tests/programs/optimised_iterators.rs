//~ routes: lines
//~ args: 100
//~ optimised: -C opt-level=1, -C opt-level=2, -C opt-level=3
fn even_squares(numbers: &[u64]) -> u64 {
    numbers
        .iter()
        .filter(|it| {
            **it % 2 == 0                       //~ 100
        })
        .map(|it| {
            let half = it / 2;                  //~ 50
            half * it                           //~ 50
        })
        .sum()
}

fn longest_run(numbers: &[u64]) -> usize {
    let mut longest = 0;                        //~ 1
    let mut run = 0;                            //~ 1
    for pair in numbers.windows(2) {
        if pair[0] < pair[1] {                  //~ 99
            run += 1;                           //~ 97
        } else {
            run = 0;                            //~ 2
        }
        longest = longest.max(run);             //~ 99
    }
    longest                                     //~ 1
}

fn main() {
    let length: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut numbers = Vec::new();
    for i in 0..length {
        numbers.push(i * 3 % 107);              //~ 100
    }
    println!("{} {}", even_squares(&numbers), longest_run(&numbers));
}
