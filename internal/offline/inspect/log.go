package inspect

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// Transaction is one line of a printed log.
type Transaction struct {
	Format  string    `json:"format"`
	Index   uint64    `json:"index,omitempty"` // of its log entry, zkgo only
	Term    uint64    `json:"term,omitempty"`
	Time    time.Time `json:"time"`
	Zxid    Hex       `json:"zxid,omitempty"` // 0: none, or unknown
	Session Hex       `json:"session,omitempty"`
	Cxid    int32     `json:"cxid,omitempty"` // ZooKeeper only
	Op      string    `json:"op"`
	Path    string    `json:"path,omitempty"`
	Bytes   int       `json:"bytes,omitempty"`
	Timeout int32     `json:"timeoutMs,omitempty"`
	Result  string    `json:"result,omitempty"` // Ok, or the error; empty if unknown
	Detail  string    `json:"detail,omitempty"`
	Parts   []Part    `json:"parts,omitempty"`
}

// Part is an operation of a multi.
type Part struct {
	Op     string `json:"op"`
	Path   string `json:"path,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`
	Result string `json:"result,omitempty"`
}

// Filter selects transactions. The zero value selects all.
type Filter struct {
	From, To Hex    // zxids, inclusive; 0: no limit. Excludes transactions with an unknown zxid
	Session  Hex    // 0: any
	Below    string // a path: selects that znode and its subtree
	All      bool   // include entries that aren't transactions: Raft's entries, attaches, syncs
}

func (f *Filter) lets(t *Transaction, plain bool) bool {
	switch {
	case !f.All && !plain:
		return false
	case (f.From != 0 || f.To != 0) && t.Zxid == 0,
		f.From != 0 && t.Zxid < f.From, f.To != 0 && t.Zxid > f.To,
		f.Session != 0 && t.Session != f.Session:
		return false
	case f.Below == "":
		return true
	case within(t.Path, f.Below):
		return true
	}
	for _, p := range t.Parts {
		if within(p.Path, f.Below) {
			return true
		}
	}
	return false
}

func within(path, root string) bool {
	return path == root || root == "/" && path != "" || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// ErrNoLog means that there is no log.
var ErrNoLog = errors.New("contains no log of zkgo or ZooKeeper")

// Log calls each for the transactions in a server's log that match f, in log order.
// d.Data may also be a single ZooKeeper log file.
func Log(d Dirs, f Filter, each func(*Transaction) error) error {
	st, err := os.Stat(d.Data)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return logZooKeeper([]string{d.Data}, f, each)
	}
	_, err = d.config().ReadLog(func(e *raftfsm.Entry) error { return logZkgo(e, &f, each) })
	if !errors.Is(err, raftfsm.ErrNoState) {
		return err
	}
	files, err := listZooKeeper(d, false)
	if err != nil {
		return err
	}
	var paths []string
	for _, file := range files {
		if file.Kind == "log" {
			paths = append(paths, file.Path)
		}
	}
	if len(paths) == 0 {
		return fmt.Errorf("%s: %w", d.logs(), ErrNoLog)
	}
	return logZooKeeper(paths, f, each)
}

// logZkgo prints one entry of zkgo's log.
func logZkgo(e *raftfsm.Entry, f *Filter, each func(*Transaction) error) error {
	base := Transaction{Format: FormatZkgo, Index: e.Index, Term: e.Term, Time: e.Time}
	show := func(t Transaction, plain bool) error {
		if !f.lets(&t, plain) {
			return nil
		}
		return each(&t)
	}
	switch e.Type {
	case raftfsm.EntryLeader:
		base.Op, base.Detail = "leader", fmt.Sprintf("server %d becomes the leader", e.Server)
		return show(base, false)
	case raftfsm.EntryMembers:
		base.Op, base.Detail = "members", fmt.Sprintf("a vote have %v", e.Voters)
		return show(base, false)
	case raftfsm.EntryRaft:
		base.Op = "raft"
		return show(base, false)
	}
	if e.Skipped {
		base.Op, base.Detail = "skipped", "a batch of a former leader, without effect"
		return show(base, false)
	}
	for i := range e.Transactions {
		tx := &e.Transactions[i]
		t := base
		t.Zxid, t.Session, t.Op, t.Path, t.Bytes, t.Timeout = Hex(tx.Zxid), Hex(tx.Session), opName(tx), tx.Path, tx.Bytes, tx.Timeout
		if e.Known {
			t.Result = tx.Code.String()
		}
		for _, p := range tx.Parts {
			part := Part{Op: p.Op.String(), Path: p.Path, Bytes: p.Bytes}
			if e.Known {
				part.Result = p.Code.String()
			}
			t.Parts = append(t.Parts, part)
		}
		if err := show(t, tx.Zxid != 0 || !e.Known && tx.Kind == raftfsm.KindRequest); err != nil {
			return err
		}
	}
	return nil
}

func opName(t *raftfsm.Transaction) string {
	switch t.Kind {
	case raftfsm.KindRequest:
		return t.Op.String()
	case raftfsm.KindAttach:
		if t.Zxid != 0 {
			return proto.OpCreateSession.String()
		}
	}
	return t.Kind.String()
}

// Text returns the human-readable line.
func (t *Transaction) Text() string {
	var b strings.Builder
	when := "-"
	if !t.Time.IsZero() {
		when = t.Time.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	zxid := "-"
	if t.Zxid != 0 {
		zxid = t.Zxid.String()
	}
	fmt.Fprintf(&b, "%s zxid %s", when, zxid)
	if t.Session != 0 {
		fmt.Fprintf(&b, " session %v", t.Session)
	}
	if t.Cxid != 0 {
		fmt.Fprintf(&b, " cxid %d", t.Cxid)
	}
	if t.Index != 0 {
		fmt.Fprintf(&b, " entry %d", t.Index)
	}
	b.WriteString(" " + t.Op)
	part := func(path string, bytes int, result string) {
		if path != "" {
			fmt.Fprintf(&b, " %q", path)
		}
		if bytes != 0 {
			fmt.Fprintf(&b, " %d bytes", bytes)
		}
		if result != "" && result != proto.Ok.String() {
			b.WriteString(" refused: " + result)
		}
	}
	part(t.Path, t.Bytes, t.Result)
	if t.Timeout != 0 {
		fmt.Fprintf(&b, " timeout %d ms", t.Timeout)
	}
	if t.Detail != "" {
		b.WriteString(" " + t.Detail)
	}
	for i, p := range t.Parts {
		sep := ";"
		if i == 0 {
			sep = ":"
		}
		b.WriteString(sep + " " + p.Op)
		part(p.Path, p.Bytes, p.Result)
	}
	return b.String()
}
