//~ routes: asm patch
struct Shape {
    virtual int sides() {               //~ 1
        return 0;                       //~ 1
    }                                   //~ 1
    virtual ~Shape() = default;
};

struct Triangle : Shape {
    int sides() override {              //~ 2
        return 3;                       //~ 2
    }                                   //~ 2
};

struct Square : Shape {
    int sides() override {              //~ 3
        return 4;                       //~ 3
    }                                   //~ 3
};

int main() {                            //~ 1
    Shape shape;
    Triangle triangle;
    Square square;
    Shape *all[] = {&square, &triangle, &square, &shape, &triangle, &square};
    int sum = 0;                        //~ 1
    for (Shape *each : all)
        sum += each->sides();           //~ 6
    return sum != 18;
}
