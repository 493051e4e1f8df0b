package load

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// local is a lock within this process.
type local struct {
	place chan struct{} // has a capacity of one
}

func (l local) Lock(string) Lock { return l }
func (local) Close() error       { return nil }

func (l local) Acquire(context.Context) error {
	time.Sleep(time.Millisecond)
	l.place <- struct{}{}
	return nil
}

func (l local) Release(context.Context) error {
	time.Sleep(2 * time.Millisecond)
	<-l.place
	return nil
}

func TestRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := local{make(chan struct{}, 1)}
		dial := func(context.Context, []string) (Client, error) { return l, nil }
		r := must.Get(Run(t.Context(), dial, Job{Shape: Shared, Clients: 2, Warm: 30 * time.Millisecond, For: 300 * time.Millisecond}))(t)
		// A release lasts 2 ms, and the next client is already waiting.
		if r.Acquisitions < 149 || r.Acquisitions > 151 || r.HandOffs != r.Acquisitions || r.Overlaps != 0 {
			t.Errorf("%+v", r)
		}
		if r.HandOff50 != 2000 || r.HandOff99 != 2000 {
			t.Errorf("handed off in %v and %v µs instead of 2000", r.HandOff50, r.HandOff99)
		}
	})
}

func holding(client, asked, held, released int) Holding {
	return Holding{client, time.UnixMilli(int64(asked)), time.UnixMilli(int64(held)), time.UnixMilli(int64(released))}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	all := []Holding{
		holding(0, 0, 5, 9), holding(0, 9, 20, 30), holding(0, 30, 32, 40), holding(0, 81, 82, 99),
		holding(1, 0, 12, 15), holding(1, 16, 39, 50),
	}
	r := Judge(all, Shared, time.UnixMilli(10), time.UnixMilli(90))
	// 12: handed off in 3 ms; 20: in 5 ms; 32: the same client again in 2 ms, though another
	// waits; 39: although held until 40; 82: no client waited.
	if r.Acquisitions != 5 || r.HandOffs != 4 || r.Overlaps != 1 || r.HandOff50 != 3000 || r.HandOff99 != 5000 || r.WaitMax != 23000 {
		t.Errorf("%+v", r)
	}
	if r := Judge(all, Own, time.UnixMilli(10), time.UnixMilli(90)); r.Acquisitions != 5 || r.HandOffs != 0 || r.Overlaps != 0 {
		t.Errorf("own locks: %+v", r)
	}
}
