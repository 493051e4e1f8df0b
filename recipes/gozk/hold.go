package gozk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// beats is the number of syncs per session timeout. A Hold ends one such interval
// before the timeout.
const beats = 3

// Hold waits for a sync and counts from the last sync that was answered.
func (s *session) Hold(ctx context.Context, policy recipes.LossPolicy) (recipes.Hold, error) {
	if err := s.ready(ctx); err != nil {
		return nil, request{op: "hold"}.unsent(err)
	}
	timeout, ok := s.a.d.granted(s.id)
	if !ok {
		return nil, fmt.Errorf("hold: the timeout of session 0x%x is unknown: pass this Dialer to zk.WithDialer", s.id)
	}
	h := &hold{s: s, policy: policy, timeout: timeout, breaks: s.a.d.broken(), done: make(chan struct{})}
	if policy != recipes.LostOnExpiry {
		for !time.Now().Before(h.end()) {
			if _, err := s.confirm(ctx); err != nil {
				return nil, err
			}
		}
		s.keepConfirmed(timeout / beats)
	}
	go h.follow()
	return h, nil
}

// confirm asks the leader, with a sync, to confirm that the session lives. It returns
// when the sync was sent.
func (s *session) confirm(ctx context.Context) (time.Time, error) {
	sent, err := call(ctx, s, request{op: "sync", path: "/"}, func() (time.Time, error) {
		sent := time.Now()
		_, err := s.a.zk.Sync("/")
		return sent, err
	})
	if err != nil {
		return time.Time{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if sent.After(s.confirmed) {
		s.confirmed = sent
	}
	return sent, nil
}

// keepConfirmed calls confirm regularly while there are holds.
func (s *session) keepConfirmed(every time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holds++
	if s.holds > 1 {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.quiet = cancel
	since := s.confirmed
	go func() {
		for recipe.Sleep(ctx, time.Until(since.Add(every))) == nil {
			sent, err := s.confirm(ctx)
			if err != nil && s.over() != nil {
				return
			}
			since = time.Now()
			if err == nil {
				since = sent
			}
		}
	}()
}

func (s *session) noHold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.holds--; s.holds == 0 {
		s.quiet()
	}
}

// hold is a Hold on a session.
type hold struct {
	s       *session
	policy  recipes.LossPolicy
	timeout time.Duration
	breaks  int // connections that had ended when the hold began

	mu   sync.Mutex
	done chan struct{}
	err  error
}

// end returns when the hold ends without another confirmation.
func (h *hold) end() time.Time {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return h.s.confirmed.Add(h.timeout - h.timeout/beats)
}

// follow closes done when the hold ends.
func (h *hold) follow() {
	for {
		change := h.s.a.d.change()
		if h.Err() != nil {
			return
		}
		var clock <-chan time.Time
		var t *time.Timer
		if h.policy != recipes.LostOnExpiry {
			t = time.NewTimer(time.Until(h.end()))
			clock = t.C
		}
		select {
		case <-change:
		case <-clock:
		case <-h.s.a.closed:
		case <-h.done:
		}
		if t != nil {
			t.Stop()
		}
	}
}

func (h *hold) Done() <-chan struct{} { return h.done }

func (h *hold) Err() error {
	if err := h.lost(); err != nil {
		h.finish(err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// lost returns why the hold must end, or nil.
func (h *hold) lost() error {
	if err := h.s.over(); err != nil {
		return err
	}
	switch {
	case h.policy == recipes.LostOnExpiry:
		return nil
	case h.policy == recipes.LostOnDisconnect && h.s.a.d.broken() != h.breaks:
		return errors.Join(client.ErrSessionExpired, client.ErrConnectionLoss)
	case !time.Now().Before(h.end()):
		return client.ErrSessionExpired
	}
	return nil
}

// finish ends the hold. Only the first reason is kept.
func (h *hold) finish(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return
	}
	h.err = err
	close(h.done)
	if h.policy != recipes.LostOnExpiry {
		h.s.noHold()
	}
}

func (h *hold) Deadline() time.Time {
	if h.policy == recipes.LostOnExpiry {
		return time.Time{}
	}
	return h.end()
}

func (h *hold) Release() { h.finish(context.Canceled) }
