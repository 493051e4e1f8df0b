package snapio

import (
	"io"
	"time"
)

// Writing a snapshot of a large tree is about a second of work that no request waits for.
// If we did it in one go, it would block a processor for requests, because the scheduler
// lets a goroutine run for 10 ms before it preempts it. After every quarter of a
// millisecond of work, we therefore rest eight times as long as we have worked, while there
// are writes. We rest only twice as long once the log has grown by several snapshots' worth
// of entries, because a restart would have to apply them.
const (
	paceWork     = 250 * time.Microsecond
	paceRest     = 8
	paceRestLate = 2
	// paceMost bounds a rest: apparent work may be waiting when the machine is busy or
	// the disk is slow.
	paceMost = 32 * time.Millisecond
)

// Pace is a writer that yields to other work.
type Pace struct {
	w     io.Writer
	Hurry <-chan struct{} // closed: no more rests
	Busy  func() bool     // whether there was work since the last call
	Late  func() bool     // whether the next snapshot is long overdue
	begun time.Time       // start of the work since the last rest
}

// To directs the output to w, and returns the writer to use. The work starts now.
func (p *Pace) To(w io.Writer) io.Writer {
	p.w, p.begun = w, time.Now()
	return p
}

// Write implements io.Writer.
func (p *Pace) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if worked := time.Since(p.begun); worked >= paceWork {
		if p.Busy() {
			p.rest(worked)
		}
		p.begun = time.Now()
	}
	return n, err
}

func (p *Pace) rest(worked time.Duration) {
	times := time.Duration(paceRest)
	if p.Late() {
		times = paceRestLate
	}
	select {
	case <-time.After(min(times*worked, paceMost)):
	case <-p.Hurry:
	}
}
