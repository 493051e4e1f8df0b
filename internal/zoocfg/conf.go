package zoocfg

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// A Field is one key=value line of the conf command's output.
type Field struct{ Name, Value string }

// ConfFields returns the lines of ZooKeeper's conf command in ZooKeeper's order. It
// omits the membership, because conf shows the current one instead of the file's. The
// sizes are the sizes of the two directories in bytes.
func (c *Config) ConfFields(dataDirSize, logDirSize int64) []Field {
	num := func(name string, n int64) Field { return Field{name, strconv.FormatInt(n, 10)} }
	fields := []Field{
		num("clientPort", int64(c.ClientPort)),
		num("secureClientPort", int64(c.SecureClientPort)),
		{"dataDir", versioned(c.DataDir)},
		num("dataDirSize", dataDirSize),
		{"dataLogDir", versioned(c.DataLogDir)},
		num("dataLogSize", logDirSize),
		num("tickTime", c.TickTime.Milliseconds()),
		num("maxClientCnxns", int64(c.MaxClientCnxns)),
		num("minSessionTimeout", c.MinSessionTimeout.Milliseconds()),
		num("maxSessionTimeout", c.MaxSessionTimeout.Milliseconds()),
		num("clientPortListenBacklog", int64(c.ClientPortListenBacklog)),
		{"serverId", strconv.FormatUint(c.MyID, 10)},
	}
	if !c.Distributed() {
		return fields
	}
	self, _ := c.Self()
	var election, quorum []string
	for _, a := range self.Addrs {
		election = append(election, itoa(a.ElectionPort))
		quorum = append(quorum, itoa(a.QuorumPort))
	}
	return append(fields,
		num("initLimit", int64(c.InitLimit)),
		num("syncLimit", int64(c.SyncLimit)),
		num("electionAlg", 3),
		Field{"electionPort", strings.Join(election, "|")},
		Field{"quorumPort", strings.Join(quorum, "|")},
		num("peerType", int64(c.PeerType)))
}

// ConfText returns the whole answer to the conf command. membership is the content of
// the config node; "" omits it, as a server without a quorum does.
func (c *Config) ConfText(dataDirSize, logDirSize int64, membership string) string {
	var b strings.Builder
	for _, f := range c.ConfFields(dataDirSize, logDirSize) {
		fmt.Fprintf(&b, "%s=%s\n", f.Name, f.Value)
	}
	if membership != "" && c.Distributed() {
		b.WriteString("membership: \n" + membership)
	}
	return b.String()
}

// versioned returns the directory in dir in which ZooKeeper keeps its files.
func versioned(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		abs = dir
	}
	return filepath.Join(abs, "version-2")
}
