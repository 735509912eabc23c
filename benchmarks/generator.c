/* The load generator: raw requests, made beforehand, over a fixed number of connections, each sending its next request when
 * the answer to its last one is complete (a closed loop).
 *
 *   generator load PORT CONNECTIONS REQUESTS RESULTS STATUS SAMPLE_EVERY DEADLINE_SECONDS
 *   generator answer PORT         a server that answers anything with the same bytes: shows what `load` itself can reach
 *
 * REQUESTS is a file of requests, each a 32-bit length and that many bytes. RESULTS is written: for each answer, in the order
 * of completion, 32-bit request number, latency in microseconds, status, and length of the sampled body (0: no sample), then
 * that body. One line of JSON goes to standard output.
 *
 * Knows of HTTP what it takes to find the end of an answer: Content-Length, chunks, and the end of the connection. Single
 * thread, epoll. Only 127.0.0.1. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 18, MOST_EVENTS = 256 };

struct request {
    const char *bytes;
    uint32_t length;
};

struct connection {
    int socket;
    uint32_t number;  /* of the request under way */
    const char *rest; /* of it, still to be sent */
    size_t rest_length;
    double began;
    char *answer;
    size_t filled, room;
    /* What is known of the answer so far. */
    size_t body_at; /* 0: the head is not complete */
    long status;
    long long length; /* of the body; -1: chunked, -2: up to the end of the connection */
    size_t chunk_at;
    int closes;
};

struct record {
    uint32_t number, microseconds, status, sampled;
};

static int port, epoll;
static struct request *requests;
static uint32_t request_count, next_request, completed, unexpected, broken;
static long expected_status, sample_every;
static FILE *results;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

static struct sockaddr_in address(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(port)};
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return at;
}

static void read_requests(const char *path) {
    int file = open(path, O_RDONLY);
    struct stat about;
    if (file < 0 || fstat(file, &about) < 0) fail(path);
    const char *all = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (all == MAP_FAILED) fail("mmap");
    uint32_t room = 0;
    for (off_t at = 0; at < about.st_size;) {
        if (request_count == room) {
            room = room ? room * 2 : 1024;
            requests = realloc(requests, room * sizeof *requests);
            if (!requests) fail("realloc");
        }
        struct request *each = &requests[request_count++];
        memcpy(&each->length, all + at, 4);
        each->bytes = all + at + 4;
        at += 4 + (off_t)each->length;
    }
}

/* Connections */

static void watch(struct connection *self, int operation, uint32_t events) {
    struct epoll_event event = {.events = events, .data.ptr = self};
    if (epoll_ctl(epoll, operation, self->socket, &event) < 0) fail("epoll_ctl");
}

static void connect_to_server(struct connection *self) {
    struct sockaddr_in at = address();
    int one = 1;
    self->socket = socket(AF_INET, SOCK_STREAM, 0);
    if (self->socket < 0 || connect(self->socket, (struct sockaddr *)&at, sizeof at) < 0) fail("connect");
    setsockopt(self->socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(self->socket, F_SETFL, O_NONBLOCK);
    watch(self, EPOLL_CTL_ADD, EPOLLIN);
}

static void send_rest(struct connection *self) {
    while (self->rest_length) {
        ssize_t sent = send(self->socket, self->rest, self->rest_length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            watch(self, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            return;
        }
        if (sent < 0) return; /* the end of the connection will be read */
        self->rest += sent;
        self->rest_length -= sent;
    }
}

static void begin(struct connection *self) {
    if (next_request == request_count) return;
    self->number = next_request++;
    self->rest = requests[self->number].bytes;
    self->rest_length = requests[self->number].length;
    self->filled = self->body_at = self->chunk_at = 0;
    self->closes = 0;
    self->began = now();
    send_rest(self);
}

/* Answers */

static void read_head(struct connection *self) {
    self->answer[self->filled] = 0;
    char *end = strstr(self->answer, "\r\n\r\n");
    if (!end) return;
    self->body_at = self->chunk_at = end + 4 - self->answer;
    self->status = strtol(self->answer + 9, NULL, 10);
    self->closes = !strncmp(self->answer, "HTTP/1.0", 8);
    self->length = self->status == 204 || self->status == 304 ? 0 : -2;
    for (char *line = strstr(self->answer, "\r\n") + 2; line < end; line = strstr(line, "\r\n") + 2) {
        if (!strncasecmp(line, "content-length:", 15)) self->length = strtoll(line + 15, NULL, 10);
        if (!strncasecmp(line, "transfer-encoding: chunked", 26)) self->length = -1;
        if (!strncasecmp(line, "connection: close", 17)) self->closes = 1;
        if (!strncasecmp(line, "connection: keep-alive", 22)) self->closes = 0;
    }
    if (self->length == -2) self->closes = 1;
}

static int is_complete(struct connection *self, int ended) {
    if (!self->body_at) read_head(self);
    if (!self->body_at) return 0;
    if (self->length >= 0) return self->filled >= self->body_at + (size_t)self->length;
    if (self->length == -2) return ended;
    while (self->filled > self->chunk_at) {
        self->answer[self->filled] = 0;
        char *line_end = strstr(self->answer + self->chunk_at, "\r\n");
        if (!line_end) return 0;
        size_t size = strtoull(self->answer + self->chunk_at, NULL, 16);
        size_t after = line_end + 2 - self->answer + size + 2;
        if (self->filled < after) return 0;
        if (!size) return 1;
        self->chunk_at = after;
    }
    return 0;
}

/* The chunks put together, in place: samples are bodies. */
static void join_chunks(struct connection *self) {
    size_t to = self->body_at;
    for (size_t at = self->body_at;;) {
        char *data;
        size_t size = strtoull(self->answer + at, &data, 16);
        data = strstr(data, "\r\n") + 2;
        if (!size) break;
        memmove(self->answer + to, data, size);
        to += size;
        at = data - self->answer + size + 2;
    }
    self->filled = to;
}

static void note(struct connection *self) {
    struct record made = {self->number, (uint32_t)((now() - self->began) * 1e6), (uint32_t)self->status, 0};
    if (self->status != expected_status) unexpected++;
    if (self->status != expected_status || self->number % sample_every == 0) {
        if (self->length == -1) join_chunks(self);
        made.sampled = self->filled - self->body_at;
    }
    fwrite(&made, sizeof made, 1, results);
    fwrite(self->answer + self->body_at, 1, made.sampled, results);
    completed++;
}

static void read_answer(struct connection *self) {
    if (self->room < self->filled + READ_BYTES + 1) {
        self->room = self->filled * 2 + READ_BYTES + 1;
        self->answer = realloc(self->answer, self->room);
        if (!self->answer) fail("realloc");
    }
    ssize_t got = recv(self->socket, self->answer + self->filled, READ_BYTES, 0);
    if (got < 0 && errno == EAGAIN) return;
    int ended = got <= 0;
    if (!ended) self->filled += got;
    int complete = is_complete(self, ended);
    if (complete) note(self);
    if (ended && !complete) {
        broken++;
        completed++;
    }
    if (!ended && !complete) return;
    if (ended || self->closes) {
        close(self->socket);
        connect_to_server(self);
    }
    begin(self);
}

static double cpu_seconds(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static int load(char **arguments) {
    int connection_count = atoi(arguments[0]);
    read_requests(arguments[1]);
    results = fopen(arguments[2], "wb");
    if (!results) fail(arguments[2]);
    setvbuf(results, NULL, _IOFBF, 1 << 20);
    expected_status = atol(arguments[3]);
    sample_every = atol(arguments[4]);
    double deadline_seconds = atof(arguments[5]);
    struct connection *connections = calloc(connection_count, sizeof *connections);
    for (int each = 0; each < connection_count; each++) connect_to_server(&connections[each]);
    double cpu = cpu_seconds(), start = now();
    for (int each = 0; each < connection_count; each++) begin(&connections[each]);
    uint32_t whole = request_count;
    struct epoll_event events[MOST_EVENTS];
    while (completed < next_request) {
        int count = epoll_wait(epoll, events, MOST_EVENTS, 1000);
        for (int each = 0; each < count; each++) {
            struct connection *self = events[each].data.ptr;
            if (events[each].events & EPOLLOUT) {
                watch(self, EPOLL_CTL_MOD, EPOLLIN);
                send_rest(self);
            }
            if (events[each].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_answer(self);
        }
        double past = now() - start;
        if (past > deadline_seconds) request_count = next_request; /* begin nothing more */
        if (past > deadline_seconds + 30) break;
    }
    double seconds = now() - start;
    fclose(results);
    printf("{\"asked\": %u, \"completed\": %u, \"unexpected\": %u, \"broken\": %u, \"seconds\": %.6f, \"cpu\": %.6f}\n", whole,
           completed, unexpected, broken, seconds, cpu_seconds() - cpu);
    return 0;
}

/* The server to measure itself with: an answer for every head and body that has come. */

static void answer(void) {
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}";
    static char buffer[READ_BYTES + 1];
    struct sockaddr_in at = address();
    int one = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listening, (struct sockaddr *)&at, sizeof at) < 0 || listen(listening, 128) < 0) fail("bind");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listening}, events[MOST_EVENTS];
    epoll_ctl(epoll, EPOLL_CTL_ADD, listening, &event);
    for (;;) {
        int count = epoll_wait(epoll, events, MOST_EVENTS, -1);
        for (int each = 0; each < count; each++) {
            int socket = events[each].data.fd;
            if (socket == listening) {
                event.data.fd = accept(listening, NULL, NULL);
                setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            /* A request comes in one piece here: it is small and the buffers of the loopback are not. */
            ssize_t got = recv(socket, buffer, READ_BYTES, 0);
            if (got <= 0)
                close(socket);
            else
                send(socket, reply, sizeof reply - 1, MSG_NOSIGNAL);
        }
    }
}

int main(int count, char **arguments) {
    signal(SIGPIPE, SIG_IGN);
    epoll = epoll_create1(0);
    if (count > 2) port = atoi(arguments[2]);
    if (count == 9 && !strcmp(arguments[1], "load")) return load(arguments + 3);
    if (count == 3 && !strcmp(arguments[1], "answer")) answer();
    fprintf(stderr, "usage: generator load PORT CONNECTIONS REQUESTS RESULTS STATUS SAMPLE_EVERY SECONDS | answer PORT\n");
    return 2;
}
