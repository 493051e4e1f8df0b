package chaos

import (
	"fmt"
	"syscall"
	"time"
)

// longPause is longer than a client's session timeout.
const longPause = 10 * time.Second

func processFaults() []fault {
	return []fault{
		{"kill-leader", 3, killLeader},
		{"kill-one", 3, killOne},
		{"kill-all", 3, killAll},
		{"kill-majority", 3, killMajority},
		{"pause-one", 3, pauseOne},
		{"pause-leader", 3, pauseLeader},
		{"nap-leader", 3, napLeader},
		{"pause-all", 3, pauseAll},
		{"transfer", 3, transfer},
		{"rolling-restart", 3, rollingRestart},
	}
}

// killLeader kills the leader. Another server must lead before the dead one
// returns.
func killLeader(s *scene) error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("kill -9 of server %d, the leader", leader.ID)
	leader.Kill()
	if err := s.replaced(epoch); err != nil {
		return err
	}
	s.hold(0, 2*time.Second)
	return s.revive(leader)
}

// revive starts members and waits until all serve.
func (s *scene) revive(ms ...*Member) error {
	for _, m := range ms {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return s.AwaitHealthy()
}

func killOne(s *scene) error {
	m := s.any()
	s.logf("kill -9 of server %d", m.ID)
	m.Kill()
	s.hold(0, 3*time.Second)
	return s.revive(m)
}

func killAll(s *scene) error {
	_, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("kill -9 of all")
	for _, i := range s.rnd.Perm(len(s.Members)) {
		s.Members[i].Kill()
	}
	s.hold(0, time.Second)
	if err := s.revive(s.Members...); err != nil {
		return err
	}
	return s.replaced(epoch)
}

// killMajority leaves too few servers for a quorum, until a leader has stepped down, and then
// brings the dead servers back in any order.
func killMajority(s *scene) error {
	_, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	var dead []*Member
	for _, i := range s.rnd.Perm(len(s.Members))[:len(s.Members)/2+1] {
		dead = append(dead, s.Members[i])
	}
	s.logf("kill -9 of %s", names(dead))
	for _, m := range dead {
		m.Kill()
	}
	s.hold(4*time.Second, 6*time.Second)
	if err := s.revive(dead...); err != nil {
		return err
	}
	return s.replaced(epoch)
}

// pause stops processes for a while, like SIGSTOP.
func (s *scene) pause(from, to time.Duration, ms ...*Member) error {
	return s.during(ms, func() error {
		s.hold(from, to)
		return nil
	})
}

// during stops processes while f runs.
func (s *scene) during(ms []*Member, f func() error) error {
	defer s.resume(ms...)
	for _, m := range ms {
		if err := m.running().Freeze(); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	for _, m := range ms {
		if !m.running().Frozen() {
			return fmt.Errorf("server %d runs although it was stopped", m.ID)
		}
	}
	return nil
}

func (s *scene) resume(ms ...*Member) {
	for _, m := range ms {
		_ = m.running().Signal(syscall.SIGCONT) // also to a process that is gone
	}
}

func pauseOne(s *scene) error {
	m := s.any()
	s.logf("server %d is stopped for a moment", m.ID)
	if err := s.pause(200*time.Millisecond, 3*time.Second, m); err != nil {
		return err
	}
	return s.AwaitHealthy()
}

// pauseLeader stops the leader for longer than sessions last: another leader has
// ended the sessions that this one knew, and it wakes up believing that it leads.
func pauseLeader(s *scene) error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("server %d, the leader, is stopped for %v", leader.ID, longPause)
	if err := s.pause(longPause, longPause, leader); err != nil {
		return err
	}
	if err := s.AwaitHealthy(); err != nil {
		return err
	}
	return s.replaced(epoch)
}

// napLeader stops the leader until the others have had another leader for a
// moment. Its clients have not given it up, and when it continues it finds their
// requests and believes that it leads.
func napLeader(s *scene) error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("server %d, the leader, is stopped until another leads", leader.ID)
	if err := s.during([]*Member{leader}, func() error {
		if err := s.replaced(epoch); err != nil {
			return err
		}
		s.hold(100*time.Millisecond, 600*time.Millisecond)
		return nil
	}); err != nil {
		return err
	}
	return s.AwaitHealthy()
}

// pauseAll stops all servers for longer than sessions last.
func pauseAll(s *scene) error {
	s.logf("all servers are stopped for %v", longPause)
	if err := s.pause(longPause, longPause, s.Members...); err != nil {
		return err
	}
	return s.AwaitHealthy()
}

// transfer asks the leader to stop, which hands over the leadership first.
func transfer(s *scene) error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("server %d, the leader, is asked to stop", leader.ID)
	if err := leader.Stop(); err != nil {
		return err
	}
	if err := s.replaced(epoch); err != nil {
		return err
	}
	return s.revive(leader)
}

func rollingRestart(s *scene) error {
	for _, i := range s.rnd.Perm(len(s.Members)) {
		m := s.Members[i]
		s.logf("restart of server %d", m.ID)
		if err := m.Stop(); err != nil {
			return err
		}
		if err := s.revive(m); err != nil {
			return err
		}
	}
	return nil
}
