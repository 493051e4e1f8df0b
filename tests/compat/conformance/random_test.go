package conformance_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/zkgo/zkgo/tests/compat/conformance"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
)

// recordedSeeds is the number of seeds with golden files, which need no real
// server.
const recordedSeeds = 6

// seeds returns the seeds to run: ZKGO_SEED=n selects that one, ZKGO_SEEDS=n the first n.
// Otherwise, it returns the seeds that have golden files.
func seeds(t *testing.T) []uint64 {
	t.Helper()
	number := func(name string) (uint64, bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n, true
	}
	if seed, ok := number("ZKGO_SEED"); ok {
		return []uint64{seed}
	}
	last, ok := number("ZKGO_SEEDS")
	if !ok {
		last = recordedSeeds
	}
	var all []uint64
	for seed := uint64(1); seed <= last; seed++ {
		all = append(all, seed)
	}
	return all
}

// TestRandom plays random scripts to zkgo and compares the transcripts with the
// real server's: with its golden files, or live with ZKGO_LIVE=1 and for seeds
// that have none.
func TestRandom(t *testing.T) {
	for _, seed := range seeds(t) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			s := must.Get(conformance.Random(seed))(t)
			var want string
			if seed > recordedSeeds || live() || *record {
				oracle.Need(t)
				want = onReal(t, s)
			}
			if seed <= recordedSeeds {
				want = heldOrRecorded(t, s.Name, want)
			}
			if d := conformance.Compare(want, onZkgo(t, s)); d != "" {
				t.Errorf("seed %d: %s", seed, d)
			}
		})
	}
}

// heldOrRecorded returns the golden transcript, after comparing it with the real
// server's current one ("" if there is none) or recording that.
func heldOrRecorded(t *testing.T, name, real string) string {
	t.Helper()
	if *record {
		must.Do(t, os.WriteFile(goldenFile(name), []byte(real), 0o644))
		return real
	}
	want := golden(t, name)
	if real != "" {
		if d := conformance.Compare(want, real); d != "" {
			t.Errorf("the real server does not repeat its golden: %s", d)
		}
	}
	return want
}
