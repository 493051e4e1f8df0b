package session

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const tick = 500 * time.Millisecond

func at(d time.Duration) time.Time {
	return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).Add(d)
}

func TestExpiryLiesWithinOneTick(t *testing.T) {
	t.Parallel()
	for ms := range 40 {
		tr := NewTracker(tick)
		tr.Add(99, time.Hour, at(0)) // fixes the buckets
		timeout := time.Duration(ms*100+1) * time.Millisecond
		now := at(time.Duration(ms) * 37 * time.Millisecond)
		tr.Add(1, timeout, now)
		if ids := tr.Expired(now.Add(timeout)); ids != nil {
			t.Fatalf("timeout %v: expired at the timeout", timeout)
		}
		if ids := tr.Expired(now.Add(timeout + tick)); !slices.Equal(ids, []int64{1}) {
			t.Fatalf("timeout %v: one tick later: %v", timeout, ids)
		}
		if ids := tr.Expired(now.Add(timeout + 9*tick)); ids != nil || tr.Len() != 1 {
			t.Fatalf("timeout %v: expired twice", timeout)
		}
	}
}

func TestTouch(t *testing.T) {
	t.Parallel()
	tr := NewTracker(tick)
	tr.Touch(1, at(0)) // unknown: ignored
	tr.Add(1, 2*time.Second, at(0))
	tr.Touch(1, at(5*time.Second))
	tr.Touch(1, at(time.Second)) // a late report
	if ids := tr.Expired(at(7 * time.Second)); ids != nil {
		t.Fatal("an old report shortened the session's life")
	}
	if ids := tr.Expired(at(8 * time.Second)); !slices.Equal(ids, []int64{1}) {
		t.Fatal(ids)
	}
}

func TestAddAgain(t *testing.T) {
	t.Parallel()
	tr := NewTracker(tick)
	tr.Add(1, 10*time.Second, at(0))
	tr.Add(1, time.Second, at(0)) // attached again with a shorter timeout
	if ids := tr.Expired(at(2 * time.Second)); !slices.Equal(ids, []int64{1}) {
		t.Fatal(ids)
	}
	tr.Add(1, time.Second, at(2*time.Second)) // the expiry failed
	tr.Remove(1)
	tr.Remove(1)
	if ids := tr.Expired(at(time.Hour)); ids != nil || tr.Len() != 0 {
		t.Fatal("a removed session expired")
	}
}

func TestCredit(t *testing.T) {
	t.Parallel()
	tr := NewTracker(tick)
	tr.Credit(time.Hour) // nothing is tracked: nothing to move
	tr.Add(1, time.Second, at(0))
	tr.Credit(time.Minute)
	if ids := tr.Expired(at(time.Minute + time.Second)); ids != nil {
		t.Fatal("the credit was not given")
	}
	tr.Touch(1, at(time.Second)) // earlier than the credited deadline
	for when, ids := range tr.Deadlines() {
		if !when.Equal(at(time.Minute+3*tick)) || !slices.Equal(ids, []int64{1}) {
			t.Fatalf("%v expires at %v", ids, when)
		}
	}
	if ids := tr.Expired(at(time.Minute + 2*time.Second)); !slices.Equal(ids, []int64{1}) {
		t.Fatal(ids)
	}
}

// TestModel compares the tracker with a map of deadlines.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		tr := NewTracker(tick)
		type row struct {
			timeout time.Duration
			heard   time.Time
		}
		live := map[int64]row{}
		now := at(0)
		for range 300 {
			now = now.Add(time.Duration(rnd.IntN(400)) * time.Millisecond)
			id := int64(rnd.IntN(8))
			switch rnd.IntN(6) {
			case 0:
				live[id] = row{time.Duration(rnd.IntN(3000)) * time.Millisecond, now}
				tr.Add(id, live[id].timeout, now)
			case 1:
				tr.Remove(id)
				delete(live, id)
			case 2, 3:
				tr.Touch(id, now)
				if r, ok := live[id]; ok {
					live[id] = row{r.timeout, now}
				}
			}
			for _, id := range tr.Expired(now) {
				r, ok := live[id]
				if d := now.Sub(r.heard); !ok || d <= r.timeout {
					t.Fatalf("seed %d: %d expired %v after a sign of life, timeout %v", seed, id, d, r.timeout)
				}
				delete(live, id)
			}
			for id, r := range live {
				if now.Sub(r.heard) > r.timeout+tick {
					t.Fatalf("seed %d: %d is overdue", seed, id)
				}
			}
			if tr.Len() != len(live) {
				t.Fatalf("seed %d: %d tracked, want %d", seed, tr.Len(), len(live))
			}
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	tr := NewTracker(tick)
	tr.Add(1, time.Second, at(0))
	tr.Reset()
	if tr.Len() != 0 || len(tr.Deadlines()) != 0 || tr.Expired(at(time.Hour)) != nil {
		t.Fatal("Reset left something behind")
	}
}
