package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/machine"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/raftfsm"
)

// ErrZooKeeperData reports a data directory that holds data of ZooKeeper and none of
// zkgo: a server started on it would show an empty tree.
var ErrZooKeeperData = errors.New("the directory holds data of ZooKeeper and none of zkgo")

// check reports everything that can't work in a configuration. The defaults must be
// set.
func (c *Config) check() error {
	errs := []error{schemes.CheckNames(c.providerNames(), c.Auth.KeyScheme), c.Quorum.SASL.check()}
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Quorum.ID > raftfsm.MaxServer, "server id %d: want 0 to %d", c.Quorum.ID, raftfsm.MaxServer)
	wrong(!c.Memory && c.DataDir == "", "no data directory: set DataDir, or Memory for a server that forgets")
	wrong(c.MinSessionTimeout > c.MaxSessionTimeout, "minSessionTimeout %v is above maxSessionTimeout %v", c.MinSessionTimeout, c.MaxSessionTimeout)
	wrong(c.TickTime < time.Millisecond, "tickTime %v: want at least 1ms", c.TickTime)
	wrong((c.SecureAddr != "" || c.PortUnification) && c.TLS == nil, "SecureAddr and PortUnification need TLS")
	wrong(schemes.NewDigest(c.Auth.DigestAlg) == nil, "DigestAlg %q is no algorithm that is known", c.Auth.DigestAlg)
	unlisted := c.Quorum.ID <= raftfsm.MaxServer && c.distributed() && !c.listed()
	wrong(unlisted, "server id %d is not among the servers of the ensemble: add its server.%[1]d line, or correct the myid file in dataDir", c.Quorum.ID)
	return errors.Join(errs...)
}

// providerNames returns the schemes of the providers.
func (c *Config) providerNames() (names []string) {
	for _, p := range c.Auth.Providers {
		names = append(names, p.Scheme())
	}
	return names
}

func (c *Config) listed() bool {
	for _, m := range c.Quorum.Members {
		if m.ID == c.Quorum.ID {
			return true
		}
	}
	return false
}

// checkDataDir refuses a ZooKeeper directory that has not been imported.
func checkDataDir(c *Config) error {
	if c.Memory {
		return nil
	}
	for _, dir := range []string{c.DataDir, c.Log.Dir} {
		if _, err := c.Env.FS.ReadDir(dir); c.NoAutocreate && err != nil {
			return fmt.Errorf("%s is not to be made (datadir.autocreate=false), and cannot be used: %w; is its volume mounted?", dir, err)
		}
	}
	if ours, err := raftlog.HasState(c.Env.FS, c.Log.Dir, c.DataDir); ours || err != nil {
		return err
	}
	for _, dir := range []string{c.DataDir, c.Log.Dir} {
		old := filepath.Join(dir, "version-2")
		entries, err := c.Env.FS.ReadDir(old)
		if err != nil || len(entries) == 0 {
			continue
		}
		logs := ""
		if c.Log.Dir != c.DataDir {
			logs = " --logs " + c.Log.Dir
		}
		return fmt.Errorf("%s: %w; to go on with it, stop ZooKeeper and run: zkgo import --from %s%s, with the same configuration; "+
			"in an ensemble on one server, the others begin without these files", old, ErrZooKeeperData, c.DataDir, logs)
	}
	return nil
}

// CheckDirectories reports why this process could not keep a server's data where the
// configuration says: a directory is a file, can't be written or created, or is missing
// although it must exist (datadir.autocreate=false); or the audit log can't be written.
// It creates nothing and doesn't read what the directories hold.
func CheckDirectories(c Config) error {
	c = c.withDefaults()
	if c.Memory {
		return nil
	}
	errs := []error{machine.CheckDirectory("dataDir", c.DataDir, c.NoAutocreate)}
	if c.Log.Dir != c.DataDir {
		errs = append(errs, machine.CheckDirectory("dataLogDir", c.Log.Dir, c.NoAutocreate))
	}
	if a := c.Audit; a != nil && a.Sink == nil && a.File.Path != "" {
		errs = append(errs, machine.CheckFile("audit.file", a.File.Path))
	}
	return errors.Join(errs...)
}
