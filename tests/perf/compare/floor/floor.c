// Floor is the least that a server can do which zkgo bench is content with: it reads
// requests, writes them to the disk in batches, syncs, and answers. It has no tree, no
// sessions, no checks and no second server, is written in C on three threads, and
// speaks only what the works set, multi, watch, lock and lock-shared need. What it reaches
// beside the load is about what the kernel, the disk and the load leave to any server.
//
//   cc -O2 -o floor floor.c -lpthread
//   ./floor PORT FILE [FLIGHTS [RULE]]
//
// FLIGHTS is how many batches are written at a time, 2 unless given. With RULE 1 a batch
// goes beside another one only if it is as large as the larger of the two before it, as
// in zkgo; with 0 it goes at once.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAXFD = 65536, MAXPATH = 128, MAXBATCH = 4096, LOG = 64 << 20 };
enum { CREATE = 1, DELETE, EXISTS, GETDATA, SETDATA, CHILDREN = 8, SYNC, PING = 11, MULTI = 14, CLOSE = -11 };

struct conn { char *in; int have, open; };
struct op { int fd, xid, op, flags, sets; char path[MAXPATH]; };
struct dir { char path[MAXPATH]; char name[64][24]; int n, next; };
struct watch { int fd; char path[MAXPATH]; };

static struct conn conns[MAXFD];
static struct dir dirs[256];
static int ndirs;
static struct watch *watches;
static int nwatches;
static char data[100];

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;      // the queue and the order
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, turn = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;   // dirs and watches
static struct op queue[MAXBATCH];
static char record[1 << 20];
static int waiting, bytes, flying, sizes[2], rule;
static uint64_t taken, applied;
static off_t at;
static int logfd;

static void die(const char *s) { perror(s); exit(1); }
static uint32_t get32(const char *b) { uint32_t v; memcpy(&v, b, 4); return be32toh(v); }
static char *put32(char *b, uint32_t v) { v = htobe32(v); memcpy(b, &v, 4); return b + 4; }
static char *put64(char *b, uint64_t v) { v = htobe64(v); memcpy(b, &v, 8); return b + 8; }
static char *puts32(char *b, const char *s, int n) { b = put32(b, n); memcpy(b, s, n); return b + n; }

static void out(int fd, char *frame, char *end) {
	put32(frame, end - frame - 4);
	if (send(fd, frame, end - frame, MSG_NOSIGNAL) != end - frame) shutdown(fd, SHUT_RDWR);
}

static char *header(char *frame, int xid, int err) { return put32(put64(put32(frame + 4, xid), applied), err); }
static char *stat_(char *b) { memset(b, 0, 68); return b + 68; }
static char *done(char *b, char yes) { *b = yes; return b + 1; }

static struct dir *directory(const char *path, int make) {
	for (int i = 0; i < ndirs; i++) if (!strcmp(dirs[i].path, path)) return &dirs[i];
	if (!make || ndirs == 256) return 0;
	strcpy(dirs[ndirs].path, path);
	return &dirs[ndirs++];
}

struct part { int from, to, type; };

static void *tell(void *arg) {
	struct part *p = arg;
	char frame[256];
	for (int i = p->from; i < p->to; i++) {
		char *e = put32(put64(put32(frame + 4, -1), -1), 0);
		e = put32(put32(e, p->type), 3);
		e = puts32(e, watches[i].path, strlen(watches[i].path));
		out(watches[i].fd, frame, e);
	}
	return 0;
}

// changed sends the events, by two threads if there are many.
static void changed(const char *path, int type) {
	int n = 0;
	if (nwatches > 1000) { // all watch the same
		struct part half[2] = {{0, nwatches / 2, type}, {nwatches / 2, nwatches, type}};
		pthread_t t;
		pthread_create(&t, 0, tell, &half[0]);
		tell(&half[1]);
		pthread_join(t, 0);
		nwatches = 0;
		return;
	}
	for (int i = 0; i < nwatches; i++) {
		if (strcmp(watches[i].path, path)) { watches[n++] = watches[i]; continue; }
		struct part one = {i, i + 1, type};
		tell(&one);
	}
	nwatches = n;
}

// apply executes a write and answers.
static void apply(struct op *o) {
	char frame[8192], path[2 * MAXPATH], *slash;
	char *e = header(frame, o->xid, 0);
	pthread_mutex_lock(&state);
	switch (o->op) {
	case CREATE:
		strcpy(path, o->path);
		slash = strrchr(path, '/');
		if (o->flags & 2) {
			*slash = 0;
			struct dir *d = directory(path, 1);
			*slash = '/';
			sprintf(path + strlen(path), "%010d", d->next++);
			if (d->n < 64) snprintf(d->name[d->n++], 24, "%s", slash + 1);
		}
		e = puts32(e, path, strlen(path));
		break;
	case DELETE:
		strcpy(path, o->path);
		slash = strrchr(path, '/');
		*slash = 0;
		struct dir *d = directory(path, 0);
		for (int i = 0; d && i < d->n; i++)
			if (!strcmp(d->name[i], slash + 1)) { memcpy(d->name[i], d->name[--d->n], 24); break; }
		changed(o->path, 2);
		break;
	case SETDATA:
		changed(o->path, 3);
		e = stat_(e);
		break;
	case MULTI:
		for (int i = 0; i < o->sets; i++) e = stat_(put32(done(put32(e, SETDATA), 0), 0));
		e = put32(done(put32(e, -1), 1), -1);
		break;
	}
	out(o->fd, frame, e);
	pthread_mutex_unlock(&state);
}

static int worth(void) {
	if (!waiting) return 0;
	if (!flying || !rule) return 1;
	return waiting >= (sizes[0] > sizes[1] ? sizes[0] : sizes[1]);
}

// writer takes what waits, stores it and executes it, in turn.
static void *writer(void *arg) {
	struct op *batch = malloc(sizeof queue);
	char *buf;
	if (posix_memalign((void **)&buf, 4096, 2 << 20)) die("memory");
	for (;;) {
		pthread_mutex_lock(&mu);
		while (!worth()) pthread_cond_wait(&more, &mu);
		int n = waiting, len = (bytes + 4095) & ~4095;
		memcpy(batch, queue, n * sizeof *batch);
		memcpy(buf, record, bytes);
		waiting = bytes = 0;
		sizes[1] = sizes[0]; sizes[0] = n;
		flying++;
		uint64_t mine = taken++;
		if (at + len > LOG) at = 0;
		off_t to = at;
		at += len;
		pthread_mutex_unlock(&mu);
		if (pwrite(logfd, buf, len, to) != len || fdatasync(logfd)) die("log");
		pthread_mutex_lock(&mu);
		while (applied != mine) pthread_cond_wait(&turn, &mu);
		pthread_mutex_unlock(&mu);
		for (int i = 0; i < n; i++) apply(&batch[i]);
		pthread_mutex_lock(&mu);
		applied++;
		flying--;
		pthread_cond_broadcast(&turn);
		if (worth()) pthread_cond_signal(&more);
		pthread_mutex_unlock(&mu);
	}
	return 0;
}

static void path_(char *to, const char *b) {
	int n = get32(b);
	if (n < 0 || n >= MAXPATH - 16) { fprintf(stderr, "path of %d bytes\n", n); exit(1); }
	memcpy(to, b + 4, n);
	to[n] = 0;
}

// sets counts the operations of a multi, which are all setData.
static int sets(const char *b) {
	int n = 0;
	for (; !b[4] && n < 100; n++) {
		b += 9;
		b += 4 + get32(b);
		b += 4 + get32(b) + 4;
	}
	return n;
}

// request executes a read, or keeps a write.
static void request(int fd, char *b, int n) {
	char frame[8192], path[MAXPATH] = "", *e;
	int xid = get32(b), op = get32(b + 4), watch = 0;
	if (!conns[fd].open) {
		conns[fd].open = 1;
		e = put64(put32(put32(frame + 4, 0), 30000), fd);
		e = puts32(e, data, 16);
		*e++ = 0;
		out(fd, frame, e);
		return;
	}
	if (op != PING && op != MULTI && op != CLOSE) path_(path, b + 8);
	if (op == CREATE || op == DELETE || op == SETDATA || op == MULTI) {
		pthread_mutex_lock(&mu);
		if (waiting == MAXBATCH) die("too many");
		struct op *o = &queue[waiting++];
		*o = (struct op){.fd = fd, .xid = xid, .op = op, .flags = op == CREATE ? get32(b + n - 4) : 0, .sets = op == MULTI ? sets(b + 8) : 0};
		strcpy(o->path, path);
		memcpy(record + bytes, b, n);
		bytes += n;
		pthread_mutex_unlock(&mu);
		return;
	}
	e = header(frame, xid, 0);
	pthread_mutex_lock(&state);
	struct dir *d;
	switch (op) {
	case EXISTS: case GETDATA:
		watch = b[n - 1];
		if (op == EXISTS) { // of a lock's znode: is it there?
			char *slash = strrchr(path, '/');
			*slash = 0;
			d = directory(path, 0);
			*slash = '/';
			int there = !d;
			for (int i = 0; d && i < d->n; i++) there |= !strcmp(d->name[i], slash + 1);
			if (!there) { e = header(frame, xid, -101); break; }
		} else e = puts32(e, data, sizeof data);
		if (watch) {
			struct watch *w = &watches[nwatches++];
			w->fd = fd;
			strcpy(w->path, path);
		}
		e = stat_(e);
		break;
	case CHILDREN:
		d = directory(path, 0);
		e = put32(e, d ? d->n : 0);
		for (int i = 0; d && i < d->n; i++) e = puts32(e, d->name[i], strlen(d->name[i]));
		break;
	case SYNC:
		e = puts32(e, path, strlen(path));
		break;
	}
	pthread_mutex_unlock(&state);
	out(fd, frame, e);
	if (op == CLOSE) shutdown(fd, SHUT_WR);
}

// take reads what a connection has sent.
static void take(int fd) {
	struct conn *c = &conns[fd];
	int n = recv(fd, c->in + c->have, 65536 - c->have, MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN) return;
	if (n <= 0) {
		close(fd);
		free(c->in);
		*c = (struct conn){0};
		return;
	}
	c->have += n;
	char *b = c->in, *end = c->in + c->have;
	while (end - b >= 4 && end - b >= 4 + (int)get32(b)) {
		request(fd, b + 4, get32(b));
		b += 4 + get32(b);
	}
	c->have = end - b;
	memmove(c->in, b, c->have);
}

int main(int argc, char **argv) {
	if (argc < 3) { fprintf(stderr, "usage: floor PORT FILE [FLIGHTS [RULE]]\n"); return 2; }
	int flights = argc > 3 ? atoi(argv[3]) : 2;
	rule = argc > 4 ? atoi(argv[4]) : 1;
	struct rlimit all = {MAXFD, MAXFD};
	setrlimit(RLIMIT_NOFILE, &all);
	watches = calloc(MAXFD, sizeof *watches);
	logfd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *zeros = calloc(1, 1 << 20);
	for (int i = 0; i < LOG >> 20; i++) if (write(logfd, zeros, 1 << 20) != 1 << 20) die("log");
	if (fsync(logfd)) die("log");
	close(logfd);
	logfd = open(argv[2], O_RDWR | O_DIRECT);
	int ls = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	setsockopt(ls, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (bind(ls, (struct sockaddr *)&a, sizeof a) || listen(ls, 4096)) die("listen");
	for (int i = 0; i < flights; i++) { pthread_t t; pthread_create(&t, 0, writer, 0); }
	int ep = epoll_create1(0);
	struct epoll_event ev = {.events = EPOLLIN, .data.fd = ls}, evs[256];
	epoll_ctl(ep, EPOLL_CTL_ADD, ls, &ev);
	for (;;) {
		int n = epoll_wait(ep, evs, 256, -1);
		for (int i = 0; i < n; i++) {
			if (evs[i].data.fd != ls) { take(evs[i].data.fd); continue; }
			int fd = accept(ls, 0, 0);
			if (fd < 0) continue;
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
			conns[fd] = (struct conn){.in = malloc(65536)};
			ev = (struct epoll_event){.events = EPOLLIN, .data.fd = fd};
			epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev);
		}
		pthread_mutex_lock(&mu);
		if (worth()) pthread_cond_signal(&more);
		pthread_mutex_unlock(&mu);
	}
}
