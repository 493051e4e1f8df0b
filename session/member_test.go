package session

import (
	"slices"
	"testing"
	"time"
)

const bound = 10 * time.Second

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// reports returns the sessions that m must report, in order.
func (m *Member) reports(heard ...int64) []int64 {
	ids := m.Report(heard)
	slices.Sort(ids)
	return ids
}

// TestReportsRepeat: a server should report a session until a leader has acknowledged a report
// that names it, through changes of leaders and of this server's role.
func TestReportsRepeat(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		do   func(m *Member)
		want []int64
	}{
		"no acknowledgement":                     {func(*Member) {}, []int64{1, 2, 9}},
		"an acknowledgement, others in flight":   {func(m *Member) { m.Acknowledged(at(0), 1, false) }, []int64{1, 2, 9}},
		"an acknowledgement of the newest":       {func(m *Member) { m.Acknowledged(at(0), 1, true) }, []int64{9}},
		"it led, and lost contact":               {func(m *Member) { m.Led([]int64{3}, time.Time{}, at(5*time.Second)) }, []int64{1, 2, 3, 9}},
		"it led, and the quorum followed before": {func(m *Member) { m.Led([]int64{3}, at(0), at(0)); m.Led([]int64{4}, at(0), at(1)) }, []int64{3, 4, 9}},
		"it led, and the quorum followed after": {func(m *Member) {
			m.Led([]int64{3}, time.Time{}, at(5*time.Second))
			m.Led([]int64{4}, at(6*time.Second), at(7*time.Second))
		}, []int64{4, 9}},
		"opened": {func(m *Member) { m.Opened(at(0)) }, []int64{1, 2, 9}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMember(Bounds{Sync: bound})
			m.reports(1)
			m.reports(2)
			tc.do(m)
			if got := m.reports(9); !slices.Equal(got, tc.want) {
				t.Errorf("reports %v, want %v", got, tc.want)
			}
		})
	}
}

// TestHeldSessions: a session counts as alive until every call of Hold was undone.
func TestHeldSessions(t *testing.T) {
	t.Parallel()
	m := NewMember(Bounds{Sync: bound})
	m.Hold(1)
	m.Hold(1)
	m.Release(1)
	if got := m.Held([]int64{7}); !slices.Equal(got, []int64{7, 1}) {
		t.Errorf("held %v", got)
	}
	m.Release(1)
	if got := m.Held(nil); got != nil {
		t.Errorf("held %v", got)
	}
}

// TestContactAndFreshness: the facts that a member has learned decide its contact, its
// freshness, whether its state is too old and whether it has caught up. It is now 100 s.
func TestContactAndFreshness(t *testing.T) {
	t.Parallel()
	acked := func(sent float64, index uint64) func(*Member) {
		return func(m *Member) { m.Acknowledged(at(seconds(sent)), index, true) }
	}
	followed := func(when float64, index uint64) func(*Member) {
		return func(m *Member) { m.Followed(at(seconds(when)), index) }
	}
	opened := func(when float64) func(*Member) { return func(m *Member) { m.Opened(at(seconds(when))) } }
	const (
		lags     = "it has not applied what was committed 10s ago"
		noLeader = "no word from the leader for 10s"
	)
	for name, tc := range map[string]struct {
		learned        []func(*Member)
		applied        uint64
		contact, fresh float64 // seconds; 0: never
		stale          string
		caughtUp       bool // with index 50
	}{
		"nothing":                   {applied: 5, stale: noLeader},
		"acknowledged and applied":  {[]func(*Member){acked(99, 7)}, 7, 99, 99, "", true},
		"acknowledged, not applied": {[]func(*Member){acked(99, 7)}, 6, 99, 0, lags, false},
		"an earlier one is applied": {[]func(*Member){acked(95, 6), acked(99, 7)}, 6, 99, 95, "", false},
		"at the bound":              {[]func(*Member){acked(90, 7)}, 7, 90, 90, noLeader, false},
		"just within the bound":     {[]func(*Member){acked(90.001, 7)}, 7, 90.001, 90.001, "", false},
		"contact, and an old state": {[]func(*Member){acked(80, 6), acked(99, 70)}, 6, 99, 80, lags, false},
		"it has applied the index":  {[]func(*Member){acked(80, 6)}, 50, 80, 80, noLeader, true},
		"a quarter of the bound":    {[]func(*Member){acked(97.5, 7)}, 7, 97.5, 97.5, "", false},
		"less than a quarter":       {[]func(*Member){acked(97.6, 7)}, 7, 97.6, 97.6, "", true},
		"a late acknowledgement":    {[]func(*Member){acked(99, 7), acked(95, 9)}, 7, 99, 99, "", true},
		"a lower index counts less": {[]func(*Member){acked(95, 9), acked(99, 7)}, 8, 99, 0, lags, false},
		"same index, newer time":    {[]func(*Member){acked(95, 7), acked(99, 7)}, 7, 99, 99, "", true},
		"a quorum followed":         {[]func(*Member){followed(99, 7)}, 7, 99, 99, "", true},
		"a leader that lags":        {[]func(*Member){opened(92), followed(99, 70)}, 7, 99, 92, "", false},
		"opened after marks":        {[]func(*Member){acked(90, 70), opened(99)}, 7, 90, 99, "", true},
		"opening drops the marks":   {[]func(*Member){acked(99, 7), opened(95)}, 7, 99, 95, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := NewMember(Bounds{Sync: bound})
			for _, learn := range tc.learned {
				learn(m)
			}
			now := at(seconds(100))
			since := func(s float64) time.Time {
				if s == 0 {
					return time.Time{}
				}
				return at(seconds(s))
			}
			if got := m.Contact(); !got.Equal(since(tc.contact)) {
				t.Errorf("contact %v", got)
			}
			if got := m.Fresh(tc.applied, now); !got.Equal(since(tc.fresh)) {
				t.Errorf("fresh %v", got)
			}
			if got := m.Stale(tc.applied, now); got != tc.stale {
				t.Errorf("stale: %q, want %q", got, tc.stale)
			}
			if got := m.CaughtUp(50, tc.applied, now); got != tc.caughtUp {
				t.Errorf("caught up: %v", got)
			}
		})
	}
}

// TestMarksAreBounded: a member that applies nothing should keep a bounded number of marks,
// and should never overstate its freshness.
func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	m := NewMember(Bounds{Sync: bound})
	var sent []time.Duration // by index
	for i := range 10_000 {
		now := time.Duration(i) * 10 * time.Millisecond
		sent = append(sent, now)
		m.Acknowledged(at(now), uint64(i), true)
		m.Fresh(0, at(now))
		if n := len(m.freshness.pending); n > 2*markSteps {
			t.Fatalf("%d marks", n)
		}
	}
	now := at(sent[len(sent)-1])
	for applied := 9_500; applied < len(sent); applied++ {
		fresh := m.Fresh(uint64(applied), now)
		if fresh.After(at(sent[applied])) || at(sent[applied]).Sub(fresh) > bound/markSteps+10*time.Millisecond {
			t.Fatalf("having applied what was committed at %v, it is as fresh as %v", sent[applied], fresh.Sub(at(0)))
		}
	}
}
