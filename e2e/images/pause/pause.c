/* Holds a pod's network until it is told to end. `pause resolve NAME` looks a name up instead, and says by its exit code
   whether that worked: the one question that `make cluster-up` asks from inside a pod. */
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) {
    (void)signal;
    _exit(0);
}

/* The first process of a pod inherits its orphans. */
static void reap(int signal) {
    (void)signal;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(int count, char **arguments) {
    if (count == 3 && strcmp(arguments[1], "resolve") == 0) {
        struct addrinfo *found = NULL;
        int error = getaddrinfo(arguments[2], NULL, NULL, &found);
        if (error != 0) {
            fprintf(stderr, "%s: %s\n", arguments[2], gai_strerror(error));
        }
        return error != 0;
    }
    signal(SIGINT, end);
    signal(SIGTERM, end);
    signal(SIGCHLD, reap);
    for (;;) {
        pause();
    }
}
