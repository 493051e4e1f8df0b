package main

import (
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/version"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/server"
)

// announce logs the data directories, the ports and the HTTP endpoints that are open, and what
// to do next, so that the start of the log answers the first questions.
func announce(log *slog.Logger, s *server.Server, z *zoocfg.Config) {
	msg, args := "zkgo listens for clients", []any{"version", version.Own()}
	if addrs := s.ClientAddrs(); len(addrs) > 0 {
		args = append(args, "addresses", strings.Join(addrs, " "))
	} else {
		msg = "zkgo started without a port for clients"
	}
	args = append(args, "data", absolute(z.DataDir))
	if z.DataLogDir != z.DataDir {
		args = append(args, "log", absolute(z.DataLogDir))
	}
	if self, ok := z.Self(); ok && z.Distributed() {
		args = append(args, "servers", net.JoinHostPort(self.Addrs[0].Host, strconv.Itoa(self.Addrs[0].QuorumPort)))
	}
	if addr := s.AdminAddr(); addr != "" {
		args = append(args, "commands", s.AdminURL())
	}
	if urls := s.MetricsURLs(); len(urls) > 0 {
		args = append(args, "metrics", strings.Join(urls, " "))
	}
	log.Info(msg, args...)
	if next := nextStep(s.ClientAddr(), z); next != "" {
		log.Info("what to do next", "run", next)
	}
	there, err := os.Stat("zoo.cfg")
	switch used, not := os.Stat(z.Path); {
	case err == nil && (z.Path == "" || not != nil || !os.SameFile(there, used)):
		log.Warn("ignoring the zoo.cfg in the working directory", "file", absolute("zoo.cfg"), "hint", "to use it: zkgo server zoo.cfg")
	case z.Path == "":
		log.Info("no configuration file given", "hint", "running standalone with default settings; to change them: zkgo server zoo.cfg, see zkgo server --help")
	}
}

// nextStep returns a command that a user may run when the server listens at addr.
func nextStep(addr string, z *zoocfg.Config) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || z.ClientPort == zoocfg.Unset { // no port for plaintext
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	addr = net.JoinHostPort(host, port)
	if z.Distributed() {
		return "zkgo health --server " + addr + " --wait 1m"
	}
	return "zkgo cli -server " + addr
}
