/* A session of the C client, a line per step: what was called and what came of
 * it. The lines are compared with those that the real server caused, so nothing
 * in them may differ between two runs but zxids, dates and session ids. */

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char events[64][256];
static int event_count, connected, completed;

static const char *type_name(int type) {
  if (type == ZOO_CREATED_EVENT) return "created";
  if (type == ZOO_DELETED_EVENT) return "deleted";
  if (type == ZOO_CHANGED_EVENT) return "changed";
  if (type == ZOO_CHILD_EVENT) return "child";
  return type == ZOO_SESSION_EVENT ? "session" : "other";
}

/* watch collects the events; session events only say that it is connected. */
static void watch(zhandle_t *zh, int type, int state, const char *path, void *context) {
  pthread_mutex_lock(&lock);
  if (type == ZOO_SESSION_EVENT)
    connected = state;
  else if (event_count < 64)
    snprintf(events[event_count++], sizeof events[0], "%s %s %s", (const char *)context, type_name(type), path);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

/* wait_for waits until *value is at least wanted: 1, or 0 after half a minute. */
static int wait_for(int *value, int wanted) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 30;
  pthread_mutex_lock(&lock);
  while (*value < wanted && pthread_cond_timedwait(&changed, &lock, &until) == 0) {
  }
  int done = *value >= wanted;
  pthread_mutex_unlock(&lock);
  return done;
}

static int step;

static void line(const char *what, int rc, const char *format, ...) {
  printf("%d %s: rc=%d ", ++step, what, rc);
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  printf("\n");
}

static void stat_line(const char *what, int rc, const struct Stat *s) {
  if (rc != ZOK) {
    line(what, rc, "");
    return;
  }
  line(what, rc, "czxid = %llx mzxid = %llx pzxid = %llx version=%d cversion=%d aversion=%d owner=%d length=%d children=%d",
       (long long)s->czxid, (long long)s->mzxid, (long long)s->pzxid, s->version, s->cversion, s->aversion,
       s->ephemeralOwner != 0, s->dataLength, s->numChildren);
}

static int compare_names(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void children_line(const char *what, int rc, struct String_vector *names) {
  char text[2048] = "";
  if (rc == ZOK) {
    qsort(names->data, names->count, sizeof names->data[0], compare_names);
    for (int i = 0; i < names->count; i++) {
      strncat(text, names->data[i], sizeof text - strlen(text) - 2);
      strcat(text, " ");
    }
    deallocate_String_vector(names);
  }
  line(what, rc, "[%s]", text);
}

static void complete_void(int rc, const void *data) {
  pthread_mutex_lock(&lock);
  *(int *)data = rc;
  completed++;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void ignore_string(int rc, const char *value, const void *data) {}

static void nodes(zhandle_t *zh) {
  char path[256], data[4096];
  struct Stat stat;
  struct String_vector names;
  int length = sizeof data;
  int rc = zoo_create(zh, "/s", "root", 4, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path);
  line("create", rc, "%s", rc == ZOK ? path : "");
  line("create again", zoo_create(zh, "/s", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), "");
  line("create without a parent", zoo_create(zh, "/no/s", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), "");
  line("create a bad path", zoo_create(zh, "/s//x", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), "");
  line("create without data", zoo_create(zh, "/s/null", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), "");
  rc = zoo_get(zh, "/s/null", 0, data, &length, &stat);
  line("get of no data", rc, "length %d", length);
  line("create of empty data", zoo_create(zh, "/s/empty", "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), "");
  length = sizeof data;
  rc = zoo_get(zh, "/s/empty", 0, data, &length, &stat);
  line("get of empty data", rc, "length %d", length);
  for (int i = 0; i < 3; i++) {
    rc = zoo_create(zh, "/s/seq-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, path, sizeof path);
    line("create a sequence node", rc, "%s", path);
  }
  rc = zoo_create(zh, "/s/eph-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL | ZOO_SEQUENCE, path, sizeof path);
  line("create an ephemeral sequence node", rc, "%s", path);
  rc = zoo_create2(zh, "/s/two", "ab", 2, &ZOO_OPEN_ACL_UNSAFE, 0, path, sizeof path, &stat);
  stat_line("create2", rc, &stat);
  rc = zoo_create2_ttl(zh, "/s/ttl", "ab", 2, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_WITH_TTL, 600000, path, sizeof path, &stat);
  stat_line("create2 with a TTL", rc, &stat);
  rc = zoo_create_ttl(zh, "/s/ttl-", "ab", 2, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 600000, path, sizeof path);
  line("create a sequence node with a TTL", rc, "%s", path);
  rc = zoo_create2(zh, "/s/container", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, ZOO_CONTAINER, path, sizeof path, &stat);
  stat_line("create a container", rc, &stat);
  stat_line("set", zoo_set2(zh, "/s", "changed", 7, 0, &stat), &stat);
  line("set of an old version", zoo_set(zh, "/s", "x", 1, 0), "");
  line("set of nothing", zoo_set(zh, "/s/none", "x", 1, -1), "");
  stat_line("exists", zoo_exists(zh, "/s", 0, &stat), &stat);
  line("exists of nothing", zoo_exists(zh, "/s/none", 0, &stat), "");
  length = sizeof data;
  rc = zoo_get(zh, "/s", 0, data, &length, &stat);
  line("get", rc, "%.*s", rc == ZOK ? length : 0, data);
  length = 3;
  rc = zoo_get(zh, "/s", 0, data, &length, &stat);
  line("get into a short buffer", rc, "%.*s", rc == ZOK ? length : 0, data);
  children_line("get_children", zoo_get_children(zh, "/s", 0, &names), &names);
  rc = zoo_get_children2(zh, "/s", 0, &names, &stat);
  children_line("get_children2", rc, &names);
  stat_line("get_children2, its stat", rc, &stat);
  children_line("get_children of nothing", zoo_get_children(zh, "/s/none", 0, &names), &names);
  line("delete of a wrong version", zoo_delete(zh, "/s/two", 5), "");
  line("delete", zoo_delete(zh, "/s/two", 0), "");
  line("delete again", zoo_delete(zh, "/s/two", -1), "");
  line("delete of a parent", zoo_delete(zh, "/s", -1), "");
}

static void acls(zhandle_t *zh) {
  struct ACL_vector acl;
  struct Stat stat;
  int rc = zoo_create(zh, "/acl", "x", 1, &ZOO_READ_ACL_UNSAFE, 0, NULL, 0);
  line("create a node that all may read", rc, "");
  line("set it", zoo_set(zh, "/acl", "y", 1, -1), "");
  line("set its ACL", zoo_set_acl(zh, "/acl", -1, &ZOO_OPEN_ACL_UNSAFE), "");
  line("create for the creator without an identity", zoo_create(zh, "/acl2", "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), "");
  int result = 1;
  completed = 0;
  rc = zoo_add_auth(zh, "digest", "carol:pw", 8, complete_void, &result);
  line("add_auth is sent", rc, "");
  rc = wait_for(&completed, 1);
  line("add_auth ends", result, "%s", rc ? "" : "never");
  line("create for the creator", zoo_create(zh, "/acl2", "x", 1, &ZOO_CREATOR_ALL_ACL, 0, NULL, 0), "");
  rc = zoo_get_acl(zh, "/acl2", &acl, &stat);
  line("get_acl", rc, "%d entries: %s:%s %x", rc == ZOK ? acl.count : 0, rc == ZOK ? acl.data[0].id.scheme : "",
       rc == ZOK ? acl.data[0].id.id : "", rc == ZOK ? acl.data[0].perms : 0);
  stat_line("get_acl, its stat", rc, &stat);
  line("set_acl of a wrong version", zoo_set_acl(zh, "/acl2", 7, &ZOO_OPEN_ACL_UNSAFE), "");
  line("set_acl", zoo_set_acl(zh, "/acl2", 0, &ZOO_OPEN_ACL_UNSAFE), "");
  struct ACL_vector none = {0, NULL};
  line("set_acl to nothing", zoo_set_acl(zh, "/acl2", -1, &none), "");
}

static void watches(zhandle_t *zh) {
  struct Stat stat;
  struct String_vector names;
  char data[16];
  int length = sizeof data;
  event_count = 0;
  line("wexists of nothing", zoo_wexists(zh, "/w", watch, "exists", &stat), "");
  zoo_create(zh, "/w", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
  line("wget", zoo_wget(zh, "/w", watch, "data", data, &length, &stat), "");
  int rc = zoo_wget_children(zh, "/w", watch, "children", &names);
  children_line("wget_children", rc, &names);
  zoo_create(zh, "/w/child", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
  zoo_set(zh, "/w", "y", 1, -1);
  length = sizeof data;
  line("wget again", zoo_wget(zh, "/w", watch, "data again", data, &length, &stat), "");
  line("remove_watches", zoo_remove_watches(zh, "/w", ZWATCHTYPE_DATA, watch, "data again", 0), "");
  line("remove_watches again", zoo_remove_watches(zh, "/w", ZWATCHTYPE_DATA, watch, "data again", 0), "");
  zoo_set(zh, "/w", "z", 1, -1);
  line("wexists", zoo_wexists(zh, "/w/child", watch, "exists child", &stat), "");
  zoo_delete(zh, "/w/child", -1);
  zoo_delete(zh, "/w", -1);
  line("the events came", !wait_for(&event_count, 4), "");
  for (int i = 0; i < event_count; i++) line("event", 0, "%s", events[i]);
}

static void multis(zhandle_t *zh) {
  zoo_op_t ops[5];
  zoo_op_result_t results[5];
  char first[64], second[64];
  struct Stat stat;
  zoo_create_op_init(&ops[0], "/m", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, first, sizeof first);
  zoo_create_op_init(&ops[1], "/m/seq-", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_SEQUENCE, second, sizeof second);
  zoo_set_op_init(&ops[2], "/m", "y", 1, 0, &stat);
  zoo_check_op_init(&ops[3], "/m", 1);
  zoo_delete_op_init(&ops[4], "/m/seq-0000000000", -1);
  int rc = zoo_multi(zh, 5, ops, results);
  line("multi", rc, "%s %s version %d: %d %d %d %d %d", first, second, stat.version, results[0].err, results[1].err,
       results[2].err, results[3].err, results[4].err);
  zoo_create_op_init(&ops[0], "/m/a", "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, first, sizeof first);
  zoo_check_op_init(&ops[1], "/m", 99);
  zoo_delete_op_init(&ops[2], "/m/none", -1);
  rc = zoo_multi(zh, 3, ops, results);
  line("multi that fails", rc, "%d %d %d", results[0].err, results[1].err, results[2].err);
  line("it left nothing", zoo_exists(zh, "/m/a", 0, &stat), "");
  line("multi of nothing", zoo_multi(zh, 0, ops, results), "");
}

static void pipeline(zhandle_t *zh) {
  enum { count = 200 };
  static int results[count];
  char path[64];
  struct String_vector names;
  zoo_create(zh, "/p", NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
  completed = 0;
  for (int i = 0; i < count; i++) {
    results[i] = 1;
    snprintf(path, sizeof path, "/p/%03d", i / 2);
    /* A node is created and deleted in turn: the answers show that the order was kept. */
    if (i % 2 == 0)
      zoo_acreate(zh, path, "x", 1, &ZOO_OPEN_ACL_UNSAFE, 0, ignore_string, NULL);
    else
      zoo_adelete(zh, path, 0, complete_void, &results[i]);
  }
  int done = wait_for(&completed, count / 2);
  int good = 0;
  for (int i = 1; i < count; i += 2) good += results[i] == ZOK;
  line("pipelined deletes", !done, "%d good", good);
  int rc = zoo_get_children(zh, "/p", 0, &names);
  children_line("nothing is left", rc, &names);
}

static void others(zhandle_t *zh) {
  char data[4096];
  int length = sizeof data;
  struct Stat stat;
  int result = 1;
  int rc = zoo_getconfig(zh, 0, data, &length, &stat);
  line("getconfig", rc, "length %d", length);
  length = sizeof data;
  rc = zoo_reconfig(zh, "server.9=127.0.0.1:1:2;3", NULL, NULL, -1, data, &length, &stat);
  line("reconfig", rc, "");
  line("set_watcher", zoo_set_watcher(zh, watch) == NULL, "");
  completed = 0;
  result = zoo_async(zh, "/s", ignore_string, NULL);
  line("sync is sent", result, "");
  line("state", zoo_state(zh) != ZOO_CONNECTED_STATE, "");
  line("timeout", 0, "%d", zoo_recv_timeout(zh));
}

/* abandon runs in a process of its own, which ends without closing its session:
 * it leaves an ephemeral node and hands the session's id and password on. */
static void abandon(const char *address, int out) {
  zhandle_t *zh = zookeeper_init(address, watch, 20000, NULL, NULL, 0);
  if (wait_for(&connected, ZOO_CONNECTED_STATE) &&
      zoo_create(zh, "/abandoned", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0) == ZOK &&
      write(out, zoo_client_id(zh), sizeof(clientid_t)) == sizeof(clientid_t))
    _exit(0);
  _exit(1);
}

/* reattach takes that session over: the same id, the same ephemeral node. */
static void reattach(const char *address, const clientid_t *id) {
  struct Stat stat;
  connected = 0;
  zhandle_t *zh = zookeeper_init(address, watch, 20000, id, NULL, 0);
  line("reattached", !wait_for(&connected, ZOO_CONNECTED_STATE), "same session: %d",
       zoo_client_id(zh)->client_id == id->client_id);
  stat_line("the ephemeral is there", zoo_exists(zh, "/abandoned", 0, &stat), &stat);
  line("it is this session's", stat.ephemeralOwner != id->client_id, "");
  line("close", zookeeper_close(zh), "");
}

int main(int argc, char **argv) {
  int ends[2], status = 1;
  clientid_t id;
  zoo_set_debug_level(0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc != 2 || pipe(ends) != 0) return 2;
  pid_t child = fork(); /* before this process has threads */
  if (child == 0) abandon(argv[1], ends[1]);
  ssize_t got = waitpid(child, &status, 0) == child && status == 0 ? read(ends[0], &id, sizeof id) : 0;
  line("a session is abandoned", got != sizeof id, "");
  reattach(argv[1], &id);
  connected = 0;
  zhandle_t *zh = zookeeper_init(argv[1], watch, 10000, NULL, "", 0);
  line("connected", !wait_for(&connected, ZOO_CONNECTED_STATE), "");
  struct Stat stat;
  line("the ephemeral is gone", zoo_exists(zh, "/abandoned", 0, &stat), "");
  nodes(zh);
  acls(zh);
  watches(zh);
  multis(zh);
  pipeline(zh);
  others(zh);
  line("close", zookeeper_close(zh), "");
  return 0;
}
