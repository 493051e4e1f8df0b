package sim

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum/transport"
)

// lateness is how long after a snapshot its copy arrives.
const lateness = 6 * time.Second

// lateSnapshot delivers a snapshot a second time to a server that has
// acknowledged newer entries since. At that time this server and others that lack
// those entries are the only reachable majority: if it fell back to the snapshot,
// acknowledged writes would be lost.
func (n *nemesis) lateSnapshot() bool {
	lead := n.c.leader()
	if lead == nil || len(n.moved) > 0 || !n.c.await(3*time.Second, n.c.whole) || lead != n.c.leader() {
		return false
	}
	var voters []*host
	for _, i := range n.rnd.Perm(n.c.layout.Voters) {
		if h := n.c.hosts[i]; h != lead {
			voters = append(voters, h)
		}
	}
	late, keepers := voters[0], []string{lead.name}
	var behind []string
	for _, h := range voters[1:] {
		if len(keepers) < n.c.layout.Voters/2 { // a majority with the late server
			keepers = append(keepers, h.name)
		} else {
			behind = append(behind, h.name)
		}
	}
	if !n.snapshotTo(lead, late) {
		return false
	}
	copyAt := time.Now().Add(lateness)
	n.sleep(time.Second, 2*time.Second)
	n.say("%v do not see what %s and %v acknowledge", behind, late.name, keepers)
	n.c.net.Partition(behind, append([]string{late.name}, keepers...))
	const margin = 300 * time.Millisecond
	time.Sleep(time.Until(copyAt.Add(-margin)))
	n.say("%s is cut off when the snapshot comes again", late.name)
	n.c.net.Partition(keepers, []string{late.name})
	time.Sleep(2 * margin)
	n.c.net.Rejoin(behind, []string{late.name})
	n.sleep(4*time.Second, 6*time.Second)
	return true
}

// snapshotTo lets a server fall so far behind that the leader sends it a
// snapshot. A copy of that snapshot follows later.
func (n *nemesis) snapshotTo(lead, to *host) bool {
	node := lead.node()
	if node == nil {
		return false
	}
	n.say("%s is cut off until it needs a snapshot", to.name)
	n.c.net.Partition([]string{to.name}, n.others(to))
	n.sleep(6*time.Second, 9*time.Second)
	wrote := make(chan error, 1)
	go func() { wrote <- node.Snapshot() }()
	if !n.c.await(3*time.Second, func() bool { return len(wrote) > 0 }) {
		return false
	}
	came := make(chan struct{}, 1)
	n.c.setReplays(func(at string, message any) []transport.Replay {
		if _, ok := message.(*raft.InstallSnapshotRequest); !ok || at != to.name {
			return nil
		}
		n.c.note("InstallSnapshot twice")
		select {
		case came <- struct{}{}:
			return []transport.Replay{{After: lateness}}
		default:
			return nil
		}
	})
	defer n.c.setReplays(nil)
	n.c.net.Rejoin([]string{to.name}, n.others(to))
	if !n.c.await(5*time.Second, func() bool { return len(came) > 0 }) {
		n.say("%s gets no snapshot", to.name)
		return false
	}
	return true
}
