package chaos

import (
	"fmt"
	"time"
)

// passesOn is long enough for the other servers to end the sessions of a server
// that was cut off, and for the locks of those sessions to pass to other clients.
const passesOn = 12 * time.Second

func networkFaults() []fault {
	return []fault{
		{"isolate-leader", 3, isolateLeader},
		{"minority", 3, minority},
		{"mute-leader", 3, muteLeader},
		{"deaf-leader", 3, deafLeader},
		{"one-way", 3, oneWay},
		{"bridge", 3, bridge},
		{"ring", 4, ring},
		{"no-quorum", 3, noQuorum},
		{"slow-links", 3, slowLinks},
		{"lossy-links", 3, lossyLinks},
		{"reset-links", 3, resetLinks},
		{"clients-cut", 3, clientsCut},
		{"clients-one-way", 3, clientsOneWay},
		{"clients-bad", 3, clientsBad},
	}
}

// cut separates two groups of servers, both ways.
func (s *scene) cut(a, b []*Member) {
	for _, x := range a {
		for _, y := range b {
			s.between(serverName(x.ID), serverName(y.ID), link.Cut)
		}
	}
}

// isolateLeader cuts the leader off from the others. In half of the cases its
// clients still reach it: they keep talking to it as long as it lets them.
func isolateLeader(s *scene) error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("server %d, the leader, is cut off", leader.ID)
	s.cut([]*Member{leader}, s.Others(leader))
	if s.rnd.IntN(2) == 0 {
		s.logf("and so are its clients")
		s.cutClients([]*Member{leader})
	}
	if err := s.replaced(epoch); err != nil {
		return err
	}
	s.hold(0, passesOn)
	return s.healed()
}

func (s *scene) cutClients(ms []*Member) {
	for _, m := range ms {
		for _, client := range s.net.clients() {
			s.between(client, serverName(m.ID), link.Cut)
		}
	}
}

// minority cuts a random minority off.
func minority(s *scene) error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	few := 1 + s.rnd.IntN(len(s.Members)-len(s.Members)/2-1)
	var a, b []*Member
	led := false
	for n, i := range s.rnd.Perm(len(s.Members)) {
		if m := s.Members[i]; n < few {
			a = append(a, m)
			led = led || m == leader
		} else {
			b = append(b, m)
		}
	}
	s.logf("%s and %s do not hear each other", names(a), names(b))
	s.cut(a, b)
	if led {
		if err := s.replaced(epoch); err != nil {
			return err
		}
	}
	s.hold(time.Second, passesOn)
	return s.healed()
}

// muteLeader cuts the leader's messages to the others, but not theirs to it.
func muteLeader(s *scene) error {
	return s.leaderOneWay("nobody hears server %d, the leader", func(leader, other string) link {
		return s.net.link(leader, other)
	})
}

// deafLeader cuts the others' messages to the leader, but not its messages to them. As long
// as it sends heartbeats, no other server starts an election, so it must notice by itself
// that it has no followers.
func deafLeader(s *scene) error {
	return s.leaderOneWay("server %d, the leader, hears nobody", func(leader, other string) link {
		return s.net.link(other, leader)
	})
}

func (s *scene) leaderOneWay(what string, way func(leader, other string) link) error {
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf(what, leader.ID)
	for _, m := range s.Others(leader) {
		way(serverName(leader.ID), serverName(m.ID)).Cut()
	}
	if err := s.replaced(epoch); err != nil {
		return err
	}
	s.hold(0, 6*time.Second)
	return s.healed()
}

// oneWay cuts one direction between two servers.
func oneWay(s *scene) error {
	i := s.rnd.Perm(len(s.Members))
	a, b := s.Members[i[0]], s.Members[i[1]]
	s.logf("server %d does not hear server %d", b.ID, a.ID)
	s.net.link(serverName(a.ID), serverName(b.ID)).Cut()
	s.hold(3*time.Second, 8*time.Second)
	return s.healed()
}

// bridge leaves one server that reaches all others, between two halves that do
// not reach each other.
func bridge(s *scene) error {
	i := s.rnd.Perm(len(s.Members))
	half := (len(i) - 1) / 2
	var a, b []*Member
	for n, j := range i[1:] {
		if n < half {
			a = append(a, s.Members[j])
		} else {
			b = append(b, s.Members[j])
		}
	}
	s.logf("%s and %s hear only server %d and themselves", names(a), names(b), s.Members[i[0]].ID)
	s.cut(a, b)
	s.hold(4*time.Second, 9*time.Second)
	return s.healed()
}

// ring leaves every server with two neighbors.
func ring(s *scene) error {
	order := s.rnd.Perm(len(s.Members))
	n := len(order)
	s.logf("the servers hear only their neighbors in the ring %v (from 0)", order)
	for i := range n {
		for j := i + 1; j < n; j++ {
			if j-i != 1 && j-i != n-1 {
				s.cut([]*Member{s.Members[order[i]]}, []*Member{s.Members[order[j]]})
			}
		}
	}
	s.hold(4*time.Second, 9*time.Second)
	return s.healed()
}

// noQuorum cuts every link between servers: no server may lead any more.
func noQuorum(s *scene) error {
	_, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	s.logf("no server hears any other")
	s.cut(s.Members, s.Members)
	if err := s.Await("nobody leads", patience, func(states []Status) bool {
		for _, st := range states {
			if st.Mode == "leader" {
				return false
			}
		}
		return true
	}); err != nil {
		return err
	}
	s.hold(0, 6*time.Second)
	if err := s.healed(); err != nil {
		return err
	}
	return s.replaced(epoch)
}

func (s *scene) everyLink(f func(a, b *Member)) {
	for i, a := range s.Members {
		for _, b := range s.Members[i+1:] {
			f(a, b)
		}
	}
}

func slowLinks(s *scene) error {
	delay := time.Duration(5+s.rnd.IntN(100)) * time.Millisecond
	s.logf("%v of delay between all servers", delay)
	s.everyLink(func(a, b *Member) {
		s.between(serverName(a.ID), serverName(b.ID), func(l link) { l.Slow(delay, delay/2) })
	})
	s.hold(4*time.Second, 8*time.Second)
	return s.healed()
}

func lossyLinks(s *scene) error {
	p := 0.01 + 0.09*s.rnd.Float64()
	s.logf("%.0f %% of the packets between all servers are lost", 100*p)
	s.everyLink(func(a, b *Member) {
		s.between(serverName(a.ID), serverName(b.ID), func(l link) { l.Lose(p) })
	})
	s.hold(4*time.Second, 8*time.Second)
	return s.healed()
}

// resetLinks breaks connections between servers, again and again.
func resetLinks(s *scene) error {
	s.logf("connections between servers break")
	broken := 0
	for range 20 {
		i := s.rnd.Perm(len(s.Members))
		broken += s.net.reset(serverName(s.Members[i[0]].ID), serverName(s.Members[i[1]].ID))
		s.hold(50*time.Millisecond, 400*time.Millisecond)
	}
	if broken == 0 {
		return fmt.Errorf("there was no connection to break")
	}
	s.logf("%d connections broken", broken)
	return s.healed()
}

// clientsCut cuts every client off from one server.
func clientsCut(s *scene) error {
	m := s.any()
	s.logf("no client reaches server %d", m.ID)
	s.cutClients([]*Member{m})
	s.hold(3*time.Second, 8*time.Second)
	return s.healed()
}

// clientsOneWay cuts one direction between each client and a random server:
// either the client's messages to the server or the server's to the client.
func clientsOneWay(s *scene) error {
	s.logf("clients and servers hear each other one way only")
	for _, client := range s.net.clients() {
		m := s.any()
		if s.rnd.IntN(2) == 0 {
			s.net.link(client, serverName(m.ID)).Cut()
		} else {
			s.net.link(serverName(m.ID), client).Cut()
		}
	}
	s.hold(3*time.Second, 8*time.Second)
	return s.healed()
}

// clientsBad makes the network of the clients slow and lossy, and its connections
// break.
func clientsBad(s *scene) error {
	s.logf("a bad network between clients and servers")
	for _, client := range s.net.clients() {
		for _, m := range s.Members {
			s.between(client, serverName(m.ID), func(l link) {
				l.Slow(5*time.Millisecond, 20*time.Millisecond)
				l.Lose(0.02)
			})
		}
	}
	broken := 0
	for range 20 {
		for _, client := range s.net.clients() {
			broken += s.net.reset(client, serverName(s.any().ID))
		}
		s.hold(100*time.Millisecond, 400*time.Millisecond)
	}
	if broken == 0 {
		return fmt.Errorf("there was no connection to break")
	}
	s.logf("%d connections broken", broken)
	return s.healed()
}
