package checkers_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/workload"
)

var troubleSeeds = flag.Int("trouble.seeds", 2, "number of runs of TestTrouble")

// TestTrouble checks that a correct ensemble keeps every guarantee while it is
// partitioned, paused, killed and made to change its leader. A violation here is
// a bug of the server or of the checker.
func TestTrouble(t *testing.T) {
	t.Parallel()
	for seed := range *troubleSeeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			v := run{seconds: 40, seed: uint64(seed), trouble: func(cl *zktest.Cluster) { trouble(cl, uint64(seed)) }, change: func(cfg *workload.Config) { cfg.Idlers = 2 }}.verdict(t)
			if !v.OK() || testing.Verbose() {
				t.Logf("\n%s", v)
			}
			if !v.OK() {
				t.Fail()
			}
			if v.Count("sessions", "moves to another connection") < 10 || v.Count("registers", "accesses") < 500 || v.Count("locks", "holds") < 20 ||
				v.Count("realtime", "linearizable reads") < 300 {
				t.Error("too little happened")
			}
		})
	}
}

// trouble disturbs one server after the other for a while.
func trouble(cl *zktest.Cluster, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	for range 6 {
		time.Sleep(time.Duration(rnd.IntN(2000)) * time.Millisecond)
		id := 1 + rnd.IntN(3)
		if rnd.IntN(2) == 0 {
			id = cl.Leader().ID()
		}
		pause := time.Duration(500+rnd.IntN(5000)) * time.Millisecond
		switch rnd.IntN(5) {
		case 0:
			cl.Partition([]int{id})
			time.Sleep(pause)
			cl.Heal()
		case 1:
			cl.Pause(id)
			time.Sleep(pause)
			cl.Resume(id)
		case 2:
			cl.Kill(id)
			time.Sleep(pause)
			cl.Restart(id)
		case 3:
			cl.ForceLeaderChange()
		case 4:
			cl.Server(id).DropConnections()
		}
		cl.WaitServing()
	}
}
