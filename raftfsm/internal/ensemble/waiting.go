package ensemble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

// The log messages of a server that waits for the ensemble.
const (
	// WaitsBefore is the duration of a start or an election after which the server
	// reports it.
	WaitsBefore = 3 * time.Second
	// waitsEvery is the shortest time between two reports.
	waitsEvery = 10 * time.Second
	// waitsAtMost is the longest time between two reports with the same text.
	waitsAtMost = 10 * time.Minute
	// waitsLook is the interval at which a waiting server asks the others for their
	// state.
	waitsLook = time.Second
)

// waiting decides when a server that doesn't serve logs the reason: immediately if there
// is news, and less and less often if not.
type waiting struct {
	since time.Time     // zero while the server serves
	last  time.Time     // of the last report
	said  string        // in the last report
	pause time.Duration // until the same text may be logged again
}

// due reports whether to log text at now.
func (w *waiting) due(now time.Time, text string) bool {
	switch {
	case w.last.IsZero():
		w.pause = waitsEvery
	case now.Sub(w.last) < waitsEvery:
		return false
	case text != w.said:
		w.pause = waitsEvery
	case now.Sub(w.last) < w.pause:
		return false
	}
	w.last, w.said, w.pause = now, text, min(2*w.pause, waitsAtMost)
	return true
}

// waitingLoop logs the reason while this server serves no clients: for each other server
// of the ensemble, why it can't be reached, or its state.
func (e *Ensemble) waitingLoop() {
	var w waiting
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(e.rhythm.Next(waitsLook))
		select {
		case <-timer.C:
		case <-e.ctx.Done():
			return
		}
		now, st := time.Now(), e.env.Status()
		switch {
		case st.Serving:
			w = waiting{}
			continue
		case w.since.IsZero():
			w.since = now
		}
		if now.Sub(w.since) < WaitsBefore || !w.last.IsZero() && now.Sub(w.last) < waitsEvery {
			continue
		}
		others, answer := e.askOthers()
		args := []any{"reason", st.Reason, "voters", answer}
		for _, o := range others {
			args = append(args, slog.String(fmt.Sprintf("server.%d", o.id), o.text))
		}
		if e.ctx.Err() == nil && e.env.Status().Reason == st.Reason && w.due(now, fmt.Sprint(args...)) {
			e.log.Warn("waiting for the ensemble, not serving clients", append([]any{"for", now.Sub(w.since).Round(time.Second)}, args...)...)
		}
	}
}

// otherServer is the state of another server in the ensemble, as far as this server knows
// it.
type otherServer struct {
	id      uint64
	voter   bool
	answers bool
	text    string
}

// askOthers asks all other servers for their state. voters is the number of voters that
// answer, including this one.
func (e *Ensemble) askOthers() (others []otherServer, voters string) {
	addrs := make(map[uint64]string)
	all, up := 0, 0
	for _, m := range e.knownMembers() {
		if !m.Observer {
			all++
		}
		if m.ID == e.self.ID {
			if !m.Observer {
				up++
			}
			continue
		}
		addrs[m.ID] = m.QuorumAddr
		others = append(others, otherServer{id: m.ID, voter: !m.Observer})
	}
	var wg sync.WaitGroup
	for i := range others {
		wg.Go(func() { others[i].ask(e.base, addrs[others[i].id]) })
	}
	wg.Wait()
	for _, o := range others {
		if o.voter && o.answers {
			up++
		}
	}
	return others, fmt.Sprintf("%d of %d answer, %d are needed", up, all, all/2+1)
}

// ask asks o for its state.
func (o *otherServer) ask(b *base, addr string) {
	ctx, cancel := context.WithTimeout(b.ctx, ProbeTimeout)
	defer cancel()
	p, _, err := b.formation.Probe(ctx, addr, "")
	switch {
	case err != nil:
		o.text = dialFailure(addr, err)
	case p.ID != o.id:
		o.text = fmt.Sprintf("%s: server %d answers there", addr, p.ID)
	default:
		o.answers = true
		o.text = p.Says()
	}
}

// dialFailure describes in one line why dialling addr failed.
func dialFailure(addr string, err error) string {
	var refused *quorum.RefusedError
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &refused):
		return addr + ": " + refused.Error()
	case errors.As(err, &dns):
		return fmt.Sprintf("%s: the name %s does not resolve: %s", addr, dns.Name, dns.Err)
	case errors.Is(err, context.DeadlineExceeded):
		return addr + ": no answer"
	case errors.As(err, &op) && op.Err != nil:
		return addr + ": " + strings.TrimPrefix(op.Err.Error(), "connect: ")
	}
	return addr + ": " + err.Error()
}
