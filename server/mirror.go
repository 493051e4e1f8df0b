package server

import (
	"context"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/raftfsm"
)

// Mirror makes the state follow another ensemble until the servers take over from it.
type Mirror interface {
	// Serves reports whether clients are served before that. They read here; all else that
	// they want goes to the ensemble, while the leader is connected to it.
	Serves() bool
	// Lead is called on a goroutine of its own whenever the server begins to lead. It should
	// return soon after ctx ends, with the leadership or with the server.
	Lead(ctx context.Context, to raftfsm.Mirroring)
}

// rests reports whether the state leaves no room for clients: it follows another ensemble, or
// is about to, or has been given back.
func (s *Server) rests() bool {
	state, mark, _ := s.node.Mirroring().State()
	mirror := s.cfg.Env.Mirror
	switch state.Phase {
	case mirrored.None:
		return mirror != nil
	case mirrored.Following:
		return mirror == nil || !mirror.Serves() || !mark.InSync || state.Broken != ""
	}
	return state.Phase == mirrored.Fenced
}

// mirrored reports whether clients are served while the state follows another ensemble.
func (s *Server) mirrored() bool { return s.modes.mirrored.Load() }

// watchMirror keeps the server's mode up to date with the phase of a mirror, and runs the
// configured Mirror while this server leads.
func (s *Server) watchMirror() {
	stop := func() {}
	defer func() { stop() }()
	led := uint32(0) // the leadership in which Mirror runs; 0: none
	for {
		changed := s.node.Mirroring().Changed()
		rests := s.rests()
		s.modes.update(func(m *modes) { m.resting = rests })
		state, _, _ := s.node.Mirroring().State()
		s.modes.mirrored.Store(state.Phase == mirrored.Following)
		term, told := s.modes.leads()
		if mirror := s.cfg.Env.Mirror; mirror != nil && led != term {
			stop()
			led = term
			if stop = func() {}; led != 0 {
				stop = s.lead(mirror)
			}
		}
		select {
		case <-s.done:
			return
		case <-changed:
		case <-told:
		}
	}
}

// lead runs mirror until the result is called.
func (s *Server) lead(mirror Mirror) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		mirror.Lead(ctx, s.node.Mirroring())
	}()
	return func() {
		cancel()
		<-ended
	}
}
