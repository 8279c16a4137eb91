//~ routes: asm patch
static int log_of_events;

static void inner() {                   //~ 1
    throw 7;                            //~ 1
}

static void middle() {                  //~ 1
    try {
        inner();                        //~ 1
        log_of_events += 1000;          //~ 0
    } catch (int) {
        log_of_events += 1;             //~ 1
        throw;                          //~ 1
    }
    log_of_events += 2000;              //~ 0
}

static void outer() {                   //~ 1
    try {
        middle();                       //~ 1
    } catch (char) {
        log_of_events += 4000;          //~ 0
    } catch (int n) {
        log_of_events += n;             //~ 1
        throw 'x';                      //~ 1
    }
}

int main() {                            //~ 1
    try {
        outer();                        //~ 1
    } catch (char) {
        log_of_events += 100;           //~ 1
    }
    return log_of_events != 108;        //~ 1
}
