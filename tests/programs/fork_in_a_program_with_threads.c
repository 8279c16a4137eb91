//~ routes: asm patch csource
//~ flags: -pthread
//~ calls: step 80
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static int step(int sum) {                          //~ 80
    return sum + 1;                                 //~ 80
}

static void *work(void *status) {                   //~ 4
    int sum = 0;                                    //~ 4
    pid_t child = fork();                           //~ 4
    for (int i = 0; i < 10; i++)
        sum = step(sum);                            //~ 80
    if (child == 0)                                 //~ 8
        _exit(sum);                                 //~ 4
    waitpid(child, status, 0);                      //~ 4
    return 0;                                       //~ 4
}

int main(void) {                                    //~ 1
    pthread_t threads[4];
    int statuses[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, work, &statuses[i]);     //~ 4
    int wrong = 0;                                  //~ 1
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], 0);                //~ 4
        wrong += WEXITSTATUS(statuses[i]) != 10;    //~ 4
    }
    return wrong;                                   //~ 1
}
