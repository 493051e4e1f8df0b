package ensemble

// This file publishes whether this server follows a leader and serves clients.

// catchUp is the index that this server must apply before it may serve.
type catchUp struct {
	index uint64
	under target
}

// noMember is the reason why a removed server doesn't serve.
const noMember = "this server is no longer a member of the ensemble"

// reported records the index that was committed when the leader got a report of this
// server.
func (f *following) reported(index uint64, t target) {
	f.catchUp.Store(&catchUp{index, t})
	f.caughtUp()
}

// caughtUp publishes whether this server has caught up, if it still waits for that. It
// is called when the target or the applied index changes.
func (f *following) caughtUp() {
	c := f.catchUp.Load()
	if c == nil {
		return
	}
	done := f.freshness.caughtUpWith(c.index)
	if done && !f.catchUp.CompareAndSwap(c, nil) {
		return
	}
	if s := f.env.Status(); done == s.Serving && s.Leader == c.under.server && f.followed.Load() == c.under.incarnation {
		return
	}
	f.env.Do(func() { f.publishFollowing(c.under, done) })
}

// publishFollowing publishes that this server follows. Once it has caught up under a
// leadership, it keeps serving under it. Control goroutine.
func (f *following) publishFollowing(t target, caughtUp bool) {
	f.mu.Lock()
	current := f.target == t
	f.mu.Unlock()
	if !current || !f.env.Control.Idle() {
		return
	}
	old := f.env.Status()
	if old.Reason == noMember && f.removed() {
		return // the leader still sends to this server for a while
	}
	f.followed.Store(t.incarnation)
	s := f.env.Control.Looking("")
	// The network may have delayed the acknowledgement, so it may be too old.
	caughtUp = caughtUp && !f.removed() && f.freshness.tooOld() == ""
	s.Role, s.Leader, s.Serving = f.followerRole(), t.server, caughtUp
	if old.Serving && old.Role == s.Role && old.Leader == s.Leader && old.Epoch == s.Epoch {
		s.Serving = true
	}
	if !s.Serving {
		s.Reason = "catching up with the leader"
	}
	f.env.Control.Publish(s)
}

// publishLooking publishes that this server has no leader. Control goroutine.
func (f *following) publishLooking(reason string) {
	if !f.env.Control.Idle() {
		return
	}
	f.followed.Store(0)
	f.env.Control.Publish(f.env.Control.Looking(reason))
}

// leaveOff publishes that this server no longer follows a leader because it is cut off
// from all servers or was removed. No connection may end in either case. The server
// serves again when a leader acknowledges a report.
func (f *following) leaveOff() {
	if f.adrift() == "" {
		return
	}
	f.env.Do(func() {
		if reason := f.adrift(); reason != "" {
			f.publishLooking(reason)
		}
	})
}

// adrift returns the reason why a server that considers itself a follower isn't a
// follower, or "" if it is.
func (f *following) adrift() string {
	switch {
	case f.leadNow() != nil || !f.env.Status().Serving:
		return ""
	case f.removed():
		return noMember
	}
	return f.freshness.tooOld()
}

// refreshRole publishes this server's role if the membership has changed it.
func (f *following) refreshRole() {
	was := f.env.Status()
	if was.Role != Follower && was.Role != Observer || was.Role == f.followerRole() {
		return
	}
	f.env.Do(func() {
		f.mu.Lock()
		t := f.target
		f.mu.Unlock()
		if s := f.env.Status(); s.Role == was.Role && s.Leader == t.server {
			f.publishFollowing(t, s.Serving)
		}
	})
}

// followerRole returns this server's role while another server leads.
func (b *base) followerRole() Role {
	observer := b.self.Observer
	if m := b.OwnLine(); m != nil {
		observer = m.Observer
	}
	if observer {
		return Observer
	}
	return Follower
}
