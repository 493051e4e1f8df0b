package raftfsm

import (
	"io"
	"time"
)

// A snapshot of a large tree is a second of work that nobody waits for. Done in
// one go it takes a processor from requests that somebody does wait for: the
// scheduler lets a goroutine run for ten milliseconds before it looks for others.
// So the writer rests eight times as long as it has worked, after every quarter of a
// millisecond, as long as there are writes; and only twice as long once the log has
// grown by that of several snapshots meanwhile, which a restart would have to apply.
const (
	paceWork     = 250 * time.Microsecond
	paceRest     = 8
	paceRestLate = 2
	// paceMost bounds a rest: what looks like work was waiting, when the machine
	// is busy or the disk slow.
	paceMost = 32 * time.Millisecond
)

// pace is a writer that leaves others their turn.
type pace struct {
	w     io.Writer
	hurry <-chan struct{} // closed: no more rests
	busy  func() bool     // whether somebody has worked since it was last asked
	late  func() bool     // whether the next snapshot is long due
	begun time.Time       // of the work since the last rest
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
