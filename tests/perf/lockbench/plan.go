package lockbench

import (
	"slices"
	"time"
)

// contender is one kind of lock on one service.
type contender struct {
	service string
	worker  string // a program of workers/
	kind    string // of its locks
	label   string // in the table
	warm    time.Duration
}

// key names a contender in the results and in the text.
func (c contender) key() string { return c.service + "/" + c.kind }

// warm is how long a client program runs before we count. Java's compiler needs longer.
const (
	warm     = 300 * time.Millisecond
	warmJava = 1200 * time.Millisecond
)

// contenders returns all contenders, in the order of the table.
func contenders() []contender {
	var list []contender
	for _, n := range []string{"1", "3"} {
		for _, s := range []string{"zkgo-", "zookeeper-"} {
			list = append(list,
				contender{s + n, "zk", "mutex", "`lock.Mutex`", warm},
				contender{s + n, "zk", "lease", "`lock.LeaseLock`", warm},
				contender{s + n, "zk", "simple", "`lock.Simple`", warm})
		}
		list = append(list, contender{"etcd-" + n, "etcd", "mutex", "`concurrency.Mutex`", warm})
	}
	const polled = "`SET NX PX` + Lua, tried again after "
	return append(list,
		contender{"redis-1", "redis", "poll", polled + "50–250 ms", warm},
		contender{"redis-1", "redis", "poll10", polled + "5–15 ms", warm},
		contender{"redis-1", "redisson", "redisson", "Redisson `RLock`", warmJava},
		contender{"redis-1-always", "redis", "poll10", polled + "5–15 ms", warm},
		contender{"redis-1-always", "redisson", "redisson", "Redisson `RLock`", warmJava},
		contender{"redis-5-always", "redis", "redlock", "RedLock, tried again after 50–250 ms", warm},
	)
}

// effort is how much to measure.
type effort struct {
	rounds   int           // turns of each contender
	counted  time.Duration // per turn and shape
	crowd    int           // waiters for one lock
	releases int           // releases of that lock
}

func plan(small bool) effort {
	if small {
		return effort{rounds: 1, counted: 300 * time.Millisecond, crowd: 50, releases: 3}
	}
	return effort{rounds: 3, counted: 700 * time.Millisecond, crowd: 1000, releases: 5}
}

// crowds returns the contenders that are measured with a crowd.
func crowds() []contender {
	var list []contender
	for _, s := range []string{"zkgo-1", "zookeeper-1"} {
		list = append(list,
			contender{s, "zk", "mutex", "the place before (`Mutex`)", warm},
			contender{s, "zk", "parent", "the directory", warm},
			contender{s, "zk", "simple", "the one znode (`Simple`)", warm})
	}
	return list
}

// chosen filters out the services that the user didn't ask for; no names mean all.
func chosen(all []contender, services []string) []contender {
	if len(services) == 0 {
		return all
	}
	return slices.DeleteFunc(all, func(c contender) bool { return !slices.Contains(services, c.service) })
}
