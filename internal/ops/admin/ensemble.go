package admin

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/zoocfg"
)

// members parses the lines of the config node, which contains the current membership even
// after a reconfig.
func members(src Source) []zoocfg.Server {
	var list []zoocfg.Server
	for line := range strings.Lines(src.Configuration().Membership) {
		name, spec, ok := strings.Cut(strings.TrimSpace(line), "=")
		number, isServer := strings.CutPrefix(name, "server.")
		id, err := strconv.ParseUint(number, 10, 64)
		if !ok || !isServer || err != nil {
			continue // the version=… line
		}
		if m, err := zoocfg.ParseServerLine(id, spec); err == nil {
			list = append(list, m)
		}
	}
	return list
}

// member returns the member with the given id.
func member(src Source, id uint64) (zoocfg.Server, bool) {
	for _, m := range members(src) {
		if m.ID == id {
			return m, true
		}
	}
	return zoocfg.Server{}, false
}

func leader(src Source, _ *http.Request) (object, error) {
	if !src.Configuration().Ensemble {
		return nil, errors.New("server is not initialized")
	}
	s := src.Server()
	ip := ""
	if m, ok := member(src, uint64(s.LeaderID)); ok {
		ip = m.Addrs[0].Host
	}
	return object{{"is_leader", s.Leads && s.LeaderID == int64(s.ID)}, {"leader_id", s.LeaderID}, {"leader_ip", ip}}, nil
}

func observers(src Source) object {
	return object{{"synced_observers", src.Server().SyncedObservers}, {"observers", []object{}}}
}

func votingView(src Source) object {
	c := src.Configuration()
	view := object{}
	for _, m := range members(src) {
		if m.Role == zoocfg.Observer {
			continue
		}
		quorum, election, client := addresses(m)
		if client == "" && m.ID == c.ServerID {
			client = listening(c.ClientAddress)
		}
		view = view.with(strconv.FormatUint(m.ID, 10), object{
			{"server_addresses", quorum}, {"election_addresses", election},
			{"client_address", client}, {"learner_type", m.Role.String()},
		})
	}
	return object{{"current_config", view}}
}

// addresses formats a member's addresses as host:port.
func addresses(m zoocfg.Server) (quorum, election []string, client string) {
	for _, a := range m.Addrs {
		quorum = append(quorum, hostPort(a.Host, a.QuorumPort))
		election = append(election, hostPort(a.Host, a.ElectionPort))
	}
	if m.ClientHost != "" {
		client = hostPort(m.ClientHost, m.ClientPort)
	}
	return quorum, election, client
}

// listening formats the address of a listener as a configuration would.
func listening(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "0.0.0.0"
	}
	return net.JoinHostPort(host, port)
}

func hostPort(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// ZooKeeper's names for the phases of a server: it looks for a leader, or is part of the
// ensemble.
const (
	phaseElection  = "election"
	phaseBroadcast = "broadcast"
)

func zabState(src Source) object {
	c := src.Configuration()
	s := src.Server()
	if !c.Ensemble || !s.Serving {
		return object{{"voting", false}, {"zabstate", ""}}
	}
	phase := phaseElection
	if !s.ReadOnly {
		phase = phaseBroadcast
	}
	self, _ := member(src, s.ID)
	quorum, election, client := addresses(self)
	if client == "" {
		client = listening(c.ClientAddress)
	}
	return object{
		{"myid", s.ID}, {"is_leader", s.Leads},
		{"quorum_address", multipleAddresses(quorum)}, {"election_address", multipleAddresses(election)},
		{"client_address", client}, {"voting", !c.Observer},
		{"last_zxid", fmt.Sprintf("0x%x", uint64(s.Zxid))}, {"zab_epoch", s.Zxid >> 32}, {"zab_counter", s.Zxid & 0xffffffff},
		{"zabstate", phase},
	}
}

// multipleAddresses returns Jackson's encoding of ZooKeeper's class of that name. It
// doesn't check whether the addresses are reachable.
func multipleAddresses(addrs []string) object {
	var wildcards, hosts []string
	var ports []int64
	one := ""
	for i, a := range addrs {
		host, port, err := net.SplitHostPort(a)
		n, _ := strconv.ParseInt(port, 10, 64)
		if err != nil {
			continue
		}
		if i == 0 {
			one = a
		}
		wildcards, hosts, ports = append(wildcards, net.JoinHostPort("0.0.0.0", port)), append(hosts, host), append(ports, n)
	}
	return object{
		{"empty", len(addrs) == 0}, {"all_addresses", addrs}, {"wildcard_addresses", wildcards},
		{"all_ports", ports}, {"all_host_strings", hosts}, {"reachable_address", one},
		{"all_reachable_addresses", addrs}, {"all_reachable_addresses_or_all", addrs},
		{"reachable_or_one", one}, {"one", one},
	}
}
