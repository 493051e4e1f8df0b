package limits

import (
	"testing"
	"testing/synctest"
	"time"
)

// We should cut off the oldest answer only when its client has had enough time and another
// one waits.
func TestTheOldestLongAnswerIsCutOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLongAnswers()
		var cut []int
		answers := make([]*LongAnswer, MaxLongAnswers)
		for i := range answers {
			answers[i] = l.Begin(nil, func() {
				cut = append(cut, i)
				go answers[i].End()
			})
		}
		time.Sleep(10 * LongAnswerTime) // the server makes the lists
		for _, a := range answers[2:] {
			a.Sending()
		}
		began := time.Now()
		last := l.Begin(nil, func() {})
		if waited := time.Since(began); waited != LongAnswerTime || len(cut) != 1 || cut[0] != 2 {
			t.Errorf("after %v, cut off: %v", waited, cut)
		}
		last.End()
		time.Sleep(10 * LongAnswerTime)
		l.Begin(nil, func() {})
		if len(cut) != 1 {
			t.Errorf("cut off in spite of a free slot: %v", cut)
		}
	})
}

// We should not wait for a long answer if the client has left.
func TestALongAnswerForNoClient(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLongAnswers()
		for range MaxLongAnswers {
			l.Begin(nil, func() {})
		}
		gone := make(chan struct{})
		close(gone)
		if l.Begin(gone, func() {}) != nil {
			t.Error("its turn has come")
		}
	})
}
