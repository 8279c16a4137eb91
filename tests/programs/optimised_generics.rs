//~ routes: lines
//~ args: 35
//~ optimised: -C opt-level=1, -C opt-level=2, -C opt-level=3
trait Shape {
    fn area(&self) -> u64;
}

struct Square(u64);
struct Strip(u64, u64);

impl Shape for Square {
    fn area(&self) -> u64 {
        self.0 * self.0                         //~ 70
    }
}

impl Shape for Strip {
    fn area(&self) -> u64 {
        let Strip(width, height) = self;        //~ 35
        width * height                          //~ 35
    }
}

fn total<S: Shape>(shapes: &[S], most: u64) -> u64 {
    let mut sum = 0;                            //~ 2
    for shape in shapes {
        let area = shape.area();                //~ 70
        if area < most {                        //~ 70
            sum += area;                        //~ 45
        }
    }
    sum                                         //~ 2
}

fn drawn(shape: &dyn Shape) -> u64 {
    shape.area() + 1                            //~ 35
}

fn main() {
    let count: u64 = std::env::args().nth(1).unwrap().parse().unwrap();
    let squares: Vec<Square> = (0..count).map(Square).collect();
    let strips: Vec<Strip> = (0..count).map(|it| Strip(it, 4)).collect();
    let mut sum = total(&squares, 100) + total(&strips, 1000);
    for square in &squares {
        sum += drawn(square);                   //~ 35
    }
    println!("{sum}");
}
