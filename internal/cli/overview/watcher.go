package overview

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// Watcher asks servers. Its fields must not be changed once it was used, and its
// method is not safe for concurrent use.
type Watcher struct {
	// Addresses of the servers for clients, host:port.
	Addresses []string
	// Dial makes the connections for four-letter words; nil for the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Admin asks the AdminServers instead: their port, or the URL of one.
	Admin string
	// HTTP is for the AdminServers; nil for http.DefaultClient.
	HTTP *http.Client
	// Unknown is how many more members the ensemble has, whose addresses for clients
	// are not known.
	Unknown int
	// Now is the clock; nil for the real one.
	Now func() time.Time

	last map[string]look
}

// look is when a server was asked, and what it had received by then.
type look struct {
	at       time.Time
	received int64
}

// Sample is how the servers were at one time.
type Sample struct {
	Time    time.Time `json:"time"`
	Servers []Server  `json:"servers"`
	// Unknown is how many more members there are, as the Watcher was told.
	Unknown int `json:"unknownMembers,omitempty"`
}

// Look asks all servers at the same time, each for 3 seconds at most. A server
// that does not answer is in the sample with its Error.
func (w *Watcher) Look(ctx context.Context) Sample {
	now := w.Now
	if now == nil {
		now = time.Now
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
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
			switch err := ask(ctx, s); {
			case err == nil:
			case s.Mode == "":
				s.Error = err.Error()
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

// rate works out what came since the last look. A server that was started anew
// begins anew.
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

// Answers reports whether there is a server at an address that answers srvr, within
// a second.
func (w *Watcher) Answers(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := w.word(ctx, address, "srvr")
	return err == nil
}

// Leader says who leads: the address of the leader among the servers, and whether
// there is one. A leader that is not among them is known by its followers.
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

// Lag is how many transactions a server is behind the one that is furthest, nil if
// it is not known: the server does not answer or is in another epoch.
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
