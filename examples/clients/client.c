/* sockpqd from C alone: exactly-once put and a worker, through any failover.   cc -o client client.c
 *
 *   client HOST:PORT,HOST:PORT,.. put QUEUE           puts each line of standard input
 *   client HOST:PORT,HOST:PORT,.. work QUEUE COUNT    does COUNT jobs: prints their bodies
 */
#define _GNU_SOURCE
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_S = 10, SERVERS_MAX = 16, LINE_MAX_ = 1024 }; /* no answer takes longer: GETB is told to wait for 5 s */

static char *servers[SERVERS_MAX];
static int server_count, number, connected;
static FILE *in, *out;
static char session[128], answer[LINE_MAX_];

static void hang_up(void) {
    if (in) fclose(in);
    if (out) fclose(out);
    in = out = NULL;
    connected = 0;
}

static int dial(const char *server) {
    char host[256];
    const char *colon = strrchr(server, ':');
    if (!colon) return 0;
    snprintf(host, sizeof host, "%.*s", (int)(colon - server), server);
    struct addrinfo *found, hints = {.ai_socktype = SOCK_STREAM};
    if (getaddrinfo(host, colon + 1, &hints, &found)) return 0;
    int fd = socket(found->ai_family, SOCK_STREAM, 0);
    struct timeval patience = {.tv_sec = PATIENCE_S};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    int failed = connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    if (failed) return close(fd), 0;
    in = fdopen(fd, "r");
    out = fdopen(dup(fd), "w");
    return 1;
}

/* Sends a line and data, and reads the first line of the answer; 0 when the connection is closed or silent. */
static int ask(const char *line, const char *data, size_t length) {
    fputs(line, out);
    if (length) fwrite(data, 1, length, out);
    if (fflush(out) || !fgets(answer, sizeof answer, in) || !strchr(answer, '\n')) return 0;
    answer[strcspn(answer, "\r\n")] = 0;
    return 1;
}

static void connect_to_leader(void) { /* and to our session; tries until it works */
    time_t begun = time(NULL);
    for (int said = 0;; usleep(100000)) {
        long best = -1, id;
        const char *leader = NULL;
        for (int i = 0; i < server_count; i++) { /* the leader has the smallest number */
            if (dial(servers[i]) && ask("INTERCONNECT\r\n", NULL, 0) && sscanf(answer, "200 OK %ld", &id) == 1
                && (best < 0 || id < best)) best = id, leader = servers[i];
            hang_up();
        }
        if (leader && dial(leader)) {
            char line[160];
            snprintf(line, sizeof line, "SESSION%s%s\r\n", *session ? " " : "", session);
            if (ask(line, NULL, 0)) {
                connected = sscanf(answer, "200 OK SESSION %127s", session) == 1;
                if (connected) return;
                if (!strncmp(answer, "404", 3)) fputs("the session is lost: nobody knows what was executed\n", stderr), exit(1);
            }
        }
        hang_up();
        if (!leader && !said++) fprintf(stderr, "no server answers at %s%s\n", servers[0], server_count > 1 ? ", .." : "");
        if (!leader && time(NULL) - begun >= PATIENCE_S) exit(1);
    }
}

/* Executes a command exactly once: under the same number until there is an answer. For GETB, *body gets a job's data. */
static int call(const char *command, const char *data, size_t length, char **body, size_t *body_length, unsigned long *id) {
    char line[LINE_MAX_];
    snprintf(line, sizeof line, "REQ %d %s\r\n", ++number, command);
    for (;; hang_up(), usleep(100000)) { /* not executed, or nobody knows: again */
        if (!connected) connect_to_leader();
        if (!ask(line, data, length) || !strncmp(answer, "500", 3) || !strncmp(answer, "504", 3) || !strcmp(answer, "503 Busy"))
            continue;
        if (strncmp(answer, "200", 3)) return 0;
        if (!body) return 1;
        if (sscanf(answer, "200 OK %*s %lu %*s %zu", id, body_length) != 2) continue;
        *body = realloc(*body, *body_length + 1);
        if (fread(*body, 1, *body_length, in) == *body_length) return 1;
    }
}

int main(int argc, char **argv) {
    if (argc < 4 || (strcmp(argv[2], "put") && (strcmp(argv[2], "work") || argc < 5 || argv[4][strspn(argv[4], "0123456789")])))
        return fputs("usage: client SERVERS put QUEUE | SERVERS work QUEUE COUNT\n", stderr), 64;
    signal(SIGPIPE, SIG_IGN);
    for (char *server = strtok(argv[1], ","); server && server_count < SERVERS_MAX; server = strtok(NULL, ","))
        servers[server_count++] = server;
    char command[LINE_MAX_ - 32], *text = NULL;
    size_t size = 0, length;
    unsigned long id;
    if (!strcmp(argv[2], "put")) {
        for (ssize_t got; (got = getline(&text, &size, stdin)) > 0;) {
            if (text[got - 1] == '\n') got--;
            snprintf(command, sizeof command, "PUT %s 0 %zd", argv[3], got);
            if (!call(command, text, (size_t)got, NULL, NULL, NULL)) return fprintf(stderr, "%s\n", answer), 1;
        }
        return 0;
    }
    for (long left = atol(argv[4]); left > 0;) {
        snprintf(command, sizeof command, "GETB %s EXPIRE 60 THEN LATER WITHIN 5", argv[3]);
        if (!call(command, NULL, 0, &text, &length, &id)) continue; /* 404: none for 5 seconds */
        snprintf(command, sizeof command, "DONE %lu", id);
        if (call(command, NULL, 0, NULL, NULL, NULL)) fwrite(text, 1, length, stdout), puts(""), fflush(stdout), left--;
    }
    return 0;
}
