package locks

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

var (
	wanted = flag.Int("acquisitions", 10000, "how many locks are to be acquired of the ensemble")
	rounds = flag.Int("rounds", 1, "how often everything is killed and stopped meanwhile")
	real   = flag.Bool("real", false, "do it with Apache ZooKeeper too")
	limit  = flag.Duration("limit", 15*time.Minute, "after which a run is given up")
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "worker" {
		if err := goWorker(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// mutex is the lock that all languages contend for.
const mutex = "/mutex"

// workerKinds lists the kinds of worker that contend for it.
var workerKinds = []string{"go", "go-careless", "java", "python"}

// TestMutex makes all languages contend for one lock while it kills and stops workers and
// servers.
func TestMutex(t *testing.T) {
	t.Parallel()
	k := findTools(t)
	t.Run("ensemble", func(t *testing.T) {
		t.Parallel()
		contend(t, newRun(t, k, 3, false, mutex), *wanted, workerKinds)
	})
	t.Run("standalone", func(t *testing.T) {
		t.Parallel()
		contend(t, newRun(t, k, 1, false, mutex), *wanted/10, []string{"go", "java"})
	})
	if *real {
		t.Run("ZooKeeper", func(t *testing.T) {
			oracle.Need(t)
			contend(t, newRun(t, k, 3, true, mutex), *wanted/10, workerKinds)
		})
	}
}

// contend, in each round, kills and stops a worker of each of some languages, and as many
// servers.
func contend(t *testing.T, r *run, want int, languages []string) {
	t.Helper()
	for _, lang := range workerKinds {
		r.start(lang, "mutex:"+mutex+":2")
	}
	faults := 0
	for range *rounds {
		r.steal(mutex)
		for _, lang := range languages {
			r.pause(mutex, lang)
			r.crash(faults%2 == 0)
			r.end(mutex, lang, "write")
			faults++
			// We leave some acquisitions for a time without faults.
			r.acquisitions(want * faults / (*rounds*len(languages) + 1))
		}
	}
	r.finish(want, want/20)
	if n := r.register.lines[mutex].lost; n == 0 {
		t.Error("void: no late write has destroyed anything in the plain register")
	}
	if n, least := r.register.stale["fenced refused"], *rounds*(len(languages)-1); n < least {
		t.Errorf("void: the fenced register has refused %d late writes, less than %d", n, least)
	}
	if r.register.stale["znode refused"] == 0 {
		t.Error("void: no late multi was refused")
	}
}

// TestOtherLocks makes Go and Java share a read-write lock and a semaphore in Curator's
// layout, and Go and Python a lock and a read-write lock in Kazoo's own. Go alone uses a lease
// lock: the holder's clock is stopped while the holder is stopped.
func TestOtherLocks(t *testing.T) {
	t.Parallel()
	r := newRun(t, findTools(t), 3, false, "/rw", "/kazoo", "/kazoo-rw", "/watchdog")
	curator := []string{"rw:/rw:3", "semaphore:/semaphore:3"}
	kazoo := []string{"kazoo:/kazoo:2", "kazoo-rw:/kazoo-rw:3"}
	all := slices.Concat(curator, kazoo, []string{"watchdog:/watchdog:1"})
	r.start("go", all...)
	r.start("go-careless", all...)
	r.start("java", curator...)
	r.start("python", kazoo...)
	for range *rounds {
		r.together("/semaphore", "java", "go", "go-careless")
		r.pause("/rw", "java")
		r.end("/rw", "go", "read")
		r.end("/semaphore", "java", "lease")
		r.crash(true)
		r.pause("/kazoo", "python")
		r.pause("/kazoo-rw", "go-careless")
		r.end("/kazoo-rw", "python", "read")
		r.pause("/watchdog", "go")
		r.pause("/watchdog", "go-careless")
		r.end("/watchdog", "go", "write")
		r.end("/rw", "go-careless", "write")
	}
	r.finish(*wanted/5, *wanted/200)
	for path, least := range map[string]int{"/rw": 2, "/semaphore": leases, "/kazoo-rw": 2} {
		if n := r.register.lines[path].most; n < least {
			t.Errorf("void: %s was never held by more than %d at a time", path, n)
		}
	}
}
