package chaos

import (
	"fmt"
	"slices"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
)

// grayFaults are the faults of a network that misbehaves without going down. They
// need the network's packet filter.
func grayFaults() []fault {
	return []fault{
		{"forget-connections", 3, forgetConnections},
		{"forget-server", 3, forgetServer},
		{"forget-all", 3, forgetAll},
		{"forget-clients", 3, forgetClients},
		{"large-lost-leader", 3, largeLostLeader},
		{"large-lost", 3, largeLost},
		{"thin-link", 3, thinLink},
	}
}

// filter returns the packet filter of the network.
func (s *scene) filter() (*netns.Net, error) {
	f, ok := s.net.(*spaces)
	if !ok {
		return nil, fmt.Errorf("this fault takes a packet filter: -net=%s", Namespaces)
	}
	return f.Net, nil
}

// forget makes the network forget the connections that f picks.
func (s *scene) forget(f func(netns.Conn) bool) error {
	filter, err := s.filter()
	if err != nil {
		return err
	}
	picked := slices.DeleteFunc(filter.Conns(), func(c netns.Conn) bool { return c.From == c.To || !f(c) })
	n := filter.Forget(picked...)
	if n == 0 {
		return fmt.Errorf("there was no connection to forget")
	}
	s.logf("%d connections are forgotten", n)
	return nil
}

// betweenServers reports whether a connection is between two servers.
func (s *scene) betweenServers(c netns.Conn) bool {
	return s.isServer(c.From) && s.isServer(c.To)
}

func (s *scene) isServer(name string) bool {
	return slices.ContainsFunc(s.Members, func(m *Member) bool { return serverName(m.ID) == name })
}

// forgetConnections makes the network forget one or two connections between
// servers, three times. New connections work, so each time the ensemble has to
// become healthy again.
func forgetConnections(s *scene) error {
	filter, err := s.filter()
	if err != nil {
		return err
	}
	for range 3 {
		open := slices.DeleteFunc(filter.Conns(), func(c netns.Conn) bool { return !s.betweenServers(c) })
		if len(open) < 2 {
			return fmt.Errorf("there are %d connections between servers", len(open))
		}
		i := s.rnd.Perm(len(open))[:1+s.rnd.IntN(2)]
		for _, j := range i {
			s.logf("the connection from %s to %s port %d is forgotten", open[j].From, open[j].To, open[j].Dst.Port())
			filter.Forget(open[j])
		}
		s.hold(time.Second, 4*time.Second)
		if err := s.AwaitHealthy(); err != nil {
			return err
		}
	}
	return nil
}

// forgetServer makes the network forget all connections between a server and the
// others.
func forgetServer(s *scene) error {
	name := serverName(s.any().ID)
	s.logf("the network forgets what it knew of %s", name)
	if err := s.forget(func(c netns.Conn) bool { return s.betweenServers(c) && (c.From == name || c.To == name) }); err != nil {
		return err
	}
	s.hold(2*time.Second, 8*time.Second)
	return s.healed()
}

// forgetAll makes the network forget all connections between servers.
func forgetAll(s *scene) error {
	if err := s.forget(s.betweenServers); err != nil {
		return err
	}
	s.hold(2*time.Second, 8*time.Second)
	return s.healed()
}

// forgetClients makes the network forget the connections of all clients to a
// server.
func forgetClients(s *scene) error {
	name := serverName(s.any().ID)
	s.logf("the network forgets the clients of %s", name)
	if err := s.forget(func(c netns.Conn) bool { return c.To == name && !s.isServer(c.From) }); err != nil {
		return err
	}
	s.hold(2*time.Second, 8*time.Second)
	return s.healed()
}

// size returns the size from which packets are lost.
func (s *scene) size() int { return []int{200, 1400}[s.rnd.IntN(2)] }

// largeLostLeader loses large packets from the leader to all others. If no entry
// gets through, another server must become leader.
func largeLostLeader(s *scene) error {
	filter, err := s.filter()
	if err != nil {
		return err
	}
	leader, epoch, err := s.Leader()
	if err != nil {
		return err
	}
	size := s.size()
	s.logf("packets of %d bytes and more from server %d, the leader, are lost", size, leader.ID)
	for _, m := range s.Others(leader) {
		filter.Link(serverName(leader.ID), serverName(m.ID)).DropLarge(size)
	}
	if size == 200 {
		if err := s.replaced(epoch); err != nil {
			return err
		}
	}
	s.hold(4*time.Second, passesOn)
	return s.healed()
}

// largeLost loses large packets in one direction of a random link.
func largeLost(s *scene) error {
	filter, err := s.filter()
	if err != nil {
		return err
	}
	i := s.rnd.Perm(len(s.Members))
	a, b, size := s.Members[i[0]], s.Members[i[1]], s.size()
	s.logf("packets of %d bytes and more from server %d to server %d are lost", size, a.ID, b.ID)
	filter.Link(serverName(a.ID), serverName(b.ID)).DropLarge(size)
	s.hold(4*time.Second, passesOn)
	return s.healed()
}

// thinLink limits a link, both ways, to less bandwidth than the writes need.
func thinLink(s *scene) error {
	filter, err := s.filter()
	if err != nil {
		return err
	}
	i := s.rnd.Perm(len(s.Members))
	a, b := s.Members[i[0]], s.Members[i[1]]
	rate := int64(64+s.rnd.IntN(448)) * 1000
	queue := time.Duration(100+s.rnd.IntN(900)) * time.Millisecond
	s.logf("the link between servers %d and %d carries %d kbit/s, with a queue of %v", a.ID, b.ID, rate/1000, queue)
	filter.Between(serverName(a.ID), serverName(b.ID), func(l *netns.Link) { l.Rate(rate, queue) })
	s.hold(4*time.Second, passesOn)
	return s.healed()
}
