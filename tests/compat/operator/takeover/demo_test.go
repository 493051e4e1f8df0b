package takeover

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/tests/kit/must"
)

var demo = flag.Bool("demo", false, "run TestDemo, which tells what it does")

// TestDemo is make migrate-demo: a rehearsal of docs/operate/migrate.md with comments.
func TestDemo(t *testing.T) {
	if !*demo {
		t.Skip("is make migrate-demo: it shows what the other tests check")
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Printf("%6.1f s  %s\n", time.Since(began).Seconds(), strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n          "))
	}
	say("starting three Apache ZooKeeper servers, and clients that write, create sequential znodes and take turns with a lock")
	r := newRig(t, 3, "--serve")
	quiet := dial(t, r.addrs()...)
	must.Get(quiet.Create("/quiet", nil, zk.FlagEphemeral, all))(t)
	l := startLoad(t, r.addrs())
	l.goesOn()
	say("the client of session %#x has the ephemeral znode /quiet; %s", quiet.SessionID(), l.summary())

	say("$ zkgo mirror --from %s zoo.cfg      (on three servers)", r.new[0].args[2])
	r.launch()
	command := func(s *zkgo, args ...string) {
		out, err := s.zkgo(args...)
		say("$ zkgo mirror %s zoo.cfg\n%s", strings.Join(args, " "), strings.TrimSpace(out))
		must.Do(t, err)
	}
	leader := r.leader()
	command(leader, "status")
	command(leader, "cutover", "--dry-run")
	before := l.longest.Swap(0)
	command(leader, "cutover", "--fence-command", "touch "+r.fence+"/{port}")
	l.goesOn()
	say("clients go on at zkgo: %s\nlongest pause of a writer: %v (%v before), expired sessions: %d, lock held twice: %d times",
		l.summary(), rounded(l.longest.Load()), rounded(before), l.expired()+quiet.expired.Load(), len(l.twice))

	say("and now the way back: rollback, and three ZooKeeper servers on what it has written")
	l.longest.Store(0)
	back(t, r, l)
	say("clients go on at ZooKeeper: %s\nlongest pause, with the start of three JVMs: %v; expired sessions: %d", l.summary(), rounded(l.longest.Load()), l.expired()+quiet.expired.Load())
	_, stat, err := quiet.Get("/quiet")
	must.Do(t, err)
	say("/quiet still belongs to session %#x", stat.EphemeralOwner)
	l.check(r.gates[0].addr, r.gates[1].addr, r.gates[2].addr)
	if !t.Failed() {
		say("every acknowledged write is there, and no lock was held twice")
	}
}

func rounded(nanos int64) time.Duration { return time.Duration(nanos).Round(time.Millisecond) }

// summary says how much the clients have done.
func (l *load) summary() string {
	acked := int64(0)
	for w := range l.acked {
		acked += l.acked[w].Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprintf("%d writes and %d znodes acknowledged, %d locks acquired", acked, len(l.created), l.acquired)
}
