package main

import (
	"log/slog"
	"os"
	"strings"

	"github.com/zkgo/zkgo/internal/version"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/server"
)

// announce logs the data directories and the addresses that the server listens on, so
// that the start of the log shows what is open and where the data is.
func announce(log *slog.Logger, s *server.Server, z *zoocfg.Config) {
	msg, args := "zkgo listens for clients", []any{"version", version.Own()}
	if addrs := s.ClientAddrs(); len(addrs) > 0 {
		args = append(args, "addresses", strings.Join(addrs, " "))
	} else {
		msg = "zkgo has started, without a port for clients"
	}
	args = append(args, "data", absolute(z.DataDir))
	if z.DataLogDir != z.DataDir {
		args = append(args, "log", absolute(z.DataLogDir))
	}
	if addr := s.AdminAddr(); addr != "" {
		args = append(args, "commands", s.AdminURL())
	}
	if addr := s.MetricsAddr(); addr != "" {
		args = append(args, "metrics", "http://"+addr+"/metrics")
	}
	log.Info(msg, args...)
	if z.Path != "" {
		return
	}
	hint := "this server stands alone, with the default settings; for others: zkgo server zoo.cfg, or zkgo server --help"
	if _, err := os.Stat("zoo.cfg"); err == nil {
		hint = "the zoo.cfg in the working directory is not used: zkgo server zoo.cfg uses it"
	}
	log.Info("no configuration file was named", "hint", hint)
}
