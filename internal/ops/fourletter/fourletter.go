// Package fourletter answers ZooKeeper's four-letter words from a server's stats
// snapshot, byte for byte as ZooKeeper 3.9 formats them.
//
// It imports only status and the standard library, and has no state.
package fourletter

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// ArgSize is the number of bytes that follow the word stmk: the trace mask.
const ArgSize = 8

// notServing is the answer to most words while the server doesn't serve clients.
const notServing = "This ZooKeeper instance is not currently serving requests\n"

// Words returns all words, sorted.
func Words() []string {
	return []string{"conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro",
		"mntr", "ruok", "srst", "srvr", "stat", "stmk", "wchc", "wchp", "wchs"}
}

// Known reports whether word is a four-letter word.
func Known(word string) bool {
	_, ok := slices.BinarySearch(Words(), word)
	return ok
}

// Allowed reports whether the whitelist allows word. srvr is always allowed, and so
// is isro in read-only mode, because clients use it to look for a server that accepts
// writes.
func Allowed(word string, whitelist []string, readOnlyMode bool) bool {
	return word == "srvr" || word == "isro" && readOnlyMode ||
		slices.Contains(whitelist, "*") || slices.Contains(whitelist, word)
}

// Refusal returns the answer to a word that isn't on the whitelist.
func Refusal(word string) []byte {
	return fmt.Appendf(nil, "%s is not executed because it is not in the whitelist.\n", word)
}

// pieceSize is how much of an answer is written at a time.
const pieceSize = 32 << 10

// Long reports whether the answer to word grows with the number of clients.
func Long(word string) bool {
	switch word {
	case "cons", "dump", "stat", "wchc", "wchp":
		return true
	}
	return false
}

// Answer writes the answer to word to w, piece by piece. arg is the argument of stmk. self
// is the address of the connection that asks. The lists show it as not being read. The
// error is w's.
func Answer(w io.Writer, word string, arg []byte, src status.Source, self string) error {
	b := bufio.NewWriterSize(w, pieceSize)
	switch word {
	case "ruok":
		b.WriteString("imok")
	case "envi":
		environment(b, src)
	case "gtmk":
		b.WriteString(strconv.FormatUint(src.TraceMask(), 10))
	case "stmk":
		setMask(b, src, arg)
	default:
		srv := src.Server()
		switch {
		case word == "isro":
			b.WriteString(isReadOnly(srv))
		case !srv.Serving:
			b.WriteString(notServing)
		default:
			whileServing(b, word, srv, src, self)
		}
	}
	return b.Flush()
}

// whileServing answers the words that need a serving server.
func whileServing(b *bufio.Writer, word string, srv status.Server, src status.Source, self string) {
	switch word {
	case "srvr":
		server(b, srv, nil, self)
	case "stat":
		server(b, srv, src.Conns(), self)
	case "cons":
		connections(b, src.Conns(), self)
	case "conf":
		configuration(b, src.Configuration(), srv.ReadOnly)
	case "dump":
		dump(b, srv, src)
	case "wchs":
		w := src.Watches()
		fmt.Fprintf(b, "%d connections watching %d paths\nTotal watches:%d\n", w.Conns, w.Paths, w.Total)
	case "wchc":
		watchesBySession(b, src.WatchesBySession())
	case "wchp":
		watchesByPath(b, src.WatchesByPath())
	case "dirs":
		data, log := src.Dirs()
		fmt.Fprintf(b, "datadir_size: %d\nlogdir_size: %d\n", data, log)
	case "hash":
		for _, d := range src.Digests() {
			fmt.Fprintf(b, "%x: %d\n", uint64(d.Zxid), d.Digest)
		}
	case "srst":
		src.ResetServer()
		b.WriteString("Server stats reset.\n")
	case "crst":
		src.ResetConns()
		b.WriteString("Connection stats reset.\n")
	case "mntr":
		for _, m := range src.Metrics() {
			fmt.Fprintf(b, "zk_%s\t%s\n", m.Line(), m.Value)
		}
	}
}

func isReadOnly(srv status.Server) string {
	switch {
	case srv.ReadOnly:
		return "ro"
	case srv.Serving:
		return "rw"
	}
	return "null"
}

func environment(b *bufio.Writer, src status.Source) {
	b.WriteString("Environment:\n")
	for _, p := range src.Environment() {
		fmt.Fprintf(b, "%s=%s\n", p.Key, p.Value)
	}
}

func setMask(b *bufio.Writer, src status.Source, arg []byte) {
	if len(arg) != ArgSize {
		return
	}
	mask := binary.BigEndian.Uint64(arg)
	src.SetTraceMask(mask)
	b.WriteString(strconv.FormatUint(mask, 10))
}

// configuration omits the final newline of an ensemble's configuration, like ZooKeeper.
func configuration(b *bufio.Writer, c status.Configuration, readOnly bool) {
	kv := func(key string, value any) { fmt.Fprintf(b, "%s=%v\n", key, value) }
	kv("clientPort", c.ClientPort)
	kv("secureClientPort", c.SecureClientPort)
	kv("dataDir", c.DataDir)
	kv("dataDirSize", c.DataDirSize)
	kv("dataLogDir", c.LogDir)
	kv("dataLogSize", c.LogDirSize)
	kv("tickTime", c.TickTime.Milliseconds())
	kv("maxClientCnxns", c.MaxClientCnxns)
	kv("minSessionTimeout", c.MinSessionTimeout.Milliseconds())
	kv("maxSessionTimeout", c.MaxSessionTimeout.Milliseconds())
	kv("clientPortListenBacklog", c.ListenBacklog)
	kv("serverId", c.ServerID)
	if !c.Ensemble {
		return
	}
	peerType := 0
	if c.Observer {
		peerType = 1
	}
	kv("initLimit", c.InitLimit)
	kv("syncLimit", c.SyncLimit)
	kv("electionAlg", 3)
	kv("electionPort", c.ElectionPort)
	kv("quorumPort", c.QuorumPort)
	kv("peerType", peerType)
	if !readOnly {
		fmt.Fprintf(b, "membership: \n%s", c.Membership)
	}
}
