package raftfsm

import (
	"io"
	"time"
)

// Writing a snapshot of a large tree is about a second of work that no request waits
// for. Done in one go, it takes a processor away from requests, because the scheduler
// lets a goroutine run for 10 ms before it looks for others. So after every quarter of
// a millisecond of work, the writer rests eight times as long as it has worked, while
// there are writes. It rests only twice as long once the log has grown by several
// snapshots' worth of entries, because a restart would have to apply them.
const (
	paceWork     = 250 * time.Microsecond
	paceRest     = 8
	paceRestLate = 2
	// paceMost bounds a rest: apparent work may be waiting when the machine is busy or
	// the disk is slow.
	paceMost = 32 * time.Millisecond
)

// pace is a writer that yields to other work.
type pace struct {
	w     io.Writer
	hurry <-chan struct{} // closed: no more rests
	busy  func() bool     // whether there was work since the last call
	late  func() bool     // whether the next snapshot is long overdue
	begun time.Time       // when the work since the last rest began
}

// Write implements io.Writer.
func (p *pace) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if worked := time.Since(p.begun); worked >= paceWork {
		if p.busy() {
			p.rest(worked)
		}
		p.begun = time.Now()
	}
	return n, err
}

func (p *pace) rest(worked time.Duration) {
	times := time.Duration(paceRest)
	if p.late() {
		times = paceRestLate
	}
	select {
	case <-time.After(min(times*worked, paceMost)):
	case <-p.hurry:
	}
}
