// Memory is the least that finding znodes costs among ever more of them: a slot of an
// index leads to a node of 96 bytes and that to a text of 112, each in a place of its
// own, and nothing else is done. What it takes longer among many is what caches and
// tables of pages leave to any server that holds its znodes so.
//
//   cc -O2 -o memory memory.c && ./memory
//
// It prints nanoseconds for one znode: looked for one after the other, for 32 together
// as zkgo does (tree.Prefetch), and the latter with new data written to each.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { BATCH = 32, LOOKUPS = 8 << 20, TEXT = 112, DATA = 100 };
enum { ALONE, TOGETHER, WRITING, WAYS };

struct node { uint32_t text; char rest[92]; };

static uint32_t *slots;
static struct node *nodes;
static char *texts;
static uint64_t state = 88172645463325252;
static volatile uint64_t sink;

static uint64_t chance(void) {
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

static void *memory(size_t n) {
  void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  return p;
}

// shuffled fills a with 0 to n-1 in any order.
static void shuffled(uint32_t *a, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) {
    uint32_t j = chance() % (i + 1);
    a[i] = a[j], a[j] = i;
  }
}

static void fetch(const void *p, size_t n) {
  for (size_t i = 0; i < n; i += 64) __builtin_prefetch((const char *)p + i);
}

static void together(const uint32_t *at) {
  for (int i = 0; i < BATCH; i++) fetch(&slots[at[i]], 4);
  for (int i = 0; i < BATCH; i++) fetch(&nodes[slots[at[i]]], sizeof(struct node));
  for (int i = 0; i < BATCH; i++) fetch(texts + (size_t)nodes[slots[at[i]]].text * TEXT, TEXT);
}

static double way(int way, uint32_t n) {
  uint32_t at[BATCH];
  char data[DATA] = {1};
  struct timespec a, b;
  uint64_t sum = 0;
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int done = 0; done < LOOKUPS; done += BATCH) {
    for (int i = 0; i < BATCH; i++) at[i] = chance() % n;
    if (way != ALONE) together(at);
    for (int i = 0; i < BATCH; i++) {
      uint32_t slot = at[i];
      if (way == ALONE) slot = (slot + (sum & 1)) % n; // not before the last one is found
      char *text = texts + (size_t)nodes[slots[slot]].text * TEXT;
      for (int k = 0; k < TEXT; k += 56) sum += (uint64_t)text[k] & 1;
      if (way == WRITING) memcpy(text + 8, data, DATA);
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &b);
  sink += sum;
  return ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / LOOKUPS;
}

int main(void) {
  printf("%10s %10s %10s %10s\n", "znodes", "alone", "together", "and set");
  for (uint32_t n = 1000; n <= 10000000; n *= 10) {
    slots = memory((size_t)n * 4);
    nodes = memory((size_t)n * sizeof(struct node));
    texts = memory((size_t)n * TEXT);
    uint32_t *order = memory((size_t)n * 4);
    shuffled(slots, n), shuffled(order, n);
    for (uint32_t i = 0; i < n; i++) nodes[i].text = order[i];
    printf("%10u", n);
    for (int w = ALONE; w < WAYS; w++) printf(" %10.1f", way(w, n));
    printf("\n");
    munmap(slots, (size_t)n * 4), munmap(nodes, (size_t)n * sizeof(struct node));
    munmap(texts, (size_t)n * TEXT), munmap(order, (size_t)n * 4);
  }
}
