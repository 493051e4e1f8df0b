/* A client that keeps its session, an ephemeral znode and a watch through a takeover.
 * Usage: holder ADDRESSES. It says "holds SESSION", then for each line on standard input what it
 * has: "still OWNER SESSION WATCHES". */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

static volatile int fired;

static void watch(zhandle_t *zh, int type, int state, const char *path, void *context) {
  (void)zh; (void)path; (void)context;
  if (type == ZOO_SESSION_EVENT && state == ZOO_EXPIRED_SESSION_STATE) {
    printf("expired\n");
    exit(1);
  }
  if (type == ZOO_CHANGED_EVENT) fired++;
}

/* call repeats what fails because there is no connection. */
#define CALL(what)                                                                      \
  do {                                                                                  \
    int rc, tries = 0;                                                                  \
    while ((rc = (what)) == ZCONNECTIONLOSS || rc == ZOPERATIONTIMEOUT) {               \
      if (++tries > 3000) { printf("no connection\n"); exit(1); }                        \
      usleep(100000);                                                                   \
    }                                                                                   \
    if (rc != ZOK && rc != ZNODEEXISTS) { printf("%s: %s\n", #what, zerror(rc)); exit(1); } \
  } while (0)

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
  zhandle_t *zh = zookeeper_init(argv[1], watch, 20000, NULL, NULL, 0);
  if (zh == NULL) return 1;
  char buffer[256];
  int length;
  struct Stat stat;
  CALL(zoo_create(zh, "/c-holder", "mine", 4, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0));
  CALL(zoo_create(zh, "/c-watched", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0));
  length = sizeof buffer;
  CALL(zoo_wget(zh, "/c-watched", watch, NULL, buffer, &length, &stat));
  printf("holds %llx\n", (unsigned long long)zoo_client_id(zh)->client_id);
  while (fgets(buffer, sizeof buffer, stdin) != NULL) {
    char data[16];
    length = sizeof data;
    CALL(zoo_get(zh, "/c-holder", 0, data, &length, &stat));
    printf("still %llx %llx %d\n", (unsigned long long)stat.ephemeralOwner, (unsigned long long)zoo_client_id(zh)->client_id, fired);
  }
  zookeeper_close(zh);
  return 0;
}
