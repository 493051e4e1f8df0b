package snapio

import (
	"io"
	"testing"
	"testing/synctest"
	"time"
)

// slowWriter delays each write.
type slowWriter time.Duration

func (d slowWriter) Write(b []byte) (int, error) {
	<-time.After(time.Duration(d))
	return len(b), nil
}

// TestPace: other work should get eight ninths of the time, or two thirds when the log
// has grown, unless the writer is in a hurry. The writer should not rest for long because
// the disk was slow.
func TestPace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		write time.Duration
		hurry bool
		idle  bool
		late  bool
		want  time.Duration
	}{
		{write: paceWork, want: 100 * 9 * paceWork},
		{write: paceWork, late: true, want: 100 * 3 * paceWork},
		{write: paceWork, idle: true, want: 100 * paceWork},
		{write: paceWork, hurry: true, want: 100 * paceWork},
		{write: paceWork / 2, want: 100 * paceWork / 2 * 9},
		{write: time.Second, want: 100 * (time.Second + paceMost)},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun, hurry := time.Now(), make(chan struct{})
			if c.hurry {
				close(hurry)
			}
			p := &Pace{w: slowWriter(c.write), Hurry: hurry, Busy: func() bool { return !c.idle }, Late: func() bool { return c.late }, begun: begun}
			for range 100 {
				if _, err := io.WriteString(p, "x"); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(begun); took != c.want {
				t.Errorf("100 writes of %v took %v, not %v", c.write, took, c.want)
			}
		})
	}
}
