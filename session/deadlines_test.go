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

// track gives a session the timeout, counted from now.
func (d *Deadlines) track(id int64, timeout time.Duration, now time.Time) {
	d.Attached(Deadline{Session: id, Gen: 1, Timeout: timeout}, Clocks{Now: now})
}

// overdue returns the ids of the overdue sessions.
func (d *Deadlines) overdue(now time.Time) (ids []int64) {
	for _, s := range d.takeOverdue(now) {
		ids = append(ids, s.Session)
	}
	return ids
}

func TestExpiryLiesWithinOneTick(t *testing.T) {
	t.Parallel()
	for ms := range 40 {
		d := NewDeadlines(tick)
		d.track(99, time.Hour, at(0)) // fixes the buckets
		timeout := time.Duration(ms*100+1) * time.Millisecond
		now := at(time.Duration(ms) * 37 * time.Millisecond)
		d.track(1, timeout, now)
		if ids := d.overdue(now.Add(timeout)); ids != nil {
			t.Fatalf("timeout %v: expired at the timeout", timeout)
		}
		if ids := d.overdue(now.Add(timeout + tick)); !slices.Equal(ids, []int64{1}) {
			t.Fatalf("timeout %v: one tick later: %v", timeout, ids)
		}
		if ids := d.overdue(now.Add(timeout + 9*tick)); ids != nil || len(d.sessions) != 1 {
			t.Fatalf("timeout %v: expired twice", timeout)
		}
	}
}

func TestTouch(t *testing.T) {
	t.Parallel()
	d := NewDeadlines(tick)
	d.Heard(1, at(0)) // unknown: ignored
	d.track(1, 2*time.Second, at(0))
	d.Heard(1, at(5*time.Second))
	d.Heard(1, at(time.Second)) // a late report
	if ids := d.overdue(at(7 * time.Second)); ids != nil {
		t.Fatal("an old report shortened the session's life")
	}
	if ids := d.overdue(at(8 * time.Second)); !slices.Equal(ids, []int64{1}) {
		t.Fatal(ids)
	}
}

func TestAddAgain(t *testing.T) {
	t.Parallel()
	d := NewDeadlines(tick)
	d.track(1, 10*time.Second, at(0))
	d.track(1, time.Second, at(0)) // attached again with a shorter timeout
	if ids := d.overdue(at(2 * time.Second)); !slices.Equal(ids, []int64{1}) {
		t.Fatal(ids)
	}
	d.track(1, time.Second, at(2*time.Second)) // the expiry failed
	d.Ended(1)
	d.Ended(1)
	if ids := d.overdue(at(time.Hour)); ids != nil || len(d.sessions) != 0 {
		t.Fatal("a removed session expired")
	}
}

func TestCredit(t *testing.T) {
	t.Parallel()
	d := NewDeadlines(tick)
	d.credit(time.Hour) // nothing is tracked: nothing to move
	d.track(1, time.Second, at(0))
	d.credit(time.Minute)
	if ids := d.overdue(at(time.Minute + time.Second)); ids != nil {
		t.Fatal("the credit was not given")
	}
	d.Heard(1, at(time.Second)) // earlier than the credited deadline
	for when, ids := range d.ByTime() {
		if !when.Equal(at(time.Minute+3*tick)) || !slices.Equal(ids, []int64{1}) {
			t.Fatalf("%v expires at %v", ids, when)
		}
	}
	if ids := d.overdue(at(time.Minute + 2*time.Second)); !slices.Equal(ids, []int64{1}) {
		t.Fatal(ids)
	}
}

// TestModel compares Deadlines with a map of deadlines.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		d := NewDeadlines(tick)
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
				d.track(id, live[id].timeout, now)
			case 1:
				d.Ended(id)
				delete(live, id)
			case 2, 3:
				d.Heard(id, now)
				if r, ok := live[id]; ok {
					live[id] = row{r.timeout, now}
				}
			}
			for _, id := range d.overdue(now) {
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
			if len(d.sessions) != len(live) {
				t.Fatalf("seed %d: %d tracked, want %d", seed, len(d.sessions), len(live))
			}
		}
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	d := NewDeadlines(tick)
	d.track(1, time.Second, at(0))
	d.Reset()
	if len(d.sessions) != 0 || len(d.ByTime()) != 0 || d.overdue(at(time.Hour)) != nil {
		t.Fatal("Reset left something behind")
	}
}

// clocks returns a reading of two clocks that both show the time d.
func clocks(d time.Duration) Clocks { return Clocks{Now: at(d), Running: at(d)} }

func yes() bool { return true }

// TestPauseIsCredited: a pause of the process should expire no session.
func TestPauseIsCredited(t *testing.T) {
	t.Parallel()
	d := NewDeadlines(time.Second)
	now := time.Duration(0)
	d.Attached(Deadline{1, 1, 4 * time.Second}, clocks(now))
	for range 4 {
		now += d.Interval()
		if ids := d.Expired(clocks(now), yes); ids != nil {
			t.Fatal("expired after a second")
		}
	}
	now += time.Hour
	if ids := d.Expired(clocks(now), yes); ids != nil {
		t.Fatal("a pause of an hour expired the session")
	}
	var alive time.Duration
	for d.Expired(clocks(now), yes) == nil {
		now += d.Interval()
		if alive += d.Interval(); alive > 10*time.Second {
			t.Fatal("the session never expires")
		}
	}
	if alive < 2*time.Second {
		t.Fatalf("expired %v after the pause", alive)
	}
}

// TestDeadlineGeneration: the server should expire the generation that the deadlines know, not a
// newer one that the session table may have.
func TestDeadlineGeneration(t *testing.T) {
	t.Parallel()
	d := NewDeadlines(time.Second)
	reading := func(now time.Duration) Clocks { return Clocks{Now: at(now), Running: at(0)} }
	d.Attached(Deadline{1, 1, 4 * time.Second}, reading(0))
	d.Attached(Deadline{1, 2, 6 * time.Second}, reading(0))
	d.Attached(Deadline{2, 1, 6 * time.Second}, reading(0))
	d.Ended(2)
	if rows := d.Expired(reading(5*time.Second), yes); rows != nil {
		t.Fatalf("%+v expired early", rows)
	}
	if rows := d.Expired(reading(8*time.Second), yes); len(rows) != 1 || rows[0] != (Deadline{1, 2, 6 * time.Second}) {
		t.Fatalf("expired: %+v", rows)
	}
	if rows := d.Expired(reading(8*time.Second), yes); rows != nil || !d.Empty() || len(d.sessions) != 0 {
		t.Fatalf("something is left: %+v", rows)
	}
}

// TestWhenTheLeaderExpires: the two clocks and the leadership decide what Expired returns
// for a session of 4 s that was last heard from at 0 s. Expired was called once before, at 0.25 s.
func TestWhenTheLeaderExpires(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		now, running time.Duration
		unsure       bool
		want         bool          // it expires; otherwise
		later        time.Duration // it expires then
	}{
		"in time":                 {now: 4999 * time.Millisecond, running: 500 * time.Millisecond, later: 5 * time.Second},
		"too late":                {now: 5 * time.Second, running: 500 * time.Millisecond, want: true},
		"another server may lead": {now: 5 * time.Second, running: 500 * time.Millisecond, unsure: true, later: 10 * time.Second},
		"the process was stopped": {now: 60500 * time.Millisecond, running: 60500 * time.Millisecond, later: 65 * time.Second},
		"the clock was set":       {now: time.Hour, running: 500 * time.Millisecond, want: true},
		"the clock was set back":  {now: -time.Hour, running: time.Hour, later: 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := NewDeadlines(time.Second)
			d.Attached(Deadline{1, 1, 4 * time.Second}, clocks(0))
			d.Expired(clocks(250*time.Millisecond), yes)
			asked := false
			got := d.Expired(Clocks{at(tc.now), at(tc.running)}, func() bool { asked = true; return !tc.unsure })
			if (len(got) == 1) != tc.want || asked != (tc.want || tc.unsure) {
				t.Fatalf("%v expired, asked %v", got, asked)
			}
			if tc.want {
				return
			}
			if early := d.overdue(at(tc.later - 1)); early != nil {
				t.Error("it expires early")
			}
			if d.overdue(at(tc.later)) == nil {
				t.Error("it expires late")
			}
		})
	}
}
