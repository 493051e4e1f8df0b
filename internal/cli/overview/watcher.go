package overview

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/words"
)

// Watcher queries servers. Its fields must not change after the first use, and its
// methods aren't safe for concurrent use.
type Watcher struct {
	// Addresses are the servers' client addresses, host:port.
	Addresses []string
	// Dial connects for four-letter words.
	Dial words.Dial
	// Admin selects the AdminServers instead: their port, or the URL of one.
	Admin string
	// HTTP is the client for AdminServers; nil means http.DefaultClient.
	HTTP *http.Client
	// Explain, if set, returns the text for a server that can't be used because of err. It
	// runs concurrently with itself.
	Explain func(ctx context.Context, address string, err error) string
	// Unknown is the number of additional members with unknown client addresses.
	Unknown int
	// Now returns the time; nil means the real clock.
	Now func() time.Time

	last map[string]look
}

// look is the time of the last query of a server, and the packets received until
// then.
type look struct {
	at       time.Time
	received int64
}

// Sample is the state of the servers at one time.
type Sample struct {
	Time    time.Time `json:"time"`
	Servers []Server  `json:"servers"`
	// Unknown is the Watcher's number of additional members.
	Unknown int `json:"unknownMembers,omitempty"`
}

// Look queries all servers concurrently, for at most 3 seconds each, not counting Explain.
// If a server doesn't answer, the sample contains it with its Error.
func (w *Watcher) Look(ctx context.Context) Sample {
	now := w.Now
	if now == nil {
		now = time.Now
	}
	limited, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	sample := Sample{Time: now(), Unknown: w.Unknown, Servers: make([]Server, len(w.Addresses))}
	looks := make([]look, len(w.Addresses))
	var wg sync.WaitGroup
	for i, address := range w.Addresses {
		wg.Go(func() {
			s := &sample.Servers[i]
			s.Address = address
			looks[i].at = now()
			ask := w.byWords
			if w.Admin != "" {
				ask = w.byAdmin
			}
			switch err := ask(limited, s); {
			case err == nil:
			case s.Mode == "":
				s.Error = w.explain(ctx, address, err)
			default:
				s.Note = err.Error()
			}
		})
	}
	wg.Wait()
	if w.last == nil {
		w.last = map[string]look{}
	}
	for i := range sample.Servers {
		w.rate(&sample.Servers[i], looks[i])
	}
	return sample
}

// explain returns the text for a server that can't be used.
func (w *Watcher) explain(ctx context.Context, address string, err error) string {
	if w.Explain == nil {
		return err.Error()
	}
	return w.Explain(ctx, address, err)
}

// rate computes the packets per second since the last sample. After a restart of the
// server the counter starts over.
func (w *Watcher) rate(s *Server, l look) {
	if s.Received == nil {
		delete(w.last, s.Address)
		return
	}
	l.received = *s.Received
	before, ok := w.last[s.Address]
	w.last[s.Address] = l
	if seconds := l.at.Sub(before.at).Seconds(); ok && seconds > 0 && l.received >= before.received {
		perSecond := float64(l.received-before.received) / seconds
		s.Requests = &perSecond
	}
}

// Answers reports whether a server at the address answers srvr within a second.
func (w *Watcher) Answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := words.Ask(ctx, w.Dial, address, "srvr")
	return err == nil || errors.Is(err, words.ErrNotServing)
}

// Leader returns the address of the leader, and whether there is one. The address is
// "" for a leader that isn't among the servers but has followers among them.
func (s *Sample) Leader() (address string, exists bool) {
	for i := range s.Servers {
		switch server := &s.Servers[i]; server.Mode {
		case "leader":
			return server.Address, true
		case "follower", "observer":
			exists = true
		}
	}
	return "", exists
}

// Lag returns how many transactions a server is behind the most advanced server, or
// nil if that's unknown because the server doesn't answer or is in another epoch.
func (s *Sample) Lag(server int) *int64 {
	z := s.Servers[server].Zxid
	if z == nil {
		return nil
	}
	newest := *z
	for i := range s.Servers {
		if other := s.Servers[i].Zxid; other != nil && *other > newest {
			newest = *other
		}
	}
	if newest>>32 != *z>>32 {
		return nil
	}
	lag := int64(newest - *z)
	return &lag
}
