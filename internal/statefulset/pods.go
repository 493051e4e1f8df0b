package statefulset

import (
	"fmt"
	"strconv"
	"strings"
)

// Pod describes a server's own pod and the other pods.
type Pod struct {
	Set     string // its StatefulSet
	Ordinal int
	Voters  string // the StatefulSet of the voters; the pod's own, unless it is an observer
	Domain  string // of the headless service, which all pods share
	Ports   string // of a server, e.g. "2888:3888;2181"
	// VoterID and OwnID are the ids of the servers with ordinal 0: of the voters, and of this
	// pod's own StatefulSet.
	VoterID, OwnID int
}

// PodOf returns the pod with a host name. The ordinal is the number after the last dash.
func PodOf(hostname string) (set string, ordinal int, err error) {
	host, _, _ := strings.Cut(hostname, ".")
	i := strings.LastIndexByte(host, '-')
	if i > 0 {
		if n, err := strconv.ParseUint(host[i+1:], 10, 8); err == nil {
			return host[:i], int(n), nil
		}
	}
	return "", 0, fmt.Errorf("the host name %q does not belong to a pod of a StatefulSet: it does not end in a dash and a number below 256", hostname)
}

// Observer reports whether the server is an observer.
func (p Pod) Observer() bool { return p.Set != p.Voters }

// ID returns the server's id.
func (p Pod) ID() int { return p.OwnID + p.Ordinal }

// Line returns the server's own line for zoo.cfg and for reconfig.
func (p Pod) Line() string {
	if p.Observer() {
		peer, client, _ := strings.Cut(p.Ports, ";")
		return fmt.Sprintf("server.%d=%s:%s:observer;%s", p.ID(), p.host(p.Set, p.Ordinal), peer, client)
	}
	return p.voter(p.Ordinal)
}

func (p Pod) host(set string, ordinal int) string {
	return fmt.Sprintf("%s-%d.%s", set, ordinal, p.Domain)
}

// voter returns the line of the voter with an ordinal.
func (p Pod) voter(ordinal int) string {
	return fmt.Sprintf("server.%d=%s:%s", p.VoterID+ordinal, p.host(p.Voters, ordinal), p.Ports)
}

// Lines returns the list of servers for this server's zoo.cfg: all voters, and itself.
func (p Pod) Lines(voters Size) []string {
	var lines []string
	for i := voters.First; i < voters.end(); i++ {
		lines = append(lines, p.voter(i))
	}
	if p.Observer() || p.Ordinal < voters.First || p.Ordinal >= voters.end() {
		lines = append(lines, p.Line())
	}
	return lines
}

// others returns the client addresses of the other voters, those first that stay.
func (p Pod) others(voters Size, port string) (addrs []string) {
	for i := voters.First; i < voters.end(); i++ {
		if p.Observer() || i != p.Ordinal {
			addrs = append(addrs, p.host(p.Voters, i)+":"+port)
		}
	}
	return addrs
}
