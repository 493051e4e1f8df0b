package server

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/raftfsm/logstore"
)

// ErrZooKeeperData reports a data directory that ZooKeeper filled and zkgo has
// not: starting on it would show an empty tree.
var ErrZooKeeperData = errors.New("the directory holds data of ZooKeeper and none of zkgo")

// check reports what cannot work in a configuration with its defaults set.
func (c *Config) check() error {
	switch {
	case c.ID > raftfsm.MaxServer:
		return fmt.Errorf("server id %d: want 0 to %d", c.ID, raftfsm.MaxServer)
	case !c.Memory && c.DataDir == "":
		return errors.New("no data directory: set DataDir, or Memory for a server that forgets")
	case c.MinSessionTimeout > c.MaxSessionTimeout:
		return fmt.Errorf("minSessionTimeout %v is above maxSessionTimeout %v", c.MinSessionTimeout, c.MaxSessionTimeout)
	case c.TickTime < time.Millisecond:
		return fmt.Errorf("tickTime %v: want at least 1ms", c.TickTime)
	case (c.SecureAddr != "" || c.PortUnification) && c.TLS == nil:
		return errors.New("SecureAddr and PortUnification need TLS")
	case c.checkProviders() != nil:
		return c.checkProviders()
	case c.QuorumSASL.check() != nil:
		return c.QuorumSASL.check()
	case newDigest(c.DigestAlg) == nil:
		return fmt.Errorf("DigestAlg %q is no algorithm that is known", c.DigestAlg)
	case c.distributed() && !c.listed():
		return fmt.Errorf("server id %d is not among the servers of the ensemble: add its server.%[1]d line, or correct the myid file in dataDir", c.ID)
	}
	return nil
}

func (c *Config) listed() bool {
	for _, m := range c.Members {
		if m.ID == c.ID {
			return true
		}
	}
	return false
}

// checkDataDir refuses a directory of ZooKeeper's that nobody has imported.
func checkDataDir(c *Config) error {
	if c.Memory {
		return nil
	}
	for _, dir := range []string{c.DataDir, c.LogDir} {
		if _, err := c.FS.ReadDir(dir); c.NoAutocreate && err != nil {
			return fmt.Errorf("%s is not to be made (datadir.autocreate=false), and cannot be used: %w; is its volume mounted?", dir, err)
		}
	}
	if ours, err := logstore.HasState(c.FS, c.LogDir, c.DataDir); ours || err != nil {
		return err
	}
	for _, dir := range []string{c.DataDir, c.LogDir} {
		old := filepath.Join(dir, "version-2")
		entries, err := c.FS.ReadDir(old)
		if err != nil || len(entries) == 0 {
			continue
		}
		logs := ""
		if c.LogDir != c.DataDir {
			logs = " --logs " + c.LogDir
		}
		return fmt.Errorf("%s: %w; to go on with it, stop ZooKeeper and run: zkgo import --from %s%s, with the same configuration; "+
			"in an ensemble on one server, the others begin without these files", old, ErrZooKeeperData, c.DataDir, logs)
	}
	return nil
}
